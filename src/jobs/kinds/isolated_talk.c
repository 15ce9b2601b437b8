/* SPDX-License-Identifier: MIT */
/*
 * How an isolated execution talks to its node: what its handler says goes out from whatever thread says it, what the node
 * says comes on a thread of its own, the listener, which plays the loop thread here. Must never mix two frames, nor leave
 * somebody waiting for an answer when the node is gone.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/alloc.h"
#include "jobs/kinds/isolated_child.h"
#include "jobs/kinds/isolated_wire.h"

static struct hfi_child_execution *of(const struct hf_work *work) {
    return work->user;
}

/* ------------------------------------------------------------------ the scheduler of the listener */

static struct hfi_child_execution *owner(struct hfi_scheduler *self) {
    return (struct hfi_child_execution *)(void *)((char *)self - offsetof(struct hfi_child_execution, clock));
}

static struct hf_mono mono(struct hfi_scheduler *self) {
    (void)self;
    return hfi_mono_now();
}

static bool on_thread(struct hfi_scheduler *self) {
    struct hfi_child_execution *execution = owner(self);
    return execution->listening && pthread_equal(pthread_self(), execution->listener);
}

static void ring(struct hfi_child_execution *execution) {
    uint64_t one = 1;
    ssize_t written = write(execution->wake, &one, sizeof one);
    (void)written; /* full: it is rung */
}

static void post(struct hfi_scheduler *self, struct hfi_task *task) {
    struct hfi_child_execution *execution = owner(self);
    pthread_mutex_lock(&execution->lock);
    task->next = NULL;
    *execution->last = task;
    execution->last = &task->next;
    pthread_mutex_unlock(&execution->lock);
    ring(execution);
}

static const struct hfi_scheduler_ops clock_ops = {
    .version = HFI_SCHEDULER_VERSION, .mono = mono, .post = post, .on_thread = on_thread};

/* ------------------------------------------------------------------ what it says */

/* Under the lock. */
static bool send_all(struct hfi_child_execution *execution, const void *data, size_t length) {
    const char *at = data;
    while (length > 0 && !execution->gone) {
        ssize_t written = send(execution->node, at, length, MSG_NOSIGNAL);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            execution->gone = true;
            break;
        }
        at += written;
        length -= (size_t)written;
    }
    return !execution->gone;
}

/* Under the lock. The rest of the body may follow. */
static bool say(struct hfi_child_execution *execution, uint32_t kind, size_t length, const void *body, size_t first) {
    struct hfi_frame_head head = {kind, (uint32_t)length};
    return send_all(execution, &head, sizeof head) && send_all(execution, body, first);
}

static int tell(struct hfi_child_execution *execution, uint32_t kind, const void *body, size_t length) {
    pthread_mutex_lock(&execution->lock);
    bool said = say(execution, kind, length, body, length);
    pthread_mutex_unlock(&execution->lock);
    return said ? 0 : HF_ESTALE;
}

static int progress(struct hf_work *work, int64_t n, const char *text) {
    struct hfi_frame_progress wire;
    memset(&wire, 0, sizeof wire);
    wire.n = n;
    hfi_text_copy(wire.text, sizeof wire.text, text);
    return tell(of(work), HFI_FRAME_PROGRESS, &wire, sizeof wire);
}

static void heartbeat(struct hf_work *work) {
    struct hfi_child_execution *execution = of(work);
    int64_t now = mono(&execution->clock).us, last = atomic_load(&execution->beat_us);
    if (hfi_sub(now, last) >= execution->beat_spacing_us && atomic_compare_exchange_strong(&execution->beat_us, &last, now))
        tell(execution, HFI_FRAME_HEARTBEAT, NULL, 0);
}

static int checkpoint(struct hf_work *work, const void *bytes, size_t length, hf_checkpoint_fn done, void *user) {
    struct hfi_child_execution *execution = of(work);
    struct hfi_child_wait *one = hfi_alloc(sizeof *one);
    if (!one)
        return HF_ENOMEM;
    pthread_mutex_lock(&execution->lock);
    *one = (struct hfi_child_wait){.number = ++execution->number, .done = done, .user = user, .next = execution->waiting};
    bool said = say(execution, HFI_FRAME_CHECKPOINT, sizeof one->number + length, &one->number, sizeof one->number) &&
                send_all(execution, bytes, length);
    if (said)
        execution->waiting = one;
    pthread_mutex_unlock(&execution->lock);
    if (!said)
        hfi_free(one);
    return said ? 0 : HF_ESTALE;
}

static const struct hfi_work_wire wire_ops = {progress, heartbeat, checkpoint};

bool hfi_child_say_end(struct hfi_child_execution *execution) {
    const struct hf_work *work = &execution->work;
    const struct hfi_ending *ending = &work->ending;
    const struct hf_outcome *outcome = &ending->outcome;
    struct hfi_frame_end wire;
    memset(&wire, 0, sizeof wire);
    wire.result = (uint32_t)ending->result;
    wire.touched = outcome->touched;
    wire.kind = (uint32_t)outcome->kind;
    wire.retry = (uint32_t)outcome->retry;
    wire.verdict = (uint32_t)outcome->verdict;
    wire.klass = (uint32_t)outcome->klass;
    wire.sent = (uint32_t)outcome->sent;
    wire.attempts = outcome->attempts;
    wire.native = outcome->native;
    wire.retry_after_ms = outcome->retry_after_ms;
    wire.causes = ending->causes;
    wire.calls = atomic_load(&work->attempts);
    wire.may_have_sent = atomic_load(&work->may_have_sent);
    wire.delay_ms = ending->delay_ms;
    wire.until_us = ending->until_us;
    wire.result_length = ending->length;
    wire.detail_length = ending->detail ? strlen(ending->detail) : 0;
    hfi_text_copy(wire.error_type, sizeof wire.error_type, outcome->error_type); /* what is behind its end stays here */
    hfi_text_copy(wire.rule, sizeof wire.rule, outcome->rule);
    hfi_text_copy(wire.message, sizeof wire.message, outcome->message);
    hfi_text_copy(wire.cause, sizeof wire.cause, ending->cause);
    hfi_text_copy(wire.text, sizeof wire.text, ending->text);
    size_t length = sizeof wire + wire.result_length + wire.detail_length;
    pthread_mutex_lock(&execution->lock);
    bool said = say(execution, HFI_FRAME_END, length, &wire, sizeof wire) &&
                send_all(execution, ending->data, ending->length) &&
                send_all(execution, ending->detail, wire.detail_length);
    execution->gone = true; /* nothing may follow an end */
    pthread_mutex_unlock(&execution->lock);
    return said;
}

/* ------------------------------------------------------------------ what it hears */

static void stored(struct hfi_child_execution *execution, uint64_t number, int code) {
    pthread_mutex_lock(&execution->lock);
    struct hfi_child_wait **at = &execution->waiting, *one;
    while ((one = *at) != NULL && one->number != number)
        at = &one->next;
    if (one)
        *at = one->next;
    pthread_mutex_unlock(&execution->lock);
    if (one && one->done)
        one->done(code, one->user);
    hfi_free(one);
}

/* The node is gone, or it is over: nobody will answer those that wait. */
static void answer_all(struct hfi_child_execution *execution) {
    pthread_mutex_lock(&execution->lock);
    struct hfi_child_wait *next, *one = execution->waiting;
    execution->waiting = NULL;
    execution->gone = true;
    pthread_mutex_unlock(&execution->lock);
    for (; one; one = next) {
        next = one->next;
        if (one->done)
            one->done(HF_ESTALE, one->user);
        hfi_free(one);
    }
}

static void stop(struct hfi_child_execution *execution, uint32_t why) {
    atomic_store(&execution->work.stop, (int)why);
    hfi_work_tell_stop(&execution->work);
}

/* Both frames of the node are short and of one piece: it sends them whole. False: it is gone. */
static bool hear(struct hfi_child_execution *execution) {
    struct hfi_frame_head head;
    union {
        struct hfi_frame_stored stored;
        uint32_t why;
    } body;
    ssize_t length;
    do
        length = recv(execution->node, &head, sizeof head, MSG_WAITALL);
    while (length < 0 && errno == EINTR);
    if (length != (ssize_t)sizeof head || head.length > sizeof body)
        return false;
    do
        length = recv(execution->node, &body, head.length, MSG_WAITALL);
    while (length < 0 && errno == EINTR);
    if (length != (ssize_t)head.length)
        return false;
    if (head.kind == HFI_FRAME_STORED && head.length == sizeof body.stored)
        stored(execution, body.stored.number, body.stored.code);
    else if (head.kind == HFI_FRAME_STOP && head.length == sizeof body.why && body.why >= HF_STOP_TIMEOUT && body.why <= HF_STOP_LOST)
        stop(execution, body.why);
    return true;
}

/* False: it is over. */
static bool run_tasks(struct hfi_child_execution *execution) {
    uint64_t rung;
    ssize_t got = read(execution->wake, &rung, sizeof rung);
    (void)got;
    for (;;) {
        pthread_mutex_lock(&execution->lock);
        struct hfi_task *task = execution->first;
        if (task && (execution->first = task->next) == NULL)
            execution->last = &execution->first;
        bool over = execution->over;
        pthread_mutex_unlock(&execution->lock);
        if (!task)
            return !over;
        task->run(task, task->user);
    }
}

static void *listen_to_node(void *user) {
    struct hfi_child_execution *execution = user;
    struct pollfd ends[2] = {{.fd = execution->wake, .events = POLLIN}, {.fd = execution->node, .events = POLLIN}};
    for (;;) {
        if (poll(ends, 2, -1) < 0 && errno != EINTR)
            break;
        if (ends[0].revents && !run_tasks(execution))
            break;
        if (ends[1].revents && !hear(execution)) {
            ends[1].fd = -1; /* the lease is not ours any more, nor anybody's: what is done now is for nobody */
            answer_all(execution);
            stop(execution, HF_STOP_LOST);
        }
    }
    answer_all(execution);
    return NULL;
}

static bool begin_listening(struct hfi_child_execution *execution) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* TERM is the handler's: it wakes whoever sleeps there */
    execution->listening = true;                 /* before it asks; nobody else does until it runs */
    pthread_mutex_lock(&execution->lock);
    execution->listening = pthread_create(&execution->listener, NULL, listen_to_node, execution) == 0;
    pthread_mutex_unlock(&execution->lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return execution->listening;
}

void hfi_child_hang_up(struct hfi_child_execution *execution) {
    if (!execution->listening)
        return;
    pthread_mutex_lock(&execution->lock);
    execution->over = true;
    pthread_mutex_unlock(&execution->lock);
    ring(execution);
    pthread_join(execution->listener, NULL);
}

static int greet(struct hfi_child_execution *execution) {
    struct hfi_frame_hello hello;
    memset(&hello, 0, sizeof hello);
    memcpy(hello.magic, HFI_ISOLATED_MAGIC, sizeof HFI_ISOLATED_MAGIC);
    hello.protocol = HFI_ISOLATED_PROTOCOL;
    return tell(execution, HFI_FRAME_HELLO, &hello, sizeof hello) == 0 ? 0 : EX_IOERR;
}

bool hfi_child_is(const struct hf_work *work) {
    return work->wire == &wire_ops;
}

int hfi_child_talk(struct hfi_child_execution *execution) {
    struct hf_work *work = &execution->work;
    execution->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (execution->wake < 0)
        return EX_OSERR;
    execution->last = &execution->first;
    execution->clock.ops = &clock_ops;
    work->scheduler = &execution->clock;
    work->user = execution;
    work->wire = &wire_ops;
    if (hfi_desk_init(&execution->desk, &execution->clock, NULL) != 0)
        return EX_OSERR;
    work->desk = &execution->desk;
    return begin_listening(execution) ? greet(execution) : EX_OSERR;
}
