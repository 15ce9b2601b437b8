/* SPDX-License-Identifier: MIT */
/* How jobs and dead letters are printed, in one place for list, show and the rest. The main thread's. */
#include "program/commands/views.h"

#include "holdfast/units.h"
#include "program/base64.h"
#include "program/memory.h"
#include "program/output.h"

int64_t hfi_ago_us(int64_t ms) {
    int64_t now = hf_time_now();
    return ms > now / 1000 ? 1 : now - ms * 1000;
}

static void job_texts(json_t *object, const struct hf_job_view *job) {
    hfi_json_text(object, "state", hf_job_state_name(job->state));
    hfi_json_text(object, "shown", job->shown);
    hfi_json_text(object, "type", job->type);
    hfi_json_text(object, "queue", job->queue);
    hfi_json_text(object, "downstream", job->downstream);
    hfi_json_text(object, "limit_key", job->limit_key);
    hfi_json_text(object, "unique_key", job->unique_key);
    hfi_json_text(object, "idempotency_key", job->idempotency_key);
    hfi_json_text(object, "correlation_id", job->correlation_id);
    hfi_json_text(object, "tags", job->tags);
    hfi_json_text(object, "content_type", job->content_type);
    hfi_json_text(object, "owner", job->owner);
    hfi_json_text(object, "not_before_reason", job->not_before_reason);
    hfi_json_text(object, "error_class", job->error_class);
    hfi_json_text(object, "error_type", job->error_type);
    hfi_json_text(object, "error_message", job->error_message);
    hfi_json_text(object, "cancel_reason", job->cancel_reason);
    hfi_json_text(object, "cancel_by", job->cancel_by);
    hfi_json_text(object, "source", job->source);
    hfi_json_text(object, "source_message_id", job->source_message_id);
}

json_t *hfi_job_json(const struct hf_job_view *job, bool whole) {
    json_t *object = json_object();
    hfi_json_number(object, "id", job->id);
    job_texts(object, job);
    hfi_json_number(object, "priority", job->priority);
    hfi_json_number(object, "executions", job->executions);
    hfi_json_number(object, "failures", job->failures);
    hfi_json_number(object, "snoozes", job->snoozes);
    hfi_json_number(object, "crashes", job->crashes);
    hfi_json_number(object, "give_backs", job->give_backs);
    hfi_json_number(object, "deaths", job->deaths);
    if (job->max_executions > 0) /* 0: its type's, worked out at the first start */
        hfi_json_number(object, "max_executions", job->max_executions);
    else
        json_object_set_new(object, "max_executions", json_null());
    hfi_json_flag(object, "max_executions_explicit", job->max_executions_explicit);
    hfi_json_number(object, "epoch", job->epoch);
    hfi_json_number(object, "root_id", job->root_id);
    hfi_json_time(object, "run_at", job->run_at_us);
    hfi_json_time(object, "expires_at", job->expires_at_us);
    hfi_json_time(object, "created_at", job->created_at_us);
    hfi_json_time(object, "started_at", job->started_at_us);
    hfi_json_time(object, "finished_at", job->finished_at_us);
    hfi_json_time(object, "cancel_requested_at", job->cancel_requested_at_us);
    hfi_json_number(object, "payload_bytes", (int64_t)job->payload_length);
    if (whole)
        hfi_json_bytes(object, "payload", job->payload, job->payload_length);
    hfi_json_number(object, "progress", job->progress);
    hfi_json_text(object, "progress_text", job->progress_text);
    if (whole)
        hfi_json_number(object, "checkpoint_bytes", (int64_t)job->checkpoint_length);
    if (whole && job->result)
        hfi_json_bytes(object, "result", job->result, job->result_length);
    return object;
}

/* Bytes for people: as text when they are text, else in base64. */
static void show_bytes(const char *label, const void *data, size_t length) {
    char name[32];
    if (length == 0 || !data)
        return;
    if (hf_text_valid(data, length)) {
        hfi_field(label, "%.*s", (int)(length > 4000 ? 4000 : length), (const char *)data);
        return;
    }
    char *text = hfi_base64(data, length > 3000 ? 3000 : length);
    snprintf(name, sizeof name, "%s base64", label);
    hfi_field(name, "%s%s", text, length > 3000 ? "…" : "");
    hfi_release(text);
}

static void show_time(const char *label, int64_t at_us) {
    char text[HF_TIME_LENGTH];
    hfi_field(label, "%s", hf_time_print(at_us, text));
}

void hfi_show_job(const struct hf_job_view *job) {
    hfi_field("job", "%lld", (long long)job->id);
    bool said = strcmp(job->not_before_reason, job->shown) == 0; /* scheduled, and for no other reason */
    const char *reason = said ? "" : job->not_before_reason;
    hfi_field("state", "%s%s%s", job->shown, *reason ? ", waits for " : "", reason);
    hfi_field("type", "%s", job->type);
    hfi_field("queue", "%s, priority %d", job->queue, job->priority);
    hfi_field("downstream", "%s", job->downstream);
    if (job->max_executions > 0)
        hfi_field("executions", "%u of %u", job->executions, job->max_executions);
    else
        hfi_field("executions", "%u", job->executions);
    hfi_field("failures", "%u, crashes %u, given back %u, deaths %u", job->failures, job->crashes, job->give_backs, job->deaths);
    hfi_field("last error", "%s%s%s%s%s", job->error_type, *job->error_class ? " (" : "", job->error_class,
              *job->error_class ? ") " : "", job->error_message);
    hfi_field("owner", "%s", job->owner);
    hfi_field("key", "%s", job->idempotency_key);
    hfi_field("unique key", "%s", job->unique_key);
    hfi_field("limit key", "%s", job->limit_key);
    hfi_field("correlation id", "%s", job->correlation_id);
    hfi_field("tags", "%s", job->tags);
    hfi_field("cancel reason", "%s%s%s", job->cancel_reason, *job->cancel_by ? ", by " : "", job->cancel_by);
    hfi_field("source", "%s%s%s", job->source, *job->source ? " " : "", job->source_message_id);
    show_time("created at", job->created_at_us);
    show_time("run at", job->run_at_us);
    show_time("started at", job->started_at_us);
    show_time("finished at", job->finished_at_us);
    show_time("expires at", job->expires_at_us);
    show_time("cancel asked at", job->cancel_requested_at_us);
    hfi_field("payload", "%zu bytes%s%s", job->payload_length, *job->content_type ? ", " : "", job->content_type);
    show_bytes("payload", job->payload, job->payload_length);
    if (job->progress != 0 || *job->progress_text)
        hfi_field("progress", "%lld%s%s", (long long)job->progress, *job->progress_text ? ", " : "", job->progress_text);
    if (job->checkpoint_length > 0)
        hfi_field("checkpoint", "%zu bytes", job->checkpoint_length);
    show_bytes("result", job->result, job->result_length);
}

static void dead_texts(json_t *object, const struct hf_dead_view *dead) {
    hfi_json_text(object, "status", hf_dead_status_name(dead->status));
    hfi_json_text(object, "class", hf_death_class_name(dead->death_class));
    hfi_json_text(object, "type", dead->type);
    hfi_json_text(object, "queue", dead->queue);
    hfi_json_text(object, "downstream", dead->downstream);
    hfi_json_text(object, "content_type", dead->content_type);
    hfi_json_text(object, "error_type", dead->error_type);
    hfi_json_text(object, "error_message", dead->error_message);
    hfi_json_text(object, "rule", dead->rule);
    hfi_json_text(object, "cause", dead->cause);
    hfi_json_text(object, "fingerprint", dead->fingerprint);
    hfi_json_text(object, "correlation_id", dead->correlation_id);
    hfi_json_text(object, "node", dead->node);
    hfi_json_text(object, "source", dead->source);
    hfi_json_text(object, "source_message_id", dead->source_message_id);
    hfi_json_text(object, "settled_by", dead->settled_by);
    hfi_json_text(object, "settled_reason", dead->settled_reason);
    hfi_json_text(object, "new_job_outcome", dead->new_job_outcome);
}

/* What a redrive needs besides, and where it came from: with it `dead import` makes the same letter again. */
static void dead_rest(json_t *object, const struct hf_dead_view *dead) {
    hfi_json_text(object, "detail", dead->detail);
    hfi_json_text(object, "origin", dead->origin);
    hfi_json_text(object, "error_class", dead->error_class);
    hfi_json_number(object, "priority", dead->priority);
    hfi_json_text(object, "breaker_key", dead->breaker_key);
    hfi_json_text(object, "limit_key", dead->limit_key);
    hfi_json_text(object, "unique_key", dead->unique_key);
    hfi_json_text(object, "idempotency_key", dead->idempotency_key);
    hfi_json_text(object, "trace_context", dead->trace_context);
    hfi_json_text(object, "tags", dead->tags);
    hfi_json_number(object, "root_id", dead->root_id);
    hfi_json_number(object, "max_executions_given", dead->max_executions_given);
    hfi_json_number(object, "execution_timeout_ms", dead->execution_timeout_ms);
    hfi_json_text(object, "curve_ms", dead->curve_ms);
    hfi_json_number(object, "curve_executions", dead->curve_executions);
    hfi_json_number(object, "curve_jitter_permille", dead->curve_jitter_permille);
}

json_t *hfi_dead_json(const struct hf_dead_view *dead, bool whole) {
    json_t *object = json_object();
    hfi_json_number(object, "id", dead->id);
    if (dead->job_id > 0)
        hfi_json_number(object, "job_id", dead->job_id);
    else
        json_object_set_new(object, "job_id", json_null()); /* it died before it was a job [S0.13] */
    hfi_json_number(object, "death_no", dead->death_no);
    dead_texts(object, dead);
    hfi_json_flag(object, "quarantined", dead->quarantined);
    hfi_json_number(object, "executions", dead->executions);
    hfi_json_number(object, "failures", dead->failures);
    hfi_json_number(object, "max_executions", dead->max_executions);
    hfi_json_time(object, "job_created_at", dead->job_created_at_us);
    hfi_json_time(object, "dead_at", dead->dead_at_us);
    hfi_json_time(object, "settled_at", dead->settled_at_us);
    if (dead->new_job_id > 0)
        hfi_json_number(object, "new_job_id", dead->new_job_id);
    else
        json_object_set_new(object, "new_job_id", json_null());
    hfi_json_number(object, "payload_bytes", (int64_t)dead->payload_length);
    hfi_json_flag(object, "payload_cut", dead->payload_cut);
    if (whole)
        hfi_json_bytes(object, "payload", dead->payload, dead->payload_length);
    if (whole)
        dead_rest(object, dead);
    return object;
}

void hfi_show_dead(const struct hf_dead_view *dead) {
    hfi_field("dead letter", "%lld", (long long)dead->id);
    hfi_field("status", "%s", hf_dead_status_name(dead->status));
    if (dead->job_id == 0)
        hfi_field("job", "none: a message that never became one");
    else
        hfi_field("job", "%lld, death %u%s", (long long)dead->job_id, dead->death_no, dead->quarantined ? ", quarantined" : "");
    hfi_field("class", "%s", hf_death_class_name(dead->death_class));
    hfi_field("cause", "%s", dead->cause);
    hfi_field("type", "%s", dead->type);
    hfi_field("queue", "%s", dead->queue);
    hfi_field("downstream", "%s", dead->downstream);
    hfi_field("error", "%s", dead->error_type);
    hfi_field("message", "%s", dead->error_message);
    hfi_field("rule", "%s", dead->rule);
    hfi_field("executions", "%u of %u, failures %u", dead->executions, dead->max_executions, dead->failures);
    hfi_field("fingerprint", "%s", dead->fingerprint);
    hfi_field("correlation id", "%s", dead->correlation_id);
    hfi_field("node", "%s", dead->node);
    hfi_field("source", "%s%s%s", dead->source, *dead->source ? " " : "", dead->source_message_id);
    show_time("job created at", dead->job_created_at_us);
    show_time("dead at", dead->dead_at_us);
    show_time("settled at", dead->settled_at_us);
    hfi_field("settled by", "%s", dead->settled_by);
    hfi_field("reason", "%s", dead->settled_reason);
    if (dead->new_job_id > 0)
        hfi_field("new job", "%lld%s%s", (long long)dead->new_job_id, *dead->new_job_outcome ? ", " : "", dead->new_job_outcome);
    hfi_field("payload", "%zu bytes%s%s%s", dead->payload_length, dead->payload_cut ? ", cut: the rest is lost" : "", *dead->content_type ? ", " : "", dead->content_type);
    show_bytes("payload", dead->payload, dead->payload_length);
    hfi_field("detail", "%s", dead->detail ? dead->detail : "");
}
