/* SPDX-License-Identifier: MIT */
/*
 * Writes the mail. Must never let a text of a job or a handler be a header, an address or the end of the message.
 * Pure, any thread.
 */
#include "jobs/deaths/letter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "holdfast/units.h"
#include "jobs/deaths/render.h"
#include "jobs/deaths/wording.h"

#define SUBJECT_MAX 300
#define WORD_BYTES 42 /* 56 in base64: an encoded word of 68 */
#define LINE_MAX_QP 75

bool hfi_is_address(const char *text) {
    const char *sign = text ? strchr(text, '@') : NULL;
    if (!sign || sign == text || !sign[1] || strchr(sign + 1, '@') || strlen(text) > 254)
        return false;
    for (const char *at = text; *at; at++)
        if (*at <= ' ' || *at > '~' || strchr("<>()[]\\,;:\"", *at))
            return false;
    return true;
}

/* ------------------------------------------------------------------ headers */

static void date(struct hfi_bytes *mail, struct hf_wall now) {
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(now.us / 1000000);
    struct tm at;
    if (!gmtime_r(&seconds, &at))
        return; /* no year has so many digits */
    hfi_bytes_print(mail, "Date: %s, %02d %s %d %02d:%02d:%02d +0000\r\n", days[at.tm_wday], at.tm_mday,
                    months[at.tm_mon], at.tm_year + 1900, at.tm_hour, at.tm_min, at.tm_sec);
}

static bool is_plain(const char *text) {
    if (strlen(text) > 65 || strstr(text, "=?"))
        return false;
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

/* One line of text in a header: as it is, or in encoded words, each of whole characters. */
static void unstructured(struct hfi_bytes *mail, const char *text) {
    char code[HFI_BASE64_LENGTH(WORD_BYTES)];
    if (is_plain(text)) {
        hfi_bytes_text(mail, text);
        return;
    }
    for (size_t left = strlen(text), first = 1; left > 0; first = 0) {
        size_t length = left < WORD_BYTES ? left : WORD_BYTES;
        while (length > 1 && length < left && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
        hfi_base64(text, length, code);
        hfi_bytes_print(mail, "%s=?UTF-8?B?%s?=", first ? "" : "\r\n ", code);
        text += length;
        left -= length;
    }
}

static void subject(struct hfi_bytes *mail, const struct hf_sink_options *sink, const struct hfi_alert *alert) {
    struct hfi_bytes text;
    char cut[SUBJECT_MAX + 1];
    hfi_bytes_init(&text, 65536);
    hfi_render(&text, hfi_render_fits(sink->subject, alert) ? sink->subject : "{summary}", alert,
               HFI_PLACE_LINE);
    hfi_text_copy(cut, sizeof cut, text.data ? text.data : "holdfast: a death");
    mail->failed = mail->failed || text.failed;
    hfi_bytes_free(&text);
    hfi_bytes_text(mail, "Subject: ");
    unstructured(mail, cut);
    hfi_bytes_text(mail, "\r\n");
}

static void headers(struct hfi_bytes *mail, const struct hf_sink_options *sink, const struct hfi_alert *alert,
                    struct hf_wall now) {
    hfi_bytes_print(mail, "From: %s\r\nTo: ", sink->from);
    for (size_t i = 0; i < sink->to_count; i++)
        hfi_bytes_print(mail, "%s%s", i > 0 ? ",\r\n " : "", sink->to[i]);
    hfi_bytes_text(mail, "\r\n");
    subject(mail, sink, alert);
    date(mail, now);
    hfi_bytes_print(mail, "Message-ID: <alert-%" PRId64 ".%" PRId64 "@%s>\r\n", alert->id, alert->dead_at_us,
                    strchr(sink->from, '@') + 1);
    hfi_bytes_text(mail, "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
                         "Content-Transfer-Encoding: quoted-printable\r\nAuto-Submitted: auto-generated\r\n\r\n");
}

/* ------------------------------------------------------------------ body */

static void quoted(struct hfi_bytes *mail, const char *text) {
    size_t column = 0;
    for (const char *at = text; *at; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte == '\n') {
            hfi_bytes_text(mail, "\r\n");
            column = 0;
            continue;
        }
        size_t steers = byte == '\t' ? 0 : hf_text_steers(at, strnlen(at, 3), NULL);
        if (steers > 0) { /* not even encoded: a reader may be a terminal */
            byte = ' ';
            at += steers - 1;
        }
        bool last = at[1] == '\n' || at[1] == '\0';
        bool plain = byte > ' ' && byte <= '~' && byte != '=' && !(column == 0 && byte == '.');
        plain = plain || (byte == ' ' && !last);
        size_t width = plain ? 1 : 3;
        if (column + width > LINE_MAX_QP) {
            hfi_bytes_text(mail, "=\r\n");
            column = 0;
            if (plain && byte == '.') {
                plain = false;
                width = 3;
            }
        }
        if (plain)
            hfi_bytes_print(mail, "%c", byte);
        else
            hfi_bytes_print(mail, "=%02X", byte);
        column += width;
    }
    hfi_bytes_text(mail, "\r\n");
}

static void details(struct hfi_bytes *text, const struct hfi_alert *alert) {
    char at[HFI_RFC3339_LENGTH];
    hfi_bytes_print(text, "\n\njob           %" PRId64 "\ntype          %s\nqueue         %s\n", alert->job_id, alert->type,
                    alert->queue);
    if (alert->downstream[0])
        hfi_bytes_print(text, "downstream    %s\n", alert->downstream);
    hfi_bytes_print(text, "class         %s\nerror         %s\nexecutions    %" PRIu32 "\ndeath         %" PRIu32
                          "\ndead letter   %" PRId64 "\nat            %s\n",
                    hf_death_class_name((int)alert->death_class), alert->error_type, alert->executions, alert->death_no,
                    alert->dead_id, hfi_rfc3339(alert->dead_at_us, at));
    if (alert->correlation_id[0])
        hfi_bytes_print(text, "correlation   %s\n", alert->correlation_id);
    if (alert->message[0])
        hfi_bytes_print(text, "\n%s\n", alert->message);
    hfi_bytes_print(text, "\nholdfast dead show %" PRId64 "\n", alert->dead_id);
}

void hfi_letter(struct hfi_bytes *mail, const struct hf_sink_options *sink, const struct hfi_alert *alert,
                struct hf_wall now) {
    struct hfi_bytes text;
    hfi_bytes_init(&text, (size_t)2 << 20);
    headers(mail, sink, alert, now);
    if (hfi_render_fits(sink->text, alert)) {
        hfi_render(&text, sink->text, alert, HFI_PLACE_TEXT);
    } else {
        hfi_alert_summary(&text, alert, 0);
        if (alert->kind != HF_ALERT_DIGEST)
            details(&text, alert);
    }
    mail->failed = mail->failed || text.failed;
    quoted(mail, text.data ? text.data : "");
    hfi_bytes_free(&text);
}
