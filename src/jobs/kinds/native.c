/* SPDX-License-Identifier: MIT */
/*
 * The kind of job that is a handler in C: runs it on a bounded pool of threads, made on demand, and brings its ending
 * back to the loop; an asynchronous one is only begun here, on the loop, and ends itself (work_say.c). Must never take an ending on trust: only the value that one of the hf_work_ok … functions gave,
 * returned as it was, is an end; all else is a failure [S0.1]. A handler that leaves its thread (pthread_exit) is one
 * too. A C++ exception that leaves a handler ends the process loudly (std::terminate); its jobs then lapse as crashes.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "jobs/wards.h"
#include "jobs/work.h"

#define REPLACED_MAX 8 /* threads that hang outside of handlers and live: the process has a fault that more of them do not mend */
#define LOCK_TRIES 100 /* a millisecond each */

/* Shared by the kind and its threads; the last one to leave frees it, so that a handler that never returns harms
 * nobody after the close. */
struct pool {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct hf_work *first, **last; /* waiting for a thread; linked by kind_state */
    struct member *members;
    uint32_t limit, threads, idle, waiting;
    uint32_t users; /* threads and the kind */
    uint32_t replaced; /* of the threads: by the watchdog */
    uint64_t made;     /* threads, ever */
    struct hfi_wards *wards; /* one reference; NULL: nobody looks after them */
    bool closed;
};

struct member { /* a thread */
    struct pool *pool;
    pthread_t id;
    struct hf_work *work; /* in its handler now, or NULL */
    bool alone;           /* nobody joins it */
    bool given_up;        /* its place went to another thread: it goes when its handler returns */
    bool replaced;        /* given up because it hung outside of a handler */
    struct hfi_pulse pulse;
    struct hfi_ward ward;
    struct member *next;
};

struct native {
    struct hfi_kind kind;
    struct pool *pool;
};

static struct hf_work **link_of(struct hf_work *work) {
    return (struct hf_work **)(void *)&work->kind_state;
}

/* Under the lock. */
static void push(struct pool *pool, struct hf_work *work) {
    work->kind_state = NULL;
    *pool->last = work;
    pool->last = link_of(work);
    pool->waiting++;
}

/* Under the lock; false: it is not waiting (any more). */
static bool pull(struct pool *pool, struct hf_work *work) {
    for (struct hf_work **at = &pool->first; *at; at = link_of(*at)) {
        if (*at != work)
            continue;
        *at = work->kind_state;
        if (!*at)
            pool->last = at;
        pool->waiting--;
        return true;
    }
    return false;
}

static void on_loop(struct hfi_task *task, void *user) {
    struct hf_work *work = user;
    (void)task;
    work->ended(work, work->user);
}

static void bring_back(struct hf_work *work) {
    work->task.run = on_loop;
    work->task.user = work;
    work->scheduler->ops->post(work->scheduler, &work->task);
}

static void let_go(struct pool *pool) {
    pthread_mutex_lock(&pool->lock);
    bool last = --pool->users == 0;
    pthread_mutex_unlock(&pool->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->more);
    hfi_wards_free(pool->wards);
    hfi_free(pool);
}

/* Under the lock: after a close nobody waits for it, and the loop may be gone. */
static void give_back(struct member *member) {
    struct hf_work *work = member->work;
    member->work = NULL;
    if (work && !member->pool->closed)
        bring_back(work);
}

static void *run(void *user);
static enum hfi_restart replace(struct hfi_ward *ward);

/* Under the lock. Signals are the host's: none may be delivered on a handler's thread. */
static int add_thread(struct pool *pool) {
    sigset_t all, before;
    struct member *member = hfi_alloc(sizeof *member);
    if (!member)
        return HF_ENOMEM;
    member->pool = pool;
    member->ward.pulse = &member->pulse;
    member->ward.restart = replace;
    member->ward.user = member;
    snprintf(member->ward.name, sizeof member->ward.name, "worker %llu", (unsigned long long)++pool->made);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&member->id, NULL, run, member); /* it waits for the lock */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        hfi_free(member);
        return HF_ENOMEM;
    }
    member->next = pool->members;
    pool->members = member;
    pool->threads++;
    pool->users++;
    return 0;
}

/* The watchdog's thread: it hangs, in code of ours. A fresh thread takes its place if the pool's lock can be had: then it
 * has nothing half-changed in the pool. Its work has its own limits, and comes back if the thread ever does. */
static enum hfi_restart replace(struct hfi_ward *ward) {
    const struct timespec pause = {.tv_nsec = 1000000};
    struct member *member = ward->user;
    struct pool *pool = member->pool;
    int busy = pthread_mutex_trylock(&pool->lock);
    for (int i = 0; busy && i < LOCK_TRIES; i++) {
        nanosleep(&pause, NULL);
        busy = pthread_mutex_trylock(&pool->lock);
    }
    if (busy)
        return HFI_RESTART_NO;
    bool done = !pool->closed && !member->given_up && pool->replaced < REPLACED_MAX && add_thread(pool) == 0;
    if (done) {
        member->given_up = member->replaced = true;
        pool->replaced++;
        pool->limit++;
    }
    pthread_mutex_unlock(&pool->lock);
    return done ? HFI_RESTART_REPLACED : HFI_RESTART_NO;
}

/* The thread ends. With a work in hand it was the handler that ended it. */
static void leave(void *user) {
    struct member *member = user;
    struct pool *pool = member->pool;
    hfi_pulse_beat(&member->pulse);
    if (member->work) {
        hfi_work_unknown(member->work, "handler.thread_exit", "the handler ended its thread instead of returning");
        hfi_work_close(member->work);
    }
    hfi_wards_remove(pool->wards, &member->ward); /* before the lock: the watchdog takes them in this order */
    pthread_mutex_lock(&pool->lock);
    give_back(member);
    pool->threads--;
    pool->limit -= member->given_up;
    pool->replaced -= member->replaced;
    /* One that waits gets a fresh thread: nobody else may come to start one. */
    if (!pool->closed && pool->waiting > pool->idle && pool->threads < pool->limit && add_thread(pool) != 0)
        hfi_log(HF_LOG_WARNING, "native.no_thread", HFI_I("threads", pool->threads), NULL);
    if (!pool->closed) {
        struct member **at = &pool->members;
        while (*at != member)
            at = &(*at)->next;
        *at = member->next;
        member->alone = true;
        pthread_detach(member->id);
    }
    bool alone = member->alone;
    pthread_mutex_unlock(&pool->lock);
    if (alone)
        hfi_free(member); /* else the close has it */
    let_go(pool);
}

static void *run(void *user) {
    struct member *member = user;
    struct pool *pool = member->pool;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_push(leave, member);
    hfi_pulse_beat(&member->pulse);
    hfi_wards_add(pool->wards, &member->ward);
    pthread_mutex_lock(&pool->lock);
    while (!pool->closed) {
        struct hf_work *work = pool->first;
        if (!work) {
            pool->idle++;
            hfi_pulse_rest(&member->pulse);
            pthread_cond_wait(&pool->more, &pool->lock);
            hfi_pulse_beat(&member->pulse);
            pool->idle--;
            continue;
        }
        pull(pool, work);
        member->work = work;
        pthread_mutex_unlock(&pool->lock);
        hfi_work_begins(work);
        hfi_pulse_lend(&member->pulse);
        enum hf_result said = work->type->handler(work, work->type->user);
        hfi_pulse_beat(&member->pulse);
        hfi_work_judge(work, said);
        hfi_work_close(work);
        pthread_mutex_lock(&pool->lock);
        give_back(member);
        if (member->given_up)
            break;
    }
    pthread_mutex_unlock(&pool->lock);
    pthread_cleanup_pop(1);
    return NULL;
}

static int refuse(struct hf_work *work) {
    hfi_outcome_init(&work->ending.outcome);
    hfi_outcome_rejected(&work->ending.outcome, "local.threads", 1000);
    hfi_outcome_message(&work->ending.outcome, "no thread could be made for the handler");
    work->ending.result = HF_RESULT_FAILED;
    return HF_ENOMEM;
}

static int start(struct hfi_kind *self, struct hf_work *work) {
    struct pool *pool = ((struct native *)self)->pool;
    int code = 0;
    if (work->type->async_handler) {
        work->type->async_handler(work, work->type->user);
        return 0;
    }
    pthread_mutex_lock(&pool->lock);
    push(pool, work);
    if (pool->waiting > pool->idle && pool->threads < pool->limit && add_thread(pool) != 0) {
        if (pool->threads == 0) {
            pull(pool, work);
            code = HF_ENOMEM;
        } else {
            hfi_log(HF_LOG_WARNING, "native.no_thread", HFI_I("threads", pool->threads), NULL);
        }
    }
    pthread_cond_signal(&pool->more);
    pthread_mutex_unlock(&pool->lock);
    return code != 0 ? refuse(work) : 0;
}

/* A handler that runs has to look at hf_work_is_cancelled; one that waits for a thread ends here, unsaid. */
static void stop(struct hfi_kind *self, struct hf_work *work, bool hurry) {
    struct pool *pool = ((struct native *)self)->pool;
    (void)hurry;
    pthread_mutex_lock(&pool->lock);
    bool waiting = pull(pool, work);
    pthread_mutex_unlock(&pool->lock);
    if (!waiting)
        return;
    hfi_outcome_init(&work->ending.outcome);
    hfi_outcome_set(&work->ending.outcome, HF_OUTCOME_FAILURE, HF_RETRY_LATER, HF_VERDICT_NEUTRAL, HF_CLASS_TRANSIENT,
                    "local.stopped", "native.stopped");
    hfi_outcome_message(&work->ending.outcome, "stopped before a thread was free for it");
    work->ending.outcome.sent = HF_SENT_NO;
    work->ending.result = HF_RESULT_FAILED;
    hfi_work_close(work); /* before it is on its way */
    bring_back(work);
}

/* A thread more takes its place, at once if somebody waits for one. */
static void abandon(struct hfi_kind *self, struct hf_work *work) {
    struct pool *pool = ((struct native *)self)->pool;
    pthread_mutex_lock(&pool->lock);
    struct member *member = pool->members;
    while (member && member->work != work)
        member = member->next;
    if (member && !member->given_up) {
        member->given_up = true;
        pool->limit++;
        if (pool->waiting > pool->idle && add_thread(pool) != 0)
            hfi_log(HF_LOG_WARNING, "native.no_thread", HFI_I("threads", pool->threads), NULL);
    }
    pthread_mutex_unlock(&pool->lock);
}

/* Joins the idle threads; one that is still in a handler goes by itself, should it ever return. */
static void close_kind(struct hfi_kind *self) {
    struct native *native = (struct native *)self;
    struct pool *pool = native->pool;
    struct member *next;
    hfi_free(native);
    pthread_mutex_lock(&pool->lock);
    pool->closed = true;
    struct member *joined = NULL;
    for (struct member *member = pool->members; member; member = next) {
        next = member->next;
        if (member->work) {
            member->alone = true;
            pthread_detach(member->id);
        } else {
            member->next = joined;
            joined = member;
        }
    }
    pthread_cond_broadcast(&pool->more);
    pthread_mutex_unlock(&pool->lock);
    for (; joined; joined = next) {
        next = joined->next;
        pthread_join(joined->id, NULL);
        hfi_free(joined);
    }
    let_go(pool);
}

static const struct hfi_kind_ops native_ops = {"native", true, start, stop, abandon, close_kind};

int hfi_kind_native_new(struct hfi_scheduler *scheduler, uint32_t threads, struct hfi_wards *wards, struct hfi_kind **kind) {
    struct native *native = hfi_alloc(sizeof *native);
    struct pool *pool = hfi_alloc(sizeof *pool);
    if (!native || !pool || pthread_mutex_init(&pool->lock, NULL) != 0) {
        hfi_free(native);
        hfi_free(pool);
        return HF_ENOMEM;
    }
    if (pthread_cond_init(&pool->more, NULL) != 0) {
        pthread_mutex_destroy(&pool->lock);
        hfi_free(native);
        hfi_free(pool);
        return HF_ENOMEM;
    }
    (void)scheduler; /* a work knows its own */
    pool->users = 1;
    pool->wards = hfi_wards_hold(wards);
    pool->last = &pool->first;
    pool->limit = threads > 0 ? threads : 1;
    native->kind.ops = &native_ops;
    native->pool = pool;
    *kind = &native->kind;
    return 0;
}
