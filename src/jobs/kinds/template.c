/* SPDX-License-Identifier: MIT */
/*
 * Puts fields of a payload into the call of an http job. Must never let a value change anything but its own place: no
 * other path, no second parameter, no header of its own, no host but where the type gives it the choice. Loop thread;
 * the host alone, any.
 */
#include "jobs/kinds/template.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "resilience/key.h"
#include "resilience/target.h"

#define NAME_MAX_BYTES 100
#define TEXT_MAX 65536 /* of one filled text; longer is no URL and no header */
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

enum place { PATH, QUERY, HEADER, URL };

/* The length of the field that begins at `text` with its braces; 0: none does. */
static size_t field_length(const char *text) {
    size_t length = text[0] == '{' ? strspn(text + 1, NAME_CHARACTERS) : 0;
    return length > 0 && length <= NAME_MAX_BYTES && text[1 + length] == '}' ? length + 2 : 0;
}

static bool has_field(const char *text) {
    for (const char *at = text ? strchr(text, '{') : NULL; at; at = strchr(at + 1, '{'))
        if (field_length(at) > 0)
            return true;
    return false;
}

bool hfi_templates_used(const struct hf_type_options *type) {
    bool used = type->body_field || has_field(type->path) || has_field(type->query) || has_field(type->url);
    for (size_t i = 0; i < type->header_count && !used; i++)
        used = has_field(type->headers[i].value);
    return used;
}

static int check_braces(const char *what, const char *text, struct hf_error *error) {
    for (const char *at = text ? text : ""; *at;) {
        size_t length = field_length(at);
        if (length == 0 && (*at == '{' || *at == '}'))
            return hfi_fail(error, HF_EINVAL, what, "write {name} for a field of the payload, %7B and %7D for braces",
                            "a brace that is part of no field");
        at += length > 0 ? length : 1;
    }
    return 0;
}

int hfi_templates_check(const struct hf_type_options *type, struct hf_error *error) {
    int code = check_braces("path", type->path, error);
    if (code == 0)
        code = check_braces("query", type->query, error);
    if (code == 0)
        code = check_braces("url", type->url, error);
    if (code == 0 && type->body_field && !type->body_field[0])
        code = hfi_fail(error, HF_EINVAL, "body_field", "name a field, or leave it out", "it is empty");
    return code;
}

/* ------------------------------------------------------------------ values */

static int refuse(struct hf_error *error, const char *field, size_t length, const char *why) {
    return hfi_fail(error, HF_EINVAL, "payload.field", NULL, "the field `%.*s` %s", (int)length, field, why);
}

/* The value as text, in `number` of 32 bytes or where it is. NULL: none that could stand in a text. */
static const char *text_of(const json_t *value, char *number) {
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    if (!json_is_integer(value))
        return NULL;
    snprintf(number, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return number;
}

static void add_encoded(struct hfi_bytes *bytes, const char *text) {
    static const char hex[] = "0123456789ABCDEF";
    for (const char *at = text; *at; at++) {
        unsigned char byte = (unsigned char)*at;
        char code[3] = {'%', hex[byte >> 4], hex[byte & 15]};
        if (strchr("-._~", byte) || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
            (byte >= 'A' && byte <= 'Z'))
            hfi_bytes_add(bytes, at, 1);
        else
            hfi_bytes_add(bytes, code, sizeof code);
    }
}

static int add_value(struct hfi_bytes *bytes, const json_t *fields, const char *name, size_t length, enum place place,
                     bool whole, struct hf_error *error) {
    char key[NAME_MAX_BYTES + 1], number[32];
    snprintf(key, sizeof key, "%.*s", (int)length, name);
    const json_t *value = json_object_get(fields, key);
    const char *text = text_of(value, number);
    if (!value)
        return refuse(error, name, length, "is missing");
    if (!text)
        return refuse(error, name, length, "is no text, whole number, true or false");
    if (!text[0] && place != QUERY && place != HEADER)
        return refuse(error, name, length, "is empty");
    if (place == HEADER && !hfi_is_field_value(text))
        return refuse(error, name, length, "holds a line break or another control character");
    if (place == HEADER || (place == URL && whole))
        hfi_bytes_text(bytes, text);
    else
        add_encoded(bytes, text);
    return 0;
}

/* A segment . or .. would climb, whoever takes the path apart: libcurl, a proxy, the peer. */
static bool climbs(const char *path) {
    for (const char *at = path; *at == '/';) {
        size_t length = strcspn(++at, "/?#");
        if ((length == 1 && at[0] == '.') || (length == 2 && at[0] == '.' && at[1] == '.'))
            return true;
        at += length;
    }
    return false;
}

/* What begins with the path in a URL whose text is the type's. */
static const char *path_in(const char *url) {
    const char *host = strstr(url, "://");
    return host ? host + 3 + strcspn(host + 3, "/?#") : "";
}

static int fill(const json_t *fields, struct hfi_keep *keep, enum place place, const char **text,
                struct hf_error *error) {
    struct hfi_bytes bytes;
    int code = 0;
    if (!has_field(*text))
        return 0;
    bool whole = field_length(*text) == strlen(*text);
    hfi_bytes_init(&bytes, TEXT_MAX);
    for (const char *at = *text; *at && code == 0;) {
        size_t length = field_length(at);
        if (length > 0)
            code = add_value(&bytes, fields, at + 1, length - 2, place, whole, error);
        else
            hfi_bytes_add(&bytes, at, 1);
        at += length > 0 ? length : 1;
    }
    if (code == 0 && bytes.failed)
        code = bytes.length + 4 > TEXT_MAX
                   ? hfi_fail(error, HF_EINVAL, "payload.field", NULL, "its fields make a text of more than %d bytes", TEXT_MAX)
                   : hfi_fail(error, HF_ENOMEM, "payload", NULL, NULL);
    if (code == 0 && ((place == PATH && climbs(bytes.data)) || (place == URL && !whole && climbs(path_in(bytes.data)))))
        code = hfi_fail(error, HF_EINVAL, "payload.field", NULL, "its fields make a path segment . or ..");
    if (code == 0 && !(*text = hfi_keep_text(keep, bytes.data ? bytes.data : "")))
        code = hfi_fail(error, HF_ENOMEM, "payload", NULL, NULL);
    hfi_bytes_free(&bytes);
    return code;
}

static int fill_body(const json_t *fields, const char *name, struct hfi_keep *keep, struct hf_request *request,
                     struct hf_error *error) {
    const json_t *value = json_object_get(fields, name);
    if (!value)
        return refuse(error, name, strlen(name), "is missing");
    bool is_text = json_is_string(value);
    size_t length = is_text ? json_string_length(value) : json_dumpb(value, NULL, 0, JSON_ENCODE_ANY | JSON_COMPACT);
    char *body = hfi_keep_alloc(keep, length + 1);
    if (!body)
        return hfi_fail(error, HF_ENOMEM, "payload", NULL, NULL);
    if (is_text)
        memcpy(body, json_string_value(value), length);
    else if (json_dumpb(value, body, length, JSON_ENCODE_ANY | JSON_COMPACT) != length)
        return hfi_fail(error, HF_ENOMEM, "payload", NULL, NULL);
    request->body = body;
    request->body_length = length;
    return 0;
}

/* With one name twice it would depend on the reader which of both is meant. */
static json_t *parse(const void *payload, size_t length, struct hf_error *error) {
    json_error_t fault;
    json_t *fields = json_loadb(length > 0 ? payload : "", length, JSON_REJECT_DUPLICATES, &fault);
    if (!json_is_object(fields)) {
        bool memory = !fields && json_error_code(&fault) == json_error_out_of_memory;
        hfi_fail(error, memory ? HF_ENOMEM : HF_EINVAL, memory ? "payload" : "payload.json", NULL,
                 "the payload is no JSON object with each name once, and its fields are asked for");
        json_decref(fields);
        return NULL;
    }
    return fields;
}

int hf_type_host(const struct hf_type_options *options, const void *payload, size_t length, char *text) {
    struct hfi_keep keep = {NULL};
    struct hfi_url url;
    const char *filled = options ? options->url : NULL;
    json_t *fields = NULL;
    int code = filled && text ? 0 : HF_ENOENT;
    if (code == 0 && has_field(filled)) {
        struct hf_error error = hf_error_none();
        fields = parse(payload, length, &error);
        code = fields ? fill(fields, &keep, URL, &filled, &error) : error.code;
    }
    if (code == 0 && hfi_url_split(filled, &url) != NULL)
        code = HF_EINVAL;
    if (code == 0)
        hfi_key_print(&url, text);
    json_decref(fields);
    hfi_keep_free(&keep);
    return code;
}

int hfi_templates_fill(const struct hf_type_options *type, const void *payload, size_t length, struct hfi_keep *keep,
                       struct hf_request *request, struct hf_header *headers, struct hf_error *error) {
    json_t *fields = parse(payload, length, error);
    if (!fields)
        return error->code;
    int code = fill(fields, keep, PATH, &request->path, error);
    if (code == 0)
        code = fill(fields, keep, QUERY, &request->query, error);
    if (code == 0)
        code = fill(fields, keep, URL, &request->url, error);
    for (size_t i = 0; i < type->header_count && code == 0; i++)
        if (headers[i].value == type->headers[i].value) /* else the job's own word stands there */
            code = fill(fields, keep, HEADER, &headers[i].value, error);
    if (code == 0 && type->body_field)
        code = fill_body(fields, type->body_field, keep, request, error);
    json_decref(fields);
    return code;
}
