/* SPDX-License-Identifier: MIT */
/*
 * The scheduler port on virtual time. Must never read a real clock or touch a real descriptor: a run depends on nothing
 * but the calls made. One thread, except post and stop.
 */
#include "sim/virtual.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/task_queue.h"
#include "base/timer_heap.h"
#include "holdfast/error.h"

struct hfi_watch {
    int fd;
    unsigned events; /* asked for */
    unsigned ready;  /* happened, not reported yet */
    hfi_watch_fn report;
    void *user;
    bool closed; /* freed at the end of the turn */
    struct hfi_watch *next;
};

struct virtual {
    struct hfi_scheduler base;
    struct hfi_timer_heap heap;
    struct hfi_task_queue tasks;
    struct hfi_watch *watches; /* oldest first */
    _Atomic int64_t mono_us, wall_us;
    atomic_bool stopping;
    _Atomic(void *) thread;
};

static _Thread_local char here; /* its address names the thread */

static struct hf_mono mono(struct hfi_scheduler *self) {
    return (struct hf_mono){atomic_load(&((struct virtual *)self)->mono_us)};
}

static struct hf_wall wall(struct hfi_scheduler *self) {
    return (struct hf_wall){atomic_load(&((struct virtual *)self)->wall_us)};
}

static int arm(struct hfi_scheduler *self, struct hfi_timer *timer, struct hf_mono at) {
    struct hf_mono now = mono(self);
    return hfi_timer_heap_arm(&((struct virtual *)self)->heap, timer, at.us < now.us ? now : at);
}

static void disarm(struct hfi_scheduler *self, struct hfi_timer *timer) {
    hfi_timer_heap_disarm(&((struct virtual *)self)->heap, timer);
}

static struct hfi_watch *find(struct virtual *v, int fd) {
    for (struct hfi_watch *watch = v->watches; watch; watch = watch->next)
        if (watch->fd == fd && !watch->closed)
            return watch;
    return NULL;
}

static int watch_fd(struct hfi_scheduler *self, int fd, unsigned events, hfi_watch_fn ready, void *user,
                    struct hfi_watch **out) {
    struct virtual *v = (struct virtual *)self;
    if (fd < 0)
        return HF_EINVAL;
    if (find(v, fd))
        return HF_EEXIST;
    struct hfi_watch *watch = hfi_alloc(sizeof *watch);
    if (!watch)
        return HF_ENOMEM;
    *watch = (struct hfi_watch){.fd = fd, .events = events, .report = ready, .user = user};
    struct hfi_watch **end = &v->watches;
    while (*end)
        end = &(*end)->next;
    *end = watch;
    *out = watch;
    return 0;
}

static int change(struct hfi_scheduler *self, struct hfi_watch *watch, unsigned events) {
    (void)self;
    watch->events = events;
    return 0;
}

static void unwatch(struct hfi_scheduler *self, struct hfi_watch *watch) {
    (void)self;
    if (watch)
        watch->closed = true;
}

static size_t report_ready(struct virtual *v) {
    size_t count = 0;
    for (struct hfi_watch *watch = v->watches; watch; watch = watch->next) {
        unsigned heard = watch->events ? watch->ready & (watch->events | HFI_BROKEN) : 0;
        if (heard == 0 || watch->closed)
            continue;
        watch->ready &= ~heard;
        watch->report(watch, heard, watch->user);
        count++;
    }
    for (struct hfi_watch **link = &v->watches; *link;) {
        struct hfi_watch *watch = *link;
        if (watch->closed) {
            *link = watch->next;
            hfi_free(watch);
        } else {
            link = &watch->next;
        }
    }
    return count;
}

int hfi_virtual_ready(struct hfi_scheduler *scheduler, int fd, unsigned events) {
    struct hfi_watch *watch = find((struct virtual *)scheduler, fd);
    if (!watch)
        return HF_ENOENT;
    watch->ready |= events;
    return 0;
}

static void post(struct hfi_scheduler *self, struct hfi_task *task) {
    hfi_task_queue_put(&((struct virtual *)self)->tasks, task);
}

static void jump(struct virtual *v, int64_t mono_us) {
    int64_t passed = hfi_sub(mono_us, atomic_load(&v->mono_us));
    if (passed <= 0)
        return;
    atomic_store(&v->mono_us, mono_us);
    atomic_store(&v->wall_us, hfi_add(atomic_load(&v->wall_us), passed));
}

/* Turns and jumps up to `until`. True when it was stopped before there was nothing left to do by then. */
static bool run_to(struct virtual *v, int64_t until) {
    atomic_store(&v->thread, &here);
    bool stopped = false;
    while (!(stopped = atomic_exchange(&v->stopping, false))) {
        size_t ran = hfi_task_queue_run(&v->tasks);
        ran += report_ready(v);
        ran += hfi_timer_heap_fire(&v->heap, mono(&v->base));
        if (ran > 0)
            continue;
        const struct hfi_timer *head = hfi_timer_heap_head(&v->heap);
        if (!head || head->at.us > until)
            break;
        jump(v, head->at.us);
    }
    atomic_store(&v->thread, NULL);
    return stopped;
}

static int run(struct hfi_scheduler *self) {
    run_to((struct virtual *)self, HFI_FOREVER_US - 1); /* a timer at forever never fires */
    return 0;
}

void hfi_virtual_run_until(struct hfi_scheduler *scheduler, struct hf_mono at) {
    struct virtual *v = (struct virtual *)scheduler;
    if (!run_to(v, at.us))
        jump(v, at.us);
}

void hfi_virtual_advance(struct hfi_scheduler *scheduler, int64_t ms) {
    hfi_virtual_run_until(scheduler, hfi_mono_after_ms(mono(scheduler), ms));
}

void hfi_virtual_stand_still(struct hfi_scheduler *scheduler, int64_t ms) {
    jump((struct virtual *)scheduler, hfi_mono_after_ms(mono(scheduler), ms).us);
}

void hfi_virtual_step_wall(struct hfi_scheduler *scheduler, int64_t delta_us) {
    struct virtual *v = (struct virtual *)scheduler;
    atomic_store(&v->wall_us, hfi_add(atomic_load(&v->wall_us), delta_us));
}

static void stop(struct hfi_scheduler *self) {
    struct virtual *v = (struct virtual *)self;
    hfi_task_queue_flag(&v->tasks, &v->stopping);
}

static bool on_thread(struct hfi_scheduler *self) {
    return atomic_load(&((struct virtual *)self)->thread) == &here;
}

static void close_virtual(struct hfi_scheduler *self) {
    struct virtual *v = (struct virtual *)self;
    hfi_task_queue_close(&v->tasks);
    hfi_task_queue_free(&v->tasks);
    hfi_timer_heap_free(&v->heap);
    while (v->watches) {
        struct hfi_watch *watch = v->watches;
        v->watches = watch->next;
        hfi_free(watch);
    }
    hfi_free(v);
}

static const struct hfi_scheduler_ops ops = {
    .version = HFI_SCHEDULER_VERSION,
    .mono = mono,
    .wall = wall,
    .arm = arm,
    .disarm = disarm,
    .watch = watch_fd,
    .change = change,
    .unwatch = unwatch,
    .post = post,
    .run = run,
    .stop = stop,
    .on_thread = on_thread,
    .close = close_virtual,
};

int hfi_virtual_new(struct hf_mono start_mono, struct hf_wall start_wall, struct hfi_scheduler **scheduler) {
    struct virtual *v = hfi_alloc(sizeof *v);
    if (!v)
        return HF_ENOMEM;
    int code = hfi_task_queue_init(&v->tasks, NULL, NULL);
    if (code != 0) {
        hfi_free(v);
        return code;
    }
    v->base.ops = &ops;
    hfi_timer_heap_init(&v->heap);
    atomic_init(&v->mono_us, start_mono.us);
    atomic_init(&v->wall_us, start_wall.us);
    *scheduler = &v->base;
    return 0;
}
