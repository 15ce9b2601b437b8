/* SPDX-License-Identifier: MIT */
/*
 * The kind of job that is one HTTP call: the payload is the body, or gives values (template.c); the type says where it
 * goes. Asynchronous on the loop, so thousands are in flight without a thread. The call's outcome becomes the ending as it is. Must never repeat what is
 * not repeatable, and never let a call outlast the execution. Loop thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/forward.h"
#include "jobs/kinds/template.h"
#include "jobs/work.h"
#include "resilience/key.h"

#define RELOADING_MS 1000
#define JOB_HEADERS 4 /* besides the type's: Content-Type, Holdfast-Job, Holdfast-Error, Holdfast-Dead-Letter */

struct http {
    struct hfi_kind kind;
    struct hfi_scheduler *scheduler;
    struct hfi_caller *caller;
};

/* The call's total was what the execution had left: then it is the execution whose time is up [S2.7]. */
static void note_timeout(struct hf_work *work, const struct hf_outcome *outcome) {
    int none = HFI_STOP_NONE;
    int64_t now = work->scheduler->ops->mono(work->scheduler).us;
    if (work->deadline.us != HFI_FOREVER_US && now >= work->deadline.us - 1000 &&
        hfi_dotted_prefix("timeout", outcome->error_type))
        atomic_compare_exchange_strong(&work->stop, &none, HFI_STOP_TIMEOUT);
}

static void ended(struct hf_response *response, void *user) {
    struct hf_work *work = user;
    const struct hf_outcome *outcome = hf_response_outcome(response);
    note_timeout(work, outcome);
    atomic_store(&work->attempts, outcome->attempts);
    if (outcome->sent != HF_SENT_NO)
        atomic_store(&work->may_have_sent, true);
    work->ending.result = hfi_work_outcome(work, outcome);
    work->kind_state = NULL;
    hf_response_free(response);
    work->ended(work, work->user);
}

/* It could not begin; that is no word of the downstream. */
static int refuse(struct hf_work *work, int code, const char *downstream, const struct hf_error *error) {
    struct hf_outcome *outcome = &work->ending.outcome;
    bool forever = code == HF_ENOENT || code == HF_EINVAL || code == HF_ETEXT;
    hfi_outcome_init(outcome);
    hfi_outcome_set(outcome, HF_OUTCOME_FAILURE, forever ? HF_RETRY_NONE : HF_RETRY_LATER, HF_VERDICT_NEUTRAL,
                    forever ? HF_CLASS_PERMANENT : HF_CLASS_TRANSIENT,
                    code == HF_ENOENT ? "downstream.unknown" : "local.call", "job.http.start");
    if (code == HF_ENOENT)
        hfi_outcome_message(outcome, "no downstream is called `%s` here", downstream);
    else
        hfi_outcome_message(outcome, "the call could not be started: %s", error != NULL ? error->why : hf_strerror(code));
    outcome->stage = HF_STAGE_LOCAL;
    outcome->sent = HF_SENT_NO;
    work->ending.result = forever ? HF_RESULT_PERMANENT : HF_RESULT_FAILED;
    return code;
}

/* The downstream of its own type is gone: the node is being configured anew, and the type goes, too, or calls another one. */
static int refuse_between(struct hf_work *work) {
    hfi_outcome_init(&work->ending.outcome);
    hfi_outcome_rejected(&work->ending.outcome, "local.reloading", RELOADING_MS);
    hfi_outcome_message(&work->ending.outcome, "the node is being configured anew");
    work->ending.result = HF_RESULT_FAILED;
    return HF_EREJECTED;
}

static bool brings(const struct hf_type_options *type, const char *name) {
    for (size_t i = 0; i < type->header_count; i++) {
        if (hfi_text_equal_nocase(type->headers[i].name, name))
            return true;
    }
    return false;
}

/* The type's headers, and what the job adds to them. */
static size_t fill_headers(const struct hf_work *work, struct hf_header *headers, char *id, char *letter, size_t room) {
    const struct hf_type_options *type = &work->type->options;
    const char *content_type = type->body_field ? "" : work->job->content_type; /* else it is that of the payload */
    size_t count = type->header_count;
    if (count > 0)
        memcpy(headers, type->headers, count * sizeof *headers);
    if (content_type[0] != '\0' || !brings(type, "Content-Type")) {
        if (content_type[0] == '\0')
            content_type = "application/octet-stream";
        size_t at = 0; /* the job's own word replaces the type's */
        while (at < count && !hfi_text_equal_nocase(headers[at].name, "Content-Type"))
            at++;
        headers[at] = (struct hf_header){"Content-Type", content_type};
        count += at == count;
    }
    snprintf(id, room, "%" PRId64, work->job->id);
    headers[count++] = (struct hf_header){"Holdfast-Job", id};
    if (work->type->error_header && hfi_forward_letter(work->job) != 0) {
        snprintf(letter, room, "%" PRId64, hfi_forward_letter(work->job));
        headers[count++] = (struct hf_header){"Holdfast-Dead-Letter", letter};
        headers[count++] = (struct hf_header){"Holdfast-Error", hfi_forward_error_type(work->job)};
    }
    return count;
}

static int64_t left_ms(const struct hf_work *work) {
    if (work->deadline.us == HFI_FOREVER_US)
        return 0; /* the policy's total alone */
    int64_t left = hfi_sub(work->deadline.us, work->scheduler->ops->mono(work->scheduler).us) / 1000;
    return left < 1 ? 1 : left;
}

/* The payload cannot make the call that the type describes: it never will [S3.14]. */
static int refuse_payload(struct hf_work *work, int code, const struct hf_error *error) {
    if (code != HF_EINVAL)
        return refuse(work, code, "", error);
    hfi_work_unreadable(work, error->what, "job.http.payload", error->why);
    return code;
}

static void fill_request(const struct hf_work *work, struct hf_request *request) {
    const struct hf_type_options *type = &work->type->options;
    const struct hfi_job *job = work->job;
    hf_request_init(request);
    request->downstream = job->downstream[0] != '\0' ? job->downstream : type->downstream;
    request->method = type->method;
    request->path = type->path;
    request->query = type->query;
    request->url = type->url;
    request->body = job->payload;
    request->body_length = job->payload_length;
    request->idempotency_key = type->repeatable && !type->no_idempotency_key ? work->key : NULL;
    request->total_timeout_ms = left_ms(work);
    request->no_retry = !type->repeatable;
    request->rules = type->rules;
    request->rule_count = type->rule_count;
}

/* Each host of a per_host downstream has a breaker: should the job come back, it waits with those of its host. Without
   memory for that it waits with all. */
static void note_host(struct hf_work *work, const struct hf_request *request) {
    char key[HFI_HOST_KEY_LENGTH];
    struct hfi_url url;
    if (request->url == NULL || hfi_url_split(request->url, &url) != NULL)
        return;
    hfi_host_key_print(&url, request->downstream, key);
    if (strcmp(key, work->job->breaker_key) != 0)
        work->breaker_key = hfi_strdup(key);
}

/* With its fields in place. 0 or how it was refused. */
static int begin(struct http *http, struct hf_work *work, struct hf_request *request, struct hf_header *headers,
                 struct hfi_keep *keep) {
    const struct hf_type_options *type = &work->type->options;
    struct hfi_call *call = NULL;
    struct hf_error error;
    hf_error_init(&error);
    if (hfi_templates_used(type)) {
        int code = hfi_templates_fill(type, work->job->payload, work->job->payload_length, keep, request, headers, &error);
        if (code != 0)
            return refuse_payload(work, code, &error);
    }
    int code = hfi_call_start(http->caller, request, ended, work, &call, &error);
    if (code == HF_EINVAL && type->url != NULL && strcmp(error.what, "url") == 0) { /* the payload's choice */
        hfi_text_copy(error.what, sizeof error.what, "payload.field");
        return refuse_payload(work, code, &error);
    }
    if (code == HF_ENOENT && type->downstream != NULL && strcmp(type->downstream, request->downstream) == 0)
        return refuse_between(work); /* the type had it when it was configured */
    if (code != 0)
        return refuse(work, code, request->downstream, &error);
    note_host(work, request);
    work->kind_state = call;
    return 0;
}

static int start(struct hfi_kind *self, struct hf_work *work) {
    struct http *http = (struct http *)(void *)self;
    struct hfi_keep keep = {NULL};
    struct hf_request request;
    char id[24], letter[24];
    fill_request(work, &request);
    if (http->caller == NULL || request.downstream == NULL)
        return refuse(work, HF_ENOENT, request.downstream == NULL ? "" : request.downstream, NULL);
    struct hf_header *headers = hfi_alloc_array(work->type->options.header_count + JOB_HEADERS, sizeof *headers);
    if (headers == NULL)
        return refuse(work, HF_ENOMEM, request.downstream, NULL);
    request.headers = headers;
    request.header_count = fill_headers(work, headers, id, letter, sizeof id);
    int code = begin(http, work, &request, headers, &keep);
    hfi_free(headers);
    hfi_keep_free(&keep);
    return code;
}

static void stop(struct hfi_kind *self, struct hf_work *work, bool hurry) {
    (void)self;
    (void)hurry; /* a cancelled call ends within one turn of the loop: there is nothing to hurry */
    struct hfi_call *call = work->kind_state;
    if (call == NULL)
        return;
    work->kind_state = NULL;
    hfi_call_cancel(call);
}

static void close_kind(struct hfi_kind *self) {
    hfi_free(self);
}

static const struct hfi_kind_ops http_ops = {"http", false, start, stop, NULL, close_kind};

int hfi_kind_http_new(struct hfi_scheduler *scheduler, struct hfi_caller *caller, struct hfi_kind **kind) {
    struct http *http = hfi_alloc(sizeof *http);
    if (http == NULL)
        return HF_ENOMEM;
    http->kind.ops = &http_ops;
    http->scheduler = scheduler;
    http->caller = caller;
    *kind = &http->kind;
    return 0;
}
