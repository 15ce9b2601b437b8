/* SPDX-License-Identifier: MIT */
/*
 * The scheduler port on libuv: one uv_timer for the whole timer heap, one uv_async for what other threads say. Must
 * never fire a timer early, wake up without a reason, or install a signal handler. Everything but post, stop and the
 * clocks on the thread that runs it.
 */
#include "loop/loop.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/blocking.h"
#include "base/sigpipe.h"
#include "base/task_queue.h"
#include "base/timer_heap.h"
#include "holdfast/error.h"
#include "loop/loop_internal.h"

static _Thread_local char here; /* its address names the thread */

static struct hf_mono mono(struct hfi_scheduler *self) {
    (void)self;
    return hfi_mono_now();
}

static struct hf_wall wall(struct hfi_scheduler *self) {
    (void)self;
    return hfi_wall_now();
}

static int arm(struct hfi_scheduler *self, struct hfi_timer *timer, struct hf_mono at) {
    struct hfi_loop *loop = (struct hfi_loop *)self;
    if (at.us < loop->turn.us)
        at = loop->turn;
    return hfi_timer_heap_arm(&loop->heap, timer, at);
}

static void disarm(struct hfi_scheduler *self, struct hfi_timer *timer) {
    hfi_timer_heap_disarm(&((struct hfi_loop *)self)->heap, timer);
}

static void fire(struct hfi_loop *loop) {
    loop->turn = hfi_mono_now();
    hfi_timer_heap_fire(&loop->heap, loop->turn);
}

static void on_timer(uv_timer_t *handle) {
    struct hfi_loop *loop = handle->data;
    loop->set_for = HFI_FOREVER_US;
    fire(loop);
}

/*
 * What was posted on this thread: it is awake, so no bell was rung. What these tasks want at once (libcurl does) happens
 * at once, without asking the kernel first. What they post comes in the next turn.
 */
static void run_own_tasks(struct hfi_loop *loop) {
    loop->own_tasks = false;
    hfi_task_queue_run(&loop->tasks);
    fire(loop);
    if (loop->own_tasks && !atomic_load(&loop->stopping))
        uv_async_send(&loop->async);
}

/* What was asked for "now" in this turn happens before its end. `arm` lets nothing be earlier: no clock is needed. */
static bool is_due(const struct hfi_loop *loop) {
    const struct hfi_timer *head = hfi_timer_heap_head(&loop->heap);
    return head && head->at.us <= loop->turn.us;
}

void hfi_loop_end_turn(struct hfi_loop *loop) {
    loop->events = 0;
    if (is_due(loop))
        fire(loop);
    if (loop->own_tasks)
        run_own_tasks(loop);
}

/*
 * Before every sleep: ends the turn, then sets the uv_timer for the head of the heap, if that changed. libuv counts in
 * whole ms of a time that is rounded down and may be stale, but its due time is that time plus the wait: asking for the
 * difference to the head's ms, rounded up, makes it absolute, and never early.
 */
static void on_prepare(uv_prepare_t *handle) {
    struct hfi_loop *loop = handle->data;
    hfi_loop_end_turn(loop);
    const struct hfi_timer *head = hfi_timer_heap_head(&loop->heap);
    int64_t at = head ? head->at.us : HFI_FOREVER_US;
    if (at == loop->set_for)
        return;
    loop->set_for = at;
    if (at == HFI_FOREVER_US) {
        uv_timer_stop(&loop->timer);
        return;
    }
    /* What is due already must not wait for the next whole ms: libcurl asks for "now" once per request. */
    int64_t wait = at <= hfi_mono_now().us ? 0 : hfi_us_to_ms_up(at) - (int64_t)uv_now(&loop->uv);
    uv_timer_start(&loop->timer, on_timer, wait > 0 ? (uint64_t)wait : 0, 0);
}

static void on_async(uv_async_t *handle) {
    struct hfi_loop *loop = handle->data;
    hfi_task_queue_run(&loop->tasks);
    if (atomic_load(&loop->stopping))
        uv_stop(&loop->uv);
}

/* Under the queue's lock. */
static void wake(void *user) {
    struct hfi_loop *loop = user;
    if (atomic_load(&loop->thread) == &here)
        loop->own_tasks = true;
    else
        uv_async_send(&loop->async);
}

static void post(struct hfi_scheduler *self, struct hfi_task *task) {
    hfi_task_queue_put(&((struct hfi_loop *)self)->tasks, task);
}

static bool on_thread(struct hfi_scheduler *self) {
    return atomic_load(&((struct hfi_loop *)self)->thread) == &here;
}

static void stop(struct hfi_scheduler *self) {
    struct hfi_loop *loop = (struct hfi_loop *)self;
    if (on_thread(self)) {
        atomic_store(&loop->stopping, true);
        uv_stop(&loop->uv); /* after this very turn */
        return;
    }
    /* Under the lock, so that close, which may follow the end of the run at once, waits for us to be out of here. */
    hfi_task_queue_flag(&loop->tasks, &loop->stopping);
}

static int run(struct hfi_scheduler *self) {
    struct hfi_loop *loop = (struct hfi_loop *)self;
    struct hfi_sigpipe saved;
    hfi_sigpipe_block(&saved); /* libcurl and our own writes must get EPIPE */
    bool could_block = hfi_may_block();
    hfi_thread_must_not_block(true);
    atomic_store(&loop->thread, &here);
    while (!atomic_load(&loop->stopping))
        uv_run(&loop->uv, UV_RUN_DEFAULT);
    atomic_store(&loop->stopping, false);
    atomic_store(&loop->thread, NULL);
    hfi_thread_must_not_block(!could_block);
    hfi_sigpipe_restore(&saved);
    return 0;
}

static void close_loop(struct hfi_scheduler *self) {
    struct hfi_loop *loop = (struct hfi_loop *)self;
    hfi_task_queue_close(&loop->tasks);
    while (loop->watches)
        hfi_loop_unwatch(self, loop->watches);
    uv_close((uv_handle_t *)&loop->timer, NULL);
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    uv_close((uv_handle_t *)&loop->async, NULL);
    while (uv_loop_close(&loop->uv) == UV_EBUSY)
        uv_run(&loop->uv, UV_RUN_DEFAULT); /* runs the close callbacks */
    hfi_timer_heap_free(&loop->heap);
    hfi_task_queue_free(&loop->tasks);
    hfi_free(loop);
}

static const struct hfi_scheduler_ops ops = {
    .version = HFI_SCHEDULER_VERSION,
    .mono = mono,
    .wall = wall,
    .arm = arm,
    .disarm = disarm,
    .watch = hfi_loop_watch,
    .change = hfi_loop_change,
    .unwatch = hfi_loop_unwatch,
    .post = post,
    .run = run,
    .stop = stop,
    .on_thread = on_thread,
    .close = close_loop,
};

/*
 * Without enough descriptors libuv aborts the process (its signal pipe, made with the first loop) or leaks what it got.
 * For us that must be an error, so it is tried first: 2 for that pipe, 2 for the loop's own, an epoll and an eventfd.
 * Another thread may still take the last ones in between.
 */
static bool descriptors_left(void) {
    int ends[3][2];
    int count = 0;
    while (count < 3 && pipe2(ends[count], O_CLOEXEC) == 0)
        count++;
    for (int i = 0; i < count; i++) {
        close(ends[i][0]);
        close(ends[i][1]);
    }
    return count == 3;
}

static int open_handles(struct hfi_loop *loop) {
    if (!descriptors_left())
        return UV_EMFILE;
    int code = uv_loop_init(&loop->uv);
    if (code != 0)
        return code;
    code = uv_async_init(&loop->uv, &loop->async, on_async);
    if (code != 0) {
        uv_loop_close(&loop->uv);
        return code;
    }
    uv_timer_init(&loop->uv, &loop->timer);
    uv_prepare_init(&loop->uv, &loop->prepare);
    uv_prepare_start(&loop->prepare, on_prepare);
    loop->async.data = loop;
    loop->timer.data = loop;
    loop->prepare.data = loop;
    return 0;
}

int hfi_loop_new(struct hfi_scheduler **out) {
    struct hfi_loop *loop = hfi_alloc(sizeof *loop);
    if (!loop)
        return HF_ENOMEM;
    loop->base.ops = &ops;
    loop->set_for = HFI_FOREVER_US;
    hfi_timer_heap_init(&loop->heap);
    int code = hfi_task_queue_init(&loop->tasks, wake, loop);
    if (code != 0) {
        hfi_free(loop);
        return code;
    }
    int native = open_handles(loop);
    if (native != 0) {
        hfi_task_queue_free(&loop->tasks);
        hfi_free(loop);
        return native == UV_ENOMEM ? HF_ENOMEM : HF_EIO;
    }
    *out = &loop->base;
    return 0;
}
