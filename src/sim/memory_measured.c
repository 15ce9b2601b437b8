/* SPDX-License-Identifier: MIT */
/*
 * Measured attempts in the memory store, as in the SQLite store. The operation: under the store's lock; the look takes it.
 */
#include "jobs/measuring.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "sim/memory_state.h"

struct row {
    char *key;
    int64_t hour;
    unsigned char *bytes;
    size_t length;
};

void hfi_memory_measured_free(void *item) {
    struct row *row = item;
    hfi_free(row->key);
    hfi_free(row->bytes);
    hfi_free(row);
}

static struct row *find(const struct hfi_memory *store, const char *key, int64_t hour) {
    for (size_t i = store->measured.count; i > 0; i--) {
        struct row *row = store->measured.items[i - 1];
        if (row->hour == hour && strcmp(row->key, key) == 0)
            return row;
    }
    return NULL;
}

/* In its place by the hour: a clock may have stepped back. */
static int insert(struct hfi_memory *store, const char *key, int64_t hour, unsigned char *bytes, size_t length) {
    struct row *row = hfi_alloc(sizeof *row);
    char *copy = hfi_strdup(key);
    if (!row || !copy || hfi_array_reserve(&store->measured, 1) != 0) {
        hfi_free(row);
        hfi_free(copy);
        return HF_ENOMEM;
    }
    *row = (struct row){copy, hour, bytes, length};
    hfi_array_append(&store->measured, row);
    void **items = store->measured.items;
    for (size_t at = store->measured.count - 1; at > 0 && ((struct row *)items[at - 1])->hour > hour; at--) {
        items[at] = items[at - 1];
        items[at - 1] = row;
    }
    return 0;
}

static void forget(struct hfi_memory *store, struct hfi_op_measure *op, int64_t before) {
    size_t gone = 0;
    while (gone < store->measured.count && gone < HFI_MEASURED_FORGET &&
           ((struct row *)store->measured.items[gone])->hour < before)
        hfi_memory_measured_free(store->measured.items[gone++]);
    store->measured.count -= gone;
    for (size_t i = 0; gone > 0 && i < store->measured.count; i++)
        store->measured.items[i] = store->measured.items[i + gone];
    op->more = gone == HFI_MEASURED_FORGET;
}

int hfi_memory_measure(struct hfi_memory *store, struct hfi_op_measure *op) {
    unsigned char *sum;
    size_t length;
    int64_t hour = hfi_measured_hour(op->now.us);
    struct row *row = find(store, op->key, hour);
    int code = hfi_measured_merge(row ? row->bytes : NULL, row ? row->length : 0, op->bytes, op->length, &sum, &length);
    if (code != 0)
        return code;
    if (row) {
        hfi_free(row->bytes);
        row->bytes = sum;
        row->length = length;
    } else if ((code = insert(store, op->key, hour, sum, length)) != 0) {
        hfi_free(sum);
        return code;
    }
    forget(store, op, hour - HFI_MEASURED_HOURS);
    return 0;
}

int hfi_memory_look_measured(struct hfi_store *self, const char *key, int64_t from_hour, hfi_measured_fn each, void *user,
                             struct hf_error *error) {
    struct hfi_memory *store = hfi_memory_of(self);
    bool goes_on = true;
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->measured.count && goes_on; i++) {
        const struct row *row = store->measured.items[i];
        if (row->hour >= from_hour && strcmp(row->key, key) == 0)
            goes_on = each(row->hour, row->bytes, row->length, user);
    }
    pthread_mutex_unlock(&store->lock);
    return goes_on ? 0 : hfi_fail(error, HF_ENOMEM, "measured", NULL, "out of memory");
}
