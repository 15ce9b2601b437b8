/* SPDX-License-Identifier: MIT */
/*
 * Makes a target of a downstream's options: takes its URL apart once, so that a password in it becomes a header and
 * never stands in a stored text, a log line or an error. Any thread; the result is read-only but for its queue.
 */
#include "resilience/target.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/text.h"
#include "resilience/policy.h"

struct parts {
    size_t scheme;        /* length with `://` */
    const char *userinfo; /* NULL without */
    size_t userinfo_length;
    const char *host; /* with port */
    size_t host_length;
    const char *path;
};

static bool is_port(const char *digits, size_t length) {
    unsigned long port = 0;
    if (length == 0 || length > 5)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        port = port * 10 + (unsigned long)(digits[i] - '0');
    }
    return port >= 1 && port <= 65535;
}

/* NULL or what is wrong with it; never quotes it, for it may hold a password. */
static const char *split(const char *url, struct parts *parts) {
    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
        return "it does not start with http:// or https://";
    if (!hfi_is_url_text(url))
        return "it holds a space, a control character or a byte outside ASCII";
    if (strpbrk(url, "?#\\"))
        return "it holds a query, a fragment or a backslash";
    parts->scheme = (size_t)(strstr(url, "://") + 3 - url);
    const char *start = url + parts->scheme;
    parts->path = start + strcspn(start, "/");
    const char *at = memrchr(start, '@', (size_t)(parts->path - start));
    parts->userinfo = at ? start : NULL;
    parts->userinfo_length = at ? (size_t)(at - start) : 0;
    parts->host = at ? at + 1 : start;
    parts->host_length = (size_t)(parts->path - parts->host);
    const char *bracket = memrchr(parts->host, ']', parts->host_length);
    const char *after = bracket ? bracket + 1 : parts->host;
    const char *colon = memchr(after, ':', (size_t)(parts->path - after));
    if (parts->host_length == 0 || colon == parts->host || (parts->host[0] == '[') != (bracket != NULL))
        return "it has no valid host";
    if (colon && !is_port(colon + 1, (size_t)(parts->path - colon - 1)))
        return "its port is not a number from 1 to 65535";
    return NULL;
}

static int hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* `user:password` with its %XX decoded, as `Basic …` (RFC 7617). NULL: no memory. */
static char *basic_of(const char *userinfo, size_t length) {
    char *plain = hfi_alloc(length + 2), *text = hfi_alloc(sizeof "Basic " + HFI_BASE64_LENGTH(length + 1));
    size_t size = 0;
    bool colon = false;
    for (size_t i = 0; plain && i < length; i++) {
        bool coded = userinfo[i] == '%' && i + 2 < length && hex(userinfo[i + 1]) >= 0 && hex(userinfo[i + 2]) >= 0;
        colon = colon || userinfo[i] == ':';
        plain[size++] = coded ? (char)(hex(userinfo[i + 1]) * 16 + hex(userinfo[i + 2])) : userinfo[i];
        i += coded ? 2 : 0;
    }
    if (plain && text) {
        if (!colon)
            plain[size++] = ':';
        hfi_base64(plain, size, stpcpy(text, "Basic "));
    } else {
        hfi_free(text);
        text = NULL;
    }
    hfi_free(plain);
    return text;
}

/* The headers of every call in one block: the array, then the texts. */
static int copy_headers(struct hfi_target *target, const struct hf_downstream_options *options, const char *basic) {
    size_t count = options->header_count + (basic != NULL), room = count * sizeof(struct hf_header);
    room += basic ? sizeof "Authorization" + strlen(basic) + 1 : 0;
    for (size_t i = 0; i < options->header_count; i++)
        room += strlen(options->headers[i].name) + strlen(options->headers[i].value) + 2;
    target->header_count = count;
    target->headers = hfi_alloc(room);
    if (!target->headers)
        return HF_ENOMEM;
    char *text = (char *)(target->headers + count);
    for (size_t i = 0; i < count; i++) {
        bool own = i < options->header_count;
        target->headers[i].name = text;
        text = stpcpy(text, own ? options->headers[i].name : "Authorization") + 1;
        target->headers[i].value = text;
        text = stpcpy(text, own ? options->headers[i].value : basic) + 1;
    }
    return 0;
}

static bool copy_rules(struct hfi_target *target, const struct hf_downstream_options *options) {
    char *block = options->rule_count > 0 ? hfi_alloc(hfi_rules_room(options->rules, options->rule_count)) : NULL;
    if (block)
        hfi_rules_put(&target->rules, options->rules, options->rule_count, block);
    return block || options->rule_count == 0;
}

static int copy_address(struct hfi_target *target, const struct hf_downstream_options *options,
                        const struct parts *parts) {
    size_t path = strlen(parts->path);
    target->url_length = parts->scheme + parts->host_length + path;
    for (const char *end = parts->path + path; end > parts->path && end[-1] == '/'; end--)
        target->url_length--;
    target->url = hfi_alloc(parts->scheme + parts->host_length + path + 1);
    target->ca_file = options->ca_file ? hfi_strdup(options->ca_file) : NULL;
    target->probe_path = options->probe_path ? hfi_strdup(options->probe_path) : NULL;
    char *basic = parts->userinfo ? basic_of(parts->userinfo, parts->userinfo_length) : NULL;
    int rc = HF_ENOMEM;
    bool copied = target->url && (target->ca_file || !options->ca_file) && (target->probe_path || !options->probe_path);
    copied = copied && copy_rules(target, options);
    if (copied && (basic || !parts->userinfo)) {
        char *end = mempcpy(target->url, options->url, parts->scheme);
        end = mempcpy(end, parts->host, parts->host_length);
        memcpy(end, parts->path, path);
        rc = copy_headers(target, options, basic);
    }
    hfi_free(basic);
    return rc;
}

static int make_downstream(struct hfi_target *target, const struct hf_downstream_options *options,
                           struct hf_error *error) {
    struct hf_policy_options defaults;
    struct hf_policy *policy;
    hf_policy_options_init(&defaults);
    int rc = hf_policy_new(options->policy ? options->policy : &defaults, &policy, error);
    if (rc)
        return rc;
    rc = hf_downstream_new(options->name, policy, &target->downstream, error);
    hf_policy_unref(policy);
    return rc;
}

#define RESPONSE_MAX (INT64_C(1) << 40)
#define HEADERS_MAX 262144 /* libcurl itself stops at about 300 KB */

static int check_limits(const struct hf_downstream_options *options, struct hf_error *error) {
    if (options->response_limit < 0 || options->response_limit > RESPONSE_MAX)
        return hfi_fail(error, HF_EINVAL, options->name, "give 0 to 1 TiB", "response_limit: it is %lld",
                        (long long)options->response_limit);
    if (options->header_limit < 1 || options->header_limit > HEADERS_MAX)
        return hfi_fail(error, HF_EINVAL, options->name, "give 1 to 262144 bytes", "header_limit: it is %lld",
                        (long long)options->header_limit);
    return 0;
}

static int check_signing(const struct hf_downstream_options *options, struct hf_error *error) {
    const char *name = hfi_headers_signed(options->headers, options->header_count);
    if (options->signing_secret_count > 0 && name)
        return hfi_fail(error, HF_EINVAL, options->name, "leave it out", "signing sets the header %s itself", name);
    return hfi_signing_new(options->signing_secrets, options->signing_secret_count, options->name, NULL, error);
}

static int check(const struct hf_downstream_options *options, struct parts *parts, struct hf_error *error) {
    if (!options->name || !options->url)
        return hfi_fail(error, HF_EINVAL, "downstream", NULL, "name and url are required");
    const char *wrong = split(options->url, parts);
    if (wrong)
        return hfi_fail(error, HF_EINVAL, options->name, "write it as https://host[:port][/path]", "url: %s", wrong);
    int rc = check_limits(options, error);
    if (rc)
        return rc;
    const char *probe = options->probe_path;
    if (probe && (probe[0] != '/' || !hfi_is_url_text(probe) || strpbrk(probe, "?#")))
        return hfi_fail(error, HF_EINVAL, options->name, "write it as /healthz", "probe_path is not a path");
    rc = hfi_headers_check(options->headers, options->header_count, error);
    if (rc == 0)
        rc = hf_rules_check(options->rules, options->rule_count, error);
    if (rc == 0)
        rc = check_signing(options, error);
    if (rc == 0 && parts->userinfo && hfi_headers_find(options->headers, options->header_count, "Authorization"))
        rc = hfi_fail(error, HF_EINVAL, options->name, "keep one of them",
                      "both a user in the url and an Authorization header");
    return rc;
}

int hf_downstream_check(const struct hf_downstream_options *options, struct hf_error *error) {
    struct hf_downstream_options known;
    struct parts parts = {0};
    if (!options || options->size < sizeof options->size)
        return hfi_fail(error, HF_EINVAL, "downstream", "call hf_downstream_options_init first", "its size is not set");
    hf_downstream_options_init(&known);
    memcpy(&known, options, options->size < sizeof known ? options->size : sizeof known);
    return check(&known, &parts, error);
}

int hfi_target_init(struct hfi_target *target, const struct hf_downstream_options *options, struct hf_error *error) {
    struct parts parts = {0};
    int rc = check(options, &parts, error);
    if (rc)
        return rc;
    rc = copy_address(target, options, &parts);
    if (rc)
        hfi_fail(error, rc, options->name, NULL, "out of memory");
    else
        rc = hfi_signing_new(options->signing_secrets, options->signing_secret_count, options->name, &target->signing,
                             error);
    if (rc == 0)
        rc = make_downstream(target, options, error);
    if (rc) {
        hfi_target_end(target);
        return rc;
    }
    target->response_limit = options->response_limit;
    target->header_limit = options->header_limit;
    target->compressed = options->accept_compressed;
    target->deny_private = options->deny_private_networks;
    target->send_remaining_time = options->send_remaining_time;
    TAILQ_INIT(&target->queue);
    return 0;
}

void hfi_target_end(struct hfi_target *target) {
    hf_downstream_unref(target->downstream);
    hfi_free(target->url);
    hfi_free(target->headers);
    hfi_signing_free(target->signing);
    hfi_free(target->ca_file);
    hfi_free(target->probe_path);
    hfi_free((void *)(uintptr_t)target->rules.items);
    memset(target, 0, sizeof *target);
}
