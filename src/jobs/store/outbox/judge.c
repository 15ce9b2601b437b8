/* SPDX-License-Identifier: MIT */
/*
 * Judges a row of an outbox: a job, or poison with the reason. Anybody may have written it, so nothing about its columns
 * is taken for granted, and no row may fail another (I33). Must never change a text to make it fit, but for what a dead
 * letter shows. The relay's thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "jobs/store/outbox/outbox.h"

#define TEXT_MAX 8192 /* longer than any text of a job */

/* The row under the statement while it is read. */
struct reading {
    const struct hfi_outbox_judge *judge;
    sqlite3_stmt *statement;
    const int *at;
    struct hfi_outbox_row *row;
    struct hf_job_spec spec;
    char *end;              /* of what the block holds */
    bool cut;               /* the payload is */
    struct hf_error error;  /* the first thing that is wrong */
};

static const char *const type_names[] = {"", "a whole number", "a number", "a text", "a blob", "NULL"};

static int type_of(const struct reading *reading, enum hfi_outbox_column column) {
    return reading->at[column] < 0 ? SQLITE_NULL : sqlite3_column_type(reading->statement, reading->at[column]);
}

#define WRONG(reading, column, fix, ...)                                                          \
    do {                                                                                          \
        if ((reading)->error.code == 0)                                                           \
            hfi_fail(&(reading)->error, HF_EINVAL, hfi_outbox_columns[column], fix, __VA_ARGS__); \
    } while (0)

/* The bytes of a text or blob, SQLite's until the next step. */
static const char *bytes_of(const struct reading *reading, enum hfi_outbox_column column, size_t *length) {
    int at = reading->at[column];
    bool blob = type_of(reading, column) == SQLITE_BLOB;
    const void *bytes = blob ? sqlite3_column_blob(reading->statement, at) : (const void *)sqlite3_column_text(reading->statement, at);
    *length = bytes ? (size_t)sqlite3_column_bytes(reading->statement, at) : 0;
    return bytes;
}

static char *keep(struct reading *reading, const char *bytes, size_t length) {
    char *copy = reading->end;
    if (length > 0)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    reading->end += length + 1;
    return copy;
}

static const char *take_text(struct reading *reading, enum hfi_outbox_column column) {
    int type = type_of(reading, column);
    size_t length;
    if (type == SQLITE_NULL)
        return NULL;
    if (type != SQLITE_TEXT) {
        WRONG(reading, column, "write a text", "it is %s, not a text", type_names[type]);
        return NULL;
    }
    const char *text = bytes_of(reading, column, &length);
    if (length > TEXT_MAX)
        WRONG(reading, column, "shorten it", "%zu bytes", length);
    else if (length > 0 && !hfi_text_valid(text, length))
        WRONG(reading, column, "write valid UTF-8", "it is not valid UTF-8, or holds a NUL");
    else
        return keep(reading, text, length);
    return NULL;
}

static int64_t take_number(struct reading *reading, enum hfi_outbox_column column, int64_t low, int64_t high) {
    int type = type_of(reading, column);
    if (type == SQLITE_NULL)
        return 0;
    if (type != SQLITE_INTEGER) {
        WRONG(reading, column, "write a whole number", "it is %s, not a whole number", type_names[type]);
        return 0;
    }
    int64_t number = sqlite3_column_int64(reading->statement, reading->at[column]);
    if (number < low || number > high)
        WRONG(reading, column, NULL, "%" PRId64 " is not from %" PRId64 " to %" PRId64, number, low, high);
    return number;
}

/* µs UTC, or RFC 3339 with a zone. */
static int64_t take_time(struct reading *reading, enum hfi_outbox_column column) {
    int64_t us = 0;
    if (type_of(reading, column) != SQLITE_TEXT)
        return take_number(reading, column, 0, INT64_MAX);
    const char *text = take_text(reading, column);
    if (text && hfi_rfc3339_parse(text, &us) != 0)
        WRONG(reading, column, "write 2026-11-30T11:05:00+01:00, or µs since 1970 as a whole number",
              "`%.60s` is not a time of RFC 3339 with a zone", text);
    return us;
}

/* "60s,5m" */
static void take_curve(struct reading *reading) {
    struct hf_job_spec *spec = &reading->spec;
    char *text = (char *)(uintptr_t)take_text(reading, HFI_OUTBOX_CURVE), *rest = NULL;
    if (!text || !*text)
        return;
    for (char *wait = strtok_r(text, ", ", &rest); wait; wait = strtok_r(NULL, ", ", &rest)) {
        if (spec->curve_length == HF_CURVE_MAX || hfi_duration_parse(wait, &reading->row->waits[spec->curve_length]) != 0) {
            WRONG(reading, HFI_OUTBOX_CURVE, "write 60s,5m,30m, 64 waits at most", "`%.60s` is no duration, or one too many", wait);
            return;
        }
        spec->curve_length++;
    }
    if (spec->curve_length == 0)
        WRONG(reading, HFI_OUTBOX_CURVE, "write 60s,5m,30m", "it holds no duration");
    spec->curve_ms = reading->row->waits;
}

static void take_conflict(struct reading *reading) {
    const char *text = take_text(reading, HFI_OUTBOX_ON_CONFLICT);
    if (!text || !*text || strcmp(text, "keep") == 0)
        return;
    reading->spec.on_conflict = HF_UNIQUE_REPLACE;
    if (strcmp(text, "replace") != 0)
        WRONG(reading, HFI_OUTBOX_ON_CONFLICT, "write keep or replace", "`%.60s` is neither", text);
}

/* Of one that is too long only the beginning is kept, for the dead letter. */
static void take_payload(struct reading *reading) {
    int type = type_of(reading, HFI_OUTBOX_PAYLOAD);
    size_t length = 0, max = reading->judge->payload_max;
    const char *bytes = type == SQLITE_NULL ? NULL : bytes_of(reading, HFI_OUTBOX_PAYLOAD, &length);
    if (type == SQLITE_NULL)
        WRONG(reading, HFI_OUTBOX_PAYLOAD, "write '' for an empty one", "it is NULL");
    else if (type != SQLITE_TEXT && type != SQLITE_BLOB)
        WRONG(reading, HFI_OUTBOX_PAYLOAD, "write a text or a blob", "it is %s", type_names[type]);
    if (length > max)
        WRONG(reading, HFI_OUTBOX_PAYLOAD, "store it elsewhere and pass its id",
              "%zu bytes, at most %zu fit; the letter holds the first %zu", length, max, max);
    reading->cut = length > max;
    length = length < max ? length : max;
    reading->spec.payload = keep(reading, bytes, length);
    reading->spec.payload_length = length;
}

static uint64_t hash_of(const char *bytes, size_t length) { /* FNV-1a */
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

/* A blob becomes its hexadecimal digits; one that cannot be an id gets a name that a second delivery gets again. */
static const char *take_id(struct reading *reading) {
    char name[80];
    size_t length;
    int type = type_of(reading, HFI_OUTBOX_MESSAGE_ID);
    const char *bytes = type == SQLITE_NULL ? NULL : bytes_of(reading, HFI_OUTBOX_MESSAGE_ID, &length);
    reading->row->nameless = !bytes || length == 0;
    if (reading->row->nameless)
        return "";
    if (type == SQLITE_BLOB && length <= HFI_KEY_MAX / 2) {
        char *hex = reading->end;
        for (size_t i = 0; i < length; i++, reading->end += 2)
            snprintf(reading->end, 3, "%02x", (unsigned)(unsigned char)bytes[i]);
        reading->end++;
        return hex;
    }
    if (type != SQLITE_BLOB && length <= HFI_KEY_MAX && hfi_text_valid(bytes, length))
        return keep(reading, bytes, length);
    WRONG(reading, HFI_OUTBOX_MESSAGE_ID, "leave it out, or write up to 300 bytes of UTF-8", "%zu bytes of %s are no id", length,
          type_names[type]);
    int made = snprintf(name, sizeof name, "row-%" PRId64 "-%016" PRIx64, reading->row->rowid, hash_of(bytes, length));
    return keep(reading, name, (size_t)made);
}

static const char *take_source(struct reading *reading) {
    const char *source = take_text(reading, HFI_OUTBOX_SOURCE);
    if (!source || !*source)
        return reading->judge->source;
    struct hf_error error;
    hf_error_init(&error);
    if (hfi_name_check("source", source, HFI_NAME_MAX, &error) == 0)
        return source;
    if (reading->error.code == 0)
        reading->error = error;
    return reading->judge->source;
}

static void take_all(struct reading *reading) {
    struct hf_job_spec *spec = &reading->spec;
    spec->source = take_source(reading);
    spec->source_message_id = take_id(reading);
    spec->type = take_text(reading, HFI_OUTBOX_TYPE);
    take_payload(reading);
    spec->queue = take_text(reading, HFI_OUTBOX_QUEUE);
    spec->priority = (int32_t)take_number(reading, HFI_OUTBOX_PRIORITY, 0, 9);
    spec->run_at_us = take_time(reading, HFI_OUTBOX_RUN_AT);
    spec->expires_at_us = take_time(reading, HFI_OUTBOX_EXPIRES_AT);
    spec->max_executions = (uint32_t)take_number(reading, HFI_OUTBOX_MAX_EXECUTIONS, 1, 10000);
    take_curve(reading);
    spec->downstream = take_text(reading, HFI_OUTBOX_DOWNSTREAM);
    spec->limit_name = take_text(reading, HFI_OUTBOX_LIMIT_NAME);
    spec->limit_key = take_text(reading, HFI_OUTBOX_LIMIT_KEY);
    spec->unique_key = take_text(reading, HFI_OUTBOX_UNIQUE_KEY);
    take_conflict(reading);
    spec->unique_window_ms = take_number(reading, HFI_OUTBOX_UNIQUE_WINDOW_MS, 1, INT64_MAX);
    spec->unique_states = (uint32_t)take_number(reading, HFI_OUTBOX_UNIQUE_STATES, 0, INT32_MAX);
    spec->idempotency_key = take_text(reading, HFI_OUTBOX_IDEMPOTENCY_KEY);
    spec->correlation_id = take_text(reading, HFI_OUTBOX_CORRELATION_ID);
    spec->trace_context = take_text(reading, HFI_OUTBOX_TRACE_CONTEXT);
    spec->tags = take_text(reading, HFI_OUTBOX_TAGS);
    spec->content_type = take_text(reading, HFI_OUTBOX_CONTENT_TYPE);
}

/* What the types of this node say and the row does not. Policies of types it lacks are fixed at the first start. */
static void complete(struct reading *reading) {
    struct hf_job_spec *spec = &reading->spec;
    const struct hfi_rulebook *book = reading->judge->book;
    const struct hfi_type *type = book && spec->type ? hfi_rulebook_type(book, spec->type) : NULL;
    if (!type)
        return;
    if (!spec->queue || !*spec->queue)
        spec->queue = type->options.queue;
    if (!spec->downstream || !*spec->downstream)
        spec->downstream = type->options.downstream;
    /* A url makes the type's downstream one of many hosts; any other one is the row's own affair. */
    if (type->options.url && strcmp(spec->downstream, type->options.downstream) == 0 &&
        hf_type_host(&type->options, spec->payload, spec->payload_length, reading->row->host) == 0)
        spec->host_url = reading->row->host;
    if (spec->curve_length == 0)
        reading->row->put.curve = hfi_rulebook_policy(book, spec->type, spec->queue);
}

/* What a dead letter shows of a column, whatever is in it: on one line, as names are. */
static void show(const struct reading *reading, enum hfi_outbox_column column, char *text, size_t room) {
    size_t length = 0;
    const char *bytes = type_of(reading, column) == SQLITE_NULL ? NULL : bytes_of(reading, column, &length);
    hfi_text_clean(text, room, bytes, length);
    for (char *at = text; *at; at++)
        *at = (unsigned char)*at < 0x20 || *at == 0x7f ? ' ' : *at;
}

static int make_poison(struct hfi_outbox_row *row, const struct hf_error *why) {
    struct hfi_death *death;
    char text[1000];
    row->poison = hfi_alloc(sizeof *row->poison);
    if (!row->poison)
        return HF_ENOMEM;
    death = &row->poison->death;
    death->death_class = HF_DEATH_POISON;
    death->death_no = 1;
    death->cause = "message";
    snprintf(death->error_type, sizeof death->error_type, "message.malformed");
    snprintf(death->rule, sizeof death->rule, "outbox.malformed");
    hf_error_print(why, text, sizeof text);
    hfi_text_copy(death->message, sizeof death->message, text);
    return 0;
}

static void fill_poison(struct reading *reading, const char *source, const char *message_id) {
    struct hfi_outbox_poison *poison = reading->row->poison;
    struct hfi_job *job = &reading->row->put.job;
    poison->death.payload_cut = reading->cut;
    show(reading, HFI_OUTBOX_TYPE, poison->type, sizeof poison->type);
    show(reading, HFI_OUTBOX_QUEUE, poison->queue, sizeof poison->queue);
    show(reading, HFI_OUTBOX_DOWNSTREAM, poison->downstream, sizeof poison->downstream);
    show(reading, HFI_OUTBOX_CONTENT_TYPE, poison->content_type, sizeof poison->content_type);
    show(reading, HFI_OUTBOX_CORRELATION_ID, poison->correlation_id, sizeof poison->correlation_id);
    if (!poison->type[0])
        snprintf(poison->type, sizeof poison->type, "unknown"); /* never empty [S0.13] */
    hfi_job_blank(job);
    job->type = poison->type;
    job->queue = poison->queue[0] ? poison->queue : "default";
    job->downstream = job->breaker_key = poison->downstream;
    job->content_type = poison->content_type;
    job->correlation_id = poison->correlation_id;
    job->source = source;
    job->source_message_id = message_id;
    job->payload = reading->spec.payload;
    job->payload_length = reading->spec.payload_length;
}

/* Room for every text and the payload, each with its NUL; a blob that is an id needs two digits a byte. */
static size_t room_of(const struct reading *reading) {
    size_t room = 160 + 2 * HFI_KEY_MAX;
    for (int i = 0; i < HFI_OUTBOX_COLUMNS; i++) {
        size_t length = 0, max = i == HFI_OUTBOX_PAYLOAD ? reading->judge->payload_max : TEXT_MAX;
        if (type_of(reading, (enum hfi_outbox_column)i) != SQLITE_NULL)
            bytes_of(reading, (enum hfi_outbox_column)i, &length);
        room += (length < max ? length : max) + 1;
    }
    return room;
}

int hfi_outbox_judge(const struct hfi_outbox_judge *judge, sqlite3_stmt *statement, const int *at,
                     struct hfi_outbox_row *row) {
    struct reading reading = {.judge = judge, .statement = statement, .at = at, .row = row};
    memset(row, 0, sizeof *row);
    row->rowid = sqlite3_column_int64(statement, 0);
    row->raw_id = sqlite3_value_dup(sqlite3_column_value(statement, at[HFI_OUTBOX_MESSAGE_ID]));
    size_t room = room_of(&reading);
    row->block = reading.end = hfi_alloc(room);
    if (!row->raw_id || !row->block)
        return HF_ENOMEM;
    row->bytes = room + (size_t)sqlite3_value_bytes(row->raw_id); /* a message id is as long as it is */
    hf_error_init(&reading.error);
    hf_job_spec_init(&reading.spec);
    take_all(&reading);
    complete(&reading);
    if (row->nameless)
        return 0; /* judged when it has a name */
    int code = reading.error.code;
    if (code == 0)
        code = hfi_spec_check(&reading.spec, judge->now, judge->payload_max, &row->put.job, &row->room, &reading.error);
    if (code == 0) {
        row->put.replace = row->room.replace;
        if (row->room.curve.max_executions > 0)
            row->put.curve = &row->room.curve;
        return 0;
    }
    if (make_poison(row, &reading.error) != 0)
        return HF_ENOMEM;
    fill_poison(&reading, reading.spec.source, reading.spec.source_message_id);
    row->put.job.created_at_us = take_number(&reading, HFI_OUTBOX_CREATED_AT, 0, INT64_MAX);
    return 0;
}

int hfi_outbox_condemn(struct hfi_outbox_row *row, const struct hf_error *why) {
    return make_poison(row, why);
}

void hfi_outbox_row_free(struct hfi_outbox_row *row) {
    sqlite3_value_free(row->raw_id);
    hfi_free(row->poison);
    hfi_free(row->block);
    memset(row, 0, sizeof *row);
}
