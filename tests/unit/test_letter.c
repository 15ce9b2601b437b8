/* SPDX-License-Identifier: MIT */
/*
 * What hostile texts can do to a mail, a webhook's JSON and an argument: nothing [S0.25, S0.27, I66]. Every byte value,
 * line breaks, escapes of terminals, invalid UTF-8, overrides of direction, markup, ten megabytes.
 */
#include "support.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/text.h"
#include "holdfast/units.h"
#include "jobs/deaths/letter.h"
#include "jobs/deaths/recipients.h"
#include "jobs/deaths/render.h"
#include "jobs/deaths/wording.h"

static const char *const hostile[] = {
    "plain",
    "a\r\nBcc: evil@example.org",
    "a\nBcc: evil@example.org\n\nbody",
    "a\rBcc: evil@example.org",
    "\r\n.\r\nMAIL FROM:<evil@example.org>",
    ".\n..\n.",
    "\x1b[2J\x1b]0;title\x07 red \x1b[31m",
    "\xff\xfe\x80 \xc3 \xed\xa0\x80 \xf4\x90\x80\x80 \xc0\x80",
    "\xe2\x80\xae" "gpj.exe \xe2\x80\xa6 \xf0\x9f\x92\xa3",
    "=?UTF-8?B?QmNjOiBldmlsQGV4YW1wbGUub3Jn?=",
    "<script>alert(1)</script>&amp;\"'`$(reboot)",
    "--option -rf {message} {type} {",
    " \t leading, trailing \t ",
    "a\vb\fc\x85\xe2\x80\xa8" "d\xe2\x80\xa9" "e",
};
#define HOSTILE (sizeof hostile / sizeof *hostile)
static const char *const to[] = {"a@example.org", "b@example.org"};

static struct hf_sink_options mail_to(const char *subject, const char *text) {
    struct hf_sink_options options;
    hf_sink_options_init(&options);
    options.kind = HF_SINK_MAIL;
    options.name = "ops";
    options.from = "holdfast@example.org";
    options.to = to;
    options.to_count = 2;
    options.subject = subject;
    options.text = text;
    return options;
}

static struct hfi_alert alert_of(const char *text, enum hf_alert_kind kind) {
    static struct hfi_alert_cause causes[2];
    struct hfi_alert alert = {.id = 7, .dead_id = 8, .job_id = 9, .kind = kind, .deaths = 3, .executions = 2, .death_no = 1,
                              .dead_at_us = INT64_C(1780000000000000)};
    hfi_text_copy(alert.sink, sizeof alert.sink, "ops");
    hfi_text_copy(alert.type, sizeof alert.type, text);
    hfi_text_copy(alert.queue, sizeof alert.queue, text);
    hfi_text_copy(alert.downstream, sizeof alert.downstream, text);
    hfi_text_copy(alert.error_type, sizeof alert.error_type, text);
    hfi_text_copy(alert.correlation_id, sizeof alert.correlation_id, text);
    hfi_text_copy(alert.message, sizeof alert.message, text);
    if (kind == HF_ALERT_DIGEST) {
        memset(causes, 0, sizeof causes);
        for (size_t i = 0; i < 2; i++) {
            causes[i].deaths = i + 1;
            hfi_text_copy(causes[i].type, sizeof causes[i].type, text);
            hfi_text_copy(causes[i].error_type, sizeof causes[i].error_type, text);
            hfi_text_copy(causes[i].downstream, sizeof causes[i].downstream, text);
        }
        alert.causes = causes;
        alert.cause_count = 2;
    }
    return alert;
}

/* ------------------------------------------------------------------ mails */

static const char *const known[] = {"From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type",
                                    "Content-Transfer-Encoding", "Auto-Submitted"};

/* The lines of a mail, each ended by CRLF, none too long, ASCII without controls; headers are those we write, once each. */
static void check_mail(const char *mail, size_t length, const char *what) {
    unsigned seen[sizeof known / sizeof *known] = {0};
    bool body = false;
    size_t at = 0;
    assert_int_equal(strlen(mail), length);
    while (at < length) {
        const char *line = mail + at, *end = strstr(line, "\r\n");
        if (!end)
            fail_msg("%s: the last line does not end", what);
        size_t width = (size_t)(end - line);
        if (width > 78)
            fail_msg("%s: a line of %zu", what, width);
        for (size_t i = 0; i < width; i++)
            if (line[i] < ' ' || line[i] > '~')
                fail_msg("%s: byte %d in a line", what, (unsigned char)line[i]);
        if (body && line[0] == '.')
            fail_msg("%s: a line of the body begins with a dot", what);
        if (!body && width > 0 && line[0] != ' ') {
            bool ours = false;
            for (size_t i = 0; i < sizeof known / sizeof *known; i++)
                if (strncmp(line, known[i], strlen(known[i])) == 0 && line[strlen(known[i])] == ':') {
                    ours = true;
                    seen[i]++;
                }
            if (!ours)
                fail_msg("%s: a header of somebody else: %.*s", what, (int)width, line);
        } else if (!body && width > 0 && line[1] == ' ') {
            fail_msg("%s: an empty continuation", what);
        }
        body = body || width == 0;
        at += width + 2;
    }
    assert_true(body);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(seen[i], 1);
}

/* Of a body in quoted-printable. */
static size_t unquote(const char *from, char *text) {
    size_t length = 0;
    for (; *from; from++) {
        if (from[0] == '=' && from[1] == '\r') {
            from += 2;
            continue;
        }
        if (from[0] == '\r')
            continue;
        if (from[0] == '=') {
            char digits[3] = {from[1], from[2], '\0'};
            text[length++] = (char)strtoul(digits, NULL, 16);
            from += 2;
            continue;
        }
        text[length++] = *from;
    }
    text[length] = '\0';
    return length;
}

/* Nothing that steers a terminal or the direction of reading is in it, not even encoded. */
static void check_body(const char *body, const char *what) {
    char *text = malloc(strlen(body) + 1);
    size_t length = unquote(body, text);
    for (size_t i = 0; i < length; i++)
        if (text[i] != '\n' && text[i] != '\t' && hf_text_steers(text + i, length - i, NULL) > 0)
            fail_msg("%s: byte %d in the body", what, (unsigned char)text[i]);
    free(text);
}

static void write_mail(const char *subject, const char *text, const char *value, enum hf_alert_kind kind, const char *what) {
    struct hf_sink_options sink = mail_to(subject, text);
    struct hfi_alert alert = alert_of(value, kind);
    struct hfi_bytes mail;
    hfi_bytes_init(&mail, (size_t)8 << 20);
    hfi_letter(&mail, &sink, &alert, (struct hf_wall){INT64_C(1780000000000000)});
    assert_false(mail.failed);
    check_mail(mail.data, mail.length, what);
    check_body(strstr(mail.data, "\r\n\r\n") + 4, what);
    hfi_bytes_free(&mail);
}

static void no_text_leaves_its_place_in_a_mail(void **state) { /* S0.27: no header injection, no end of the message */
    (void)state;
    for (size_t i = 0; i < HOSTILE; i++)
        for (int kind = HF_ALERT_ONE; kind <= HF_ALERT_DIGEST; kind++) {
            write_mail(NULL, NULL, hostile[i], (enum hf_alert_kind)kind, hostile[i]);
            write_mail("{type} {message} {summary} {correlation_id}", "{message}\n.\n{type} {summary} {deaths}", hostile[i],
                       (enum hf_alert_kind)kind, hostile[i]);
            write_mail(hostile[i], hostile[i], hostile[i], (enum hf_alert_kind)kind, hostile[i]);
        }
}

static void every_byte_is_safe_in_a_mail(void **state) {
    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        char text[64], what[16];
        snprintf(what, sizeof what, "byte %d", byte);
        for (int place = 0; place < 3; place++) { /* alone, first and last, in the middle */
            char one = (char)byte;
            if (place == 0)
                snprintf(text, sizeof text, "%c", one);
            else if (place == 1)
                snprintf(text, sizeof text, "%ctext%c", one, one);
            else
                snprintf(text, sizeof text, "te%c%cxt\n%c", one, one, one);
            write_mail("{message}", "{message}", text, HF_ALERT_ONE, what);
            write_mail(NULL, NULL, text, HF_ALERT_ONE, what);
        }
    }
}

static void a_body_says_what_was_said(void **state) {
    (void)state;
    static const char said[] = "a = b\ttrailing \n.dot\n\xe2\x82\xac and a line that is so long that it has to be broken into two or "
                               "three of them, at least, because no line is longer than that. .x";
    struct hf_sink_options sink = mail_to("\xe2\x82\xac {type}", "{message}");
    struct hfi_alert alert = alert_of(said, HF_ALERT_ONE);
    struct hfi_bytes mail;
    char text[4096];
    hfi_bytes_init(&mail, 65536);
    hfi_letter(&mail, &sink, &alert, (struct hf_wall){0});
    const char *body = strstr(mail.data, "\r\n\r\n");
    assert_non_null(body);
    unquote(body + 4, text);
    assert_int_equal(strncmp(text, said, strlen(said)), 0);
    assert_string_equal(text + strlen(said), "\n");
    assert_non_null(strstr(mail.data, "Subject: \r\n =?UTF-8?B?4oKs") ? mail.data : strstr(mail.data, "Subject: =?UTF-8?B?4oKs"));
    hfi_bytes_free(&mail);
}

/* An alert holds no more than its bounds, whatever was handed in: ten megabytes become a message cut on a code point. */
static void ten_megabytes_are_cut_on_a_code_point(void **state) { /* I66 */
    (void)state;
    size_t length = (size_t)10 << 20;
    char *text = malloc(length + 1);
    for (size_t i = 0; i + 3 <= length; i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3);
    text[length / 3 * 3] = '\0';
    struct hfi_alert alert = alert_of(text, HF_ALERT_ONE);
    assert_true(strlen(alert.message) <= HFI_ERROR_MESSAGE_MAX);
    assert_true(strlen(alert.message) > HFI_ERROR_MESSAGE_MAX - 3);
    assert_int_equal(strlen(alert.message) % 3, 0);
    write_mail("{message}", "{message}{message}", text, HF_ALERT_ONE, "ten megabytes");
    write_mail(NULL, NULL, text, HF_ALERT_DIGEST, "ten megabytes");
    free(text);
}

static void an_address_is_nothing_but_an_address(void **state) {
    (void)state;
    static const char *const bad[] = {"", "a", "@b", "a@", "a@b@c", "a b@c", "a@b\r\nRCPT TO:<x@y>", "a@b>", "<a@b>", "a@b,c@d",
                                      "\"a\"@b", "a@\xc3\xa9", "a\t@b", "a@b;c", "a(c)@b", "a@[1.2.3.4]", "a:b@c", "a\\b@c"};
    assert_true(hfi_is_address("ops+holdfast@mail.example.org"));
    assert_false(hfi_is_address(NULL));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (hfi_is_address(bad[i]))
            fail_msg("%s", bad[i]);
}

/* ------------------------------------------------------------------ lines, arguments, JSON */

static void render(char *out, size_t room, const char *text, const char *value, enum hfi_place place) {
    struct hfi_alert alert = alert_of(value, HF_ALERT_ONE);
    struct hfi_bytes bytes;
    hfi_bytes_init(&bytes, 1 << 20);
    hfi_render(&bytes, text, &alert, place);
    assert_false(bytes.failed);
    hfi_text_copy(out, room, bytes.data ? bytes.data : "");
    hfi_bytes_free(&bytes);
}

static void a_value_stays_in_its_line_and_is_no_option(void **state) {
    (void)state;
    char out[8192];
    for (size_t i = 0; i < HOSTILE; i++)
        for (int place = HFI_PLACE_TEXT; place <= HFI_PLACE_ARGUMENT; place++) {
            render(out, sizeof out, "{type}|{message}|{summary}", hostile[i], (enum hfi_place)place);
            for (const char *at = out; *at; at++) {
                bool kept = place == HFI_PLACE_TEXT && (*at == '\n' || *at == '\t');
                if (hf_text_steers(at, strnlen(at, 3), NULL) > 0 && !kept)
                    fail_msg("place %d: byte %d of %s", place, *at, hostile[i]);
            }
            render(out, sizeof out, "{type}", hostile[i], (enum hfi_place)place);
            if (place == HFI_PLACE_ARGUMENT)
                assert_true(out[0] != '-');
        }
    render(out, sizeof out, "{type}", "{message} {queue}", HFI_PLACE_LINE); /* a value is not looked at again */
    assert_string_equal(out, "{message} {queue}");
    render(out, sizeof out, "--name={type}", "-x", HFI_PLACE_ARGUMENT);
    assert_string_equal(out, "--name=-x");
    render(out, sizeof out, "{type}", "--rf", HFI_PLACE_ARGUMENT);
    assert_string_equal(out, "_-rf");
}

static void the_json_is_one_object_whatever_is_in_it(void **state) { /* S0.25: and never holds the message */
    (void)state;
    for (size_t i = 0; i < HOSTILE; i++)
        for (int kind = HF_ALERT_ONE; kind <= HF_ALERT_DIGEST; kind++) {
            struct hfi_alert alert = alert_of(hostile[i], (enum hf_alert_kind)kind);
            struct hfi_bytes body, text;
            hfi_text_copy(alert.message, sizeof alert.message, "the very secret");
            hfi_bytes_init(&body, 1 << 20);
            hfi_bytes_init(&text, 1 << 20);
            hfi_alert_summary(&text, &alert, 0);
            hfi_alert_json(&body, &alert);
            hfi_alert_json_field(&body, "text", text.data);
            hfi_bytes_text(&body, "}");
            assert_false(body.failed || text.failed);
            assert_null(strstr(body.data, "secret"));
            for (size_t at = 0; at < body.length; at++)
                assert_true((unsigned char)body.data[at] >= 0x20);
            json_t *object = json_loadb(body.data, body.length, JSON_REJECT_DUPLICATES, NULL);
            if (!object)
                fail_msg("no JSON: %s", body.data);
            assert_int_equal(json_object_size(object), kind == HF_ALERT_DIGEST ? 18 : 17);
            json_decref(object);
            hfi_bytes_free(&body);
            hfi_bytes_free(&text);
        }
}

/* ------------------------------------------------------------------ who has it already */

static void only_whom_the_same_list_meant_is_settled(void **state) {
    (void)state;
    static const char *const other[] = {"b@example.org", "a@example.org"}, *const longer[] = {"a@example.org", "b@example.org", "c@x.org"};
    struct hfi_recipients some = {.settled = {true, false}}, read;
    const char *many[HFI_RECIPIENTS_MAX];
    char had[HFI_ALERT_HAD_MAX + 1];
    hfi_recipients_print(&some, to, 2, had);
    hfi_recipients_read(&read, to, 2, had);
    assert_true(read.settled[0] && !read.settled[1]);
    hfi_recipients_read(&read, other, 2, had);
    assert_false(read.settled[0] || read.settled[1]);
    hfi_recipients_read(&read, longer, 3, had);
    assert_false(read.settled[0] || read.settled[1] || read.settled[2]);
    static const char *const bad[] = {"", "x", "0123456789abcdef:1"};
    for (size_t i = 0; i < 3; i++) {
        hfi_recipients_read(&read, to, 2, bad[i]);
        assert_false(read.settled[0] || read.settled[1]);
    }
    had[17] = 'z';
    hfi_recipients_read(&read, to, 2, had);
    assert_false(read.settled[0] || read.settled[1]);
    some.settled[1] = true; /* all of them: then nobody would be asked */
    hfi_recipients_print(&some, to, 2, had);
    hfi_recipients_read(&read, to, 2, had);
    assert_false(read.settled[0] || read.settled[1]);
    struct hfi_recipients odd = {0};
    for (size_t i = 0; i < HFI_RECIPIENTS_MAX; i++) {
        many[i] = to[i % 2];
        odd.settled[i] = i % 3 == 0;
    }
    hfi_recipients_print(&odd, many, HFI_RECIPIENTS_MAX, had);
    hfi_recipients_read(&read, many, HFI_RECIPIENTS_MAX, had);
    assert_memory_equal(read.settled, odd.settled, sizeof odd.settled);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_text_leaves_its_place_in_a_mail),
        cmocka_unit_test(every_byte_is_safe_in_a_mail),
        cmocka_unit_test(a_body_says_what_was_said),
        cmocka_unit_test(ten_megabytes_are_cut_on_a_code_point),
        cmocka_unit_test(an_address_is_nothing_but_an_address),
        cmocka_unit_test(a_value_stays_in_its_line_and_is_no_option),
        cmocka_unit_test(the_json_is_one_object_whatever_is_in_it),
        cmocka_unit_test(only_whom_the_same_list_meant_is_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
