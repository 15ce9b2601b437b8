/* SPDX-License-Identifier: MIT */
/*
 * What a guarded attempt costs: hf_guard_enter + hf_guard_leave while closed (two exact clock readings included), one
 * such reading alone, a refusal by an open breaker, and hf_guard_run around an empty function. Medians of rounds in CPU
 * time, one JSON line. A refusal is a plain return code, not an exception (F7). Usage: guard [CALLS_PER_ROUND].
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "holdfast/classify.h"
#include "holdfast/error.h"
#include "holdfast/guard.h"
#include "holdfast/log.h"

enum { ROUNDS = 15 };

static struct hf_downstream *downstream;
static struct hf_outcome *rejection;

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); /* not what others take of the core */
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void read_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    __asm__ volatile("" : : "m"(now) : "memory");
}

static void pass(void) {
    struct hf_permit permit;
    if (hf_guard_enter(downstream, &permit, NULL) != 0 || hf_guard_leave(downstream, &permit, HF_VERDICT_SUCCESS) != 0)
        abort();
}

static void be_refused(void) {
    struct hf_permit permit;
    if (hf_guard_enter(downstream, &permit, NULL) != HF_EREJECTED)
        abort();
}

/* Opens it; the break is longer than the bench. */
static void trip(void) {
    struct hf_permit permit;
    hf_downstream_close(downstream);
    while (hf_guard_enter(downstream, &permit, NULL) == 0)
        hf_guard_leave(downstream, &permit, HF_VERDICT_FAILURE);
}

static void nothing(int64_t deadline_us, struct hf_outcome *outcome, void *user) {
    (void)deadline_us;
    (void)user;
    hf_classify_exit(0, outcome);
}

static void whole(void) {
    if (hf_guard_run(downstream, nothing, rejection, NULL) != 0)
        abort();
}

static int order(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double median_ns(void (*once)(void), long calls) {
    double rounds[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        for (long i = 0; i < calls; i++)
            once();
        rounds[round] = (now_ns() - start) / (double)calls;
    }
    qsort(rounds, ROUNDS, sizeof *rounds, order);
    return rounds[ROUNDS / 2];
}

int main(int argc, char **argv) {
    struct hf_policy_options options;
    struct hf_policy *policy;
    long calls = argc > 1 ? atol(argv[1]) : 1000000;
    hf_log_set(HF_LOG_ERROR, NULL, NULL);
    hf_policy_options_init(&options);
    options.breaker_break_ms = options.breaker_max_break_ms = 3600000;
    rejection = hf_outcome_new();
    if (calls < 1 || rejection == NULL || hf_policy_new(&options, &policy, NULL) != 0 ||
        hf_downstream_new("bench", policy, &downstream, NULL) != 0)
        return 1;
    double clock_ns = median_ns(read_clock, calls);
    double closed_ns = median_ns(pass, calls);
    double run_ns = median_ns(whole, calls);
    trip();
    double refused_ns = median_ns(be_refused, calls);
    printf("{\"bench\":\"guard\",\"calls\":%ld,\"rounds\":%d,\"clock_ns\":%.1f,\"enter_leave_ns\":%.1f,"
           "\"run_empty_ns\":%.1f,\"refused_ns\":%.1f}\n",
           calls, ROUNDS, clock_ns, closed_ns, run_ns, refused_ns);
    hf_downstream_unref(downstream);
    hf_policy_unref(policy);
    hf_outcome_free(rejection);
    return 0;
}
