/* SPDX-License-Identifier: MIT */
/*
 * What a claim costs when much lies around: rows that are due later in the same lanes and with a higher priority, rows
 * that are parked, many limit keys, some of them full. Admission, claims and LANES answers as a node does them, on a real
 * file. One JSON line per number of keys: percentiles of the claim's and of the look's commit, rows read for each.
 * usage: bench_claims FOLDER [--full]     (without it a fiftieth of the rows)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "jobs/runner/lane.h"
#include "jobs/runner/lane_limits.h"
#include "jobs/store/internal.h"
#include "jobs/store/sqlite.h"

#define T0 INT64_C(1780000000000000)
#define BATCH 5000
#define FULL_KEYS 10
#define CLAIMS 3000
#define SLOTS 64

struct bench {
    struct hfi_sqlite *store;
    struct hfi_store *port;
    struct hf_runner_options options;
    struct hf_limit_options limit;
    struct hfi_lanes lanes;
    struct hfi_type type;
    struct hfi_curve curve;
    int64_t node, known;
    struct hf_wall now;
    double claim_us[CLAIMS], cpu_us[CLAIMS], look_us[CLAIMS];
    size_t claims, looks;
    uint64_t claimed, claim_rows, look_rows, admitted, worst_rows; /* worst: rows read beyond the bound of any claim */
};

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Of this thread: what a busy machine does not blur. */
static double cpu_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void must(int code, const char *what) {
    if (code == 0)
        return;
    fprintf(stderr, "bench_claims: %s: %s\n", what, hf_strerror(code));
    exit(1);
}

static void commit(struct bench *bench, struct hfi_op *op, const char *what) {
    bench->port->ops->commit(bench->port, &op, 1);
    must(op->code, what);
}

/* Jobs of one kind: `limit_key` with a %zu for the key, over `keys` keys. */
static void put(struct bench *bench, size_t count, const char *queue, const char *limit_key, size_t keys, int priority,
                int64_t run_at_us) {
    struct hfi_put *items = hfi_alloc_array(BATCH, sizeof *items);
    char(*texts)[64] = hfi_alloc_array(BATCH, sizeof *texts);
    for (size_t done = 0; done < count;) {
        size_t now = count - done < BATCH ? count - done : BATCH;
        for (size_t i = 0; i < now; i++) {
            snprintf(texts[i], sizeof texts[i], "%s%s%zu", limit_key, *limit_key ? ":" : "", (done + i) % keys);
            items[i] = (struct hfi_put){.job = {.priority = priority, .run_at_us = run_at_us + (int64_t)(done + i),
                                                .created_at_us = T0, .execution_timeout_ms = -1, .type = "work",
                                                .queue = queue, .downstream = "", .breaker_key = "",
                                                .limit_key = *limit_key ? texts[i] : "", .unique_key = "",
                                                .idempotency_key = "", .source = "", .source_message_id = "",
                                                .correlation_id = "", .trace_context = "", .tags = "", .content_type = "",
                                                .reason = "", .error_class = "", .error_type = "", .error_message = "",
                                                .cancel_by = "", .cancel_reason = ""}};
        }
        struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = items, .count = now};
        commit(bench, &op.op, "put");
        bench->port->ops->housekeep(bench->port, false);
        done += now;
    }
    hfi_free(texts);
    hfi_free(items);
}

static void look(struct bench *bench, bool measured) {
    struct hfi_op_lanes op = {.op = {.kind = HFI_OP_LANES}, .known = bench->known, .now = bench->now,
                              .running = bench->lanes.bounded};
    uint64_t rows = bench->store->rows_read;
    double before = now_us();
    commit(bench, &op.op, "lanes");
    if (measured && bench->looks < CLAIMS) {
        bench->look_us[bench->looks++] = now_us() - before;
        bench->look_rows += bench->store->rows_read - rows;
    }
    hfi_lanes_forget_due(&bench->lanes);
    for (size_t i = 0; i < op.count; i++) {
        struct hfi_lane *lane = hfi_lanes_find(&bench->lanes, op.rows[i].lane);
        bool unknown;
        if (op.rows[i].lane > bench->known) {
            bool parked = strcmp(op.rows[i].queue, "parked") == 0;
            must(hfi_lanes_add(&bench->lanes, op.rows[i].lane, op.rows[i].queue, parked ? NULL : &bench->type, NULL, &lane),
                 "lane");
            must(hfi_lanes_limit(&bench->lanes, lane, op.rows[i].limit_key, &unknown), "limit");
        }
        lane->due = op.rows[i].next_due_us <= bench->now.us;
        lane->next_due_us = op.rows[i].next_due_us;
        lane->top_priority = op.rows[i].top_priority;
        hfi_lane_others(lane, op.rows[i].limit_running, op.rows[i].queue_running);
    }
    for (size_t i = 0; i < op.count; i++)
        bench->known = op.rows[i].lane > bench->known ? op.rows[i].lane : bench->known;
    hfi_free(op.rows);
}

static void end_all(struct bench *bench, struct hfi_job **jobs, size_t count) {
    struct hfi_op_apply *ends = hfi_alloc_array(count + 1, sizeof *ends);
    struct hfi_op *ops[SLOTS];
    for (size_t i = 0; i < count; i++) {
        ends[i] = (struct hfi_op_apply){.op = {.kind = HFI_OP_APPLY}, .job = jobs[i],
                                        .event = {.kind = HFI_EVENT_SUCCEEDED, .now = bench->now, .node = bench->node},
                                        .rules = {.repeatable = true}};
        ops[i] = &ends[i].op;
    }
    bench->port->ops->commit(bench->port, ops, count);
    for (size_t i = 0; i < count; i++) {
        must(ops[i]->code, "end");
        struct hfi_lane *lane = hfi_lanes_find(&bench->lanes, jobs[i]->lane);
        hfi_lane_release(&bench->lanes, lane, true);
        hfi_lane_settled(lane);
        hfi_free(jobs[i]);
    }
    hfi_free(ends);
}

/* One claim as a node makes it; false: there was nothing to ask for. */
static bool claim(struct bench *bench, struct hfi_job **jobs, size_t *count, bool measured) {
    struct hfi_round *round = &bench->lanes.round;
    size_t lanes = hfi_lanes_admit(&bench->lanes, 0, bench->now, SLOTS);
    for (size_t i = 0; i < lanes; i++)
        round->admitted[i].policy = &bench->curve;
    struct hfi_op_claim op = {.op = {.kind = HFI_OP_CLAIM}, .node = bench->node, .now = bench->now, .start = true,
                              .lanes = round->admitted, .lane_count = lanes, .queues = round->queues,
                              .queue_count = round->queue_count, .budgets = round->budgets,
                              .budget_count = round->budget_count, .max = SLOTS, .jobs = jobs};
    *count = 0;
    if (lanes == 0)
        return false;
    uint64_t rows = bench->store->rows_read;
    double before = now_us(), cpu = cpu_us();
    commit(bench, &op.op, "claim");
    cpu = cpu_us() - cpu;
    double took = now_us() - before;
    rows = bench->store->rows_read - rows;
    hfi_lanes_claimed(&bench->lanes, 0, 0);
    *count = op.count;
    if (!measured)
        return true;
    bench->cpu_us[bench->claims] = cpu;
    bench->claim_us[bench->claims++] = took;
    bench->claim_rows += rows;
    bench->claimed += op.count;
    bench->admitted += lanes;
    uint64_t bound = 4 * op.count + 10 * lanes;
    bench->worst_rows = rows > bound && rows - bound > bench->worst_rows ? rows - bound : bench->worst_rows;
    return true;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double share(double *sorted, size_t count, double at) {
    return count == 0 ? 0 : sorted[(size_t)((double)(count - 1) * at)];
}

static void open_bench(struct bench *bench, const char *path) {
    struct hf_store_options options;
    struct hf_error error;
    hf_store_options_init(&options);
    hf_error_init(&error);
    unlink(path);
    must(hfi_sqlite_store_open(path, &options, &bench->port, &error), "open");
    bench->store = hfi_sqlite_of(bench->port);
    struct hfi_op_join join = {.op = {.kind = HFI_OP_JOIN}, .name = "bench", .host = "h", .boot = "b", .pid = 1,
                               .now = bench->now};
    commit(bench, &join.op, "join");
    bench->node = join.node;
    hfi_curve_default(&bench->curve);
    hf_runner_options_init(&bench->options);
    hf_limit_options_init(&bench->limit);
    bench->limit.name = "tenant";
    bench->limit.concurrency = 2;
    bench->options.limits = &bench->limit;
    bench->options.limit_count = 1;
    bench->type.options.kind = HF_KIND_NOOP;
    must(hfi_lanes_init(&bench->lanes, &bench->options, SLOTS), "lanes");
}

static void run(const char *folder, size_t around, size_t keys) {
    static struct bench bench;
    struct hfi_job *full[2 * FULL_KEYS], *jobs[SLOTS];
    char path[512];
    size_t held = 0, count;
    memset(&bench, 0, sizeof bench);
    bench.now.us = T0;
    snprintf(path, sizeof path, "%s/claims.db", folder);
    open_bench(&bench, path);
    put(&bench, 1000, "default", "tenant", FULL_KEYS, 5, T0 - 1000000); /* the keys that will be full */
    look(&bench, false);
    while (held < 2 * FULL_KEYS && claim(&bench, jobs, &count, false)) /* and stay so */
        for (size_t i = 0; i < count; i++)
            full[held++] = jobs[i];
    put(&bench, around, "default", "tenant", keys + FULL_KEYS, 9, T0 + INT64_C(86400000000));
    put(&bench, around, "parked", "", 1, 5, T0 - 2000000);
    put(&bench, (keys < 1000 ? 1000 : keys) * 10, "default", "tenant", keys + FULL_KEYS, 0, T0 - 500000);
    look(&bench, false);
    while (bench.claims < CLAIMS && claim(&bench, jobs, &count, true)) {
        bench.port->ops->housekeep(bench.port, false); /* the writer's, between commits */
        if (bench.claims % 20 == 0)
            look(&bench, true);
        if (count > 0)
            end_all(&bench, jobs, count);
    }
    qsort(bench.claim_us, bench.claims, sizeof *bench.claim_us, by_size);
    qsort(bench.cpu_us, bench.claims, sizeof *bench.cpu_us, by_size);
    qsort(bench.look_us, bench.looks, sizeof *bench.look_us, by_size);
    printf("{\"bench\":\"claims\",\"keys\":%zu,\"full_keys\":%d,\"future_rows\":%zu,\"parked_rows\":%zu,\"claims\":%zu,"
           "\"claimed\":%" PRIu64 ",\"claim_p50_ms\":%.3f,\"claim_p99_ms\":%.3f,\"claim_max_ms\":%.3f,\"claim_cpu_p50_ms\":%.3f,\"claim_cpu_p99_ms\":%.3f,"
           "\"rows_per_claimed\":%.2f,"
           "\"lanes_per_claim\":%.1f,\"rows_over_bound\":%" PRIu64 ",\"look_p50_ms\":%.3f,\"look_p99_ms\":%.3f,"
           "\"rows_per_look\":%.0f}\n",
           keys, FULL_KEYS, around, around, bench.claims, bench.claimed, share(bench.claim_us, bench.claims, 0.5) / 1e3,
           share(bench.claim_us, bench.claims, 0.99) / 1e3, share(bench.claim_us, bench.claims, 1) / 1e3, share(bench.cpu_us, bench.claims, 0.5) / 1e3,
           share(bench.cpu_us, bench.claims, 0.99) / 1e3,
           bench.claimed > 0 ? (double)bench.claim_rows / (double)bench.claimed : 0,
           bench.claims > 0 ? (double)bench.admitted / (double)bench.claims : 0, bench.worst_rows,
           share(bench.look_us, bench.looks, 0.5) / 1e3, share(bench.look_us, bench.looks, 0.99) / 1e3,
           bench.looks > 0 ? (double)bench.look_rows / (double)bench.looks : 0);
    fflush(stdout);
    while (held > 0)
        hfi_free(full[--held]);
    hfi_lanes_end(&bench.lanes);
    bench.port->ops->close(bench.port);
}

int main(int argc, char **argv) {
    size_t around = argc > 2 && strcmp(argv[2], "--full") == 0 ? 1000000 : 20000;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_claims FOLDER [--full]\n");
        return 2;
    }
    run(argv[1], around, 10);
    run(argv[1], around, 10000);
    return 0;
}
