/* SPDX-License-Identifier: MIT */
/*
 * Makes the description of a job from flags, from a line of NDJSON and from the configuration, in this order of
 * precedence reversed: what is said closest wins. Must never drop a field it does not know. The main thread's.
 */
#include "program/commands/spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/units.h"
#include "program/base64.h"
#include "program/compact.h"
#include "program/nearest.h"
#include "program/output.h"

static int64_t from_now(int64_t now_us, int64_t ms) {
    int64_t us = 0, at = 0;
    if (__builtin_mul_overflow(ms, 1000, &us) || __builtin_add_overflow(now_us, us, &at))
        return INT64_MAX;
    return at;
}

int hfi_waits_parse(const char *text, int64_t *waits, uint32_t *count) {
    char part[32];
    *count = 0;
    for (;;) {
        text += strspn(text, " ");
        size_t length = strcspn(text, ", ");
        if (length == 0 || length >= sizeof part)
            return HF_EINVAL;
        if (*count == HF_CURVE_MAX)
            return HF_ETOOBIG;
        snprintf(part, sizeof part, "%.*s", (int)length, text);
        int code = hf_duration_parse(part, &waits[*count]);
        if (code != 0)
            return code;
        ++*count;
        text += length + strspn(text + length, " ");
        if (!*text)
            return 0;
        if (*text++ != ',')
            return HF_EINVAL;
    }
}

/* "17,18" into ids: false when it is not a list of them, or one of too many. */
static bool split_ids(const char *text, int64_t *ids, uint32_t *count) {
    *count = 0;
    for (;;) {
        char *end = NULL;
        text += strspn(text, " ");
        errno = 0;
        long long id = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : 0;
        if (id < 1 || errno != 0 || *count == HF_AFTER_MAX)
            return false;
        ids[(*count)++] = id;
        text = end + strspn(end, " ");
        if (!*text)
            return true;
        if (*text++ != ',')
            return false;
    }
}

/* As from a variable that is not set: the job would silently not be unique, or go elsewhere. */
static int check_empty(const struct hfi_options *options) {
    static const char *const flags[] = {"queue", "unique", "downstream", "idempotency-key"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const char *text = hfi_flag_text(options, flags[i], NULL);
        if (text && !*text)
            return hfi_usage(flags[i], "set the variable it comes from, or leave the flag out", "its value is empty");
    }
    return 0;
}

/* `NAME:KEY` in place of two texts. */
static bool split_limit(struct hfi_arena *arena, const char *text, struct hf_job_spec *spec) {
    const char *colon = strchr(text, ':');
    if (!colon || colon == text || !colon[1])
        return false;
    spec->limit_name = hfi_arena_copy(arena, text, (size_t)(colon - text));
    spec->limit_key = colon + 1;
    return true;
}

int hfi_spec_from_flags(struct hfi_spec *to, const struct hfi_options *options, int64_t now_us) {
    struct hf_job_spec *spec = &to->spec;
    const char *curve = hfi_flag_text(options, "curve", NULL), *limit = hfi_flag_text(options, "limit", NULL);
    struct hfi_arena *arena = (struct hfi_arena *)(uintptr_t)&options->arena; /* grows with what is read from it */
    memset(to, 0, sizeof *to);
    hf_job_spec_init(spec);
    int code = check_empty(options);
    if (code != 0)
        return code;
    if (hfi_flag(options, "in")->given && hfi_flag(options, "at")->given)
        return hfi_usage("enqueue", "give one of them", "--in and --at are both given");
    if (curve && hfi_waits_parse(curve, to->waits, &spec->curve_length) != 0)
        return hfi_usage("curve", "write \"60s,5m,30m\", 64 waits at most", "`%s` is not a list of durations", curve);
    if (limit && !split_limit(arena, limit, spec))
        return hfi_usage("limit", "write tenant:42", "`%s` is not NAME:KEY", limit);
    const char *after = hfi_flag_text(options, "after-jobs", NULL);
    if (after && !split_ids(after, to->after, &spec->after_count))
        return hfi_usage("after-jobs", "write 17,18, 16 ids at most", "`%s` is not a list of job ids", after);
    spec->after_on_end = hfi_flag(options, "after-ended")->given;
    if (spec->after_on_end && !after)
        return hfi_usage("after-ended", "add --after-jobs ID", "there is no job to wait for");
    spec->queue = hfi_flag_text(options, "queue", NULL);
    spec->priority = (int32_t)hfi_flag_number(options, "priority", 0);
    spec->max_executions = (uint32_t)hfi_flag_number(options, "max-executions", 0);
    to->due_in = hfi_flag(options, "in")->given;
    if (to->due_in)
        spec->run_at_us = from_now(now_us, hfi_flag(options, "in")->number);
    if (hfi_flag(options, "at")->given)
        spec->run_at_us = hfi_flag(options, "at")->number;
    if (hfi_flag(options, "expires-in")->given)
        spec->expires_at_us = from_now(now_us, hfi_flag(options, "expires-in")->number);
    spec->unique_key = hfi_flag_text(options, "unique", NULL);
    spec->on_conflict = hfi_flag(options, "replace")->given ? HF_UNIQUE_REPLACE : HF_UNIQUE_KEEP;
    if (hfi_flag(options, "unique-for")->given)
        spec->unique_window_ms = hfi_flag(options, "unique-for")->number;
    spec->correlation_id = hfi_flag_text(options, "correlation", NULL);
    spec->downstream = hfi_flag_text(options, "downstream", NULL);
    spec->content_type = hfi_flag_text(options, "content-type", NULL);
    spec->idempotency_key = hfi_flag_text(options, "idempotency-key", NULL);
    spec->tags = hfi_flag_text(options, "tags", NULL);
    return 0;
}

/* One line being read. */
struct line {
    struct hfi_spec *to;
    struct hfi_arena *arena;
    struct hf_error *error;
    int64_t now_us;
    const char *text; /* as read */
    size_t length;
};

static int refuse(struct line *line, const char *key, const char *fix, const char *why) {
    hf_error_init(line->error);
    line->error->code = HF_EINVAL;
    snprintf(line->error->what, sizeof line->error->what, "%s", key);
    snprintf(line->error->why, sizeof line->error->why, "%s", why);
    snprintf(line->error->fix, sizeof line->error->fix, "%s", fix);
    return HF_EINVAL;
}

static int take_text(struct line *line, const char *key, const json_t *value, const char **to) {
    *to = json_string_value(value);
    if (!*to)
        return refuse(line, key, "write it in quotes", "it has to be a text");
    return strlen(*to) == json_string_length(value) ? 0 : refuse(line, key, "leave it out", "it holds a NUL");
}

/* What an empty text would switch off in silence: a key, or whom a message came from. */
static int take_word(struct line *line, const char *key, const json_t *value, const char **to, bool may_be_empty) {
    int code = take_text(line, key, value, to);
    return code == 0 && !may_be_empty && !**to ? refuse(line, key, "leave it out for none", "it is empty") : code;
}

static int take_span(struct line *line, const char *key, const json_t *value, int64_t *ms) {
    const char *text = NULL;
    int code = take_text(line, key, value, &text);
    if (code == 0 && hf_duration_parse(text, ms) != 0)
        code = refuse(line, key, "write \"250ms\", \"5s\", \"2m\", \"1h\" or \"7d\"", "it is not a duration with a unit");
    return code;
}

static int take_duration(struct line *line, const char *key, const json_t *value, int64_t *at_us) {
    int64_t ms = 0;
    int code = take_span(line, key, value, &ms);
    if (code == 0)
        *at_us = from_now(line->now_us, ms);
    return code;
}

static int take_replace(struct line *line, const json_t *value) {
    if (!json_is_boolean(value))
        return refuse(line, "replace", "", "it has to be true or false");
    line->to->spec.on_conflict = json_is_true(value) ? HF_UNIQUE_REPLACE : HF_UNIQUE_KEEP;
    return 0;
}

static int take_curve(struct line *line, const json_t *value) {
    struct hf_job_spec *spec = &line->to->spec;
    int code = HF_EINVAL;
    spec->curve_length = 0;
    if (json_is_string(value))
        code = hfi_waits_parse(json_string_value(value), line->to->waits, &spec->curve_length);
    for (size_t i = 0; i < json_array_size(value) && i < HF_CURVE_MAX; i++) {
        const char *text = json_string_value(json_array_get(value, i));
        code = text ? hf_duration_parse(text, &line->to->waits[spec->curve_length++]) : HF_EINVAL;
        if (code != 0)
            break;
    }
    if (code != 0 || json_array_size(value) > HF_CURVE_MAX)
        return refuse(line, "curve", "write \"60s,5m\" or [\"60s\", \"5m\"], 64 waits at most", "it is not a list of durations");
    return 0;
}

/* A text is its UTF-8 bytes, anything else its compact JSON with numbers and keys as they were written. */
static int take_payload(struct line *line, const json_t *value) {
    struct hf_job_spec *spec = &line->to->spec;
    if (json_is_string(value)) {
        spec->payload = json_string_value(value);
        spec->payload_length = json_string_length(value);
        return 0;
    }
    spec->payload = hfi_json_compact(line->arena, line->text, line->length, "payload", &spec->payload_length);
    return spec->payload ? 0 : refuse(line, "payload", "write the key \"payload\" without escapes", "it cannot be found in the line");
}

static int take_base64(struct line *line, const json_t *value) {
    struct hf_job_spec *spec = &line->to->spec;
    unsigned char *bytes = NULL;
    size_t length = 0;
    if (!json_is_string(value) || hfi_base64_parse(json_string_value(value), json_string_length(value), &bytes, &length) != 0)
        return refuse(line, "payload_base64", "use the alphabet of RFC 4648 with padding", "it is not base64");
    spec->payload = hfi_arena_copy(line->arena, (const char *)bytes, length);
    spec->payload_length = length;
    hfi_release(bytes);
    return 0;
}

static int take_number(struct line *line, const char *key, const json_t *value, json_int_t low, json_int_t high, json_int_t *to) {
    char why[80];
    double real = json_number_value(value); /* an integer is a real when another one of the line was too big */
    bool whole = json_is_number(value) && real >= -1e15 && real <= 1e15 && (double)(json_int_t)real == real;
    *to = whole ? (json_int_t)real : 0;
    if (whole && *to >= low && *to <= high)
        return 0;
    snprintf(why, sizeof why, "it has to be a whole number from %lld to %lld", (long long)low, (long long)high);
    return refuse(line, key, "", why);
}

static int take_at(struct line *line, const json_t *value) {
    const char *text = NULL;
    int code = take_text(line, "at", value, &text);
    if (code == 0 && hf_time_parse(text, &line->to->spec.run_at_us) != 0)
        code = refuse(line, "at", "write \"2026-11-30T10:05:00Z\"", "it is not a time of RFC 3339 with a zone");
    return code;
}

static int take_limit(struct line *line, const json_t *value) {
    const char *text = NULL;
    int code = take_text(line, "limit", value, &text);
    if (code == 0 && !split_limit(line->arena, text, &line->to->spec))
        code = refuse(line, "limit", "write \"tenant:42\"", "it is not NAME:KEY");
    return code;
}

static int take_after_ended(struct line *line, const json_t *value) {
    line->to->spec.after_on_end = json_is_true(value);
    return json_is_boolean(value) ? 0 : refuse(line, "after_ended", "write true or false", "it is neither true nor false");
}

static int take_after(struct line *line, const json_t *value) {
    struct hf_job_spec *spec = &line->to->spec;
    bool right = json_is_array(value) && json_array_size(value) > 0 && json_array_size(value) <= HF_AFTER_MAX;
    spec->after_count = 0;
    for (size_t i = 0; right && i < json_array_size(value); i++) {
        const json_t *id = json_array_get(value, i);
        right = json_is_integer(id) && json_integer_value(id) > 0;
        line->to->after[spec->after_count++] = json_integer_value(id);
    }
    return right ? 0 : refuse(line, "after_jobs", "write [17, 18], 16 at most", "it is not a list of job ids");
}

static const struct {
    const char *key;
    size_t offset;
    bool may_be_empty;
} texts[] = {
    {"type", offsetof(struct hf_job_spec, type), false},
    {"queue", offsetof(struct hf_job_spec, queue), false},
    {"unique", offsetof(struct hf_job_spec, unique_key), false},
    {"correlation", offsetof(struct hf_job_spec, correlation_id), true},
    {"downstream", offsetof(struct hf_job_spec, downstream), false},
    {"content_type", offsetof(struct hf_job_spec, content_type), true},
    {"idempotency_key", offsetof(struct hf_job_spec, idempotency_key), false},
    {"tags", offsetof(struct hf_job_spec, tags), true},
    {"source", offsetof(struct hf_job_spec, source), false},
    {"source_message_id", offsetof(struct hf_job_spec, source_message_id), false},
};
static const char *const others[] = {"payload", "payload_base64", "priority", "in", "at", "max_executions", "curve", "limit", "expires_in",
                                     "replace", "unique_for", "after_jobs", "after_ended"};

static int unknown(struct line *line, const char *key) {
    struct hfi_nearest nearest;
    char fix[80] = "";
    hfi_nearest_init(&nearest, key);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        hfi_nearest_offer(&nearest, texts[i].key);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        hfi_nearest_offer(&nearest, others[i]);
    if (nearest.best)
        snprintf(fix, sizeof fix, "did you mean `%s`?", nearest.best);
    return refuse(line, key, fix, "unknown field");
}

static int take(struct line *line, const char *key, const json_t *value) {
    struct hf_job_spec *spec = &line->to->spec;
    json_int_t number = 0;
    int code = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(texts[i].key, key) == 0)
            return take_word(line, key, value, (const char **)(void *)((char *)spec + texts[i].offset), texts[i].may_be_empty);
    if (strcmp(key, "payload") == 0)
        return take_payload(line, value);
    if (strcmp(key, "payload_base64") == 0)
        return take_base64(line, value);
    if (strcmp(key, "in") == 0 || strcmp(key, "at") == 0)
        line->to->due_in = strcmp(key, "in") == 0;
    if (strcmp(key, "in") == 0)
        return take_duration(line, key, value, &spec->run_at_us);
    if (strcmp(key, "expires_in") == 0)
        return take_duration(line, key, value, &spec->expires_at_us);
    if (strcmp(key, "at") == 0)
        return take_at(line, value);
    if (strcmp(key, "curve") == 0)
        return take_curve(line, value);
    if (strcmp(key, "limit") == 0)
        return take_limit(line, value);
    if (strcmp(key, "replace") == 0)
        return take_replace(line, value);
    if (strcmp(key, "unique_for") == 0)
        return take_span(line, key, value, &spec->unique_window_ms);
    if (strcmp(key, "after_jobs") == 0)
        return take_after(line, value);
    if (strcmp(key, "after_ended") == 0)
        return take_after_ended(line, value);
    if (strcmp(key, "priority") == 0) {
        code = take_number(line, key, value, 0, 9, &number);
        spec->priority = (int32_t)number;
        return code;
    }
    if (strcmp(key, "max_executions") == 0) {
        code = take_number(line, key, value, 1, 10000, &number);
        spec->max_executions = (uint32_t)number;
        return code;
    }
    return unknown(line, key);
}

int hfi_spec_from_json(struct hfi_spec *to, const json_t *object, const char *text, size_t length, struct hfi_arena *arena,
                       struct hf_error *error) {
    struct line line = {to, arena, error, hf_time_now(), text, length};
    const char *key = NULL;
    json_t *value = NULL, *fields = (json_t *)(uintptr_t)object; /* jansson's iteration takes no const */
    if (!json_is_object(object))
        return refuse(&line, "line", "write {\"type\": …, \"payload\": …}", "it is not an object");
    if (json_object_get(object, "payload") && json_object_get(object, "payload_base64"))
        return refuse(&line, "payload", "keep one of them", "payload and payload_base64 are both given");
    if (json_object_get(object, "in") && json_object_get(object, "at"))
        return refuse(&line, "in", "keep one of them", "in and at are both given");
    json_object_foreach(fields, key, value) {
        int code = take(&line, key, value);
        if (code != 0)
            return code;
    }
    if (to->spec.after_on_end && to->spec.after_count == 0)
        return refuse(&line, "after_ended", "add \"after_jobs\"", "there is no job to wait for");
    return to->spec.type ? 0 : refuse(&line, "type", "add \"type\", or name it on the command line", "it is missing");
}

int hfi_spec_check_limit(const struct hf_job_spec *spec, const struct hfi_config *config, struct hf_error *error) {
    struct hfi_nearest nearest;
    if (!spec->limit_name || !config->file ||
        hfi_items_find(&config->settings.limits, sizeof(struct hfi_limit_setting), spec->limit_name, &nearest))
        return 0;
    hf_error_init(error);
    error->code = HF_EINVAL;
    snprintf(error->what, sizeof error->what, "limit");
    snprintf(error->why, sizeof error->why, "`%.100s` is not in the configuration: it would not limit", spec->limit_name);
    if (nearest.best)
        snprintf(error->fix, sizeof error->fix, "did you mean `%.100s`?", nearest.best);
    else
        snprintf(error->fix, sizeof error->fix, "add it to limits");
    return HF_EINVAL;
}

/* The host that it calls at a per_host downstream: a dead one keeps back its own jobs only. A payload that gives none is
   not refused here; its execution says what is wrong. */
static void name_host(struct hfi_spec *to, const struct hfi_config *config) {
    struct hf_job_spec *spec = &to->spec;
    const struct hf_runner_options *runner = &config->runner;
    const struct hfi_downstream_setting *downstream = hfi_config_downstream(config, spec->downstream);
    if (!downstream || !downstream->per_host)
        return;
    for (size_t i = 0; i < runner->type_count; i++)
        if (strcmp(runner->types[i].name, spec->type) == 0 &&
            hf_type_host(&runner->types[i], spec->payload, spec->payload_length, to->host) == 0)
            spec->host_url = to->host;
}

void hfi_spec_complete(struct hfi_spec *to, const struct hfi_config *config) {
    struct hf_job_spec *spec = &to->spec;
    const struct hfi_job_setting *job = hfi_config_job(config, spec->type);
    struct hf_curve_options policy;
    if (job) {
        spec->queue = spec->queue ? spec->queue : job->queue;
        spec->downstream = spec->downstream ? spec->downstream : job->downstream;
        hfi_config_policy(config, job, spec->queue, &policy);
        /* A curve with jitter or a cap is more than waits: the runner has the whole of it. */
        bool plain = policy.jitter <= 0 && policy.cap_ms == 0;
        if (spec->curve_length == 0 && plain) {
            spec->curve_length = policy.curve_length;
            memcpy(to->waits, policy.curve_ms, policy.curve_length * sizeof *to->waits);
            if (spec->max_executions == 0)
                spec->max_executions = policy.max_executions;
        }
    }
    if (job)
        name_host(to, config);
    if (spec->curve_length > 0)
        spec->curve_ms = to->waits;
    if (spec->after_count > 0)
        spec->after_jobs = to->after;
}
