/* SPDX-License-Identifier: MIT */
/*
 * What a request and a downstream are made of, on any bytes: URL, path, query, header, key, secret, Retry-After, one a line.
 * Never a crash; what is taken holds nothing that could end a line on the wire; every refusal has a reason, and does not
 * show what may be secret. Built for libFuzzer it fuzzes; built as it is, it runs the files it is given, as a plain test.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/classify.h"
#include "holdfast/http.h"
#include "resilience/call.h"

#define LINES 9
enum { URL, PATH, QUERY, NAME, VALUE, KEY, SECRET, METHOD, RETRY_AFTER };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int truth, const char *what) {
    if (!truth) {
        fprintf(stderr, "fuzz_request: %s\n", what);
        abort();
    }
}

/* The input as lines, NUL-terminated; `\r`, `\n` and NUL within one stand as 0x1a to 0x1c, so that they can come. */
static void split(char *text, size_t size, const char **lines) {
    size_t line = 0;
    for (size_t i = 0; i < LINES; i++)
        lines[i] = "";
    lines[0] = text;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n') {
            text[i] = '\0';
            if (++line == LINES)
                return;
            lines[line] = text + i + 1;
        } else if (text[i] == 0x1a || text[i] == 0x1b) {
            text[i] = text[i] == 0x1a ? '\r' : '\n';
        }
    }
}

static int is_plain(const char *text) {
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c <= 0x20 || *c >= 0x7f)
            return 0;
    return 1;
}

static void refused(int code, const struct hf_error *error, const char *value) {
    char text[1200];
    hf_error_print(error, text, sizeof text);
    demand(code == HF_EINVAL || code == HF_ETEXT || code == HF_ECONFIG, "an unknown refusal");
    demand(*error->what && *error->why, "a refusal without words");
    demand(strlen(value) < 12 || !strstr(text, value), "a refusal that shows the value");
}

static void try_downstream(const char **lines) {
    struct hf_downstream_options options = hf_downstream_at("d", lines[URL]);
    struct hf_header header = {lines[NAME], lines[VALUE]};
    struct hf_error error = hf_error_none();
    char shown[256];
    options.headers = &header;
    options.header_count = *lines[NAME] ? 1 : 0;
    options.signing_secrets = &lines[SECRET];
    options.signing_secret_count = *lines[SECRET] ? 1 : 0;
    int code = hf_downstream_check(&options, &error);
    if (code == 0) {
        demand(is_plain(lines[URL]) && !strpbrk(lines[URL], "#\\"), "a URL with what cannot stand in one");
        demand(!strpbrk(lines[VALUE], "\r\n") || !options.header_count, "a header with a line break");
        demand(!options.header_count || is_plain(lines[NAME]), "a name that is no token");
    } else {
        refused(code, &error, lines[VALUE]);
    }
    size_t length = hf_url_redact(lines[URL], shown, sizeof shown);
    demand(strlen(shown) == (length < sizeof shown ? length : sizeof shown - 1), "the length of what is shown");
    if (code == 0 && length < sizeof shown)
        demand(!memchr(shown + 8, '@', strcspn(shown + 8, "/?")), "a user is shown");
}

static void try_request(const char **lines) {
    struct hf_request request = hf_request_to("d", lines[METHOD], lines[PATH]);
    struct hf_header header = {lines[NAME], lines[VALUE]};
    struct hf_error error = hf_error_none();
    request.query = *lines[QUERY] ? lines[QUERY] : NULL;
    request.headers = &header;
    request.header_count = *lines[NAME] ? 1 : 0;
    request.idempotency_key = *lines[KEY] ? lines[KEY] : NULL;
    int code = hfi_request_check(&request, &error);
    if (code != 0) {
        refused(code, &error, lines[VALUE]);
        return;
    }
    demand(is_plain(lines[PATH]) && is_plain(lines[QUERY]) && is_plain(lines[METHOD]), "a request line with a blank");
    demand(!strpbrk(lines[KEY], "\r\n"), "a key with a line break");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *lines[LINES];
    char *text = malloc(size + 1);
    if (!text || size > 65536) {
        free(text);
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    split(text, size, lines);
    try_downstream(lines);
    try_request(lines);
    demand(hf_retry_after_ms(lines[RETRY_AFTER], INT64_C(1780000000000000)) >= -1, "a wait below nothing");
    free(text);
    return 0;
}

#ifndef FUZZING
static void run_file(const char *path) {
    static uint8_t bytes[65536];
    static const uint8_t marks[] = {0, '\t', '\r', 0x1a, 0x1b, ' ', '@', ':', '/', '?', '#', '\\', '[', ']', '%', 0x7f, 0x80, 0xff};
    FILE *file = fopen(path, "rb");
    demand(file != NULL, path);
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t cut = 0; cut <= length; cut++)
        LLVMFuzzerTestOneInput(bytes, cut);
    for (size_t at = 0; at < length; at++)
        for (size_t i = 0; i < sizeof marks; i++) {
            uint8_t kept = bytes[at];
            bytes[at] = marks[i];
            LLVMFuzzerTestOneInput(bytes, length);
            bytes[at] = kept;
        }
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        run_file(argv[i]);
    return argc > 1 ? 0 : 1;
}
#endif
