/* SPDX-License-Identifier: MIT */
/*
 * What a dead letter from an export has to be, and what it says about its job and its death. Must never let in what a
 * death itself could not have written. Pure; any thread.
 */
#include "jobs/letter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "jobs/forward.h"

#define TEXT_MAX 300

char *hfi_letter_origin(const char *uuid, int64_t id, char *text) {
    snprintf(text, HFI_ORIGIN_ROOM, "%s-%" PRId64, uuid, id);
    return text;
}

int64_t hfi_letter_own(const struct hf_dead_view *letter, const char *uuid) {
    size_t length = strlen(uuid);
    if (strncmp(letter->origin, uuid, length) != 0 || letter->origin[length] != '-')
        return 0;
    return strtoll(letter->origin + length + 1, NULL, 10);
}

char *hfi_letter_told(const char *origin, int64_t number, char *text) {
    const char *dash = strrchr(origin, '-');
    snprintf(text, HFI_ORIGIN_ROOM, "%.*s-%" PRId64, dash ? (int)(dash - origin) : 0, origin, number);
    return text;
}

int hfi_letter_home(const struct hf_dead_view *letter, int64_t deaths, int64_t next_job, struct hf_error *error) {
    if (letter->job_id >= next_job)
        return hfi_fail(error, HF_EINVAL, "job_id", "leave it to the store that it died in", "this store has not had a job %" PRId64 " yet",
                        letter->job_id);
    if (deaths >= 0 && (int64_t)letter->death_no > deaths)
        return hfi_fail(error, HF_EINVAL, "death_no", "leave it to the store that it died in",
                        "job %" PRId64 " has died %" PRId64 " times here, not %" PRIu32, letter->job_id, deaths, letter->death_no);
    return 0;
}

/* ------------------------------------------------------------------ what it has to be */

struct rule {
    const char *what;
    size_t at, max;
    bool required, word; /* word: as a name, it is shown on a line or becomes a header */
};
#define TEXT(name, most, needed) {#name, offsetof(struct hf_dead_view, name), most, needed, false}
#define WORD(name, most, needed) {#name, offsetof(struct hf_dead_view, name), most, needed, true}
static const struct rule rules[] = {
    WORD(type, HFI_TYPE_MAX, true),
    TEXT(origin, HFI_ORIGIN_ROOM - 1, true),
    TEXT(fingerprint, 16, true),
    WORD(queue, HFI_NAME_MAX, false),
    WORD(downstream, HFI_NAME_MAX, false),
    WORD(breaker_key, HFI_KEY_MAX, false),
    WORD(limit_key, HFI_LIMIT_MAX, false),
    TEXT(unique_key, HFI_KEY_MAX, false),
    WORD(idempotency_key, HFI_KEY_MAX, false),
    TEXT(correlation_id, HFI_CORRELATION_MAX, false),
    WORD(trace_context, HFI_TRACE_MAX, false),
    TEXT(tags, HFI_TAGS_MAX, false),
    WORD(content_type, TEXT_MAX, false),
    WORD(source, TEXT_MAX, false),
    TEXT(source_message_id, TEXT_MAX, false),
    TEXT(error_class, 63, false),
    TEXT(error_type, 63, false),
    TEXT(error_message, HFI_ERROR_MESSAGE_MAX, false),
    TEXT(detail, HFI_DETAIL_MAX, false),
    TEXT(rule, 47, false),
    TEXT(cause, 63, false),
    TEXT(node, HFI_NAME_MAX, false),
    TEXT(settled_by, HFI_NAME_MAX, false),
    TEXT(settled_reason, 1000, false),
    TEXT(new_job_outcome, 63, false),
    TEXT(curve_ms, HFI_CURVE_WAITS_ROOM - 1, false),
};
#undef TEXT
#undef WORD

static int check_texts(const struct hf_dead_view *letter, struct hf_error *error) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const char *text = *(const char *const *)(const void *)((const char *)letter + rules[i].at);
        size_t length = text ? strlen(text) : 0;
        if (length == 0 && rules[i].required)
            return hfi_fail(error, HF_EINVAL, rules[i].what, "take the line as `dead export` wrote it", "missing");
        if (length > rules[i].max)
            return hfi_fail(error, HF_ETOOBIG, rules[i].what, "shorten it", "%zu bytes, at most %zu fit", length, rules[i].max);
        if (!hfi_text_valid(text, length))
            return hfi_fail(error, HF_ETEXT, rules[i].what, "send it as UTF-8 without NUL", "not valid UTF-8");
        int code = rules[i].word && length > 0 ? hfi_name_check(rules[i].what, text, rules[i].max, error) : 0;
        if (code != 0)
            return code;
    }
    return 0;
}

static const char *word(const char *text) {
    return text ? text : "";
}

/* Names that are ours are those of the jobs that deaths made, and these tell of a letter. */
static int check_reserved(const struct hf_dead_view *letter, struct hf_error *error) {
    struct hfi_job job = {.source = word(letter->source), .source_message_id = word(letter->source_message_id)};
    if (hfi_forward_is(&job))
        return hfi_forward_letter(&job) > 0 ? 0 : hfi_fail(error, HF_EINVAL, "source_message_id", "take the line as `dead export` wrote it",
                                                           "it begins with the id of no dead letter");
    const struct {
        const char *what, *name;
    } names[] = {{"source", letter->source}, {"type", letter->type}, {"queue", letter->queue}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (hfi_forward_reserved(names[i].name))
            return hfi_fail(error, HF_EINVAL, names[i].what, "choose another name", "names that begin with %s are reserved", HFI_RESERVED);
    return 0;
}

static bool is_origin(const char *origin) {
    const char *dash = strrchr(origin, '-');
    size_t digits = dash ? strspn(dash + 1, "0123456789") : 0;
    return dash && dash != origin && digits > 0 && digits < 19 && dash[1 + digits] == '\0' && dash[1] != '0';
}

static int wrong(struct hf_error *error, const char *what, const char *fix, int64_t value) {
    return hfi_fail(error, HF_EINVAL, what, fix, "%" PRId64 " is none", value);
}

static int check_numbers(const struct hf_dead_view *letter, struct hf_error *error) {
    if (letter->status < HF_DEAD_DEAD || letter->status > HF_DEAD_DISCARDED)
        return wrong(error, "status", "dead, redriven, resolved or discarded", letter->status);
    if (letter->death_class < HF_DEATH_TRANSIENT_EXHAUSTED || letter->death_class > HF_DEATH_POISON)
        return wrong(error, "class", "transient_exhausted, permanent or poison", letter->death_class);
    if (letter->job_id < 0 || letter->new_job_id < 0 || letter->root_id < 0)
        return hfi_fail(error, HF_EINVAL, "job id", "ids are numbers from 1", "negative");
    if (letter->priority < 0 || letter->priority > 9)
        return wrong(error, "priority", "0 to 9", letter->priority);
    if (letter->dead_at_us <= 0 || letter->job_created_at_us < 0 || letter->settled_at_us < 0)
        return hfi_fail(error, HF_EINVAL, "dead_at", "give the time of its death, after 1970", "missing or before 1970");
    if ((letter->status == HF_DEAD_DEAD) != (letter->settled_at_us == 0))
        return hfi_fail(error, HF_EINVAL, "settled_at", "a settled one has it, an open one has not", "it does not go with the status");
    if (letter->max_executions_given > HFI_EXECUTIONS_MAX || letter->curve_executions > HFI_EXECUTIONS_MAX)
        return hfi_fail(error, HF_EINVAL, letter->max_executions_given > HFI_EXECUTIONS_MAX ? "max_executions_given" : "curve_executions",
                        "ask for fewer", "more than %d", HFI_EXECUTIONS_MAX);
    if (letter->execution_timeout_ms < -1 || letter->curve_jitter_permille > 1000)
        return wrong(error, "execution_timeout_ms", "leave it out", letter->execution_timeout_ms);
    if (letter->payload_length > 0 && !letter->payload)
        return hfi_fail(error, HF_EINVAL, "payload", "bring it", "missing, but it has %zu bytes", letter->payload_length);
    return 0;
}

int hfi_letter_check(const struct hf_dead_view *letter, struct hf_error *error) {
    struct hfi_curve curve;
    int code = check_texts(letter, error);
    if (code == 0)
        code = check_numbers(letter, error);
    if (code == 0)
        code = check_reserved(letter, error);
    if (code != 0)
        return code;
    if (!is_origin(letter->origin))
        return hfi_fail(error, HF_EINVAL, "origin", "take it as `dead export` wrote it", "\"%s\" is no store and id", letter->origin);
    if (strspn(letter->fingerprint, "0123456789abcdef") != 16)
        return hfi_fail(error, HF_EINVAL, "fingerprint", "16 hexadecimal digits", "\"%s\" is none", letter->fingerprint);
    if (letter->curve_ms && !hfi_curve_waits_parse(&curve, letter->curve_ms))
        return hfi_fail(error, HF_EINVAL, "curve_ms", "milliseconds with commas between", "\"%.60s\" is no curve", letter->curve_ms);
    return 0;
}

/* ------------------------------------------------------------------ what it says */

static void take_death(const struct hf_dead_view *letter, struct hfi_death *death) {
    memset(death, 0, sizeof *death);
    death->death_class = (enum hf_death_class)letter->death_class;
    death->quarantined = letter->quarantined;
    death->payload_cut = letter->payload_cut;
    death->death_no = letter->death_no;
    death->cause = word(letter->cause);
    death->detail = word(letter->detail);
    death->origin = letter->origin;
    death->fingerprint = strtoull(letter->fingerprint, NULL, 16);
    hfi_text_copy(death->error_type, sizeof death->error_type, letter->error_type);
    hfi_text_copy(death->rule, sizeof death->rule, letter->rule);
    hfi_text_copy(death->message, sizeof death->message, letter->error_message);
}

void hfi_letter_take(const struct hf_dead_view *letter, bool own, struct hfi_curve *curve, struct hfi_job *job,
                     struct hfi_death *death) {
    hfi_job_blank(job);
    job->id = own ? letter->job_id : 0;
    job->root_id = own ? letter->root_id : 0;
    job->state = letter->quarantined ? HF_JOB_QUARANTINED : HF_JOB_DEAD;
    job->type = letter->type;
    job->queue = letter->queue && *letter->queue ? letter->queue : "default";
    job->downstream = word(letter->downstream);
    job->breaker_key = word(letter->breaker_key);
    job->limit_key = word(letter->limit_key);
    job->unique_key = word(letter->unique_key);
    job->idempotency_key = word(letter->idempotency_key);
    job->correlation_id = word(letter->correlation_id);
    job->trace_context = word(letter->trace_context);
    job->tags = word(letter->tags);
    job->content_type = word(letter->content_type);
    job->source = word(letter->source);
    job->source_message_id = word(letter->source_message_id);
    job->error_class = word(letter->error_class);
    job->priority = letter->priority;
    job->max_executions = letter->max_executions_given;
    job->execution_timeout_ms = letter->execution_timeout_ms;
    job->executions = letter->executions;
    job->failures = letter->failures;
    job->created_at_us = letter->job_created_at_us;
    job->finished_at_us = letter->dead_at_us;
    job->payload = letter->payload;
    job->payload_length = letter->payload_length;
    job->policy = NULL;
    if (letter->curve_executions > 0) {
        memset(curve, 0, sizeof *curve);
        hfi_curve_waits_parse(curve, word(letter->curve_ms));
        curve->max_executions = letter->curve_executions;
        curve->jitter_permille = letter->curve_jitter_permille;
        job->policy = curve;
    }
    take_death(letter, death);
}
