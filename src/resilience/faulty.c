/* SPDX-License-Identifier: MIT */
/*
 * Carries injected faults out on the wire's side: waits, and then reports the facts that a real one would leave, with a
 * message that says it was injected. Must obey the port to the letter (`done` never inside start, once, never after a
 * cancel), and must not touch attempts that nothing strikes. On the scheduler's thread.
 */
#include "resilience/faulty.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "base/random.h"
#include "resilience/faults.h"

#define RECV_ERROR 56 /* CURLE_RECV_ERROR: what libcurl reports of a reset while waiting */

struct faulty;
/* A struck attempt. Those that are not struck are the inner transport's own and never looked into. */
struct hfi_attempt {
    struct faulty *faulty;
    TAILQ_ENTRY(hfi_attempt) entry;
    struct hf_fault fault;
    struct hfi_attempt_spec spec;
    struct hfi_attempt *inner; /* a delayed one that has started by now */
    struct hfi_timer timer;
    struct hf_mono started;
    hfi_attempt_fn done;
    void *user;
    struct hf_header headers[]; /* a copy with its texts: the caller's are alive in start only */
};

struct faulty {
    struct hfi_transport transport; /* first: the port */
    struct hfi_scheduler *scheduler;
    struct hfi_transport *inner;
    struct hfi_random random;
    TAILQ_HEAD(, hfi_attempt) struck; /* in flight: as few as tests make */
};

static bool is_ours(struct faulty *faulty, const struct hfi_attempt *attempt) {
    const struct hfi_attempt *one;
    TAILQ_FOREACH(one, &faulty->struck, entry)
    if (one == attempt)
        return true;
    return false;
}

static void drop(struct hfi_attempt *attempt) {
    struct faulty *faulty = attempt->faulty;
    faulty->scheduler->ops->disarm(faulty->scheduler, &attempt->timer);
    TAILQ_REMOVE(&faulty->struck, attempt, entry);
    hfi_free(attempt);
}

static void tell(struct hfi_attempt *attempt, const struct hfi_attempt_facts *facts) {
    hfi_attempt_fn done = attempt->done;
    void *user = attempt->user;
    drop(attempt);
    done(facts, user);
}

static void pass_on(const struct hfi_attempt_facts *facts, void *user) {
    tell(user, facts);
}

/* The facts of a fault that needs no peer. */
static void report(struct hfi_attempt *attempt) {
    static const struct hf_header marks[] = {{"Holdfast-Fault", "status"}};
    char message[64];
    const struct hf_fault *fault = &attempt->fault;
    int64_t spent_us = hfi_sub(hfi_now(attempt->faulty->scheduler).us, attempt->started.us);
    bool answers = fault->kind == HF_FAULT_STATUS;
    struct hfi_attempt_facts facts = {.native = answers ? 0 : RECV_ERROR,
                                      .native_errno = answers ? 0 : ECONNRESET,
                                      .status = answers ? fault->status : 0,
                                      .stage = answers ? HF_STAGE_RECEIVE : HF_STAGE_WAIT,
                                      .sent = answers ? HF_SENT_YES : HF_SENT_MAYBE,
                                      .message = message,
                                      .headers = marks,
                                      .header_count = answers ? 1 : 0,
                                      .phases = {-1, -1, -1, answers ? spent_us : -1, spent_us}};
    if (answers)
        snprintf(message, sizeof message, "injected fault: status %d", fault->status);
    else
        snprintf(message, sizeof message, "injected fault: connection reset");
    tell(attempt, &facts);
}

/* A delay is over: now the real thing. */
static void start_late(struct hfi_attempt *attempt) {
    struct hfi_transport *inner = attempt->faulty->inner;
    attempt->spec.now.us = 0;
    int code = inner->ops->start(inner, &attempt->spec, pass_on, attempt, &attempt->inner);
    if (code == 0)
        return;
    struct hfi_attempt_facts facts = {.error_type = code == HF_EINVAL ? "local.url" : "local.memory",
                                      .message = hf_strerror(code),
                                      .stage = HF_STAGE_LOCAL,
                                      .sent = HF_SENT_NO,
                                      .phases = {-1, -1, -1, -1, -1}};
    attempt->inner = NULL;
    tell(attempt, &facts);
}

static void on_timer(struct hfi_timer *timer, void *user) {
    struct hfi_attempt *attempt = user;
    (void)timer;
    if (attempt->fault.kind == HF_FAULT_DELAY)
        start_late(attempt);
    else
        report(attempt);
}

static size_t room_of(const struct hfi_attempt_spec *spec) {
    size_t room = spec->header_count * sizeof(struct hf_header);
    for (size_t i = 0; i < spec->header_count; i++)
        room += strlen(spec->headers[i].name) + strlen(spec->headers[i].value) + 2;
    return room;
}

static void copy_headers(struct hfi_attempt *attempt, const struct hfi_attempt_spec *spec) {
    char *at = (char *)(attempt->headers + spec->header_count);
    for (size_t i = 0; i < spec->header_count; i++) {
        attempt->headers[i].name = at;
        at = stpcpy(at, spec->headers[i].name) + 1;
        attempt->headers[i].value = at;
        at = stpcpy(at, spec->headers[i].value) + 1;
    }
    attempt->spec.headers = attempt->headers;
}

static int strike(struct faulty *faulty, const struct hf_fault *fault, const struct hfi_attempt_spec *spec,
                  hfi_attempt_fn done, void *user, struct hfi_attempt **out) {
    struct hfi_attempt *attempt = hfi_alloc(sizeof *attempt + room_of(spec));
    if (attempt == NULL)
        return HF_ENOMEM;
    attempt->faulty = faulty;
    attempt->fault = *fault;
    attempt->spec = *spec;
    copy_headers(attempt, spec);
    attempt->started = hfi_now(faulty->scheduler);
    attempt->done = done;
    attempt->user = user;
    hfi_timer_init(&attempt->timer, on_timer, attempt);
    /* A dropped one has no timer: only a limit ends it. */
    if (fault->kind != HF_FAULT_DROP &&
        faulty->scheduler->ops->arm(faulty->scheduler, &attempt->timer,
                                    hfi_mono_after_ms(attempt->started, fault->delay_ms)) != 0) {
        hfi_free(attempt);
        return HF_ENOMEM;
    }
    TAILQ_INSERT_TAIL(&faulty->struck, attempt, entry);
    *out = attempt;
    return 0;
}

static int start(struct hfi_transport *self, const struct hfi_attempt_spec *spec, hfi_attempt_fn done, void *user,
                 struct hfi_attempt **attempt) {
    struct faulty *faulty = (struct faulty *)self;
    struct hf_fault fault;
    if (spec->faults != NULL &&
        hfi_faults_strike(spec->faults, spec->downstream, hfi_now(faulty->scheduler), hfi_random_next(&faulty->random), &fault))
        return strike(faulty, &fault, spec, done, user, attempt);
    return faulty->inner->ops->start(faulty->inner, spec, done, user, attempt);
}

/* Without a peer it looks as if sent and waiting, as a real one of its kind would. */
static enum hf_stage stage(struct hfi_transport *self, struct hfi_attempt *attempt) {
    struct faulty *faulty = (struct faulty *)self;
    if (is_ours(faulty, attempt)) {
        if (attempt->inner == NULL)
            return HF_STAGE_WAIT;
        attempt = attempt->inner;
    }
    return faulty->inner->ops->stage(faulty->inner, attempt);
}

static enum hf_sent cancel(struct hfi_transport *self, struct hfi_attempt *attempt, enum hf_stage *reached,
                           struct hfi_phases *phases) {
    struct faulty *faulty = (struct faulty *)self;
    enum hf_sent sent = HF_SENT_MAYBE;
    if (!is_ours(faulty, attempt))
        return faulty->inner->ops->cancel(faulty->inner, attempt, reached, phases);
    if (attempt->inner != NULL) {
        sent = faulty->inner->ops->cancel(faulty->inner, attempt->inner, reached, phases);
    } else {
        int64_t spent_us = hfi_sub(hfi_now(faulty->scheduler).us, attempt->started.us);
        *phases = (struct hfi_phases){-1, -1, -1, -1, spent_us};
        *reached = HF_STAGE_WAIT;
    }
    drop(attempt);
    return sent;
}

static uint32_t hops(struct hfi_transport *self, struct hfi_attempt *attempt) {
    struct faulty *faulty = (struct faulty *)self;
    if (is_ours(faulty, attempt)) {
        if (attempt->inner == NULL)
            return 0;
        attempt = attempt->inner;
    }
    return faulty->inner->ops->hops(faulty->inner, attempt);
}

static void end(struct hfi_transport *self) {
    struct faulty *faulty = (struct faulty *)self;
    faulty->inner->ops->close(faulty->inner);
    hfi_free(faulty);
}

static const struct hfi_transport_ops operations = {
    .version = HFI_TRANSPORT_VERSION,
    .start = start,
    .cancel = cancel,
    .stage = stage,
    .hops = hops,
    .close = end,
};

int hfi_faulty_new(struct hfi_scheduler *scheduler, struct hfi_transport *inner, uint64_t seed,
                   struct hfi_transport **transport) {
    struct faulty *faulty = hfi_alloc(sizeof *faulty);
    if (faulty == NULL)
        return HF_ENOMEM;
    faulty->transport.ops = &operations;
    faulty->scheduler = scheduler;
    faulty->inner = inner;
    hfi_random_seed(&faulty->random, seed);
    TAILQ_INIT(&faulty->struck);
    *transport = &faulty->transport;
    return 0;
}
