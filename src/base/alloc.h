/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_ALLOC_H
#define HFI_BASE_ALLOC_H

#include <stddef.h>

/*
 * The one seam for memory: tests make the Nth allocation fail here. Zeroed memory; NULL when there is none.
 * hfi_free takes what these returned, NULL included.
 */
void *hfi_alloc(size_t size);
void *hfi_alloc_array(size_t count, size_t size); /* NULL on overflow */
void *hfi_alloc_unset(size_t size); /* not zeroed */
void *hfi_alloc_lines(size_t size); /* begins a cache line of 64 bytes; never to be reallocated */
void *hfi_realloc(void *memory, size_t size);
char *hfi_strdup(const char *text);
void *hfi_memdup(const void *data, size_t length); /* NULL for length 0 */
void hfi_free(void *memory);

/* Tests only: the `nth` allocation from now (1 = next) fails, and with `forever` all after it; 0 switches it off. */
void hfi_alloc_fail(long nth, int forever);
long hfi_alloc_count(void); /* allocations since the last hfi_alloc_fail */
size_t hfi_alloc_bytes(void); /* and how much they asked for */

#endif
