/* SPDX-License-Identifier: MIT */
/*
 * Spreads as bytes: a version, then (gap to the key before, count) pairs as numbers of seven bits a byte. Two of them are
 * merged without being spread out, since a store does that for every downstream once a minute. Must never trust bytes:
 * they come from a file. Pure; one thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "holdfast/error.h"
#include "resilience/spread.h"

#define VERSION 1
#define ENTRY_MAX 20 /* two numbers of 64 bits */
#define FIRST_ROOM 256

static bool make_room(struct hfi_packed *packed, size_t more) {
    if (packed->failed)
        return false;
    if (packed->room - packed->length >= more)
        return true;
    size_t room = packed->room > 0 ? packed->room * 2 : FIRST_ROOM;
    unsigned char *bytes = hfi_realloc(packed->bytes, room);
    if (bytes == NULL) {
        packed->failed = true;
        return false;
    }
    packed->bytes = bytes;
    packed->room = room;
    return true;
}

static void put_number(struct hfi_packed *packed, uint64_t number) {
    while (number >= 0x80) {
        packed->bytes[packed->length++] = (unsigned char)(number | 0x80);
        number >>= 7;
    }
    packed->bytes[packed->length++] = (unsigned char)number;
}

void hfi_packed_begin(struct hfi_packed *packed) {
    memset(packed, 0, sizeof *packed);
    if (make_room(packed, 1))
        packed->bytes[packed->length++] = VERSION;
}

void hfi_packed_put(struct hfi_packed *packed, uint64_t key, uint64_t count) {
    if (count == 0 || !make_room(packed, ENTRY_MAX))
        return;
    put_number(packed, key + 1 - packed->last);
    put_number(packed, count);
    packed->last = key + 1;
}

void hfi_packed_end(struct hfi_packed *packed) {
    hfi_free(packed->bytes);
    memset(packed, 0, sizeof *packed);
}

bool hfi_packed_empty(const struct hfi_packed *packed) {
    return packed->last == 0;
}

struct reader {
    const unsigned char *at, *end;
    uint64_t last, key, count;
    bool bad;
};

static uint64_t take_number(struct reader *reader) {
    uint64_t number = 0;
    for (unsigned shift = 0; reader->at < reader->end && shift < 64; shift += 7) {
        unsigned char byte = *reader->at++;
        uint64_t part = byte & 0x7f;
        if (part > UINT64_MAX >> shift)
            break;
        number |= part << shift;
        if (byte < 0x80)
            return number;
    }
    reader->bad = true;
    return 0;
}

static struct reader begin(const void *bytes, size_t length) {
    struct reader reader = {.at = bytes, .end = (const unsigned char *)bytes + length};
    if (length == 0 || *reader.at++ != VERSION)
        reader.bad = true;
    return reader;
}

/* The next entry is in key and count; false: there is none, or it is bad. */
static bool next(struct reader *reader) {
    if (reader->bad || reader->at >= reader->end)
        return false;
    uint64_t gap = take_number(reader);
    reader->count = take_number(reader);
    if (reader->bad || gap == 0 || reader->count == 0 || gap > UINT64_MAX - reader->last) {
        reader->bad = true;
        return false;
    }
    reader->last += gap;
    reader->key = reader->last - 1;
    return true;
}

int hfi_packed_merge(const void *a, size_t a_length, const void *b, size_t b_length, struct hfi_packed *sum) {
    struct reader left = begin(a, a_length), right = begin(b, b_length);
    hfi_packed_begin(sum);
    bool has_left = next(&left), has_right = next(&right);
    while (has_left || has_right) {
        bool from_left = has_left && (!has_right || left.key <= right.key);
        bool from_right = has_right && (!has_left || right.key <= left.key);
        uint64_t key = from_left ? left.key : right.key;
        hfi_packed_put(sum, key, hfi_spread_sum(from_left ? left.count : 0, from_right ? right.count : 0));
        has_left = from_left ? next(&left) : has_left;
        has_right = from_right ? next(&right) : has_right;
    }
    int code = left.bad || right.bad ? HF_EINVAL : sum->failed ? HF_ENOMEM : 0;
    if (code != 0)
        hfi_packed_end(sum);
    return code;
}

int hfi_packed_each(const void *bytes, size_t length, hfi_packed_fn each, void *user) {
    struct reader reader = begin(bytes, length);
    while (next(&reader))
        continue;
    if (reader.bad)
        return HF_EINVAL;
    reader = begin(bytes, length);
    while (next(&reader))
        if (!each(reader.key, reader.count, user))
            return HF_ENOMEM;
    return 0;
}

struct target {
    struct hfi_spread *spreads;
    size_t count;
};

static bool add(uint64_t key, uint64_t count, void *user) {
    const struct target *target = user;
    uint64_t spread = key / HFI_SPREAD_BUCKETS;
    if (spread < target->count) {
        uint64_t *place = &target->spreads[spread].counts[key % HFI_SPREAD_BUCKETS];
        *place = hfi_spread_sum(*place, count);
    }
    return true;
}

int hfi_packed_add(const void *bytes, size_t length, struct hfi_spread *spreads, size_t count) {
    struct target target = {spreads, count};
    return hfi_packed_each(bytes, length, add, &target);
}
