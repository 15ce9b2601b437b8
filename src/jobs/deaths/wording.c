/* SPDX-License-Identifier: MIT */
/*
 * The words of alerts. Must never let the message of an error into what every sink may carry, nor a text of a job out of
 * its place. Pure, any thread.
 */
#include "jobs/deaths/wording.h"

#include <inttypes.h>

#define CAUSE_ROOM 64 /* for the line that counts the others */

static void one_line(struct hfi_bytes *text, const struct hfi_alert *alert) {
    hfi_bytes_print(text, "holdfast: job %" PRId64 " (%s) %s: %s", alert->job_id, alert->type,
                    alert->quarantined ? "was quarantined" : "died", alert->error_type);
    if (alert->executions > 0)
        hfi_bytes_print(text, ", %" PRIu32 " execution%s", alert->executions, alert->executions == 1 ? "" : "s");
    if (alert->downstream[0] != '\0')
        hfi_bytes_print(text, ", downstream %s", alert->downstream);
    hfi_bytes_print(text, ", dead letter %" PRId64, alert->dead_id);
}

static void summary_line(struct hfi_bytes *text, const struct hfi_alert *alert) {
    char at[HFI_RFC3339_LENGTH];
    hfi_bytes_print(text, "holdfast: %" PRIu64 " more job%s (%s) died: %s", alert->deaths,
                    alert->deaths == 1 ? "" : "s", alert->type, alert->error_type);
    if (alert->downstream[0] != '\0')
        hfi_bytes_print(text, ", downstream %s", alert->downstream);
    hfi_bytes_print(text, ", since %s, first dead letter %" PRId64, hfi_rfc3339(alert->dead_at_us, at), alert->dead_id);
}

static void cause_line(struct hfi_bytes *text, const struct hfi_alert_cause *cause) {
    hfi_bytes_print(text, "\n- %" PRIu64 " x %s: %s", cause->deaths, cause->type, cause->error_type);
    if (cause->downstream[0] != '\0')
        hfi_bytes_print(text, ", downstream %s", cause->downstream);
    hfi_bytes_print(text, ", dead letter %" PRId64, cause->dead_id);
}

static void digest_lines(struct hfi_bytes *text, const struct hfi_alert *alert, size_t room) {
    hfi_bytes_print(text, "holdfast: %" PRIu64 " jobs died of %zu causes:", alert->deaths, alert->cause_count);
    for (size_t i = 0; i < alert->cause_count; i++) {
        struct hfi_bytes line;
        hfi_bytes_init(&line, 4096);
        cause_line(&line, &alert->causes[i]);
        text->failed = text->failed || line.failed;
        bool fits = room == 0 || text->length + line.length + CAUSE_ROOM <= room;
        if (fits && !text->failed)
            hfi_bytes_add(text, line.data, line.length);
        hfi_bytes_free(&line);
        if (fits && !text->failed)
            continue;
        hfi_bytes_print(text, "\nand %zu more causes", alert->cause_count - i);
        return;
    }
}

void hfi_alert_summary(struct hfi_bytes *text, const struct hfi_alert *alert, size_t room) {
    if (alert->kind == HF_ALERT_DIGEST)
        digest_lines(text, alert, room);
    else if (alert->kind == HF_ALERT_SUMMARY)
        summary_line(text, alert);
    else
        one_line(text, alert);
}

void hfi_alert_json_field(struct hfi_bytes *body, const char *name, const char *value) {
    hfi_bytes_text(body, ",");
    hfi_bytes_json(body, name);
    hfi_bytes_text(body, ":");
    hfi_bytes_json(body, value);
}

static void causes_json(struct hfi_bytes *body, const struct hfi_alert *alert) {
    hfi_bytes_text(body, ",\"causes\":[");
    for (size_t i = 0; i < alert->cause_count; i++) {
        const struct hfi_alert_cause *cause = &alert->causes[i];
        hfi_bytes_print(body, "%s{\"deaths\":%" PRIu64 ",\"dead_letter\":%" PRId64, i > 0 ? "," : "", cause->deaths,
                        cause->dead_id);
        hfi_alert_json_field(body, "type", cause->type);
        hfi_alert_json_field(body, "error_type", cause->error_type);
        hfi_alert_json_field(body, "downstream", cause->downstream);
        hfi_bytes_text(body, "}");
    }
    hfi_bytes_text(body, "]");
}

/* `id` is the same at every try, so that a receiver can tell a repetition [S0.24]. */
void hfi_alert_json(struct hfi_bytes *body, const struct hfi_alert *alert) {
    char at[HFI_RFC3339_LENGTH];
    hfi_bytes_print(body,
                    "{\"id\":\"alert-%" PRId64 "\",\"event\":\"job.dead\",\"kind\":\"%s\",\"deaths\":%" PRIu64
                    ",\"job\":%" PRId64 ",\"dead_letter\":%" PRId64 ",\"death_no\":%" PRIu32 ",\"executions\":%" PRIu32
                    ",\"quarantined\":%s",
                    alert->id, hf_alert_kind_name((int)alert->kind), alert->deaths, alert->job_id, alert->dead_id,
                    alert->death_no, alert->executions, alert->quarantined ? "true" : "false");
    hfi_alert_json_field(body, "type", alert->type);
    hfi_alert_json_field(body, "queue", alert->queue);
    hfi_alert_json_field(body, "downstream", alert->downstream);
    hfi_alert_json_field(body, "class", hf_death_class_name((int)alert->death_class));
    hfi_alert_json_field(body, "error_type", alert->error_type);
    hfi_alert_json_field(body, "correlation_id", alert->correlation_id);
    hfi_alert_json_field(body, "dead_at", hfi_rfc3339(alert->dead_at_us, at));
    if (alert->kind == HF_ALERT_DIGEST)
        causes_json(body, alert);
}
