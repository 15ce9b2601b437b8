/* SPDX-License-Identifier: MIT */
/*
 * What may stand in a request: methods, header names and values, URL characters. libcurl sends a CR or LF in a header
 * as it is, so everything from outside passes here first. Must never echo a header's value: it may be a secret. Pure,
 * any thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "resilience/target.h"

bool hfi_is_token(const char *text) {
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (const char *c = text; *c; c++) {
        bool letter = (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z');
        if (!letter && !strchr(marks, *c))
            return false;
    }
    return *text != '\0';
}

bool hfi_is_field_value(const char *text) {
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if ((*c < 0x20 && *c != '\t') || *c == 0x7f)
            return false;
    return true;
}

bool hfi_is_url_text(const char *text) {
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c <= 0x20 || *c >= 0x7f)
            return false;
    return true;
}

/* Who may set these could end one request inside another. */
static bool is_ours(const char *name) {
    static const char *const ours[] = {
        "Content-Length",   "Transfer-Encoding", "Connection", "Keep-Alive", "Proxy-Connection", "Expect", "Upgrade",
        "HTTP2-Settings",   "TE",                "Trailer",    "Holdfast-Attempt", "Holdfast-Timeout-Ms"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (hfi_text_equal_nocase(ours[i], name))
            return true;
    return false;
}

int hfi_headers_check(const struct hf_header *headers, size_t count, struct hf_error *error) {
    if (count > 0 && !headers)
        return hfi_fail(error, HF_EINVAL, "headers", "give an array, or a count of 0", "NULL with a count of %zu", count);
    for (size_t i = 0; i < count; i++) {
        const char *name = headers[i].name, *value = headers[i].value;
        if (!name || !hfi_is_token(name))
            return hfi_fail(error, HF_EINVAL, "headers", "use letters, digits and hyphens",
                            "the name of header %zu is not a token (RFC 9110 5.6.2)", i + 1);
        if (!value || !hfi_is_field_value(value))
            return hfi_fail(error, HF_ETEXT, name, "give text without line breaks, an empty one if need be",
                            value ? "the value of the header holds a CR, LF or another control character"
                                  : "the header has no value");
        if (is_ours(name))
            return hfi_fail(error, HF_EINVAL, name, "leave it out", "the header is set by holdfast itself");
    }
    return 0;
}

const char *hfi_headers_signed(const struct hf_header *headers, size_t count) {
    static const char *const names[] = {"webhook-id", "webhook-timestamp", "webhook-signature"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (hfi_headers_find(headers, count, names[i]))
            return names[i];
    return NULL;
}

const struct hf_header *hfi_headers_find(const struct hf_header *headers, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (hfi_text_equal_nocase(headers[i].name, name))
            return &headers[i];
    return NULL;
}

struct hf_header *hfi_headers_copy(const struct hf_header *headers, size_t count) {
    size_t room = count * sizeof *headers;
    for (size_t i = 0; i < count; i++)
        room += strlen(headers[i].name) + strlen(headers[i].value) + 2;
    struct hf_header *copy = hfi_alloc(room > 0 ? room : 1);
    char *at = copy ? (char *)(copy + count) : NULL;
    for (size_t i = 0; copy && i < count; i++) {
        copy[i].name = at;
        at = stpcpy(at, headers[i].name) + 1;
        copy[i].value = at;
        at = stpcpy(at, headers[i].value) + 1;
    }
    return copy;
}
