/* SPDX-License-Identifier: MIT */
/*
 * Pruning beside claims (I73): a million succeeded jobs with their history go, a page at a time at the pace of a node, while
 * the same process, or four of them on one file, enqueue, claim and end jobs without a pause. One JSON line for each, with
 * and without the pruning: what a claim's commit takes, what a page takes and how many rows it changes.
 * usage: bench_prune FOLDER [--full]     (without it a twentieth of the rows)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "jobs/store/internal.h"
#include "jobs/store/sqlite.h"

#define T0 INT64_C(1780000000000000)
#define JOBS 32
#define TIMES_MAX 200000
#define PAGE 700
#define REST_FACTOR 4
#define REST_LEAST_US 20000
#define RUN_US 12e6 /* unless all is gone before */
#define OTHERS_US 1e6 /* until a node whose turn it is not asks again; in a runner that is a minute */
#define NODES_MAX 4

struct pruned {
    uint64_t jobs;
    uint32_t rows_most, pages;
    double longest_us, sum_us, next_us;
};

static double times[TIMES_MAX];
static size_t time_count;

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void must(int code, const char *what) {
    if (code == 0)
        return;
    fprintf(stderr, "bench_prune: %s: %s\n", what, hf_strerror(code));
    exit(1);
}

static void commit(struct hfi_store *store, struct hfi_op *op, const char *what) {
    do
        store->ops->commit(store, &op, 1);
    while (op->code == HF_EBUSY);
    must(op->code, what);
}

static struct hfi_store *open_store(const char *path) {
    struct hf_store_options options;
    struct hfi_store *store;
    hf_store_options_init(&options);
    must(hfi_sqlite_store_open(path, &options, &store, NULL), "open");
    return store;
}

static void put(struct hfi_store *store, size_t count) {
    struct hfi_put items[JOBS];
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = items, .count = count};
    for (size_t i = 0; i < count; i++)
        items[i] = (struct hfi_put){.job = {.run_at_us = T0, .created_at_us = T0, .execution_timeout_ms = -1, .type = "work",
                                            .queue = "default", .downstream = "", .breaker_key = "", .limit_key = "",
                                            .unique_key = "", .idempotency_key = "", .source = "", .source_message_id = "",
                                            .correlation_id = "", .trace_context = "", .tags = "", .content_type = "",
                                            .reason = "", .error_class = "", .error_type = "", .error_message = "",
                                            .cancel_by = "", .cancel_reason = ""}};
    commit(store, &op.op, "put");
}

static void fill(const char *path, long jobs) {
    static const char text[] =
        "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < %ld) INSERT INTO jobs(id, state, priority, "
        "lane, run_at_us, epoch, executions, failures, started_at_us, finished_at_us, created_at_us, has_spec) "
        "SELECT i, 3, 0, 1, 0, 1, 1, 0, 1, 2, 1, 0 FROM n;"
        "INSERT INTO history(job_id, epoch, ended_at_us, event, execution, started_at_us, node, state) "
        "SELECT id, 1, 2, 2, 1, 1, 1, 3 FROM jobs WHERE state = 3;"
        "UPDATE counts SET jobs = jobs + %ld WHERE state = 3; INSERT OR IGNORE INTO counts VALUES (3, %ld);"
        "UPDATE meta SET value = %ld WHERE key = 'next_job';";
    char sql[1200];
    struct hfi_store *store = open_store(path);
    put(store, 1);
    snprintf(sql, sizeof sql, text, jobs, jobs - 1, jobs - 1, jobs + 1);
    if (sqlite3_exec(hfi_sqlite_of(store)->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        must(HF_EIO, sqlite3_errmsg(hfi_sqlite_of(store)->db));
    store->ops->close(store);
}

/* A page, if its time has come: as jobs/tidy.c paces it. True: there is no more. */
static bool prune(struct hfi_store *store, int64_t node, struct pruned *sum) {
    struct hfi_op_prune op = {.op = {.kind = HFI_OP_PRUNE}, .succeeded_before = 1000, .node = node, .now = {T0}, .limit = PAGE};
    double began = now_us();
    if (began < sum->next_us)
        return false;
    commit(store, &op.op, "prune");
    double took = now_us() - began;
    if (op.others) {
        sum->next_us = now_us() + OTHERS_US;
        return false;
    }
    sum->next_us = now_us() + (took * REST_FACTOR < REST_LEAST_US ? REST_LEAST_US : took * REST_FACTOR);
    sum->jobs += op.pruned;
    sum->rows_most = op.rows > sum->rows_most ? op.rows : sum->rows_most;
    sum->longest_us = took > sum->longest_us ? took : sum->longest_us;
    sum->sum_us += took;
    sum->pages++;
    return !op.more && op.pruned == 0;
}

static void work(struct hfi_store *store, int64_t node) {
    static struct hfi_curve curve;
    struct hfi_job *jobs[JOBS];
    struct hfi_op_apply applies[JOBS];
    struct hfi_op *ops[JOBS];
    hfi_curve_default(&curve);
    struct hfi_admitted lane = {.lane = 1, .max = JOBS, .policy = &curve};
    struct hfi_op_claim op = {.op = {.kind = HFI_OP_CLAIM}, .node = node, .now = {T0}, .start = true, .lanes = &lane, .lane_count = 1,
                              .max = JOBS, .jobs = jobs};
    put(store, JOBS);
    double began = now_us();
    commit(store, &op.op, "claim");
    if (time_count < TIMES_MAX)
        times[time_count++] = now_us() - began;
    for (size_t i = 0; i < op.count; i++) {
        applies[i] = (struct hfi_op_apply){.op = {.kind = HFI_OP_APPLY}, .job = jobs[i]};
        applies[i].event = (struct hfi_event){.kind = HFI_EVENT_SUCCEEDED, .now = {T0}, .node = node};
        ops[i] = &applies[i].op;
    }
    store->ops->commit(store, ops, op.count);
    for (size_t i = 0; i < op.count; i++)
        hfi_free(jobs[i]);
    store->ops->housekeep(store, false);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double share(double at) {
    return time_count == 0 ? 0 : times[(size_t)((double)(time_count - 1) * at)] / 1000;
}

/* One node's loop: claims, and pages of pruning between them, in one writer as in a node. */
static struct pruned be_node(const char *path, bool prunes) {
    struct hfi_store *store = open_store(path);
    struct hfi_op_join join = {.op = {.kind = HFI_OP_JOIN}, .name = "bench", .host = "here", .boot = "boot", .pid = 1, .now = {T0}};
    struct pruned sum = {0};
    double end = now_us() + RUN_US;
    commit(store, &join.op, "join");
    for (bool over = false; !over && now_us() < end;) {
        work(store, join.node);
        over = prunes && prune(store, join.node, &sum);
    }
    store->ops->close(store);
    return sum;
}

static void run(const char *folder, long jobs, int nodes, bool prunes) {
    char path[600];
    int pipes[2], status;
    struct pruned one, all;
    snprintf(path, sizeof path, "%s/prune-%d-%d.db", folder, nodes, prunes);
    fill(path, jobs);
    if (pipe(pipes) != 0)
        exit(1);
    for (int i = 1; i < nodes; i++) {
        if (fork() != 0)
            continue;
        one = be_node(path, prunes);
        _exit(write(pipes[1], &one, sizeof one) == (ssize_t)sizeof one ? 0 : 1);
    }
    time_count = 0;
    double began = now_us();
    all = be_node(path, prunes);
    double took = (now_us() - began) / 1e6;
    for (int i = 1; i < nodes; i++) {
        if (wait(&status) < 0 || status != 0 || read(pipes[0], &one, sizeof one) != (ssize_t)sizeof one)
            must(HF_EIO, "a node");
        all.jobs += one.jobs;
        all.pages += one.pages;
        all.sum_us += one.sum_us;
        all.rows_most = one.rows_most > all.rows_most ? one.rows_most : all.rows_most;
        all.longest_us = one.longest_us > all.longest_us ? one.longest_us : all.longest_us;
    }
    qsort(times, time_count, sizeof *times, by_size);
    printf("{\"jobs\": %ld, \"nodes\": %d, \"prunes\": %d, \"pruned\": %llu, \"s\": %.1f, \"claims\": %zu, \"claim_ms\": {\"p50\": %.2f, "
           "\"p99\": %.2f, \"max\": %.2f}, \"page_ms\": {\"mean\": %.2f, \"max\": %.2f}, \"page_rows_max\": %u}\n",
           jobs, nodes, prunes, (unsigned long long)all.jobs, took, time_count, share(0.5), share(0.99), share(1),
           all.pages == 0 ? 0 : all.sum_us / all.pages / 1000, all.longest_us / 1000, all.rows_most);
    fflush(stdout);
    close(pipes[0]);
    close(pipes[1]);
}

int main(int argc, char **argv) {
    long jobs = argc > 2 && strcmp(argv[2], "--full") == 0 ? 1000000 : 50000;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_prune FOLDER [--full]\n");
        return 2;
    }
    for (int nodes = 1; nodes <= NODES_MAX; nodes *= 4)
        for (int prunes = 0; prunes < 2; prunes++)
            run(argv[1], jobs, nodes, prunes);
    return 0;
}
