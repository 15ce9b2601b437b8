/* SPDX-License-Identifier: MIT */
/*
 * Memory, and the seam where tests make it run out. Must never touch errno or log: it runs inside error paths. Any
 * thread. Production never arms the seam and pays one relaxed load per allocation for it.
 */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LINE ((size_t)64)
#define SMALL ((size_t)1024) /* what malloc hands out again at once, warm; calloc takes it from further away */

static atomic_bool watched; /* somebody called hfi_alloc_fail in this process */
static atomic_bool persistent;
static atomic_long failing; /* number of the allocation that fails; 0 = none */
static atomic_long counted;
static atomic_size_t bytes;

static bool refused(size_t size) {
    if (!atomic_load_explicit(&watched, memory_order_relaxed))
        return false;
    long number = atomic_fetch_add(&counted, 1) + 1;
    atomic_fetch_add(&bytes, size);
    long first = atomic_load(&failing);
    if (first == 0)
        return false;
    return number == first || (number > first && atomic_load(&persistent));
}

void *hfi_alloc(size_t size) {
    if (refused(size))
        return NULL;
    if (size > SMALL)
        return calloc(1, size);
    void *memory = malloc(size > 0 ? size : 1);
    return memory ? memset(memory, 0, size) : NULL;
}

void *hfi_alloc_unset(size_t size) {
    return refused(size) ? NULL : malloc(size > 0 ? size : 1);
}

void *hfi_alloc_array(size_t count, size_t size) {
    if (size > 0 && count > SIZE_MAX / size)
        return NULL;
    return hfi_alloc(count * size);
}

void *hfi_alloc_lines(size_t size) {
    void *memory = NULL;
    if (refused(size) || posix_memalign(&memory, LINE, size > 0 ? size : 1) != 0)
        return NULL;
    return memset(memory, 0, size);
}

void *hfi_realloc(void *memory, size_t size) {
    if (refused(size))
        return NULL;
    return realloc(memory, size > 0 ? size : 1);
}

char *hfi_strdup(const char *text) {
    return text ? hfi_memdup(text, strlen(text) + 1) : NULL;
}

void *hfi_memdup(const void *data, size_t length) {
    if (!data || length == 0)
        return NULL;
    void *copy = hfi_alloc(length);
    if (copy)
        memcpy(copy, data, length);
    return copy;
}

void hfi_free(void *memory) {
    free(memory);
}

void hfi_alloc_fail(long nth, int forever) {
    atomic_store(&failing, 0);
    atomic_store(&counted, 0);
    atomic_store(&bytes, 0);
    atomic_store(&persistent, forever != 0);
    atomic_store(&failing, nth > 0 ? nth : 0);
    atomic_store(&watched, true);
}

long hfi_alloc_count(void) {
    return atomic_load(&counted);
}

size_t hfi_alloc_bytes(void) {
    return atomic_load(&bytes);
}
