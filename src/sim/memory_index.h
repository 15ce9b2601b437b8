/* SPDX-License-Identifier: MIT */
#ifndef HFI_SIM_MEMORY_INDEX_H
#define HFI_SIM_MEMORY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The three shapes of the memory store's data. Only `reserve` can fail, so that changes cannot once they began. */

/* Pointers in order; those with ascending ids are searched. */
struct hfi_array {
    void **items;
    size_t count, room;
};
int hfi_array_reserve(struct hfi_array *array, size_t more); /* 0 or HF_ENOMEM */
void hfi_array_append(struct hfi_array *array, void *item);  /* room was reserved */
void hfi_array_remove(struct hfi_array *array, size_t index);
/* First index whose id is > id. */
size_t hfi_array_after(const struct hfi_array *array, int64_t id, int64_t (*id_of)(const void *item));

/* Texts to rows; links sit in the rows. */
struct hfi_link {
    struct hfi_link *next;
    uint64_t hash;
    const char *key;
    void *row;
};
#define HFI_INDEX_FIRST 64
struct hfi_index {
    struct hfi_link **buckets; /* NULL: `first` */
    size_t size, count;
    struct hfi_link *first[HFI_INDEX_FIRST];
};
void hfi_index_add(struct hfi_index *index, struct hfi_link *link, const char *key, void *row); /* key lives as long */
void hfi_index_remove(struct hfi_index *index, struct hfi_link *link);
void *hfi_index_find(const struct hfi_index *index, const char *key);
void hfi_index_clear(struct hfi_index *index);

/* Rows by (time, id), earliest first. */
struct hfi_heap_item {
    int64_t at_us, id;
    size_t place; /* + 1; 0 = not in */
    void *row;
};
struct hfi_heap {
    struct hfi_heap_item **items;
    size_t count, room;
};
int hfi_heap_reserve(struct hfi_heap *heap, size_t room); /* 0 or HF_ENOMEM */
void hfi_heap_push(struct hfi_heap *heap, struct hfi_heap_item *item);
void hfi_heap_remove(struct hfi_heap *heap, struct hfi_heap_item *item); /* not in: a no-op */
static inline struct hfi_heap_item *hfi_heap_first(const struct hfi_heap *heap) {
    return heap->count > 0 ? heap->items[0] : NULL;
}

#endif
