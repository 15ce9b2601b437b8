/* SPDX-License-Identifier: MIT */
/*
 * The relays of a runner: one thread for each outbox, and their news brought to the loop. Must never post to a loop that
 * is closed: the relays are joined before. The loop thread, but for news and counts.
 */
#include "assembly/outboxes.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/outbox/relay.h"

struct hfi_outboxes {
    struct hfi_scheduler *loop;
    struct hfi_runner *node;
    struct hfi_task task;
    _Atomic bool posted, stopped;
    size_t count;
    struct hfi_relay *relays[];
};

static void told(struct hfi_task *task, void *user) {
    (void)task;
    struct hfi_outboxes *outboxes = user;
    atomic_store(&outboxes->posted, false);
    hfi_runner_relayed(outboxes->node);
}

static void changed(void *user) {
    struct hfi_outboxes *outboxes = user;
    if (!atomic_exchange(&outboxes->posted, true))
        outboxes->loop->ops->post(outboxes->loop, &outboxes->task);
}

/* An older caller's options are shorter, so are the steps from one to the next. */
static int make(struct hfi_outboxes *outboxes, const struct hf_runner_options *options, struct hf_store *store,
                const struct hfi_rulebook *book, struct hf_error *error) {
    const char *at = (const char *)options->outboxes;
    uint32_t step = options->outboxes->size;
    for (size_t i = 0; i < options->outbox_count; i++, at += step) {
        struct hf_outbox_options outbox;
        hf_outbox_options_init(&outbox);
        memcpy(&outbox, at, step < sizeof outbox ? step : sizeof outbox);
        struct hfi_relay_options relay = {.outbox = &outbox,
                                          .writer = store->writer,
                                          .book = book,
                                          .payload_max = store->port->options.payload_max,
                                          .changed = changed,
                                          .user = outboxes};
        int code = hfi_relay_new(&relay, &outboxes->relays[i], error);
        if (code != 0)
            return code;
        outboxes->count++;
    }
    return 0;
}

int hfi_outboxes_new(const struct hf_runner_options *options, struct hf_store *store, const struct hfi_rulebook *book,
                     struct hfi_outboxes **out, struct hf_error *error) {
    *out = NULL;
    if (options->outbox_count == 0)
        return 0;
    if (options->outboxes == NULL || options->outboxes->size < sizeof options->outboxes->size)
        return hfi_fail(error, HF_EINVAL, "outboxes", "call hf_outbox_options_init first", "their size is not set");
    struct hfi_outboxes *outboxes = hfi_alloc(sizeof *outboxes + options->outbox_count * sizeof(struct hfi_relay *));
    if (outboxes == NULL)
        return hfi_fail(error, HF_ENOMEM, "outboxes", NULL, "no memory");
    outboxes->task.run = told;
    outboxes->task.user = outboxes;
    int code = make(outboxes, options, store, book, error);
    if (code != 0) {
        hfi_outboxes_free(outboxes);
        return code;
    }
    *out = outboxes;
    return 0;
}

int hfi_outboxes_start(struct hfi_outboxes *outboxes, struct hfi_scheduler *loop, struct hfi_runner *node) {
    int code = 0;
    if (outboxes == NULL)
        return 0;
    outboxes->loop = loop;
    outboxes->node = node;
    for (size_t i = 0; i < outboxes->count && code == 0; i++)
        code = hfi_relay_start(outboxes->relays[i]);
    return code;
}

int hfi_outboxes_watch(const struct hfi_outboxes *outboxes, struct hfi_watchdog *dog) {
    int code = 0;
    for (size_t i = 0; outboxes != NULL && i < outboxes->count && code == 0; i++) {
        const char *name;
        const struct hfi_pulse *pulse = hfi_relay_pulse(outboxes->relays[i], &name);
        code = hfi_watchdog_add(dog, name, pulse);
    }
    return code;
}

void hfi_outboxes_stop(struct hfi_outboxes *outboxes) {
    if (outboxes == NULL)
        return;
    atomic_store(&outboxes->stopped, true);
    for (size_t i = 0; i < outboxes->count; i++)
        hfi_relay_stop(outboxes->relays[i]);
}

void hfi_outboxes_join(struct hfi_outboxes *outboxes) {
    hfi_outboxes_stop(outboxes); /* all of them before the first is waited for */
    for (size_t i = 0; outboxes != NULL && i < outboxes->count; i++)
        hfi_relay_join(outboxes->relays[i]);
}

void hfi_outboxes_free(struct hfi_outboxes *outboxes) {
    if (outboxes == NULL)
        return;
    hfi_outboxes_join(outboxes);
    for (size_t i = 0; i < outboxes->count; i++)
        hfi_relay_free(outboxes->relays[i]);
    hfi_free(outboxes);
}

bool hfi_outboxes_busy(void *user) {
    const struct hfi_outboxes *outboxes = user;
    struct hfi_relay_view view;
    for (size_t i = 0; outboxes != NULL && !atomic_load(&outboxes->stopped) && i < outboxes->count; i++) {
        hfi_relay_look(outboxes->relays[i], &view);
        if (view.busy)
            return true;
    }
    return false;
}

void hfi_outboxes_count(const struct hfi_outboxes *outboxes, int64_t now_us, struct hf_runner_counts *counts) {
    struct hfi_relay_view view;
    for (size_t i = 0; outboxes != NULL && i < outboxes->count; i++) {
        hfi_relay_look(outboxes->relays[i], &view);
        counts->relayed += view.relayed;
        counts->poisoned += view.poisoned;
        int64_t age = view.oldest_us > 0 && view.oldest_us < now_us ? (now_us - view.oldest_us) / 1000 : 0;
        if (age > counts->outbox_oldest_ms)
            counts->outbox_oldest_ms = age;
    }
}
