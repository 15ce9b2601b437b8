/* SPDX-License-Identifier: MIT */
/*
 * Puts what an alert says into the texts of its sink. Must never let a value out of its place: no line break in a line,
 * no option where an argument stands. Values are clean UTF-8 already. Pure, any thread.
 */
#include "jobs/deaths/render.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/units.h"
#include "jobs/deaths/wording.h"

static const char *const names[] = {"type",      "queue",      "downstream",     "error_type", "class",
                                    "job",       "dead_letter", "death_no",      "executions", "correlation_id",
                                    "dead_at",   "sink",        "id",            "deaths",     "summary",
                                    "message"};
enum field {
    TYPE,
    QUEUE,
    DOWNSTREAM,
    ERROR_TYPE,
    CLASS,
    JOB,
    DEAD_LETTER,
    DEATH_NO,
    EXECUTIONS,
    CORRELATION,
    DEAD_AT,
    SINK,
    ID,
    DEATHS,
    SUMMARY,
    MESSAGE,
    NONE
};

static enum field field_of(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return (enum field)i;
    return NONE;
}

/* The length of what stands in braces at `text`; 0: no field begins there. */
static size_t braced(const char *text) {
    size_t length = text[0] == '{' ? strspn(text + 1, "abcdefghijklmnopqrstuvwxyz_") : 0;
    return length > 0 && text[1 + length] == '}' ? length : 0;
}

int hfi_render_check(const char *what, const char *text, bool message, struct hf_error *error) {
    for (const char *at = text ? strchr(text, '{') : NULL; at; at = strchr(at + 1, '{')) {
        size_t length = braced(at);
        enum field field = field_of(at + 1, length);
        if (length > 0 && field == NONE)
            return hfi_fail(error, HF_ECONFIG, what, "see holdfast.yaml(5) for the fields that there are",
                            "{%.*s} is no field of an alert", (int)length, at + 1);
        if (field == MESSAGE && !message)
            return hfi_fail(error, HF_ECONFIG, what, "leave it out, or send a mail",
                            "{message} may hold what is nobody else's business: this sink never carries it");
    }
    return 0;
}

bool hfi_render_fits(const char *text, const struct hfi_alert *alert) {
    if (!text || alert->kind == HF_ALERT_DIGEST)
        return false;
    return alert->kind != HF_ALERT_SUMMARY || strstr(text, "{deaths}") || strstr(text, "{summary}");
}

/* Of fields that are numbers, or made: into `room` bytes. NULL: none of those. */
static const char *number_of(enum field field, const struct hfi_alert *alert, char *room, size_t size) {
    switch (field) {
    case JOB:
        snprintf(room, size, "%" PRId64, alert->job_id);
        return room;
    case DEAD_LETTER:
        snprintf(room, size, "%" PRId64, alert->dead_id);
        return room;
    case DEATH_NO:
        snprintf(room, size, "%" PRIu32, alert->death_no);
        return room;
    case EXECUTIONS:
        snprintf(room, size, "%" PRIu32, alert->executions);
        return room;
    case ID:
        snprintf(room, size, "alert-%" PRId64, alert->id);
        return room;
    case DEATHS:
        snprintf(room, size, "%" PRIu64, alert->deaths);
        return room;
    case DEAD_AT:
        return hfi_rfc3339(alert->dead_at_us, room);
    default:
        return NULL;
    }
}

static const char *text_of(enum field field, const struct hfi_alert *alert) {
    switch (field) {
    case TYPE:
        return alert->type;
    case QUEUE:
        return alert->queue;
    case DOWNSTREAM:
        return alert->downstream;
    case ERROR_TYPE:
        return alert->error_type;
    case CLASS:
        return hf_death_class_name((int)alert->death_class);
    case CORRELATION:
        return alert->correlation_id;
    case SINK:
        return alert->sink;
    case MESSAGE:
        return alert->message;
    default:
        return "";
    }
}

static void add(struct hfi_bytes *to, const char *value, size_t start, enum hfi_place place) {
    for (const char *at = value; *at; at++) {
        size_t steers = hf_text_steers(at, strnlen(at, 3), NULL);
        bool kept = place == HFI_PLACE_TEXT && (*at == '\n' || *at == '\t');
        if (steers > 0 && !kept) {
            hfi_bytes_add(to, " ", 1);
            at += steers - 1;
        } else if (place == HFI_PLACE_ARGUMENT && *at == '-' && to->length == start)
            hfi_bytes_add(to, "_", 1);
        else
            hfi_bytes_add(to, at, 1);
    }
}

void hfi_render(struct hfi_bytes *to, const char *text, const struct hfi_alert *alert, enum hfi_place place) {
    size_t start = to->length;
    for (const char *at = text; *at;) {
        size_t length = braced(at);
        enum field field = field_of(at + 1, length);
        char room[64];
        if (length == 0 || field == NONE) {
            hfi_bytes_add(to, at++, 1);
            continue;
        }
        const char *number = number_of(field, alert, room, sizeof room);
        if (field == SUMMARY) {
            struct hfi_bytes summary;
            hfi_bytes_init(&summary, 65536);
            hfi_alert_summary(&summary, alert, place == HFI_PLACE_TEXT ? 30000 : 400);
            add(to, summary.data ? summary.data : "", start, place);
            to->failed = to->failed || summary.failed;
            hfi_bytes_free(&summary);
        } else {
            add(to, number ? number : text_of(field, alert), start, place);
        }
        at += length + 2;
    }
}
