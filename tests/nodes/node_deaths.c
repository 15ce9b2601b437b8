/* SPDX-License-Identifier: MIT */
/*
 * Deaths, and what comes after them, of a node that is killed in between: letters that are taken in, redriven alone and as
 * tasks; storms and digests of three kinds of sinks. The wall clock begins where the script says, so that windows and paces
 * pass without waiting; it runs on as the machine's does.
 *
 *   node letters DB SINK               eight dead letters, told
 *   node redrives DB SINK NTH          takes letters in, redrives one, begins tasks, works on them; killed at its NTH call
 *   node redrives-again DB SINK        does again what nobody heard of, and works until all is done
 *   node causes DB HOOK SMTP FILE WALL NTH          deaths of as many causes as nearly fill a minute of each sink
 *   node storms DB HOOK SMTP FILE WALL NTH          more of them, of few causes and of new ones, over three windows; killed
 *   node storms-again DB HOOK SMTP FILE WALL NTH    sends what is due
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "node.h"

#define WINDOW_MS 60000 /* the pace is by the minute as well */

/* ------------------------------------------------------------------ the wall clock */

static int64_t ahead_s;

int __real_clock_gettime(clockid_t clock, struct timespec *at);
int __wrap_clock_gettime(clockid_t clock, struct timespec *at);
int __wrap_clock_gettime(clockid_t clock, struct timespec *at) {
    int code = __real_clock_gettime(clock, at);
    if (clock == CLOCK_REALTIME)
        at->tv_sec += ahead_s;
    return code;
}

static void begin_at(int64_t wall_s) {
    struct timespec now;
    ahead_s = 0;
    __real_clock_gettime(CLOCK_REALTIME, &now);
    ahead_s = wall_s - now.tv_sec;
}

/* ------------------------------------------------------------------ redrives */

#define PART 2 /* letters in one import */

/* Fails until it is mended, or for ever. */
static enum hf_result run_mend(struct hf_work *work, void *user) {
    size_t length;
    const void *payload = hf_work_payload(work, &length);
    if (mended && (length == 0 || memcmp(payload, "always", length) != 0))
        return run_ok(work, user);
    return hf_work_permanent(work, "mend.never", "no use");
}

static void run_redrives(const char *sink) {
    struct hf_runner_options options;
    struct hf_sink_options webhook;
    struct hf_runner *runner;
    hf_sink_options_init(&webhook);
    webhook.collapse_ms = 0;
    webhook.name = "ops";
    webhook.url = sink;
    hf_runner_options_init(&options);
    options.until_idle = true;
    options.curve = &at_once;
    options.workers = 4;
    options.sinks = &webhook;
    options.sink_count = 1;
    must(hf_runner_new(store, &options, &runner, &wrong), "runner");
    struct hf_type_options type = hf_type_native("mend");
    must(hf_runner_register(runner, &type, run_mend, NULL, &wrong), "type");
    must(hf_runner_run(runner, &wrong), "run");
    hf_runner_free(runner);
}

static void put_dead(const char *type, const char *payload) {
    struct hf_job_spec spec = hf_job_of(type, payload);
    int64_t id;
    must(hf_enqueue(store, &spec, &id, NULL, &wrong), "put");
    say("put %" PRId64, id);
}

static void make_letters(const char *sink) {
    open_it();
    for (int i = 0; i < 8; i++)
        put_dead("mend", i == 5 ? "always" : "once");
    run_redrives(sink);
    hf_store_close(store);
}

/* Five of another store, as `dead import` takes them in: one transaction for each part of them. */
static void import_letters(void) {
    struct hf_dead *like;
    must(hf_dead_get(store, 1, &like, &wrong), "letter");
    for (int first = 0; first < 5; first += PART) {
        struct hf_dead_view letters[PART];
        char origins[PART][40];
        int64_t ids[PART];
        bool existed[PART];
        int count = first + PART > 5 ? 5 - first : PART;
        for (int i = 0; i < count; i++) {
            snprintf(origins[i], sizeof origins[i], "elsewhere-%d", first + i + 1);
            letters[i] = *hf_dead_look(like);
            letters[i].status = HF_DEAD_DEAD;
            letters[i].settled_at_us = letters[i].job_id = letters[i].root_id = letters[i].new_job_id = letters[i].task_id = 0;
            letters[i].settled_by = letters[i].settled_reason = letters[i].new_job_outcome = "";
            letters[i].origin = origins[i];
        }
        must(hf_dead_import(store, letters, (size_t)count, "ann", ids, existed, &wrong), "import");
        for (int i = 0; i < count; i++)
            say("letter %" PRId64 " %s %s", ids[i], origins[i], existed[i] ? "known" : "new");
    }
    hf_dead_free(like);
}

static void redrive_first(bool again) {
    struct hf_dead_action action;
    int64_t made = 0;
    hf_dead_action_init(&action);
    action.actor = "ann";
    int code = hf_dead_redrive(store, 1, &action, &made, &wrong);
    if (again && code == HF_ESTATE)
        return; /* that went through, and nobody heard of it */
    must(code, "redrive");
    say("redriven 1 %" PRId64, made);
}

static int64_t begin_task(uint32_t canary, double rate) {
    struct hf_redrive_options options;
    struct hf_dead_filter filter;
    int64_t id;
    hf_dead_filter_init(&filter);
    hf_redrive_options_init(&options);
    filter.type = "mend";
    options.filter = &filter;
    options.actor = "ann";
    options.canary = canary;
    options.rate_per_s = rate;
    options.stop_at = rate > 0 ? 0.5 : -1;
    must(hf_redrive_start(store, &options, &id, &wrong), "task");
    say("task %" PRId64, id);
    return id;
}

static size_t tasks(bool running) {
    struct hf_redrive_filter filter;
    struct hf_redrive_list *list;
    hf_redrive_filter_init(&filter);
    must(hf_redrive_list_open(store, &filter, &list, &wrong), "tasks");
    size_t count = 0;
    for (size_t i = 0; i < hf_redrive_list_count(list); i++)
        count += !running || hf_redrive_list_at(list, i)->state == HF_REDRIVE_RUNNING;
    hf_redrive_list_free(list);
    return count;
}

/* A task that waits for its rate alone lets a node end: what is next is for later. */
static void work_off(const char *sink, bool again) {
    do
        run_redrives(sink);
    while (again && tasks(true) > 0);
}

/* In the order of the first time, and only what is not there yet. */
static void redrives(const char *sink, bool again) {
    mended = true;
    import_letters();
    redrive_first(again);
    if (tasks(false) == 0)
        begin_task(2, 100);
    work_off(sink, again);
    if (tasks(false) == 1) /* what died once more */
        begin_task(0, 0);
    work_off(sink, again);
}

/* ------------------------------------------------------------------ storms */

static enum hf_result run_die(struct hf_work *work, void *user) {
    char cause[64];
    size_t length;
    const char *payload = hf_work_payload(work, &length);
    (void)user;
    snprintf(cause, sizeof cause, "cause.%.*s", (int)length, payload);
    return hf_work_permanent(work, cause, "no use");
}

struct sinks {
    char server[64];
    const char *command[4], *to[1];
    struct hf_sink_options list[3];
};

static void make_sinks(struct sinks *sinks, char **argv) {
    static const char *const names[] = {"hook", "mail", "file"};
    for (int i = 0; i < 3; i++) {
        hf_sink_options_init(&sinks->list[i]);
        sinks->list[i].name = names[i];
        sinks->list[i].collapse_ms = WINDOW_MS;
    }
    snprintf(sinks->server, sizeof sinks->server, "smtp://127.0.0.1:%s", argv[4]);
    sinks->to[0] = "ops@example.org";
    sinks->list[0].url = argv[3];
    sinks->list[1].kind = HF_SINK_MAIL;
    sinks->list[1].server = sinks->server;
    sinks->list[1].from = "holdfast@example.org";
    sinks->list[1].to = sinks->to;
    sinks->list[1].to_count = 1;
    sinks->list[1].tls = HF_MAIL_TLS_NONE;
    sinks->command[0] = "/bin/sh";
    sinks->command[1] = "-c";
    sinks->command[2] = "exec cat >> \"$0\"";
    sinks->command[3] = argv[5];
    sinks->list[2].kind = HF_SINK_COMMAND;
    sinks->list[2].command = sinks->command;
    sinks->list[2].command_length = 4;
}

static void run_storms(char **argv) {
    struct hf_runner_options options;
    struct sinks sinks;
    struct hf_runner *runner;
    make_sinks(&sinks, argv);
    hf_runner_options_init(&options);
    options.until_idle = true;
    options.curve = &at_once;
    options.workers = 2;
    options.sinks = sinks.list;
    options.sink_count = 3;
    must(hf_runner_new(store, &options, &runner, &wrong), "runner");
    struct hf_type_options type = hf_type_native("die");
    must(hf_runner_register(runner, &type, run_die, NULL, &wrong), "type");
    must(hf_runner_run(runner, &wrong), "run");
    hf_runner_free(runner);
}

static void die_and_run(char **argv, const char *const *causes) {
    for (; *causes; causes++)
        put_dead("die", *causes);
    run_storms(argv);
}

static void make_causes(char **argv) {
    char name[8];
    open_it();
    for (int i = 0; i < 18; i++) {
        snprintf(name, sizeof name, "%d", i);
        put_dead("die", name);
    }
    run_storms(argv);
    hf_store_close(store);
}

static void storms(char **argv) {
    begin_at(atoll(argv[6]));
    open_to_be_killed(atol(argv[7]));
    die_and_run(argv, (const char *const[]){"a", "a", "b", "a", "c", "d", NULL}); /* four causes, and room for two messages */
    ahead_s += WINDOW_MS / 1000 + 1;
    die_and_run(argv, (const char *const[]){"a", "c", "e", NULL});
    ahead_s += WINDOW_MS / 1000 + 1;
    run_storms(argv);
    close_counted();
}

/* ------------------------------------------------------------------ */

bool node_deaths(int argc, char **argv) {
    if (strcmp(argv[1], "letters") == 0 && argc == 4) {
        make_letters(argv[3]);
    } else if (strcmp(argv[1], "redrives") == 0 && argc == 5) {
        open_to_be_killed(atol(argv[4]));
        redrives(argv[3], false);
        close_counted();
    } else if (strcmp(argv[1], "redrives-again") == 0 && argc == 4) {
        open_it();
        redrives(argv[3], true);
        hf_store_close(store);
        say("done");
    } else if (strcmp(argv[1], "causes") == 0 && argc == 8) {
        begin_at(atoll(argv[6]));
        make_causes(argv);
    } else if (strcmp(argv[1], "storms") == 0 && argc == 8) {
        storms(argv);
    } else if (strcmp(argv[1], "storms-again") == 0 && argc == 8) {
        begin_at(atoll(argv[6]));
        open_it();
        run_storms(argv);
        hf_store_close(store);
        say("done");
    } else {
        return false;
    }
    return true;
}
