/* SPDX-License-Identifier: MIT */
/*
 * Copies job records and judges what somebody wants to enqueue. Must never store a text that is not clean UTF-8, nor
 * guess at a spec that contradicts itself. Pure but for the allocation of the copy. Any thread.
 */
#include "jobs/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/forward.h"

#define SEPARATOR "\x1f"
#define TIME_MAX_US INT64_C(253402300799999999) /* the last one that RFC 3339 can write */
#define WAIT_MAX_MS (INT64_C(3660) * 86400000) /* ten years: longer is a slip in the unit */

/* Every text of a job, for whoever must treat all alike. */
static const size_t texts[] = {
    offsetof(struct hfi_job, type),          offsetof(struct hfi_job, queue),
    offsetof(struct hfi_job, downstream),    offsetof(struct hfi_job, breaker_key),
    offsetof(struct hfi_job, limit_key),     offsetof(struct hfi_job, unique_key),
    offsetof(struct hfi_job, idempotency_key), offsetof(struct hfi_job, source),
    offsetof(struct hfi_job, source_message_id), offsetof(struct hfi_job, correlation_id),
    offsetof(struct hfi_job, trace_context), offsetof(struct hfi_job, tags),
    offsetof(struct hfi_job, content_type),  offsetof(struct hfi_job, reason),
    offsetof(struct hfi_job, error_class),   offsetof(struct hfi_job, error_type),
    offsetof(struct hfi_job, error_message), offsetof(struct hfi_job, cancel_by),
    offsetof(struct hfi_job, cancel_reason), offsetof(struct hfi_job, progress_text),
};
#define TEXTS (sizeof texts / sizeof *texts)

static const char **text_at(struct hfi_job *job, size_t index) {
    return (const char **)(void *)((char *)job + texts[index]);
}

/* Moves `length` bytes behind what the block holds already. */
static void *append(char **end, const void *data, size_t length) {
    char *place = *end;
    if (length > 0)
        memcpy(place, data, length);
    *end += length;
    return place;
}

struct hfi_job *hfi_job_copy(const struct hfi_job *job) {
    struct hfi_job shape = *job;
    size_t size = sizeof shape;
    for (size_t i = 0; i < TEXTS; i++) {
        const char **text = text_at(&shape, i);
        if (!*text)
            *text = "";
        size += strlen(*text) + 1;
    }
    if (!shape.payload)
        shape.payload_length = 0;
    if (!shape.result)
        shape.result_length = 0;
    if (!shape.checkpoint)
        shape.checkpoint_length = 0;
    if (shape.policy)
        size += hfi_curve_size(shape.policy);
    size += shape.payload_length + shape.result_length + shape.checkpoint_length;
    struct hfi_job *copy = hfi_alloc(size);
    if (!copy)
        return NULL;
    char *end = (char *)(copy + 1);
    if (shape.policy)
        shape.policy = append(&end, shape.policy, hfi_curve_size(shape.policy)); /* first: it has to be aligned */
    for (size_t i = 0; i < TEXTS; i++) {
        const char **text = text_at(&shape, i);
        *text = append(&end, *text, strlen(*text) + 1);
    }
    shape.payload = append(&end, shape.payload, shape.payload_length);
    shape.result = append(&end, shape.result, shape.result_length);
    shape.checkpoint = append(&end, shape.checkpoint, shape.checkpoint_length);
    *copy = shape;
    return copy;
}

size_t hfi_unique_scope(char *text, size_t room, const struct hfi_job *job) {
    char period[24] = "";
    if (job->unique_key[0] == '\0') {
        if (room > 0)
            text[0] = '\0';
        return 0;
    }
    if (job->unique_period > 0)
        snprintf(period, sizeof period, "%" PRId64, job->unique_period);
    int length = snprintf(text, room, "%s" SEPARATOR "%s" SEPARATOR "%s" SEPARATOR "%s", job->queue, job->type, period, job->unique_key);
    return length > 0 ? (size_t)length : 0;
}

const char *hfi_unique_unscope(const char *scope, struct hfi_job *job) {
    size_t prefix = strlen(job->queue) + strlen(job->type) + 2;
    job->unique_period = 0;
    if (strlen(scope) <= prefix)
        return "";
    for (scope += prefix; *scope >= '0' && *scope <= '9' && job->unique_period <= INT64_MAX / 10 - 1; scope++)
        job->unique_period = job->unique_period * 10 + (*scope - '0');
    return *scope == SEPARATOR[0] ? scope + 1 : "";
}

bool hfi_tag_next(const char **at, char *tag) {
    for (;;) {
        *at += strspn(*at, ", ");
        size_t length = strcspn(*at, ",");
        const char *begin = *at;
        *at += length;
        while (length > 0 && begin[length - 1] == ' ')
            length--;
        if (length == 0)
            return false;
        if (length > HFI_TAGS_MAX)
            continue; /* longer than any that were let in */
        memcpy(tag, begin, length);
        tag[length] = '\0';
        return true;
    }
}

bool hfi_tag_has(const char *tags, const char *tag) {
    char one[HFI_TAGS_MAX + 1];
    while (hfi_tag_next(&tags, one))
        if (strcmp(one, tag) == 0)
            return true;
    return false;
}

/* A text that may be absent; `*text` becomes "" then. */
static int check_text(const char *what, const char **text, size_t max, struct hf_error *error) {
    if (!*text)
        *text = "";
    size_t length = strlen(*text);
    if (length > max)
        return hfi_fail(error, HF_ETOOBIG, what, "shorten it", "%zu bytes, at most %zu fit", length, max);
    if (!hfi_text_valid(*text, length))
        return hfi_fail(error, HF_ETEXT, what, "send it as UTF-8", "not valid UTF-8");
    return 0;
}

/* The same for names: no control characters, so they can be joined, logged and shown on one line. */
static int check_word(const char *what, const char **text, size_t max, struct hf_error *error) {
    int code = check_text(what, text, max, error);
    for (const char *at = *text; code == 0 && *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            code = hfi_fail(error, HF_EINVAL, what, "use printable characters", "holds the control character 0x%02x",
                            (unsigned)(unsigned char)*at);
    return code;
}

int hfi_name_check(const char *what, const char *name, size_t max, struct hf_error *error) {
    if (!name || name[0] == '\0')
        return hfi_fail(error, HF_EINVAL, what, "give a name", "empty");
    return check_word(what, &name, max, error);
}

static int check_texts(struct hfi_job *job, struct hf_error *error) {
    int code = hfi_name_check("type", job->type, HFI_TYPE_MAX, error);
    if (code == 0)
        code = hfi_name_check("queue", job->queue, HFI_NAME_MAX, error);
    if (code == 0)
        code = check_word("downstream", &job->downstream, HFI_NAME_MAX, error);
    if (code == 0)
        code = check_word("content_type", &job->content_type, HFI_NAME_MAX, error);
    if (code == 0)
        code = check_text("unique_key", &job->unique_key, HFI_KEY_MAX, error);
    if (code == 0)
        code = check_word("idempotency_key", &job->idempotency_key, HFI_KEY_MAX, error); /* becomes a header */
    if (code == 0)
        code = check_text("correlation_id", &job->correlation_id, HFI_CORRELATION_MAX, error);
    if (code == 0)
        code = check_word("trace_context", &job->trace_context, HFI_TRACE_MAX, error); /* becomes a header */
    if (code == 0)
        code = check_text("tags", &job->tags, HFI_TAGS_MAX, error);
    if (code == 0)
        code = check_word("source", &job->source, HFI_NAME_MAX, error);
    if (code == 0)
        code = check_text("source_message_id", &job->source_message_id, HFI_KEY_MAX, error);
    return code;
}

static int check_limit(const struct hf_job_spec *spec, char *limit, struct hf_error *error) {
    const char *name = spec->limit_name, *key = spec->limit_key;
    limit[0] = '\0';
    if (!name && !key)
        return 0;
    if (!name || !key || !key[0])
        return hfi_fail(error, HF_EINVAL, "limit_key", "give limit_name and limit_key together", "one of them is missing");
    int code = hfi_name_check("limit_name", name, HFI_NAME_MAX, error);
    if (code == 0 && strchr(name, ':'))
        code = hfi_fail(error, HF_EINVAL, "limit_name", "choose another name", "holds a colon, which ends the name");
    if (code == 0)
        code = check_word("limit_key", &key, HFI_KEY_MAX, error);
    if (code == 0)
        snprintf(limit, HFI_LIMIT_MAX + 1, "%s:%s", name, key);
    return code;
}

static int check_curve(const struct hf_job_spec *spec, struct hfi_curve *curve, struct hf_error *error) {
    memset(curve, 0, sizeof *curve);
    if (spec->curve_length == 0)
        return 0;
    if (!spec->curve_ms)
        return hfi_fail(error, HF_EINVAL, "curve_ms", NULL, "NULL, but curve_length is %" PRIu32, spec->curve_length);
    if (spec->curve_length > HF_CURVE_MAX)
        return hfi_fail(error, HF_ETOOBIG, "curve_length", "the last wait is reused", "%" PRIu32 " waits, at most %d fit",
                        spec->curve_length, HF_CURVE_MAX);
    for (uint32_t i = 0; i < spec->curve_length; i++) {
        if (spec->curve_ms[i] < 0 || spec->curve_ms[i] > WAIT_MAX_MS)
            return hfi_fail(error, HF_EINVAL, "curve_ms", "waits are milliseconds, 0 to ten years",
                            "wait %" PRIu32 " is %" PRId64 " ms", i + 1, spec->curve_ms[i]);
        curve->waits_ms[i] = spec->curve_ms[i];
    }
    curve->length = spec->curve_length;
    curve->max_executions = spec->max_executions > 0 ? spec->max_executions : spec->curve_length + 1;
    return 0;
}

/* A key that a job would lose while it still may run could not be given back to it; one that a dead one held would be in
 * the way of its own redrive. */
static int check_unique(const struct hf_job_spec *spec, struct hf_wall now, struct hfi_job *job, struct hf_error *error) {
    bool keyed = spec->unique_key && spec->unique_key[0];
    if (spec->on_conflict > HF_UNIQUE_REPLACE)
        return hfi_fail(error, HF_EINVAL, "on_conflict", "see enum hf_unique_conflict", "%" PRIu32 " is none of them", spec->on_conflict);
    if (!keyed && (spec->on_conflict != HF_UNIQUE_KEEP || spec->unique_window_ms != 0 || spec->unique_states != 0))
        return hfi_fail(error, HF_EINVAL, "unique_key", "name what is to be unique", "missing, but the job says how it is unique");
    if (spec->unique_window_ms < 0 || spec->unique_window_ms > WAIT_MAX_MS)
        return hfi_fail(error, HF_EINVAL, "unique_window_ms", "milliseconds, 0 to ten years", "%" PRId64 " ms", spec->unique_window_ms);
    uint32_t ended = spec->unique_states & ~(uint32_t)HFI_UNIQUE_STATES;
    if (spec->unique_states != 0 && (spec->unique_states - ended != HFI_UNIQUE_STATES ||
                                     (ended & ~(1u << HF_JOB_SUCCEEDED | 1u << HF_JOB_CANCELLED)) != 0))
        return hfi_fail(error, HF_EINVAL, "unique_states", "pending, waiting and running, besides them succeeded or cancelled",
                        "0x%" PRIx32 " is no such set of states", spec->unique_states);
    job->unique_states = spec->unique_states;
    if (spec->unique_window_ms > 0) {
        job->unique_period = now.us / (spec->unique_window_ms * 1000) + 1;
        if (spec->unique_states == 0)
            job->unique_states = HFI_UNIQUE_STATES | 1u << HF_JOB_SUCCEEDED;
    }
    return 0;
}

/* Its breaker is that of the downstream, or that of one host of it. */
static int check_host(const struct hf_job_spec *spec, struct hfi_spec_room *room, struct hfi_job *job, struct hf_error *error) {
    struct hfi_url url;
    job->breaker_key = job->downstream;
    if (!spec->host_url || !spec->host_url[0])
        return 0;
    if (!job->downstream[0])
        return hfi_fail(error, HF_EINVAL, "host_url", "name the downstream too", "it is a host of no downstream");
    const char *wrong = hfi_url_split(spec->host_url, &url);
    if (wrong)
        return hfi_fail(error, HF_EINVAL, "host_url", "write https://host[:port]", "%s", wrong);
    hfi_host_key_print(&url, job->downstream, room->breaker_key);
    job->breaker_key = room->breaker_key;
    return 0;
}

/* Whether they exist is the store's to say. */
static int check_after(const struct hf_job_spec *spec, struct hfi_spec_room *room, struct hf_error *error) {
    if (spec->after_count > 0 && spec->on_conflict == HF_UNIQUE_REPLACE)
        return hfi_fail(error, HF_EINVAL, "after_jobs", "leave one of them out",
                        "a job that may take the place of another one cannot wait for others");
    if (spec->after_count > HF_AFTER_MAX)
        return hfi_fail(error, HF_ETOOBIG, "after_jobs", "let a job between gather some of them",
                        "%" PRIu32 " jobs to wait for, at most %d", spec->after_count, HF_AFTER_MAX);
    if (spec->after_count > 0 && !spec->after_jobs)
        return hfi_fail(error, HF_EINVAL, "after_jobs", NULL, "NULL, but after_count is %" PRIu32, spec->after_count);
    for (uint32_t i = 0; i < spec->after_count; i++) {
        if (spec->after_jobs[i] < 1)
            return hfi_fail(error, HF_EINVAL, "after_jobs", "ids of jobs are 1 and more", "%" PRId64 " is no job's id",
                            spec->after_jobs[i]);
        room->after[i] = spec->after_jobs[i];
    }
    room->after_count = spec->after_count;
    room->after_on_end = spec->after_on_end;
    return 0;
}

static int check_numbers(const struct hf_job_spec *spec, uint32_t max_payload, struct hf_error *error) {
    if (spec->priority < 0 || spec->priority > 9)
        return hfi_fail(error, HF_EINVAL, "priority", "0 to 9, higher runs first", "%" PRId32, spec->priority);
    if (spec->max_executions > HFI_EXECUTIONS_MAX)
        return hfi_fail(error, HF_EINVAL, "max_executions", "0: as its type says", "%" PRIu32 ", at most %d", spec->max_executions,
                        HFI_EXECUTIONS_MAX);
    if (spec->payload_length > 0 && !spec->payload)
        return hfi_fail(error, HF_EINVAL, "payload", NULL, "NULL, but payload_length is %zu", spec->payload_length);
    if (spec->payload_length > max_payload)
        return hfi_fail(error, HF_ETOOBIG, "payload", "store it elsewhere and pass its id",
                        "%zu bytes, at most %" PRIu32 " fit", spec->payload_length, max_payload);
    if (spec->run_at_us < 0 || spec->expires_at_us < 0)
        return hfi_fail(error, HF_EINVAL, spec->run_at_us < 0 ? "run_at_us" : "expires_at_us",
                        "times are µs UTC since 1970", "negative");
    if (spec->run_at_us > TIME_MAX_US || spec->expires_at_us > TIME_MAX_US) /* I63, I69 */
        return hfi_fail(error, HF_EINVAL, spec->run_at_us > TIME_MAX_US ? "run_at_us" : "expires_at_us",
                        "times are µs UTC since 1970", "after the year 9999");
    if (spec->run_at_us > 0 && spec->expires_at_us > 0 && spec->expires_at_us <= spec->run_at_us)
        return hfi_fail(error, HF_EINVAL, "expires_at_us", "let it expire after run_at_us",
                        "it would expire before it is due");
    if (hfi_forward_reserved(spec->source))
        return hfi_fail(error, HF_EINVAL, "source", "choose another name", "names that begin with %s are reserved", HFI_RESERVED);
    if (spec->source_message_id && spec->source_message_id[0] && (!spec->source || !spec->source[0]))
        return hfi_fail(error, HF_EINVAL, "source", "name the source", "missing beside a source_message_id");
    return 0;
}

void hfi_job_blank(struct hfi_job *job) {
    memset(job, 0, sizeof *job);
    for (size_t i = 0; i < TEXTS; i++)
        *text_at(job, i) = "";
    job->execution_timeout_ms = -1;
}

static void fill(const struct hf_job_spec *spec, struct hf_wall now, struct hfi_job *job) {
    hfi_job_blank(job);
    job->state = HF_JOB_PENDING;
    job->priority = spec->priority;
    job->run_at_us = spec->run_at_us > 0 ? spec->run_at_us : now.us;
    job->reason = spec->run_at_us > now.us ? "scheduled" : "";
    job->expires_at_us = spec->expires_at_us;
    job->created_at_us = now.us;
    job->max_executions = spec->max_executions;
    job->execution_timeout_ms = -1;
    job->type = spec->type;
    job->queue = spec->queue && spec->queue[0] ? spec->queue : "default";
    job->downstream = spec->downstream;
    job->unique_key = spec->unique_key;
    job->idempotency_key = spec->idempotency_key;
    job->source = spec->source;
    job->source_message_id = spec->source_message_id;
    job->correlation_id = spec->correlation_id;
    job->trace_context = spec->trace_context;
    job->tags = spec->tags;
    job->content_type = spec->content_type;
    job->payload = spec->payload;
    job->payload_length = spec->payload_length;
}

int hfi_spec_check(const struct hf_job_spec *given, struct hf_wall now, uint32_t max_payload, struct hfi_job *job,
                   struct hfi_spec_room *room, struct hf_error *error) {
    struct hf_job_spec spec;
    if (!given || given->size < sizeof given->size)
        return hfi_fail(error, HF_EINVAL, "job spec", "call hf_job_spec_init first", "its size is not set");
    room->after_count = 0;
    hf_job_spec_init(&spec);
    memcpy(&spec, given, given->size < sizeof spec ? given->size : sizeof spec); /* an older caller's is shorter */
    fill(&spec, now, job);
    int code = check_texts(job, error);
    if (code == 0)
        code = check_numbers(&spec, max_payload, error);
    if (code == 0)
        code = check_unique(&spec, now, job, error);
    if (code == 0)
        code = check_limit(&spec, room->limit_key, error);
    if (code == 0)
        code = check_curve(&spec, &room->curve, error);
    room->replace = spec.on_conflict == HF_UNIQUE_REPLACE;
    if (code == 0)
        code = check_after(&spec, room, error);
    if (room->after_count > 0) {
        job->state = HF_JOB_WAITING;
        job->reason = "parents";
    }
    job->limit_key = room->limit_key;
    return code == 0 ? check_host(&spec, room, job, error) : code;
}
