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
#include "resilience/call_internal.h"
#include "resilience/policy.h"
#include "resilience/reach.h"
#include "resilience/registry.h"
#include "resilience/url.h"

#define HOSTS_MAX 1000000

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
                        const struct hfi_url *url) {
    const char *rest = options->per_host ? "" : url->host; /* with port and path */
    size_t length = strlen(rest);
    target->url_length = url->scheme + length;
    for (const char *end = rest + length; length > 0 && end > url->place && end[-1] == '/'; end--)
        target->url_length--;
    target->url = hfi_alloc(url->scheme + length + 1);
    target->probe_path = options->probe_path ? hfi_strdup(options->probe_path) : NULL;
    char *basic = url->userinfo ? basic_of(url->userinfo, url->userinfo_length) : NULL;
    int rc = HF_ENOMEM;
    bool copied = target->url && (target->probe_path || !options->probe_path) && copy_rules(target, options);
    if (copied && (basic || !url->userinfo)) {
        if (!options->per_host)
            memcpy(mempcpy(target->url, options->url, url->scheme), rest, length);
        rc = copy_headers(target, options, basic);
    }
    hfi_free(basic);
    return rc;
}

static int make_downstream(struct hfi_target *target, const struct hf_downstream_options *options,
                           struct hf_downstream *downstream, struct hf_error *error) {
    struct hf_policy_options defaults;
    hf_policy_options_init(&defaults);
    int rc = hf_policy_new(options->policy ? options->policy : &defaults, &target->policy, error);
    if (rc)
        return rc;
    if (downstream) {
        target->downstream = hf_downstream_ref(downstream);
        if (options->fault_count > 0 && !target->policy->options.allow_fault_injection)
            return hfi_fail(error, HF_EPERM, options->name, "say allow_fault_injection: true",
                            "faults are given, but its policy does not allow them");
        return 0;
    }
    rc = hf_downstream_new(options->name, target->policy, &target->downstream, error);
    if (rc == 0 && options->fault_count > 0)
        rc = hf_downstream_inject(target->downstream, options->faults, options->fault_count, error);
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

static int check_per_host(const struct hf_downstream_options *options, struct hf_error *error) {
    if (options->url)
        return hfi_fail(error, HF_EINVAL, options->name, "leave one of them out",
                        "url: with per_host each request brings its own");
    if (options->probe_path)
        return hfi_fail(error, HF_EINVAL, options->name, "leave it out",
                        "probe_path: with per_host there is no one place to ask");
    if (options->hosts_max < 1 || options->hosts_max > HOSTS_MAX)
        return hfi_fail(error, HF_EINVAL, options->name, "give 1 to 1000000", "hosts_max: it is %u", options->hosts_max);
    return 0;
}

static int check_url(const struct hf_downstream_options *options, struct hfi_url *url, struct hf_error *error) {
    if (options->per_host)
        return check_per_host(options, error);
    if (!options->url)
        return hfi_fail(error, HF_EINVAL, options->name, "give one, or say per_host", "url is required");
    const char *wrong = hfi_url_split(options->url, url);
    if (!wrong && url->query)
        wrong = "it holds a query, which belongs to the requests";
    if (wrong)
        return hfi_fail(error, HF_EINVAL, options->name, "write it as https://host[:port][/path]", "url: %s", wrong);
    return 0;
}

static int check(const struct hf_downstream_options *options, struct hfi_url *url, struct hf_error *error) {
    if (!options->name)
        return hfi_fail(error, HF_EINVAL, "downstream", "give one", "name is required");
    int rc = check_url(options, url, error);
    if (rc)
        return rc;
    rc = check_limits(options, error);
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
    if (rc == 0)
        rc = hf_faults_check(options->faults, options->fault_count, error);
    if (rc == 0 && url->userinfo && hfi_headers_find(options->headers, options->header_count, "Authorization"))
        rc = hfi_fail(error, HF_EINVAL, options->name, "keep one of them",
                      "both a user in the url and an Authorization header");
    return rc ? rc : hfi_reach_check(options, error);
}

int hf_downstream_check(const struct hf_downstream_options *options, struct hf_error *error) {
    struct hf_downstream_options known;
    struct hfi_url url = {0};
    if (!options || options->size < sizeof options->size)
        return hfi_fail(error, HF_EINVAL, "downstream", "call hf_downstream_options_init first", "its size is not set");
    hf_downstream_options_init(&known);
    memcpy(&known, options, options->size < sizeof known ? options->size : sizeof known);
    return check(&known, &url, error);
}

static int fill(struct hfi_target *target, const struct hf_downstream_options *options, const struct hfi_url *url,
                struct hf_downstream *downstream, struct hf_error *error) {
    int rc = copy_address(target, options, url);
    if (rc == 0)
        rc = hfi_reach_init(&target->reach, options);
    if (rc == 0 && options->per_host)
        rc = hfi_registry_new(options->hosts_max, &target->registry);
    if (rc)
        return hfi_fail(error, rc, options->name, NULL, "out of memory");
    rc = hfi_signing_new(options->signing_secrets, options->signing_secret_count, options->name, &target->signing,
                         error);
    if (rc)
        return rc;
    target->response_limit = options->response_limit;
    target->header_limit = options->header_limit;
    target->compressed = options->accept_compressed;
    target->deny_private = options->deny_private_networks;
    target->send_remaining_time = options->send_remaining_time;
    target->send_attempt = options->send_attempt;
    target->per_host = options->per_host;
    target->hosts_max = options->hosts_max;
    return make_downstream(target, options, downstream, error);
}

/* NULL: no memory. */
static struct hfi_target *make(struct hfi_caller *caller) {
    struct hfi_target *made = hfi_alloc(sizeof *made);
    if (!made)
        return NULL;
    atomic_init(&made->references, 1);
    made->caller = caller;
    TAILQ_INIT(&made->queue);
    hfi_timer_init(&made->poll, hfi_target_poll, made);
    return made;
}

int hfi_target_new(struct hfi_caller *caller, const struct hf_downstream_options *options,
                   struct hf_downstream *downstream, struct hfi_target **target, struct hf_error *error) {
    struct hfi_url url = {0};
    int rc = check(options, &url, error);
    if (rc)
        return rc;
    struct hfi_target *made = make(caller);
    if (!made)
        return hfi_fail(error, HF_ENOMEM, options->name, NULL, "out of memory");
    rc = fill(made, options, &url, downstream, error);
    if (rc) {
        hfi_target_unref(made);
        return rc;
    }
    *target = made;
    return 0;
}

int hfi_target_of_host(struct hfi_target *origin, const char *key, struct hf_downstream *downstream,
                       struct hfi_target **target) {
    size_t from = offsetof(struct hfi_target, url), to = offsetof(struct hfi_target, queue);
    struct hfi_target *made = make(origin->caller);
    int rc = made ? 0 : HF_ENOMEM;
    if (rc == 0 && downstream)
        made->downstream = hf_downstream_ref(downstream);
    else if (rc == 0)
        rc = hfi_downstream_of_host(origin->downstream, key, &made->downstream);
    if (rc) {
        hfi_free(made);
        return rc;
    }
    memcpy((char *)made + from, (const char *)origin + from, to - from);
    made->origin = hfi_target_ref(origin);
    *target = made;
    return 0;
}

struct hfi_target *hfi_target_ref(struct hfi_target *target) {
    atomic_fetch_add_explicit(&target->references, 1, memory_order_relaxed);
    return target;
}

/* Nobody waits in the queue then, so its timer is not armed and the thread does not matter. */
void hfi_target_unref(struct hfi_target *target) {
    if (!target || atomic_fetch_sub_explicit(&target->references, 1, memory_order_acq_rel) != 1)
        return;
    hf_downstream_unref(target->downstream);
    hf_policy_unref(target->policy);
    if (target->origin) {
        hfi_target_unref(target->origin);
    } else {
        hfi_registry_free(target->registry);
        hfi_free(target->url);
        hfi_free(target->headers);
        hfi_signing_free(target->signing);
        hfi_reach_end(&target->reach);
        hfi_free(target->probe_path);
        hfi_free((void *)(uintptr_t)target->rules.items);
    }
    hfi_free(target);
}

void hfi_target_retire(struct hfi_target *target) {
    struct hfi_registry *registry = target->registry;
    target->registry = NULL; /* its hosts hold the target, so it must let go of them first */
    hfi_registry_free(registry);
}

bool hfi_target_held_once(const struct hfi_target *target) {
    return atomic_load_explicit(&target->references, memory_order_acquire) == 1 &&
           atomic_load_explicit(&target->downstream->references, memory_order_acquire) == 1;
}
