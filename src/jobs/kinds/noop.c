/* SPDX-License-Identifier: MIT */
/*
 * The kind of job that does nothing, for benchmarks: same claim, start mark, lease, history and end as any other; it
 * ends well one turn of the loop after its start. Must never end inside start. Loop thread.
 */
#include "base/alloc.h"
#include "jobs/work.h"

static void end(struct hfi_task *task, void *user) {
    (void)task;
    struct hf_work *work = user;
    work->ending.result = HF_RESULT_OK;
    work->ended(work, work->user);
}

static int start(struct hfi_kind *self, struct hf_work *work) {
    (void)self;
    work->task.run = end;
    work->task.user = work;
    work->scheduler->ops->post(work->scheduler, &work->task);
    return 0;
}

static void stop(struct hfi_kind *self, struct hf_work *work, bool hurry) {
    (void)self; /* it ends in this turn anyway */
    (void)work;
    (void)hurry;
}

static void close_kind(struct hfi_kind *self) {
    hfi_free(self);
}

static const struct hfi_kind_ops noop_ops = {"noop", false, start, stop, NULL, close_kind};

int hfi_kind_noop_new(struct hfi_scheduler *scheduler, struct hfi_kind **kind) {
    (void)scheduler;
    *kind = hfi_alloc(sizeof **kind);
    if (*kind == NULL)
        return HF_ENOMEM;
    (*kind)->ops = &noop_ops;
    return 0;
}
