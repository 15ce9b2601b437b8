/* SPDX-License-Identifier: MIT */
/*
 * `holdfast demo`: plays the story on a temporary SQLite file, shows it live, holds every count against its twin, and ends
 * with a table and an SVG timeline. Exits 0 only if everything adds up. Main thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/commands/commands.h"
#include "program/commands/demo_story.h"
#include "program/output.h"

static const struct hfi_flag flags[] = {
    {.name = "seconds", .kind = HFI_FLAG_NUMBER, .value = "N", .min = 5, .max = 300,
     .help = "how long the story takes, without the drain at its end (default 20)"},
    {.name = "svg", .kind = HFI_FLAG_TEXT, .value = "FILE", .help = "where the timeline goes (default holdfast-demo.svg here)"},
    {0},
};

static void show(const struct hfi_demo_sample *now, const char *act, int64_t total_ms, void *user) {
    int64_t *shown_ms = user;
    bool terminal = isatty(STDERR_FILENO) != 0;
    if (hfi_manner()->quiet || (*shown_ms >= 0 && now->at_ms - *shown_ms < (terminal ? 200 : 1000))) {
        return;
    }
    *shown_ms = now->at_ms;
    fprintf(stderr, "%s%3" PRId64 "/%" PRId64 " s  breaker %-9s  ok %-5" PRIu64 " failed %-4" PRIu64 " parked %-4" PRIu64 " %s%s",
            terminal ? "\r" : "", now->at_ms / 1000, total_ms / 1000, hf_breaker_state_name(now->breaker), now->ok,
            now->failed + now->unanswered, now->parked, now->at_ms > total_ms ? "draining" : act, terminal ? "\033[K" : "\n");
}

/* Two numbers that must be equal, with the words for both. */
struct pair {
    const char *what, *is;
    uint64_t left, right;
};
#define PAIRS 6

static void find_pairs(const struct hfi_demo_result *result, struct pair pairs[PAIRS]) {
    uint64_t deaths = result->jobs.dead + result->jobs.quarantined;
    pairs[0] = (struct pair){"jobs accepted", "succeeded + dead + quarantined", result->accepted, result->jobs.succeeded + deaths};
    pairs[1] = (struct pair){"requests the server saw", "attempts reported", result->server.seen, result->runner.attempts};
    pairs[2] = (struct pair){"deaths", "dead letters", deaths, result->jobs.dead_letters_open};
    pairs[3] = (struct pair){"deaths", "Error lines", deaths, result->error_lines};
    pairs[4] = (struct pair){"deaths", "alerts sent", deaths, result->runner.alerts_sent};
    pairs[5] = (struct pair){"alerts sent", "alerts the sink took", result->runner.alerts_sent, result->server.hooks};
}

/* A story without an outage proves nothing. */
static const char *missed(const struct hfi_demo_result *result) {
    if (!result->drained) {
        return "not every job came to an end in time";
    }
    if (result->trips == 0) {
        return "the breaker never opened";
    }
    return result->peak_parked == 0 ? "no job was ever parked" : NULL;
}

static void print_people(const struct hfi_demo_result *result, const struct pair *pairs, const char *svg) {
    struct hfi_table *table = hfi_table_new("WHAT|>COUNT|MUST EQUAL|>COUNT|HOLDS");
    for (size_t i = 0; i < PAIRS; i++) {
        hfi_table_cell(table, "%s", pairs[i].what);
        hfi_table_cell(table, "%" PRIu64, pairs[i].left);
        hfi_table_cell(table, "%s", pairs[i].is);
        hfi_table_cell(table, "%" PRIu64, pairs[i].right);
        hfi_table_cell(table, "%s", pairs[i].left == pairs[i].right ? "ok" : "WRONG");
    }
    hfi_table_print(table);
    hfi_say("\n%" PRIu64 " succeeded, %" PRIu64 " dead, %" PRIu64 " quarantined; %" PRIu64 " executions were retried, %" PRIu64
            " refused before the wire (uncounted)\n",
            result->jobs.succeeded, result->jobs.dead, result->jobs.quarantined, result->runner.retried, result->runner.rejected);
    hfi_say("the breaker opened %" PRIu64 " times; at most %" PRIu64 " jobs were parked\ntimeline: %s\n", result->trips,
            result->peak_parked, svg);
}

static void print_json(const struct hfi_demo_result *result, const struct pair *pairs, const char *svg, bool good) {
    json_t *object = json_object();
    json_t *checks = json_array();
    for (size_t i = 0; i < PAIRS; i++) {
        json_t *check = json_object();
        hfi_json_text(check, "what", pairs[i].what);
        hfi_json_number(check, "count", (int64_t)pairs[i].left);
        hfi_json_text(check, "must_equal", pairs[i].is);
        hfi_json_number(check, "other_count", (int64_t)pairs[i].right);
        hfi_json_flag(check, "ok", pairs[i].left == pairs[i].right);
        json_array_append_new(checks, check);
    }
    hfi_json_flag(object, "ok", good);
    json_object_set_new(object, "checks", checks);
    hfi_json_number(object, "succeeded", (int64_t)result->jobs.succeeded);
    hfi_json_number(object, "dead", (int64_t)result->jobs.dead);
    hfi_json_number(object, "quarantined", (int64_t)result->jobs.quarantined);
    hfi_json_number(object, "breaker_opened", (int64_t)result->trips);
    hfi_json_number(object, "peak_parked", (int64_t)result->peak_parked);
    hfi_json_text(object, "timeline", svg);
    hfi_print_json(object);
}

static int judge(const struct hfi_demo_result *result, const char *svg) {
    struct pair pairs[PAIRS];
    find_pairs(result, pairs);
    bool good = missed(result) == NULL;
    for (size_t i = 0; i < PAIRS; i++) {
        good = good && pairs[i].left == pairs[i].right;
    }
    if (hfi_manner()->json) {
        print_json(result, pairs, svg, good);
    } else {
        print_people(result, pairs, svg);
    }
    if (good) {
        return HFI_EXIT_OK;
    }
    struct hf_error error;
    hf_error_init(&error);
    error.code = HF_ESTATE;
    snprintf(error.what, sizeof error.what, "demo");
    snprintf(error.why, sizeof error.why, "%s", missed(result) != NULL ? missed(result) : "a count does not equal its twin");
    snprintf(error.fix, sizeof error.fix, "see the table; on a very slow machine try more --seconds");
    hfi_complain(&error);
    return HFI_EXIT_FAILED;
}

/* The store and what SQLite and the node keep beside it. */
static void remove_folder(const char *folder) {
    static const char *const names[] = {"demo.db", "demo.db-wal", "demo.db-shm", "demo.db.ckpt", "demo.db.ballast"};
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static int run(const struct hfi_options *options) {
    const char *place = getenv("TMPDIR");
    const char *svg = hfi_flag_text(options, "svg", "holdfast-demo.svg");
    char folder[160];
    char url[224];
    struct hf_error error;
    hf_error_init(&error);
    snprintf(folder, sizeof folder, "%s/holdfast-demo-XXXXXX", place != NULL && place[0] != '\0' ? place : "/tmp");
    FILE *probe = fopen(svg, "a"); /* better now than after the story */
    if (probe == NULL || fclose(probe) != 0) {
        return hfi_usage(svg, "name another file with --svg", "the timeline cannot be written: %s", strerror(errno));
    }
    if (mkdtemp(folder) == NULL) {
        return hfi_usage(folder, "set TMPDIR to a folder that can be written", "%s", strerror(errno));
    }
    snprintf(url, sizeof url, "sqlite:%s/demo.db", folder);
    struct hfi_demo_result *result = calloc(1, sizeof *result);
    int64_t shown_ms = -1;
    int code = result == NULL ? HF_ENOMEM
                              : hfi_demo_play(url, (unsigned)hfi_flag_number(options, "seconds", 20), show, result, &error, &shown_ms);
    if (isatty(STDERR_FILENO) && !hfi_manner()->quiet) {
        fputc('\n', stderr);
    }
    int exit_code = code != 0 ? hfi_complain(&error) : 0;
    if (code == 0 && hfi_demo_chart_write(svg, result->samples, result->sample_count) != 0) {
        exit_code = hfi_usage(svg, "free some space", "the timeline could not be written: %s", strerror(errno));
    }
    if (code == 0 && exit_code == 0) {
        exit_code = judge(result, svg);
    }
    free(result);
    remove_folder(folder);
    return exit_code;
}

const struct hfi_command hfi_command_demo = {
    .name = "demo",
    .arguments = "",
    .summary = "Plays a whole outage against a misbehaving server on this machine",
    .about = "Jobs flow to a server on loopback that fails now and then, hangs, dies and comes back. The breaker opens, jobs are\n"
             "parked, probed and released along a ramp; jobs that cannot succeed die and alert. At the end every count is held\n"
             "against its twin. Exits 0 only if all of them add up.",
    .example = "holdfast demo --seconds 20 --svg outage.svg",
    .flags = flags,
    .prints_json = true,
    .run = run,
};
