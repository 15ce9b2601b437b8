/* SPDX-License-Identifier: MIT */
/*
 * A node to be killed, stopped and crowded: run by the scripts of this folder, which read its store by themselves. What it
 * was told is done it says on stdout at once, one line each.
 *
 *   node scenario DB SINK NTH   enqueue, cancel, run, requeue, run; killed at its NTH call of the store (0: never)
 *   node again DB SINK          runs what is due until nothing is
 *   node letters|redrives|storms …   deaths, and what comes after them: node_deaths.c
 *   node serve DB LEASE         runs until stdin ends; jobs of type "burn" use the CPU until the file DB.go is there
 *   node put DB TYPE           one job, or with "none" only the file
 *   node crowd DB SECONDS SEED  enqueues, claims, cancels, pauses, prunes and forgets lanes among others
 */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "jobs/writer.h"
#include "node.h"
#include "support/fault_vfs.h"

struct hf_error wrong;
struct hf_store *store;
static const char *path;
bool mended; /* jobs of type "bad" go well from now on */

void say(const char *format, ...) {
    char line[200];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line, sizeof line - 1, format, list);
    va_end(list);
    line[length++] = '\n';
    if (write(1, line, (size_t)length) != length)
        _exit(9);
}

void must(int code, const char *what) {
    if (code == 0)
        return;
    say("failed %s: %s: %s (%d, native %d)", what, wrong.what, wrong.why, code, wrong.native);
    _exit(8);
}

enum hf_result run_ok(struct hf_work *work, void *user) {
    (void)user;
    say("ran %" PRId64 " %u", hf_work_job(work), hf_work_execution(work));
    return hf_work_ok(work, "fine", 4);
}

static enum hf_result run_flaky(struct hf_work *work, void *user) {
    return hf_work_execution(work) > 1 ? run_ok(work, user)
                                       : (say("ran %" PRId64 " 1", hf_work_job(work)), hf_work_failed(work, "flaky.first", "the first time"));
}

static enum hf_result run_bad(struct hf_work *work, void *user) {
    if (mended)
        return run_ok(work, user);
    say("ran %" PRId64 " %u", hf_work_job(work), hf_work_execution(work));
    return hf_work_permanent(work, "bad.always", "no use");
}

/* What a death of type "bad" sets off. */
static enum hf_result run_death(struct hf_work *work, void *user) {
    struct hf_dead *dead = NULL;
    (void)user;
    must(hf_work_death(work, &dead, &wrong), "death");
    bool right = strcmp(hf_dead_look(dead)->type, "bad") == 0;
    hf_dead_free(dead);
    return right ? hf_work_ok(work, NULL, 0) : hf_work_permanent(work, "bad.letter", "another one's");
}

static enum hf_result run_burn(struct hf_work *work, void *user) {
    char go[600];
    volatile unsigned spin = 0;
    snprintf(go, sizeof go, "%s.go", path);
    say("burns %" PRId64 " %u", hf_work_job(work), hf_work_execution(work));
    while (access(go, F_OK) != 0)
        for (unsigned i = 0; i < 10000000; i++)
            spin += i;
    (void)spin;
    return run_ok(work, user);
}

static enum hf_result run_abort(struct hf_work *work, void *user) {
    (void)user;
    say("aborts %" PRId64 " %u", hf_work_job(work), hf_work_execution(work));
    raise(SIGKILL);
    return hf_work_ok(work, NULL, 0);
}

void open_it(void) {
    char url[600];
    snprintf(url, sizeof url, "sqlite:%s", path);
    hf_error_init(&wrong);
    must(hf_store_open(url, NULL, &store, &wrong), "open");
}

static struct hf_runner *new_runner(struct hf_runner_options *options) {
    static const struct {
        const char *name;
        hf_handler_fn run;
    } types[] = {{"ok", run_ok}, {"flaky", run_flaky}, {"bad", run_bad}, {"burn", run_burn}, {"abort", run_abort}};
    struct hf_runner *runner;
    must(hf_runner_new(store, options, &runner, &wrong), "runner");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct hf_type_options type = hf_type_native(types[i].name);
        type.execution_timeout_ms = 0;
        must(hf_runner_register(runner, &type, types[i].run, NULL, &wrong), "type");
    }
    struct hf_type_options bad = hf_type_native("bad");
    must(hf_runner_on_death(runner, &bad, run_death, NULL, &wrong), "death handler");
    return runner;
}

const struct hf_curve_options at_once = {.size = sizeof at_once, .max_executions = 20, .curve_length = 1};

static void run_until_idle(const char *sink) {
    struct hf_runner_options options;
    struct hf_sink_options webhook;
    hf_sink_options_init(&webhook);
    webhook.collapse_ms = 0;
    webhook.name = "ops";
    webhook.url = sink;
    struct hf_forward_options copies;
    hf_forward_options_init(&copies);
    copies.name = "copies";
    copies.type = "bad";
    copies.to_queue = "copies";
    copies.to_type = "ok";
    hf_runner_options_init(&options);
    options.forwards = &copies;
    options.forward_count = 1;
    options.until_idle = true;
    options.workers = 4;
    const char *ahead = getenv("NODE_PREFETCH"); /* so that jobs are reserved ahead: one slot for all */
    if (ahead != NULL) {
        options.prefetch = (uint32_t)atoi(ahead);
        options.workers = 1;
    }
    options.curve = &at_once;
    options.sinks = &webhook;
    options.sink_count = 1;
    struct hf_runner *runner = new_runner(&options);
    must(hf_runner_run(runner, &wrong), "run");
    hf_runner_free(runner);
}

/* ------------------------------------------------------------------ killed at the Nth call */

static const struct hfi_store_ops *real_ops;
static struct hfi_store_ops counted;

static void commit_and_count(struct hfi_store *self, struct hfi_op **ops, size_t count) {
    fault_point();
    real_ops->commit(self, ops, count);
    fault_point(); /* written, and nobody knows it yet */
}

void open_to_be_killed(long nth) {
    fault_kill(nth);
    open_it();
    real_ops = store->port->ops;
    counted = *real_ops;
    counted.commit = commit_and_count;
    store->port->ops = &counted;
}

void close_counted(void) {
    store->port->ops = real_ops;
    hf_store_close(store);
    say("calls %ld", fault_seen());
}

static const char *put_key; /* limit key of what is put; NULL none */

static int64_t put(const char *type, int32_t priority, int64_t in_s) {
    struct hf_job_spec spec = hf_job_of(type, "payload");
    spec.limit_name = put_key != NULL ? "tenant" : NULL;
    spec.limit_key = put_key;
    spec.queue = strcmp(type, "bound") == 0 ? "bound" : NULL;
    if (strcmp(type, "waits") == 0)
        spec.max_executions = 2;
    int64_t id = 0;
    spec.priority = priority;
    if (in_s > 0)
        spec.run_at_us = hfi_writer_wall(store->writer).us + in_s * 1000000;
    must(hf_enqueue(store, &spec, &id, NULL, &wrong), "put");
    say("put %" PRId64 " %s %" PRId32, id, type, priority);
    return id;
}

static void scenario(const char *sink, long nth) {
    static const char *const types[] = {"ok", "flaky", "bad", "ok", "bad", "abort_not", "ok"};
    int64_t bad[8];
    size_t bad_count = 0;
    open_to_be_killed(nth);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        bool held = strcmp(types[i], "abort_not") == 0;
        int64_t id = put(held ? "ok" : types[i], (int32_t)(i * 3 % 10), held ? 3600 : 0);
        if (held) {
            must(hf_store_cancel_job(store, id, "test", "not needed", &wrong), "cancel");
            say("cancelled %" PRId64, id);
        } else if (strcmp(types[i], "bad") == 0) {
            bad[bad_count++] = id;
        }
    }
    put("ok", 5, 7200);
    run_until_idle(sink);
    mended = true;
    for (size_t i = 0; i < bad_count; i++) {
        must(hf_store_requeue_job(store, bad[i], "test", "mended", HF_REQUEUE_FORCE, &wrong), "requeue");
        say("requeued %" PRId64, bad[i]);
    }
    run_until_idle(sink);
    close_counted();
}

/* ------------------------------------------------------------------ stopped, and many at once */

/* What exec jobs run; $0 is the store's path. All end at once when DB.go is there. */
static const struct {
    const char *name, *text;
} scripts[] = {
    /* Two processes, one of which leaves group and session. */
    {"forks", "test -e \"$0.go\" && exit 0; echo $$ >> \"$0.pids\";"
              "(setsid sh -c 'echo $$ >> \"$0.pids\"; exec sleep 601' \"$0\") & exec sleep 600"},
    /* Says how many of all that ever began are still there, itself among them. */
    {"bound", "echo $$ >> \"$0.pids\"; n=0; for p in $(cat \"$0.pids\"); do"
              " case $(cut -d' ' -f3 /proc/$p/stat 2>/dev/null) in ''|Z|X) ;; *) n=$((n+1)) ;; esac; done;"
              " echo $n >> \"$0.most\"; test -e \"$0.go\" || exec sleep 600"},
    {"waits", "echo $$ >> \"$0.pids\"; exec sleep 600"},
};

static struct hf_type_options exec_type(const char *name, const char *text, const char **command) {
    static const char *const environment[] = {"PATH=/usr/bin:/bin"};
    struct hf_type_options type;
    hf_type_options_init(&type);
    command[0] = "/bin/sh";
    command[1] = "-c";
    command[2] = text;
    command[3] = path;
    type.kind = HF_KIND_EXEC;
    type.name = name;
    type.execution_timeout_ms = 0;
    type.command = command;
    type.command_length = 4;
    type.environment = environment;
    type.environment_length = 1;
    return type;
}

static void serve(int64_t lease_ms) {
    struct hf_runner_options options;
    char byte;
    open_it();
    hf_runner_options_init(&options);
    options.lease_ms = lease_ms;
    options.heartbeat_ms = lease_ms / 5;
    options.workers = 2;
    options.curve = &at_once;
    struct hf_queue_options bound;
    hf_queue_options_init(&bound);
    bound.name = "bound";
    bound.global_concurrency = 2;
    options.queue_options = &bound;
    options.queue_count = 1;
    options.drain_timeout_ms = 50;
    struct hf_type_options types[sizeof scripts / sizeof *scripts];
    const char *commands[sizeof scripts / sizeof *scripts][4];
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        types[i] = exec_type(scripts[i].name, scripts[i].text, commands[i]);
    options.types = types;
    options.type_count = sizeof scripts / sizeof *scripts;
    struct hf_runner *runner = new_runner(&options);
    must(hf_runner_start(runner, &wrong), "start");
    say("serves");
    while (read(0, &byte, 1) > 0)
        continue;
    hf_runner_drain(runner);
    struct hf_runner_counts counts;
    hf_runner_counts_init(&counts);
    hf_runner_look(runner, &counts);
    say("counts lost %" PRIu64 " lapsed %" PRIu64 " succeeded %" PRIu64, counts.lost, counts.lapsed, counts.succeeded);
    hf_runner_free(runner);
    hf_store_close(store);
}

/* Lanes that nobody has a job of go, under the hands of seven others who have them in their caches. */
static void forget_unused(void) {
    struct hfi_op_unused op = {.op = {.kind = HFI_OP_UNUSED}, .now = hfi_writer_wall(store->writer), .limit = 20};
    uint32_t removed = 0;
    do {
        wrong.code = 0;
        must(hfi_writer_do(store->writer, &op.op), "unused");
        removed += op.lanes_removed;
    } while (op.more);
    say("forgot %" PRIu32, removed);
}

static void prune_all(void) {
    int64_t now = hfi_writer_wall(store->writer).us;
    struct hfi_op_prune op = {.op = {.kind = HFI_OP_PRUNE}, .succeeded_before = now - 1000000, .cancelled_before = now - 1000000,
                              .limit = 200};
    wrong.code = 0;
    must(hfi_writer_do(store->writer, &op.op), "prune");
    forget_unused();
    say("pruned %" PRIu32, op.pruned);
}

static void crowd(int64_t seconds, uint64_t seed) {
    struct hf_runner_options options;
    struct hfi_random random;
    hfi_random_seed(&random, seed);
    open_it();
    hf_runner_options_init(&options);
    options.workers = 2;
    struct hf_runner *runner = new_runner(&options);
    must(hf_runner_start(runner, &wrong), "start");
    int64_t end = hfi_writer_wall(store->writer).us + seconds * 1000000;
    while (hfi_writer_wall(store->writer).us < end) {
        uint64_t draw = hfi_random_below(&random, 20);
        char key[8];
        snprintf(key, sizeof key, "%d", (int)hfi_random_below(&random, 100));
        put_key = key;
        if (draw < 14) {
            put(draw < 11 ? "ok" : "flaky", (int32_t)(draw % 10), 0);
        } else if (draw < 17) {
            int64_t id = put("ok", 1, 3600);
            must(hf_store_cancel_job(store, id, "test", "changed my mind", &wrong), "cancel");
            say("cancelled %" PRId64, id);
        } else if (draw == 17) {
            must(hf_store_pause_queue(store, "default", hfi_writer_wall(store->writer).us + 50000, "test", &wrong), "pause");
        } else {
            prune_all();
        }
    }
    hf_runner_drain(runner);
    hf_runner_free(runner);
    hf_store_close(store);
    say("done");
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    path = argv[2];
    if (node_deaths(argc, argv))
        return 0;
    if (strcmp(argv[1], "scenario") == 0 && argc == 5) {
        scenario(argv[3], atol(argv[4]));
    } else if (strcmp(argv[1], "again") == 0) {
        mended = true;
        open_it();
        run_until_idle(argv[3]);
        hf_store_close(store);
        say("done");
    } else if (strcmp(argv[1], "put") == 0) {
        open_it();
        if (strcmp(argv[3], "none") != 0)
            put(argv[3], 5, 0);
        hf_store_close(store);
    } else if (strcmp(argv[1], "serve") == 0) {
        serve(atol(argv[3]));
    } else if (strcmp(argv[1], "crowd") == 0 && argc == 5) {
        crowd(atol(argv[3]), strtoull(argv[4], NULL, 0));
    } else {
        return 2;
    }
    return 0;
}
