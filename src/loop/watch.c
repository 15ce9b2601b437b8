/* SPDX-License-Identifier: MIT */
/*
 * File descriptors on the loop: one uv_poll each. Must never call `ready` after unwatch, nor free a handle before
 * libuv has let go of it. The loop's thread.
 */
#include "base/alloc.h"
#include "holdfast/error.h"
#include "loop/loop_internal.h"

struct hfi_watch {
    uv_poll_t poll;
    struct hfi_loop *loop;
    hfi_watch_fn ready;
    void *user;
    unsigned events;
    bool closed;
    struct hfi_watch *next, *previous;
};

static void on_ready(uv_poll_t *handle, int status, int events);

static void apply(struct hfi_watch *watch) {
    int wanted = (watch->events & HFI_READABLE ? UV_READABLE : 0) | (watch->events & HFI_WRITABLE ? UV_WRITABLE : 0);
    if (wanted != 0)
        uv_poll_start(&watch->poll, wanted, on_ready); /* fails only on a handle that is being closed */
    else
        uv_poll_stop(&watch->poll);
}

static void on_ready(uv_poll_t *handle, int status, int events) {
    struct hfi_watch *watch = handle->data;
    struct hfi_loop *loop = watch->loop;
    unsigned reported = (events & UV_READABLE ? HFI_READABLE : 0u) | (events & UV_WRITABLE ? HFI_WRITABLE : 0u);
    if (status < 0)
        reported = HFI_BROKEN;
    watch->ready(watch, reported, watch->user);
    /* libuv stops polling a socket in error (as UV_EBADF). Whoever still wants it goes on hearing of it. */
    if (status < 0 && !watch->closed && !uv_is_active((uv_handle_t *)handle))
        apply(watch);
    if (++loop->events >= HFI_LOOP_EVENTS)
        hfi_loop_end_turn(loop); /* the watch may be gone afterwards */
}

static int translate(int native) {
    switch (native) {
    case UV_ENOMEM:
        return HF_ENOMEM;
    case UV_EEXIST:
        return HF_EEXIST;
    case UV_EPERM: /* epoll does not take it: a regular file or a directory */
        return HF_ENOTSUP;
    case UV_EBADF:
        return HF_EINVAL;
    default:
        return HF_EIO;
    }
}

int hfi_loop_watch(struct hfi_scheduler *self, int fd, unsigned events, hfi_watch_fn ready, void *user,
                   struct hfi_watch **out) {
    struct hfi_loop *loop = (struct hfi_loop *)self;
    struct hfi_watch *watch = hfi_alloc(sizeof *watch);
    if (!watch)
        return HF_ENOMEM;
    int native = uv_poll_init(&loop->uv, &watch->poll, fd);
    if (native != 0) {
        hfi_free(watch);
        return translate(native);
    }
    watch->poll.data = watch;
    watch->loop = loop;
    watch->ready = ready;
    watch->user = user;
    watch->events = events;
    watch->next = loop->watches;
    if (watch->next)
        watch->next->previous = watch;
    loop->watches = watch;
    apply(watch);
    *out = watch;
    return 0;
}

int hfi_loop_change(struct hfi_scheduler *self, struct hfi_watch *watch, unsigned events) {
    (void)self;
    watch->events = events;
    apply(watch);
    return 0;
}

static void on_closed(uv_handle_t *handle) {
    hfi_free(handle->data);
}

void hfi_loop_unwatch(struct hfi_scheduler *self, struct hfi_watch *watch) {
    struct hfi_loop *loop = (struct hfi_loop *)self;
    if (!watch)
        return;
    watch->closed = true;
    if (watch->next)
        watch->next->previous = watch->previous;
    if (watch->previous)
        watch->previous->next = watch->next;
    else
        loop->watches = watch->next;
    uv_close((uv_handle_t *)&watch->poll, on_closed); /* stops it at once: the fd may be closed right after this */
}
