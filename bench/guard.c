/* SPDX-License-Identifier: MIT */
/*
 * What a guarded attempt costs: hf_guard_enter + hf_guard_leave while closed, with exact and with coarse latency, from one
 * thread and from two on one downstream, a refusal by an open breaker with and without its outcome, hf_guard_run around an
 * empty function, and the bare clocks beside them. CPU time of the calling thread, medians of rounds; two threads are
 * quoted by the slower of both. One JSON line per result. A refusal is
 * a plain return code, not an exception (F7). Usage: guard [CALLS_PER_ROUND].
 */
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "holdfast/classify.h"
#include "holdfast/error.h"
#include "holdfast/guard.h"
#include "holdfast/log.h"
#include "resilience/histogram.h"

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

static void refused_with_outcome(void) {
    struct hf_permit permit;
    if (hf_guard_enter(downstream, &permit, rejection) != HF_EREJECTED)
        abort();
}

static void read_coarse(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    __asm__ volatile("" : : "m"(now) : "memory");
}

static void tell(const char *what, const char *latency, int threads, long calls, double ns) {
    printf("{\"bench\":\"guard\",\"what\":\"%s\",\"latency\":\"%s\",\"threads\":%d,\"calls\":%ld,\"rounds\":%d,\"ns\":%.1f}\n",
           what, latency, threads, calls, ROUNDS, ns);
}

struct worker {
    pthread_t thread;
    pthread_barrier_t *gate;
    long calls;
    double ns;
};

static void *work(void *user) {
    struct worker *worker = user;
    pthread_barrier_wait(worker->gate);
    worker->ns = median_ns(pass, worker->calls);
    return NULL;
}

static double both_ns(long calls) {
    struct worker workers[2];
    pthread_barrier_t gate;
    pthread_barrier_init(&gate, NULL, 2);
    for (int i = 0; i < 2; i++) {
        workers[i] = (struct worker){.gate = &gate, .calls = calls};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            abort();
    }
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_barrier_destroy(&gate);
    return workers[0].ns > workers[1].ns ? workers[0].ns : workers[1].ns;
}

static bool open_one(enum hf_latency latency) {
    struct hf_policy_options options;
    struct hf_policy *policy;
    hf_policy_options_init(&options);
    options.breaker_break_ms = options.breaker_max_break_ms = 3600000;
    options.latency = latency;
    if (hf_policy_new(&options, &policy, NULL) != 0)
        return false;
    int code = hf_downstream_new("bench", policy, &downstream, NULL);
    hf_policy_unref(policy);
    return code == 0;
}

/* What malloc has given out for each of many, names of 16 bytes, a thousand successes behind it, from one thread, under one
   policy. The histogram is fixed in size and quoted apart. */
static void tell_memory(void) {
    enum { MANY = 10000, USED = 1000 };
    static struct hf_downstream *many[MANY];
    struct hf_policy_options options;
    struct hf_policy *policy;
    char name[17];
    hf_policy_options_init(&options);
    if (hf_policy_new(&options, &policy, NULL) != 0)
        abort();
    struct mallinfo2 before = mallinfo2();
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "downstream-%05d", i);
        if (hf_downstream_new(name, policy, &many[i], NULL) != 0)
            abort();
        downstream = many[i];
        for (int call = 0; call < USED; call++)
            pass();
        whole();
    }
    size_t all = (mallinfo2().uordblks - before.uordblks) / MANY;
    printf("{\"bench\":\"guard\",\"what\":\"memory of a downstream\",\"bytes\":%zu,\"of_these_histogram\":%zu,"
           "\"besides\":%zu}\n",
           all, sizeof(struct hfi_histogram), all - sizeof(struct hfi_histogram));
    for (int i = 0; i < MANY; i++)
        hf_downstream_unref(many[i]);
    hf_policy_unref(policy);
}

int main(int argc, char **argv) {
    static const char *const names[] = {"exact", "coarse"};
    long calls = argc > 1 ? atol(argv[1]) : 1000000;
    hf_log_set(HF_LOG_ERROR, NULL, NULL);
    rejection = hf_outcome_new();
    if (calls < 1 || rejection == NULL)
        return 1;
    tell("clock", "exact", 1, calls, median_ns(read_clock, calls));
    tell("clock", "coarse", 1, calls, median_ns(read_coarse, calls));
    for (int latency = HF_LATENCY_EXACT; latency <= HF_LATENCY_COARSE; latency++) {
        if (!open_one((enum hf_latency)latency))
            return 1;
        tell("enter_leave", names[latency], 1, calls, median_ns(pass, calls));
        tell("enter_leave", names[latency], 2, calls, both_ns(calls));
        tell("run_empty", names[latency], 1, calls, median_ns(whole, calls));
        trip();
        tell("refused", names[latency], 1, calls, median_ns(be_refused, calls));
        tell("refused_with_outcome", names[latency], 1, calls, median_ns(refused_with_outcome, calls));
        hf_downstream_unref(downstream);
    }
    tell_memory();
    hf_outcome_free(rejection);
    return 0;
}
