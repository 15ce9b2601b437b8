/* SPDX-License-Identifier: MIT */
/*
 * The writer of a store: gathers the operations that wait into groups, urgent ones first, lets the store commit each
 * group in one transaction and answers. Must never commit two groups at once, answer before the commit, or wake up
 * while there is nothing to do. Runs on a thread of its own, or (virtual time) on a scheduler's, where all of it stays.
 *
 * A store that is busy for now is tried again with growing pauses; the group goes back to the head of the queue
 * meanwhile, so a beat that comes in still goes first. After HFI_WRITER_PATIENCE_MS without any success groups are
 * answered HF_EBUSY at their first try, so that nobody waits longer than that for bad news: it counts from the beginning
 * of the first try, which may have taken all of it, and no later try is given more than what is left.
 */
#include "jobs/writer.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "jobs/op_line.h"

#define BATCH_ROWS 4096 /* 3.5: no transaction of more than 5,000 rows */
#define PAUSE_FIRST_MS 5
#define PAUSE_LONGEST_MS 500
#define TRY_MS 100 /* no try is begun that would have less than this */

struct hfi_writer {
    struct hfi_store *store;
    struct hfi_scheduler *scheduler; /* NULL: a thread of its own */
    struct hfi_timer turn;           /* of the scheduler */
    pthread_t thread;
    pthread_mutex_t lock; /* of lines, ears, closing and counts */
    pthread_cond_t work;
    struct hfi_op_line urgent, waiting;
    struct hfi_writer_ear *ears;
    bool closing;
    struct hfi_pulse pulse;
    struct hfi_writer_counts counts;
    /* The committing thread's alone: */
    struct hfi_op *batch[HFI_WRITER_BATCH_OPS];
    size_t count;
    bool committing;
    struct hf_mono busy_since; /* when the first try began that was refused since the last success; 0 none */
    int64_t pause_ms;          /* before the next try; 0 = not busy */
};

static bool waits(const struct hfi_writer *writer) {
    return writer->urgent.first || writer->waiting.first;
}

/* Lock held. One operation is always taken, however heavy. */
static void gather(struct hfi_writer *writer) {
    uint64_t rows = 0;
    writer->count = 0;
    while (writer->count < HFI_WRITER_BATCH_OPS && waits(writer)) {
        struct hfi_op_line *line = writer->urgent.first ? &writer->urgent : &writer->waiting;
        rows += hfi_op_weight(line->first);
        if (writer->count > 0 && rows > BATCH_ROWS)
            break;
        writer->batch[writer->count++] = hfi_op_take(line);
    }
}

/* Lock held. */
static void put_back(struct hfi_writer *writer) {
    while (writer->count > 0) {
        struct hfi_op *op = writer->batch[--writer->count];
        hfi_op_prepend(op->urgent ? &writer->urgent : &writer->waiting, op);
    }
}

static void run_done(struct hfi_task *task, void *user) {
    struct hfi_op *op = user;
    (void)task;
    op->done(op, op->user);
}

/* The operation is its submitter's again as soon as it is answered: nothing of it is read afterwards. */
static void answer(struct hfi_op *op) {
    if (!op->done)
        return;
    if (op->home) {
        op->task.run = run_done;
        op->task.user = op;
        op->home->ops->post(op->home, &op->task);
    } else {
        op->done(op, op->user);
    }
}

static bool refused_for_now(const struct hfi_writer *writer) {
    for (size_t i = 0; i < writer->count; i++)
        if (writer->batch[i]->code != HF_EBUSY)
            return false;
    return writer->count > 0;
}

/* What is left of the patience, for a try that begins now. Once it is over a group has none of those in it who waited. */
static int64_t patience_us(const struct hfi_writer *writer, struct hf_mono now) {
    int64_t whole = hfi_ms_to_us(HFI_WRITER_PATIENCE_MS);
    int64_t spent = writer->busy_since.us == 0 ? 0 : hfi_sub(now.us, writer->busy_since.us);
    return spent < whole ? whole - spent : whole;
}

/* True: try the group again after pause_ms. */
static bool be_patient(struct hfi_writer *writer, struct hf_mono began, struct hf_mono now) {
    bool first = writer->busy_since.us == 0;
    if (first)
        writer->busy_since.us = began.us == 0 ? 1 : began.us;
    writer->pause_ms = first ? PAUSE_FIRST_MS : writer->pause_ms * 2;
    if (writer->pause_ms > PAUSE_LONGEST_MS)
        writer->pause_ms = PAUSE_LONGEST_MS;
    int64_t next_us = hfi_add(now.us, hfi_ms_to_us(writer->pause_ms + TRY_MS));
    bool patient = hfi_sub(next_us, writer->busy_since.us) <= hfi_ms_to_us(HFI_WRITER_PATIENCE_MS);
    if (first)
        hfi_log(HF_LOG_DEBUG, "store.busy", HFI_S("kind", writer->store->ops->kind), NULL);
    if (!patient)
        hfi_log(HF_LOG_WARNING, "store.busy", HFI_S("kind", writer->store->ops->kind),
                HFI_I("refused_operations", writer->count), NULL);
    return patient;
}

/* Does it tell a runner that there may be something to do? */
static bool is_news(const struct hfi_op *op) {
    switch (op->kind) {
    case HFI_OP_PUT:
    case HFI_OP_CANCEL:
    case HFI_OP_REQUEUE:
    case HFI_OP_REDRIVE:
    case HFI_OP_PAUSE:
        return op->code == 0;
    case HFI_OP_DOWNSTREAM:
        return op->code == 0 && ((const struct hfi_op_downstream *)(const void *)op)->set & HFI_DOWNSTREAM_FORCED;
    default:
        return false;
    }
}

/* Lock held. */
static void tell_ears(const struct hfi_writer *writer) {
    bool news = false;
    for (size_t i = 0; i < writer->count && !news && writer->ears; i++)
        news = is_news(writer->batch[i]);
    for (struct hfi_writer_ear *ear = writer->ears; news && ear; ear = ear->next)
        ear->heard(ear->user);
}

void hfi_writer_listen(struct hfi_writer *writer, struct hfi_writer_ear *ear) {
    pthread_mutex_lock(&writer->lock);
    ear->next = writer->ears;
    writer->ears = ear;
    pthread_mutex_unlock(&writer->lock);
}

void hfi_writer_unlisten(struct hfi_writer *writer, struct hfi_writer_ear *ear) {
    pthread_mutex_lock(&writer->lock);
    struct hfi_writer_ear **at = &writer->ears;
    while (*at && *at != ear)
        at = &(*at)->next;
    if (*at)
        *at = ear->next;
    pthread_mutex_unlock(&writer->lock);
}

static struct hf_mono now_of(const struct hfi_writer *writer) {
    return writer->scheduler ? writer->scheduler->ops->mono(writer->scheduler) : hfi_mono_now();
}

/* Commits what was gathered and answers it, or puts it back. Lock not held. */
static void commit(struct hfi_writer *writer) {
    struct hf_mono began = now_of(writer);
    writer->committing = true;
    for (size_t i = 0; i < writer->count; i++)
        writer->batch[i]->code = 0;
    writer->store->budget_us = patience_us(writer, began);
    writer->store->ops->commit(writer->store, writer->batch, writer->count);
    struct hf_mono ended = now_of(writer);
    bool busy = refused_for_now(writer);
    bool again = busy && be_patient(writer, began, ended);
    if (!busy) {
        writer->busy_since.us = 0;
        writer->pause_ms = 0;
    }
    pthread_mutex_lock(&writer->lock);
    uint64_t took = (uint64_t)hfi_sub(ended.us, began.us);
    if (took > writer->counts.longest_us)
        writer->counts.longest_us = took;
    if (again) {
        put_back(writer);
    } else {
        writer->counts.commits++;
        writer->counts.ops += writer->count;
        tell_ears(writer);
    }
    pthread_mutex_unlock(&writer->lock);
    for (size_t i = 0; i < writer->count; i++)
        answer(writer->batch[i]);
    writer->count = 0;
    writer->committing = false;
}

/* The thread. */

static void wait_until(struct hfi_writer *writer, struct hf_mono at) {
    struct timespec deadline = {.tv_sec = at.us / 1000000, .tv_nsec = at.us % 1000000 * 1000};
    pthread_cond_timedwait(&writer->work, &writer->lock, &deadline);
}

/* Lock held. A pause is not cut short by new work: the store is busy for it too. */
static void sit_out_pause(struct hfi_writer *writer) {
    struct hf_mono until = hfi_mono_after_ms(hfi_mono_now(), writer->pause_ms);
    while (hfi_mono_now().us < until.us)
        wait_until(writer, until);
}

/* Lock held; false: closing and nothing waits. */
static bool wait_for_work(struct hfi_writer *writer, int64_t wish_ms) {
    struct hf_mono until = {wish_ms >= 0 ? hfi_mono_after_ms(hfi_mono_now(), wish_ms).us : HFI_FOREVER_US};
    if (writer->pause_ms > 0)
        sit_out_pause(writer);
    hfi_pulse_rest(&writer->pulse);
    while (!waits(writer) && !writer->closing) {
        if (until.us == HFI_FOREVER_US)
            pthread_cond_wait(&writer->work, &writer->lock);
        else if (hfi_mono_now().us >= until.us)
            break;
        else
            wait_until(writer, until);
    }
    hfi_pulse_beat(&writer->pulse);
    return waits(writer) || !writer->closing;
}

static void *write_all(void *user) {
    struct hfi_writer *writer = user;
    int64_t wish_ms = -1;
    hfi_thread_must_not_block(true);
    pthread_mutex_lock(&writer->lock);
    while (wait_for_work(writer, wish_ms)) {
        gather(writer);
        pthread_mutex_unlock(&writer->lock);
        if (writer->count > 0)
            commit(writer);
        pthread_mutex_lock(&writer->lock);
        bool idle = !waits(writer);
        pthread_mutex_unlock(&writer->lock);
        wish_ms = writer->store->ops->housekeep ? writer->store->ops->housekeep(writer->store, idle) : -1;
        pthread_mutex_lock(&writer->lock);
    }
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

static int start_thread(struct hfi_writer *writer) {
    sigset_t all, before;
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&writer->thread, NULL, write_all, writer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return HF_ENOMEM;
    pthread_setname_np(writer->thread, "hf-writer");
    return 0;
}

/* On a scheduler: one turn of the timer is one group. */

static void arm_turn(struct hfi_writer *writer, int64_t ms);

static void take_turn(struct hfi_writer *writer) {
    pthread_mutex_lock(&writer->lock);
    gather(writer);
    pthread_mutex_unlock(&writer->lock);
    if (writer->count > 0)
        commit(writer);
}

static void turn_fired(struct hfi_timer *timer, void *user) {
    struct hfi_writer *writer = user;
    (void)timer;
    take_turn(writer);
    bool idle = !waits(writer);
    int64_t wish_ms = writer->store->ops->housekeep ? writer->store->ops->housekeep(writer->store, idle) : -1;
    if (!idle)
        arm_turn(writer, writer->pause_ms);
    else if (wish_ms >= 0 && !hfi_timer_armed(&writer->turn))
        arm_turn(writer, wish_ms);
}

static void arm_turn(struct hfi_writer *writer, int64_t ms) {
    struct hf_mono at = hfi_mono_after_ms(writer->scheduler->ops->mono(writer->scheduler), ms);
    if (writer->scheduler->ops->arm(writer->scheduler, &writer->turn, at) != 0 && !writer->committing)
        take_turn(writer); /* no memory for a timer: early rather than never */
}

static void submit_on(struct hfi_writer *writer) {
    struct hf_mono now = writer->scheduler->ops->mono(writer->scheduler);
    bool armed = hfi_timer_armed(&writer->turn);
    if (!armed || (writer->pause_ms == 0 && writer->turn.at.us > now.us))
        arm_turn(writer, writer->pause_ms);
}

static int new_writer(struct hfi_store *store, struct hfi_scheduler *scheduler, struct hfi_writer **writer) {
    struct hfi_writer *made = hfi_alloc(sizeof *made);
    pthread_condattr_t monotonic;
    *writer = NULL;
    if (!made)
        return HF_ENOMEM;
    made->store = store;
    made->scheduler = scheduler;
    hfi_timer_init(&made->turn, turn_fired, made);
    pthread_mutex_init(&made->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&made->work, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *writer = made;
    return 0;
}

static void free_writer(struct hfi_writer *writer) {
    pthread_cond_destroy(&writer->work);
    pthread_mutex_destroy(&writer->lock);
    hfi_free(writer);
}

int hfi_writer_new(struct hfi_store *store, struct hfi_writer **writer) {
    int code = new_writer(store, NULL, writer);
    if (code == 0 && (code = start_thread(*writer)) != 0) {
        free_writer(*writer);
        *writer = NULL;
    }
    return code;
}

int hfi_writer_new_on(struct hfi_store *store, struct hfi_scheduler *scheduler, struct hfi_writer **writer) {
    return new_writer(store, scheduler, writer);
}

void hfi_writer_close(struct hfi_writer *writer) {
    if (!writer)
        return;
    pthread_mutex_lock(&writer->lock);
    writer->closing = true;
    pthread_cond_signal(&writer->work);
    pthread_mutex_unlock(&writer->lock);
    if (writer->scheduler) {
        writer->scheduler->ops->disarm(writer->scheduler, &writer->turn);
        for (writer->busy_since.us = INT64_MIN; waits(writer);) /* patience is over: time stands still here */
            take_turn(writer);
        writer->scheduler->ops->disarm(writer->scheduler, &writer->turn);
    } else {
        pthread_join(writer->thread, NULL);
    }
    free_writer(writer);
}

void hfi_writer_submit(struct hfi_writer *writer, struct hfi_op *op) {
    op->next = NULL;
    hfi_writer_submit_all(writer, op);
}

void hfi_writer_submit_all(struct hfi_writer *writer, struct hfi_op *first) {
    struct hfi_op *next;
    pthread_mutex_lock(&writer->lock);
    for (struct hfi_op *op = first; op; op = next) {
        next = op->next;
        hfi_op_append(op->urgent ? &writer->urgent : &writer->waiting, op);
    }
    pthread_cond_signal(&writer->work);
    pthread_mutex_unlock(&writer->lock);
    if (writer->scheduler)
        submit_on(writer);
}

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool done;
};

static void wake(struct hfi_op *op, void *user) {
    struct waiter *waiter = user;
    (void)op;
    pthread_mutex_lock(&waiter->lock);
    waiter->done = true;
    pthread_cond_signal(&waiter->woken);
    pthread_mutex_unlock(&waiter->lock);
}

static int do_on(struct hfi_writer *writer, struct hfi_op *op, const struct waiter *waiter) {
    while (!waiter->done) {
        if (writer->pause_ms > 0)
            writer->busy_since.us = INT64_MIN; /* nothing would wait for the pause */
        take_turn(writer);
    }
    return op->code;
}

int hfi_writer_do(struct hfi_writer *writer, struct hfi_op *op) {
    struct waiter waiter = {.lock = PTHREAD_MUTEX_INITIALIZER, .woken = PTHREAD_COND_INITIALIZER};
    if (!hfi_may_block() || hfi_writer_on_thread(writer))
        return op->code = HF_EDEADLK;
    op->home = NULL;
    op->done = wake;
    op->user = &waiter;
    hfi_writer_submit(writer, op);
    if (writer->scheduler)
        return do_on(writer, op, &waiter);
    pthread_mutex_lock(&waiter.lock);
    while (!waiter.done)
        pthread_cond_wait(&waiter.woken, &waiter.lock);
    pthread_mutex_unlock(&waiter.lock);
    pthread_mutex_destroy(&waiter.lock);
    pthread_cond_destroy(&waiter.woken);
    return op->code;
}

bool hfi_writer_on_thread(const struct hfi_writer *writer) {
    return writer->scheduler ? writer->committing : pthread_equal(pthread_self(), writer->thread);
}

struct hf_wall hfi_writer_wall(const struct hfi_writer *writer) {
    return writer->scheduler ? writer->scheduler->ops->wall(writer->scheduler) : hfi_wall_now();
}

const struct hfi_pulse *hfi_writer_pulse(const struct hfi_writer *writer) {
    return &writer->pulse;
}

void hfi_writer_look(struct hfi_writer *writer, struct hfi_writer_counts *counts) {
    pthread_mutex_lock(&writer->lock);
    *counts = writer->counts;
    pthread_mutex_unlock(&writer->lock);
}
