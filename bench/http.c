/* SPDX-License-Identifier: MIT */
/*
 * A call through the whole pipeline (total, retry, budget, breaker, bulkhead, attempt) on the client's loop, each
 * started from the callback of the one before, against bare libcurl driven in three ways: in turn, in one run, so that
 * the ratios hold. One JSON line per result: requests/s and client CPU per request, medians of the rounds.
 * Usage: bench_http URL [SECONDS] [ROUNDS] [CONCURRENCY …]
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/http.h"
#include "holdfast/log.h"
#include "http_bare.h"
#include "meter.h"

enum { ROUNDS_MAX = 31, ENGINES = 4 };

static struct {
    struct hf_client *client;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool failed; /* of the loop thread, until none is open */
    int open;
} w = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void on_done(struct hf_response *response, void *user) {
    struct hf_request request = hf_request_to("peer", "GET", "");
    (void)user;
    w.failed = w.failed || hf_response_status(response) != 200;
    hf_response_free(response);
    if (!w.failed && meter_count() && hf_call_start(w.client, &request, NULL, on_done, NULL, NULL) == 0)
        return;
    pthread_mutex_lock(&w.lock);
    if (--w.open == 0)
        pthread_cond_signal(&w.changed);
    pthread_mutex_unlock(&w.lock);
}

static bool holdfast(const char *url, int concurrency) {
    struct hf_policy_options policy;
    struct hf_downstream_options options = hf_downstream_at("peer", url);
    struct hf_request request = hf_request_to("peer", "GET", "");
    hf_policy_options_init(&policy);
    policy.bulkhead_max = (uint32_t)concurrency;
    options.policy = &policy;
    if (hf_client_new(&options, 1, &w.client, NULL))
        return false;
    w.failed = false;
    w.open = concurrency;
    for (int i = 0; i < concurrency; i++)
        if (hf_call_start(w.client, &request, NULL, on_done, NULL, NULL))
            abort();
    pthread_mutex_lock(&w.lock);
    while (w.open > 0)
        pthread_cond_wait(&w.changed, &w.lock);
    pthread_mutex_unlock(&w.lock);
    hf_client_close(w.client);
    return !w.failed;
}

static const struct {
    const char *name;
    bool (*run)(const char *url, int concurrency);
} engines[ENGINES] = {{"holdfast", holdfast}, {"poll", bare_poll}, {"epoll", bare_epoll}, {"uv", bare_uv}};

static int order(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, order);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/*
 * All engines in turn, `rounds` times. The ratio is the median of the rounds' own ratios to the fastest bare one of the
 * round, `cpu_more` that of the client CPU above the cheapest bare one.
 */
static int compare(const char *url, int concurrency, double seconds, int rounds) {
    static double rates[ENGINES][ROUNDS_MAX], cpus[ENGINES][ROUNDS_MAX];
    static double ratios[ROUNDS_MAX], cpu_more[ROUNDS_MAX];
    for (int round = 0; round < rounds; round++) {
        double fastest = 0, cheapest = 1e9;
        for (int i = 0; i < ENGINES; i++) {
            int engine = (i + round) % ENGINES; /* none is always first */
            meter_begin(4L * concurrency, seconds);
            if (!engines[engine].run(url, concurrency)) {
                fprintf(stderr, "%s: a request failed\n", engines[engine].name);
                return 1;
            }
            meter_end(&rates[engine][round], &cpus[engine][round]);
            if (engine != 0 && rates[engine][round] > fastest)
                fastest = rates[engine][round];
            if (engine != 0 && cpus[engine][round] < cheapest)
                cheapest = cpus[engine][round];
        }
        ratios[round] = rates[0][round] / fastest;
        cpu_more[round] = cpus[0][round] - cheapest;
    }
    for (int i = 0; i < ENGINES; i++)
        printf(
            "{\"bench\":\"http\",\"engine\":\"%s\",\"concurrency\":%d,\"rounds\":%d,\"per_s\":%.0f,\"cpu_us\":%.2f}\n",
            engines[i].name, concurrency, rounds, median(rates[i], rounds), median(cpus[i], rounds));
    printf("{\"bench\":\"http\",\"concurrency\":%d,\"rounds\":%d,\"ratio\":%.3f,\"cpu_more_us\":%.2f}\n", concurrency,
           rounds, median(ratios, rounds), median(cpu_more, rounds));
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv) {
    double seconds = argc > 2 ? atof(argv[2]) : 1;
    int rounds = argc > 3 ? atoi(argv[3]) : 5, bad = 0;
    if (argc < 2 || seconds <= 0 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: bench_http URL [SECONDS] [ROUNDS] [CONCURRENCY ...]\n");
        return 2;
    }
    hf_log_set(HF_LOG_ERROR, NULL, NULL);
    for (int i = 4; i < argc; i++)
        bad |= compare(argv[1], atoi(argv[i]), seconds, rounds);
    if (argc <= 4)
        bad = compare(argv[1], 32, seconds, rounds) | compare(argv[1], 256, seconds, rounds);
    return bad;
}
