/* SPDX-License-Identifier: MIT */
/* A binary heap of embedded timers. Must never read a clock: `now` is handed in. The scheduler's thread. */
#include "base/timer_heap.h"

#include "base/alloc.h"
#include "holdfast/error.h"

void hfi_timer_heap_init(struct hfi_timer_heap *heap) {
    *heap = (struct hfi_timer_heap){0};
}

void hfi_timer_heap_free(struct hfi_timer_heap *heap) {
    hfi_free(heap->items);
    hfi_timer_heap_init(heap);
}

static bool before(const struct hfi_timer *a, const struct hfi_timer *b) {
    return a->at.us != b->at.us ? a->at.us < b->at.us : a->order < b->order;
}

static void place(struct hfi_timer_heap *heap, size_t index, struct hfi_timer *timer) {
    heap->items[index] = timer;
    timer->index = index + 1;
}

static void rise(struct hfi_timer_heap *heap, size_t index, struct hfi_timer *timer) {
    while (index > 0) {
        size_t parent = (index - 1) / 2;
        if (!before(timer, heap->items[parent]))
            break;
        place(heap, index, heap->items[parent]);
        index = parent;
    }
    place(heap, index, timer);
}

static void sink(struct hfi_timer_heap *heap, size_t index, struct hfi_timer *timer) {
    for (;;) {
        size_t child = index * 2 + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && before(heap->items[child + 1], heap->items[child]))
            child++;
        if (!before(heap->items[child], timer))
            break;
        place(heap, index, heap->items[child]);
        index = child;
    }
    place(heap, index, timer);
}

/* Puts `timer` where it belongs, starting from the hole at `index`. */
static void settle(struct hfi_timer_heap *heap, size_t index, struct hfi_timer *timer) {
    if (index > 0 && before(timer, heap->items[(index - 1) / 2]))
        rise(heap, index, timer);
    else
        sink(heap, index, timer);
}

static int grow(struct hfi_timer_heap *heap) {
    size_t room = heap->room > 0 ? heap->room * 2 : 16;
    struct hfi_timer **items = NULL;
    if (room <= SIZE_MAX / sizeof(struct hfi_timer *))
        items = hfi_realloc(heap->items, room * sizeof(struct hfi_timer *));
    if (!items)
        return HF_ENOMEM;
    heap->items = items;
    heap->room = room;
    return 0;
}

int hfi_timer_heap_arm(struct hfi_timer_heap *heap, struct hfi_timer *timer, struct hf_mono at) {
    if (!hfi_timer_armed(timer)) {
        if (heap->count == heap->room && grow(heap) != 0)
            return HF_ENOMEM;
        timer->index = ++heap->count;
    }
    timer->at = at;
    timer->order = heap->order++;
    settle(heap, timer->index - 1, timer);
    return 0;
}

void hfi_timer_heap_disarm(struct hfi_timer_heap *heap, struct hfi_timer *timer) {
    if (!hfi_timer_armed(timer))
        return;
    size_t hole = timer->index - 1;
    timer->index = 0;
    struct hfi_timer *last = heap->items[--heap->count];
    if (last != timer)
        settle(heap, hole, last);
}

struct hfi_timer *hfi_timer_heap_head(const struct hfi_timer_heap *heap) {
    return heap->count > 0 ? heap->items[0] : NULL;
}

size_t hfi_timer_heap_fire(struct hfi_timer_heap *heap, struct hf_mono now) {
    const uint64_t newer = heap->order;
    size_t fired = 0;
    struct hfi_timer *timer;
    while ((timer = hfi_timer_heap_head(heap)) != NULL && timer->at.us <= now.us && timer->order < newer) {
        hfi_timer_heap_disarm(heap, timer);
        timer->fire(timer, timer->user);
        fired++;
    }
    return fired;
}
