/* SPDX-License-Identifier: MIT */
/*
 * Arrays, indexes and heaps of the memory store. Must never fail in the middle of a change: room is reserved before.
 * One thread at a time.
 */
#include "sim/memory_index.h"

#include <string.h>

#include "base/alloc.h"
#include "holdfast/error.h"

int hfi_array_reserve(struct hfi_array *array, size_t more) {
    size_t room = array->room > 0 ? array->room : 16;
    while (room < array->count + more)
        room *= 2;
    if (room == array->room)
        return 0;
    void **items = hfi_realloc(array->items, room * sizeof *items);
    if (!items)
        return HF_ENOMEM;
    array->items = items;
    array->room = room;
    return 0;
}

void hfi_array_append(struct hfi_array *array, void *item) {
    array->items[array->count++] = item;
}

void hfi_array_remove(struct hfi_array *array, size_t index) {
    array->count--;
    memmove(array->items + index, array->items + index + 1, (array->count - index) * sizeof *array->items);
}

size_t hfi_array_after(const struct hfi_array *array, int64_t id, int64_t (*id_of)(const void *item)) {
    size_t low = 0, high = array->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (id_of(array->items[middle]) <= id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t hash_of(const char *key) {
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 0x100000001b3u;
    return hash ^ (hash >> 32);
}

static struct hfi_link **bucket(const struct hfi_index *index, uint64_t hash) {
    struct hfi_link *const *all = index->buckets ? index->buckets : index->first;
    size_t size = index->buckets ? index->size : HFI_INDEX_FIRST;
    return (struct hfi_link **)(uintptr_t)&all[hash & (size - 1)];
}

/* Without memory the chains only get longer. */
static void grow(struct hfi_index *index) {
    size_t old = index->buckets ? index->size : HFI_INDEX_FIRST;
    if (index->count < old)
        return;
    struct hfi_link **before = index->buckets ? index->buckets : index->first;
    struct hfi_link **after = hfi_alloc_array(old * 4, sizeof *after);
    if (!after)
        return;
    for (size_t i = 0; i < old; i++)
        while (before[i]) {
            struct hfi_link *link = before[i];
            before[i] = link->next;
            link->next = after[link->hash & (old * 4 - 1)];
            after[link->hash & (old * 4 - 1)] = link;
        }
    hfi_free(index->buckets);
    index->buckets = after;
    index->size = old * 4;
}

void hfi_index_add(struct hfi_index *index, struct hfi_link *link, const char *key, void *row) {
    grow(index);
    link->hash = hash_of(key);
    link->key = key;
    link->row = row;
    struct hfi_link **at = bucket(index, link->hash);
    link->next = *at;
    *at = link;
    index->count++;
}

void hfi_index_remove(struct hfi_index *index, struct hfi_link *link) {
    struct hfi_link **at = bucket(index, link->hash);
    while (*at && *at != link)
        at = &(*at)->next;
    if (*at) {
        *at = link->next;
        index->count--;
    }
}

void *hfi_index_find(const struct hfi_index *index, const char *key) {
    uint64_t hash = hash_of(key);
    for (struct hfi_link *link = *bucket(index, hash); link; link = link->next)
        if (link->hash == hash && strcmp(link->key, key) == 0)
            return link->row;
    return NULL;
}

void hfi_index_clear(struct hfi_index *index) {
    hfi_free(index->buckets);
    memset(index, 0, sizeof *index);
}

int hfi_heap_reserve(struct hfi_heap *heap, size_t room) {
    size_t grown = heap->room > 0 ? heap->room : 16;
    while (grown < room)
        grown *= 2;
    if (grown == heap->room)
        return 0;
    struct hfi_heap_item **items = hfi_realloc(heap->items, grown * sizeof *items);
    if (!items)
        return HF_ENOMEM;
    heap->items = items;
    heap->room = grown;
    return 0;
}

static bool before(const struct hfi_heap_item *a, const struct hfi_heap_item *b) {
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->id < b->id;
}

static void set(struct hfi_heap *heap, size_t place, struct hfi_heap_item *item) {
    heap->items[place] = item;
    item->place = place + 1;
}

static void settle(struct hfi_heap *heap, size_t place, struct hfi_heap_item *item) {
    while (place > 0 && before(item, heap->items[(place - 1) / 2])) {
        set(heap, place, heap->items[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (;;) {
        size_t child = place * 2 + 1;
        if (child + 1 < heap->count && before(heap->items[child + 1], heap->items[child]))
            child++;
        if (child >= heap->count || !before(heap->items[child], item))
            break;
        set(heap, place, heap->items[child]);
        place = child;
    }
    set(heap, place, item);
}

void hfi_heap_push(struct hfi_heap *heap, struct hfi_heap_item *item) {
    settle(heap, heap->count++, item);
}

void hfi_heap_remove(struct hfi_heap *heap, struct hfi_heap_item *item) {
    if (item->place == 0)
        return;
    size_t place = item->place - 1;
    struct hfi_heap_item *last = heap->items[--heap->count];
    item->place = 0;
    if (last != item)
        settle(heap, place, last);
}
