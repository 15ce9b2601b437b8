/* SPDX-License-Identifier: MIT */
/*
 * What a handler says while it runs, and how it hears of a stop: heartbeats, progress, checkpoints, the last word of an
 * asynchronous one. Must never post for a work whose end is on its way, nor let two ends of one work happen. Any thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "jobs/work.h"

int hfi_desk_init(struct hfi_desk *desk, struct hfi_scheduler *scheduler, struct hfi_writer *writer) {
    memset(desk, 0, sizeof *desk);
    if (pthread_mutex_init(&desk->lock, NULL) != 0)
        return HF_ENOMEM;
    if (pthread_cond_init(&desk->moved, NULL) != 0) {
        pthread_mutex_destroy(&desk->lock);
        return HF_ENOMEM;
    }
    desk->scheduler = scheduler;
    desk->writer = writer;
    desk->open = true;
    return 0;
}

void hfi_desk_close(struct hfi_desk *desk) {
    pthread_mutex_lock(&desk->lock);
    desk->open = false;
    while (desk->writing > 0)
        pthread_cond_wait(&desk->moved, &desk->lock);
    pthread_mutex_unlock(&desk->lock);
}

bool hfi_desk_keeps(struct hfi_desk *desk) {
    pthread_mutex_lock(&desk->lock);
    bool keeps = desk->keeping > 0;
    pthread_mutex_unlock(&desk->lock);
    return keeps;
}

void hfi_desk_end(struct hfi_desk *desk) {
    if (desk->scheduler == NULL)
        return;
    pthread_mutex_destroy(&desk->lock);
    pthread_cond_destroy(&desk->moved);
}

static void alive(struct hf_work *work) {
    atomic_store_explicit(&work->beat_us, work->scheduler->ops->mono(work->scheduler).us, memory_order_relaxed);
}

void hfi_work_begins(struct hf_work *work) {
    alive(work);
}

/* Under the lock: does anybody still listen to it? */
static bool heard(const struct hf_work *work) {
    return work->desk->open && !work->finished && !work->lapsed;
}

static void post(struct hf_work *work, struct hfi_task *task, bool *posted) {
    if (*posted)
        return;
    *posted = true;
    work->scheduler->ops->post(work->scheduler, task);
}

void hf_work_heartbeat(struct hf_work *work) {
    if (work->wire != NULL)
        work->wire->heartbeat(work);
    else
        alive(work);
}

/* ------------------------------------------------------------------ progress and checkpoints */

int hf_work_progress(struct hf_work *work, int64_t n, const char *text) {
    struct hfi_desk *desk = work->desk;
    char clean[HF_PROGRESS_TEXT_MAX + 1];
    if (work->wire != NULL)
        return work->wire->progress(work, n, text);
    if (desk == NULL)
        return HF_ESTALE;
    alive(work);
    hfi_text_copy(clean, sizeof clean, text);
    pthread_mutex_lock(&desk->lock);
    bool listens = heard(work);
    if (listens) {
        work->progress = n;
        memcpy(work->progress_text, clean, sizeof clean);
        if (!work->progress_new) /* else a task or a timer that takes it is on its way */
            post(work, &work->progress_task, &work->progress_posted);
        work->progress_new = true;
    }
    pthread_mutex_unlock(&desk->lock);
    return listens ? 0 : HF_ESTALE;
}

void hfi_work_progress_came(struct hf_work *work) {
    pthread_mutex_lock(&work->desk->lock);
    work->progress_posted = false;
    pthread_mutex_unlock(&work->desk->lock);
}

bool hfi_work_take_progress(struct hf_work *work, int64_t *progress, char *text) {
    pthread_mutex_lock(&work->desk->lock);
    bool is_new = work->progress_new;
    work->progress_new = false; /* its task may still be on its way: only that says when it came */
    *progress = work->progress;
    memcpy(text, work->progress_text, sizeof work->progress_text);
    pthread_mutex_unlock(&work->desk->lock);
    return is_new;
}

/* Is it with the desk's writer now? Counted, so that the desk closes after it. */
static bool begin_write(struct hf_work *work) {
    struct hfi_desk *desk = work->desk;
    pthread_mutex_lock(&desk->lock);
    bool listens = heard(work) && desk->writer != NULL;
    desk->writing += listens;
    pthread_mutex_unlock(&desk->lock);
    return listens;
}

static void end_write(struct hfi_desk *desk) {
    pthread_mutex_lock(&desk->lock);
    desk->writing--;
    pthread_cond_broadcast(&desk->moved);
    pthread_mutex_unlock(&desk->lock);
}

/* Somebody waits for what became of one that was sent to the node. */
struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool done;
    int code;
};

static void wake(int code, void *user) {
    struct waiter *waiter = user;
    pthread_mutex_lock(&waiter->lock);
    waiter->code = code;
    waiter->done = true;
    pthread_cond_signal(&waiter->moved);
    pthread_mutex_unlock(&waiter->lock);
}

static int wire_checkpoint(struct hf_work *work, const void *bytes, size_t length) {
    struct waiter waiter = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    if (work->scheduler->ops->on_thread(work->scheduler))
        return HF_EDEADLK; /* what brings the answer */
    int code = work->wire->checkpoint(work, bytes, length, wake, &waiter);
    if (code != 0)
        return code;
    pthread_mutex_lock(&waiter.lock);
    while (!waiter.done)
        pthread_cond_wait(&waiter.moved, &waiter.lock);
    pthread_mutex_unlock(&waiter.lock);
    return waiter.code;
}

bool hfi_work_keeps(struct hf_work *work) {
    pthread_mutex_lock(&work->desk->lock);
    bool keeps = work->keeping > 0;
    pthread_mutex_unlock(&work->desk->lock);
    return keeps;
}

void hfi_work_checkpoint_came(struct hfi_checkpoint *checkpoint) {
    struct hf_work *work = checkpoint->work;
    if (checkpoint->done != NULL)
        checkpoint->done(checkpoint->op.op.code, checkpoint->user);
    hfi_free(checkpoint);
    pthread_mutex_lock(&work->desk->lock);
    work->keeping--;
    work->desk->keeping--;
    pthread_mutex_unlock(&work->desk->lock);
}

/*
 * Straight to the writer, as those that are waited for and before the lock is let go: so an older one never lands on a newer
 * one, nor behind the end of its execution.
 */
static bool keep(struct hf_work *work, struct hfi_checkpoint *one) {
    struct hfi_desk *desk = work->desk;
    pthread_mutex_lock(&desk->lock);
    bool listens = heard(work) && desk->writer != NULL;
    if (listens) {
        work->keeping++;
        desk->keeping++;
        hfi_writer_submit(desk->writer, &one->op.op);
    }
    pthread_mutex_unlock(&desk->lock);
    return listens;
}

int hf_work_checkpoint_start(struct hf_work *work, const void *bytes, size_t length, hf_checkpoint_fn done, void *user) {
    if (bytes == NULL)
        length = 0;
    if (length > HF_CHECKPOINT_MAX)
        return HF_ETOOBIG;
    if (work->wire != NULL)
        return work->wire->checkpoint(work, bytes, length, done, user);
    if (work->desk == NULL || work->kept == NULL)
        return HF_ESTALE;
    struct hfi_checkpoint *one = hfi_alloc(sizeof *one + length);
    if (one == NULL)
        return HF_ENOMEM;
    *one = (struct hfi_checkpoint){.work = work, .done = done, .user = user};
    one->op = (struct hfi_op_note){.op = {.kind = HFI_OP_NOTE, .home = work->scheduler, .done = work->kept, .user = one},
                                   .id = work->job->id, .epoch = work->job->epoch, .set = HFI_NOTE_CHECKPOINT, .text = "",
                                   .checkpoint = one->bytes, .length = length};
    if (length > 0)
        memcpy(one->bytes, bytes, length);
    alive(work);
    if (keep(work, one))
        return 0;
    hfi_free(one);
    return HF_ESTALE;
}

int hf_work_checkpoint(struct hf_work *work, const void *bytes, size_t length) {
    struct hfi_op_note op = {.op = {.kind = HFI_OP_NOTE}, .id = work->job->id, .epoch = work->job->epoch,
                             .set = HFI_NOTE_CHECKPOINT, .text = "", .checkpoint = bytes,
                             .length = bytes == NULL ? 0 : length};
    if (length > HF_CHECKPOINT_MAX)
        return HF_ETOOBIG;
    if (work->wire != NULL)
        return wire_checkpoint(work, bytes, op.length);
    if (work->desk == NULL || !begin_write(work))
        return HF_ESTALE;
    alive(work);
    int code = hfi_writer_do(work->desk->writer, &op.op);
    alive(work);
    end_write(work->desk);
    if (code == HF_ESTALE)
        hfi_log(HF_LOG_WARNING, "job.stale", HFI_I("job", op.id), HFI_I("epoch", op.epoch), HFI_S("why", "checkpoint"),
                NULL);
    return code;
}

/* ------------------------------------------------------------------ told to stop */

/* The stop callback, if one is there and was not called yet. Loop thread, without the lock. */
void hfi_work_tell_stop(struct hf_work *work) {
    struct hfi_desk *desk = work->desk;
    if (desk == NULL)
        return;
    pthread_mutex_lock(&desk->lock);
    hf_stop_fn tell = work->finished || work->told ? NULL : work->on_stop;
    void *user = work->stop_user;
    if (tell != NULL) {
        work->told = true;
        desk->telling = work;
    }
    pthread_mutex_unlock(&desk->lock);
    if (tell == NULL)
        return;
    tell(work, (enum hf_stop)atomic_load(&work->stop), user);
    pthread_mutex_lock(&desk->lock);
    desk->telling = NULL;
    pthread_cond_broadcast(&desk->moved);
    pthread_mutex_unlock(&desk->lock);
}

static void tell_late(struct hfi_task *task, void *user) {
    struct hf_work *work = user;
    (void)task;
    pthread_mutex_lock(&work->desk->lock);
    work->stop_posted = false;
    pthread_mutex_unlock(&work->desk->lock);
    hfi_work_tell_stop(work);
}

void hf_work_on_stop(struct hf_work *work, hf_stop_fn stop, void *user) {
    struct hfi_desk *desk = work->desk;
    if (desk == NULL)
        return;
    pthread_mutex_lock(&desk->lock);
    work->on_stop = stop;
    work->stop_user = user;
    if (stop != NULL && desk->open && !work->finished && !work->told && atomic_load(&work->stop) != HFI_STOP_NONE) {
        work->stop_task.run = tell_late;
        work->stop_task.user = work;
        post(work, &work->stop_task, &work->stop_posted);
    }
    pthread_mutex_unlock(&desk->lock);
}

bool hfi_work_lapse(struct hf_work *work) {
    pthread_mutex_lock(&work->desk->lock);
    bool lives = !work->finished;
    work->lapsed = work->lapsed || lives;
    pthread_mutex_unlock(&work->desk->lock);
    return lives;
}

/* ------------------------------------------------------------------ the last word */

/* Under the lock. */
static bool close_locked(struct hf_work *work) {
    struct hfi_desk *desk = work->desk;
    while (desk->telling == work && !work->scheduler->ops->on_thread(work->scheduler))
        pthread_cond_wait(&desk->moved, &desk->lock);
    bool first = !work->finished;
    work->finished = true;
    return first;
}

bool hfi_work_close(struct hf_work *work) {
    if (work->desk == NULL)
        return true;
    pthread_mutex_lock(&work->desk->lock);
    bool first = close_locked(work);
    pthread_mutex_unlock(&work->desk->lock);
    return first;
}

static void on_loop(struct hfi_task *task, void *user) {
    struct hf_work *work = user;
    (void)task;
    work->ended(work, work->user);
}

int hf_work_finish(struct hf_work *work, enum hf_result result) {
    struct hfi_desk *desk = work == NULL ? NULL : work->desk;
    if (desk == NULL || work->type->async_handler == NULL)
        return HF_EINVAL;
    pthread_mutex_lock(&desk->lock);
    int code = close_locked(work) ? 0 : HF_ESTATE;
    if (code == 0) {
        hfi_work_judge(work, result);
        if (work->lapsed || !desk->open)
            code = HF_ESTALE;
        work->task.run = on_loop;
        work->task.user = work;
        if (desk->open)
            work->scheduler->ops->post(work->scheduler, &work->task);
    }
    pthread_mutex_unlock(&desk->lock);
    return code;
}
