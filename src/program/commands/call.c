/* SPDX-License-Identifier: MIT */
/*
 * `holdfast call`: resilient calls from the shell, one or many. Prints how each ended; the answer's body on request. The
 * calls end on the client's loop thread, the rest is the main thread's.
 */
#include "holdfast/http.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/units.h"
#include "program/commands/call_print.h"
#include "program/commands/commands.h"
#include "program/nearest.h"
#include "program/output.h"
#include "program/progress.h"
#include "program/session.h"

static const struct hfi_flag flags[] = {
    {.name = "method", .kind = HFI_FLAG_TEXT, .value = "M", .help = "HTTP method (default: GET, POST with --data)"},
    {.name = "header", .kind = HFI_FLAG_LIST, .value = "'NAME: VALUE'", .help = "a header besides the downstream's"},
    {.name = "data", .kind = HFI_FLAG_BYTES, .value = "D|@F", .help = "the body: a text, or @FILE, or @- for stdin"},
    {.name = "idempotency-key", .kind = HFI_FLAG_TEXT, .value = "K", .help = "sent with every attempt; lets any method be retried"},
    {.name = "timeout", .kind = HFI_FLAG_DURATION, .min = 1, .value = "D", .help = "total limit, if less than the downstream's"},
    {.name = "attempt-timeout", .kind = HFI_FLAG_DURATION, .min = 1, .value = "D", .help = "limit of one attempt, if less than the downstream's"},
    {.name = "no-retry", .kind = HFI_FLAG_SWITCH, .help = "one attempt"},
    {.name = "no-hedge", .kind = HFI_FLAG_SWITCH, .help = "no second attempt beside a slow one"},
    {.name = "repeat", .kind = HFI_FLAG_NUMBER, .value = "N", .help = "call N times (default: 1)", .min = 1, .max = 1000000},
    {.name = "parallel", .kind = HFI_FLAG_NUMBER, .value = "N", .help = "up to N at once (default: 1)", .min = 1, .max = 1000},
    {.name = "body", .kind = HFI_FLAG_SWITCH, .help = "print the answer's body, nothing else (not with --repeat or --json)"},
    {0},
};

struct caller {
    struct hfi_session session;
    struct hf_client *client;
    struct hf_request request;
    struct hfi_call_record *records;
    size_t count;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t in_flight, ended; /* under lock */
    bool keep_body, per_host;
};
struct flight {
    struct caller *caller;
    struct hfi_call_record *record;
};

static void ended(struct hf_response *response, void *user) {
    struct flight *flight = user;
    struct caller *caller = flight->caller;
    hfi_call_record_fill(flight->record, response, hf_time_now());
    if (caller->keep_body && hf_response_status(response) > 0) {
        size_t length = 0;
        const void *body = hf_response_body(response, &length);
        if (length > 0)
            fwrite(body, 1, length, stdout);
    }
    hf_response_free(response);
    pthread_mutex_lock(&caller->lock);
    caller->in_flight--;
    caller->ended++;
    pthread_cond_signal(&caller->changed);
    pthread_mutex_unlock(&caller->lock);
}

/* Waits until fewer than `most` are in flight; how many have ended. */
static size_t wait_below(struct caller *caller, size_t most) {
    pthread_mutex_lock(&caller->lock);
    while (caller->in_flight >= most)
        pthread_cond_wait(&caller->changed, &caller->lock);
    size_t count = caller->ended;
    pthread_mutex_unlock(&caller->lock);
    return count;
}

static int call_all(struct caller *caller, size_t parallel) {
    struct flight *flights = hfi_arena_array(&caller->session.config.arena, caller->count, sizeof *flights);
    struct hfi_progress progress;
    struct hf_error error = hf_error_none();
    int code = 0;
    hfi_progress_start(&progress, "calls", caller->count);
    for (size_t i = 0; i < caller->count && code == 0; i++) {
        hfi_progress_move(&progress, wait_below(caller, parallel));
        flights[i] = (struct flight){caller, &caller->records[i]};
        caller->records[i].started_us = hf_time_now();
        pthread_mutex_lock(&caller->lock);
        caller->in_flight++;
        pthread_mutex_unlock(&caller->lock);
        code = hf_call_start(caller->client, &caller->request, NULL, ended, &flights[i], &error);
        if (code != 0) { /* the callback does not run then */
            pthread_mutex_lock(&caller->lock);
            caller->in_flight--;
            pthread_mutex_unlock(&caller->lock);
            code = hfi_usage(error.what, error.fix[0] ? error.fix : NULL, "%s", error.why);
        }
    }
    wait_below(caller, 1);
    hfi_progress_end(&progress);
    return code;
}

static int read_header(struct hfi_arena *arena, const char *text, size_t number, struct hf_header *header) {
    const char *colon = strchr(text, ':');
    if (!colon || colon == text)
        return hfi_usage("header", "write 'Name: value'", "header %zu has no name with a colon behind it", number); /* may be secret */
    header->name = hfi_arena_copy(arena, text, (size_t)(colon - text));
    for (colon++; *colon == ' '; colon++)
        ;
    header->value = colon;
    return 0;
}

static int read_request(struct caller *caller, const struct hfi_options *options) {
    struct hf_request *request = &caller->request;
    struct hfi_arena *arena = &caller->session.config.arena;
    const struct hfi_value *headers = hfi_flag(options, "header");
    const char *data = hfi_flag_text(options, "data", NULL);
    struct hfi_payload body = {data, data ? strlen(data) : 0};
    struct hf_header *list = hfi_arena_array(arena, headers->count + 1, sizeof *list);
    int code = data && data[0] == '@' ? hfi_payload_file(&caller->session, data + 1, &body) : 0;
    for (size_t i = 0; code == 0 && i < headers->count; i++)
        code = read_header(arena, headers->list[i], i + 1, &list[i]);
    hf_request_init(request);
    request->downstream = options->arguments[0];
    request->method = hfi_flag_text(options, "method", data ? "POST" : "GET");
    request->headers = list;
    request->header_count = headers->count;
    request->body = body.data;
    request->body_length = body.length;
    request->idempotency_key = hfi_flag_text(options, "idempotency-key", NULL);
    request->total_timeout_ms = hfi_flag_number(options, "timeout", 0);
    request->attempt_timeout_ms = hfi_flag_number(options, "attempt-timeout", 0);
    request->no_hedge = hfi_flag(options, "no-hedge")->given;
    request->no_retry = hfi_flag(options, "no-retry")->given;
    if (options->argument_count > 1 && caller->per_host) {
        request->url = options->arguments[1];
    } else if (options->argument_count > 1) {
        const char *query = strchr(options->arguments[1], '?');
        request->path = query ? hfi_arena_copy(arena, options->arguments[1], (size_t)(query - options->arguments[1])) : options->arguments[1];
        request->query = query ? query + 1 : NULL;
        if (request->path[0] && request->path[0] != '/')
            code = hfi_usage("path", "begin it with /", "`%.100s` is not a path", request->path);
    }
    return code;
}

static int open_client(struct caller *caller, const char *name) {
    const struct hf_runner_options *options = &caller->session.config.runner;
    struct hfi_nearest nearest;
    struct hf_error error;
    hf_error_init(&error);
    hfi_nearest_init(&nearest, name);
    for (size_t i = 0; i < options->downstream_count; i++) {
        if (strcmp(options->downstreams[i].name, name) != 0) {
            hfi_nearest_offer(&nearest, options->downstreams[i].name);
            continue;
        }
        if (hf_client_new(&options->downstreams[i], 1, &caller->client, &error) != 0)
            return hfi_complain(&error);
        caller->per_host = options->downstreams[i].per_host;
        return 0;
    }
    error.code = HF_ENOENT;
    snprintf(error.what, sizeof error.what, "downstream %.100s", name);
    snprintf(error.why, sizeof error.why, "the configuration has none of that name");
    if (nearest.best)
        snprintf(error.fix, sizeof error.fix, "did you mean `%.100s`?", nearest.best);
    return hfi_complain(&error);
}

/* Said once and with its reason, before anything is sent. */
static int check_request(struct caller *caller) {
    struct hf_error error;
    hf_error_init(&error);
    return hf_client_check(caller->client, &caller->request, &error) != 0 ? hfi_complain(&error) : 0;
}

/* What the client knows of the downstream, or of the host that was called. */
static void look(const struct caller *caller, struct hf_downstream_view *seen) {
    const struct hf_request *request = &caller->request;
    struct hf_downstream *called = NULL;
    if (caller->per_host) /* beyond hosts_max the downstream itself was used */
        hf_client_host(caller->client, request->downstream, request->url, &called, NULL);
    if (called == NULL)
        called = hf_client_downstream(caller->client, request->downstream);
    *seen = (struct hf_downstream_view){.size = sizeof *seen};
    hf_downstream_look(called, seen);
    hf_downstream_unref(called);
}

static int run_calls(struct caller *caller, const struct hfi_options *options) {
    struct hf_downstream_view seen;
    caller->count = (size_t)hfi_flag_number(options, "repeat", 1);
    caller->records = hfi_arena_array(&caller->session.config.arena, caller->count, sizeof *caller->records);
    caller->keep_body = hfi_flag(options, "body")->given;
    int code = open_client(caller, options->arguments[0]);
    if (code == 0)
        code = read_request(caller, options);
    if (code == 0)
        code = check_request(caller);
    if (code == 0)
        code = call_all(caller, (size_t)hfi_flag_number(options, "parallel", 1));
    if (code == 0)
        look(caller, &seen);
    hf_client_close(caller->client);
    if (code != 0)
        return code;
    return caller->keep_body ? hfi_call_exit(caller->records, caller->count) : hfi_call_print(caller->records, caller->count, &seen);
}

static int run(const struct hfi_options *options) {
    struct caller caller = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    if (hfi_flag(options, "body")->given && (hfi_flag(options, "repeat")->given || hfi_manner()->json))
        return hfi_usage("body", "leave one of them out", "it goes neither with --repeat nor with --json");
    int code = hfi_session_open(&caller.session, options, HFI_SESSION_SECRETS);
    if (code == 0)
        code = run_calls(&caller, options);
    hfi_session_close(&caller.session);
    return code;
}

const struct hfi_command hfi_command_call = {
    .name = "call",
    .arguments = "DOWNSTREAM [PATH|URL]",
    .summary = "Calls a downstream with all its limits, retries and its breaker",
    .about = "Prints the outcome, the attempts and the times of the last one's phases; with --repeat, how many ended in which way\n"
             "and the p50, p95 and p99 of each phase of all attempts. Exit code 1 when any call failed.\n"
             "A downstream with `per_host: true` takes a whole URL; every host it names has a breaker of its own.",
    .example = "holdfast call payments /charges/17\n"
               "holdfast call payments /charges --data '{\"amount\":7}' --idempotency-key 4711\n"
               "holdfast call payments /healthz --repeat 100 --parallel 10\n"
               "holdfast call hooks https://customer.example/hook --data @event.json",
    .flags = flags,
    .min_arguments = 1,
    .max_arguments = 2,
    .prints_json = true,
    .run = run,
};
