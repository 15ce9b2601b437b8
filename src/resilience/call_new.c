/* SPDX-License-Identifier: MIT */
/*
 * Checks a request and copies it into a call: one block with the URL, the headers and the body as every attempt sends
 * them. And the copy the other way: an answer for the caller. Must never let unchecked text through to the wire, nor
 * quote a header's value. Any thread.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/text.h"
#include "holdfast/classify.h"
#include "resilience/call_internal.h"
#include "resilience/key.h"

#define METHOD_MAX 32
#define KEY_MAX 255
#define UUID_ROOM 37

static int check_place(const struct hf_request *request, struct hf_error *error) {
    const char *path = request->path ? request->path : "";
    if (strlen(path) > HFI_URL_MAX)
        return hfi_fail(error, HF_EINVAL, "path", "send what is long in the body", HFI_URL_LONG);
    if (request->query && strlen(request->query) > HFI_URL_MAX)
        return hfi_fail(error, HF_EINVAL, "query", "send what is long in the body", HFI_URL_LONG);
    if (path[0] && path[0] != '/')
        return hfi_fail(error, HF_EINVAL, "path", "start it with /", "it does not start with /");
    if (!hfi_is_url_text(path) || strpbrk(path, "?#"))
        return hfi_fail(error, HF_EINVAL, "path", "percent-encode it, and give the query as query",
                        "it holds a space, a control character, a byte outside ASCII, ? or #");
    if (request->query && (!hfi_is_url_text(request->query) || strchr(request->query, '#')))
        return hfi_fail(error, HF_EINVAL, "query", "percent-encode it",
                        "it holds a space, a control character, a byte outside ASCII or #");
    return 0;
}

int hfi_request_url_check(const char *text, struct hfi_url *url, struct hf_error *error) {
    const char *wrong = text ? hfi_url_split(text, url) : "a per_host downstream takes one with every request";
    if (!wrong && url->userinfo)
        return hfi_fail(error, HF_EINVAL, "url", "send an Authorization header instead", "it holds a user");
    return wrong ? hfi_fail(error, HF_EINVAL, "url", "write it as https://host[:port][/path]", "%s", wrong) : 0;
}

/* Where the request goes is said by its URL or by its downstream's, never by both. */
static int check_host(const struct hfi_target *target, const struct hf_request *request, struct hfi_url *url,
                      struct hf_error *error) {
    if (!target->per_host)
        return request->url ? hfi_fail(error, HF_EINVAL, "url", "give path, or make the downstream per_host",
                                       "the downstream has an address of its own")
                            : 0;
    if (request->path[0] || request->query)
        return hfi_fail(error, HF_EINVAL, "path", "put them into the url",
                        "with per_host, path and query are parts of the request's url");
    return hfi_request_url_check(request->url, url, error);
}

/* With signing, its headers are ours, and the key is part of what is signed. */
static int check_signed(const struct hfi_target *target, const struct hf_request *request, struct hf_error *error) {
    const struct hf_header *key = hfi_headers_find(request->headers, request->header_count, "Idempotency-Key");
    const char *name = hfi_headers_signed(request->headers, request->header_count);
    if (target->signing && name)
        return hfi_fail(error, HF_EINVAL, name, "leave it out", "the header is set by the downstream's signing");
    if (target->signing && key && (!*key->value || strlen(key->value) > KEY_MAX))
        return hfi_fail(error, HF_EINVAL, "Idempotency-Key", "shorten or hash it", "it has not 1 to %d bytes", KEY_MAX);
    return 0;
}

/* The target of that name with one reference, if it would take the request; `url` is the request's, of a per_host one. */
static int find_target(struct hfi_caller *caller, const struct hf_request *request, struct hfi_url *url,
                       struct hfi_target **out, struct hf_error *error) {
    struct hfi_target *target = hfi_caller_target(caller, request->downstream);
    if (!target)
        return hfi_fail(error, HF_ENOENT, request->downstream, "name one of the client's", "there is no such downstream");
    int rc = hfi_request_check(request, error);
    if (rc == 0)
        rc = check_host(target, request, url, error);
    if (rc == 0)
        rc = check_signed(target, request, error);
    if (rc)
        hfi_target_unref(target);
    else
        *out = target;
    return rc;
}

/* The same, and its host's then. */
static int find_host(struct hfi_caller *caller, const struct hf_request *request, struct hfi_target **target,
                     struct hf_error *error) {
    char key[HFI_KEY_LENGTH];
    struct hfi_url url;
    int rc = find_target(caller, request, &url, target, error);
    if (rc || !(*target)->per_host)
        return rc;
    hfi_target_unref(*target);
    hfi_key_print(&url, key);
    rc = hfi_caller_host_target(caller, request->downstream, key, target);
    return rc ? hfi_fail(error, rc, request->downstream, NULL, "%s", hf_strerror(rc)) : 0;
}

static int check_key(const struct hf_request *request, struct hf_error *error) {
    const char *key = request->idempotency_key;
    if (!key)
        return 0;
    if (key[0] == '\0' || strlen(key) > KEY_MAX)
        return hfi_fail(error, HF_EINVAL, "idempotency_key", "shorten or hash it", "it has not 1 to %d bytes", KEY_MAX);
    if (!hfi_is_field_value(key))
        return hfi_fail(error, HF_ETEXT, "idempotency_key", "give text without line breaks", "it holds a CR, LF or another control character");
    if (hfi_headers_find(request->headers, request->header_count, "Idempotency-Key"))
        return hfi_fail(error, HF_EINVAL, "idempotency_key", "keep one of them",
                        "there is an Idempotency-Key header too");
    return 0;
}

int hfi_request_check(const struct hf_request *request, struct hf_error *error) {
    const char *method = request->method;
    if (!method || !hfi_is_token(method) || strlen(method) > METHOD_MAX)
        return hfi_fail(error, HF_EINVAL, "method", "write GET, POST …", "it is not a token of 1 to %d bytes (RFC 9110 9.1)",
                        METHOD_MAX);
    if (strcmp(method, "CONNECT") == 0)
        return hfi_fail(error, HF_EINVAL, "method", "write another one", "CONNECT opens tunnels and is not a call");
    if (request->body_length > 0 && !request->body)
        return hfi_fail(error, HF_EINVAL, "body", "give the bytes, or a length of 0", "NULL with a length of %zu", request->body_length);
    if (request->body_length > 0 && strcmp(method, "HEAD") == 0)
        return hfi_fail(error, HF_EINVAL, "body", "leave it out", "HEAD has none");
    if (request->total_timeout_ms < 0)
        return hfi_fail(error, HF_EINVAL, "total_timeout_ms", "give 0 for the policy's, or more", "%lld is negative",
                        (long long)request->total_timeout_ms);
    if (request->attempt_timeout_ms < 0)
        return hfi_fail(error, HF_EINVAL, "attempt_timeout_ms", "give 0 for the policy's, or more", "%lld is negative",
                        (long long)request->attempt_timeout_ms);
    int rc = check_place(request, error);
    if (rc == 0)
        rc = hfi_headers_check(request->headers, request->header_count, error);
    if (rc == 0)
        rc = check_key(request, error);
    if (rc == 0)
        rc = hf_rules_check(request->rules, request->rule_count, error);
    return rc;
}

static char *put(char *at, const char *text, const char **where) {
    *where = at;
    return stpcpy(at, text) + 1;
}

static size_t text_room(const struct hfi_target *target, const struct hf_request *request) {
    size_t room = strlen(target->per_host ? request->url : target->url) + 1;
    room += strlen(request->path) + (request->query ? strlen(request->query) + 1 : 0);
    room += strlen(request->method) + 1;
    for (size_t i = 0; i < request->header_count; i++)
        room += strlen(request->headers[i].name) + strlen(request->headers[i].value) + 2;
    room += target->signing ? UUID_ROOM : 0;
    room += request->idempotency_key ? strlen(request->idempotency_key) + 1 : 0;
    return room + request->body_length;
}

static bool has_key(const struct hfi_target *target, const struct hf_request *request) {
    static const char name[] = "Idempotency-Key";
    return request->idempotency_key || hfi_headers_find(request->headers, request->header_count, name) ||
           hfi_headers_find(target->headers, target->header_count, name);
}

static char *put_url(struct hfi_call *call, const struct hf_request *request, char *at) {
    const struct hfi_target *target = call->target;
    if (target->per_host)
        return put(at, request->url, &call->url);
    call->url = at;
    at = mempcpy(at, target->url, request->path[0] ? target->url_length : strlen(target->url));
    at = stpcpy(at, request->path);
    if (request->query)
        at = stpcpy(stpcpy(at, "?"), request->query);
    return at + 1;
}

/* The downstream's headers unless the request has its own, the request's, the key, and what differs from attempt
   to attempt. */
static char *put_headers(struct hfi_call *call, const struct hf_request *request, char *at) {
    const struct hfi_target *target = call->target;
    size_t count = 0;
    for (size_t i = 0; i < target->header_count; i++)
        if (!hfi_headers_find(request->headers, request->header_count, target->headers[i].name))
            call->headers[count++] = target->headers[i];
    for (size_t i = 0; i < request->header_count; i++, count++) {
        at = put(at, request->headers[i].name, &call->headers[count].name);
        at = put(at, request->headers[i].value, &call->headers[count].value);
    }
    if (request->idempotency_key) {
        call->headers[count].name = "Idempotency-Key";
        at = put(at, request->idempotency_key, &call->headers[count++].value);
    }
    if (target->signing) {
        const struct hf_header *key = hfi_headers_find(call->headers, count, "Idempotency-Key");
        call->message_id = key ? key->value : hfi_uuid(at);
        at += UUID_ROOM;
    }
    if (target->send_attempt) {
        call->headers[count].name = "Holdfast-Attempt";
        call->headers[count++].value = call->number;
    }
    if (target->send_remaining_time) {
        call->headers[count].name = "Holdfast-Timeout-Ms";
        call->headers[count++].value = call->remaining;
    }
    call->header_count = count;
    return at;
}

/* What one call may ask for: less than the policy allows, never more (F5). */
static int64_t smaller(int64_t policy_ms, int64_t asked_ms) {
    return asked_ms > 0 && asked_ms < policy_ms ? asked_ms : policy_ms;
}

static struct hfi_call *copy(struct hfi_target *target, const struct hf_request *request) {
    const struct hf_policy *policy = hfi_downstream_policy(target->downstream);
    size_t headers = target->header_count + request->header_count + 3, room = text_room(target, request);
    room += hfi_rules_room(request->rules, request->rule_count);
    bool key = has_key(target, request);
    size_t attempts = 1 + hfi_call_hedges(policy, request, hf_may_repeat(request->method, key, HF_SENT_YES));
    struct hfi_call *call = hfi_alloc(sizeof *call + headers * sizeof *call->headers +
                                      attempts * sizeof *call->slots + room);
    if (!call)
        return NULL;
    call->target = target;
    call->policy = policy;
    call->has_key = key;
    call->slots = (struct hfi_call_attempt *)(void *)(call->headers + headers);
    call->slot_count = (uint32_t)attempts;
    char *at = hfi_rules_put(&call->rules, request->rules, request->rule_count, (char *)(call->slots + attempts));
    at = put(at, request->method, &call->method);
    at = put_url(call, request, at);
    at = put_headers(call, request, at);
    if (request->body_length > 0) {
        call->body = at;
        call->body_length = request->body_length;
        memcpy(at, request->body, request->body_length);
    }
    call->no_retry = request->no_retry;
    call->own_limit = request->own_limit;
    call->total_ms = smaller(policy->options.total_timeout_ms, request->total_timeout_ms);
    call->attempt_ms = smaller(policy->options.attempt_timeout_ms, request->attempt_timeout_ms);
    return call;
}

/* A request of any age as a whole struct of today. */
static int take_request(const struct hf_request *given, struct hf_request *request, struct hf_error *error) {
    hf_request_init(request);
    if (!given || given->size == 0)
        return hfi_fail(error, HF_EINVAL, "request", "use hf_request_init", "it is not initialised");
    memcpy(request, given, given->size < request->size ? given->size : request->size);
    request->path = request->path ? request->path : "";
    if (!request->downstream || !request->downstream[0])
        return hfi_fail(error, HF_EINVAL, "downstream", "name one of the client's", "the request names none");
    return 0;
}

int hfi_caller_check(struct hfi_caller *caller, const struct hf_request *given, struct hf_error *error) {
    struct hf_request request;
    struct hfi_target *target = NULL;
    struct hfi_url url;
    int rc = take_request(given, &request, error);
    if (rc == 0)
        rc = find_target(caller, &request, &url, &target, error);
    if (rc == 0)
        hfi_target_unref(target);
    return rc;
}

static struct hf_response *new_response(void) {
    struct hf_response *response = hfi_alloc_unset(sizeof *response); /* a long message room that hardly one fills */
    if (response) {
        memset(response, 0, offsetof(struct hf_response, outcome));
        hfi_outcome_init(&response->outcome);
    }
    return response;
}

int hfi_call_new(struct hfi_caller *caller, const struct hf_request *given, hf_call_fn done, void *user,
                 struct hfi_call **out, struct hf_error *error) {
    struct hf_request request;
    struct hfi_target *target = NULL;
    int rc = done ? take_request(given, &request, error)
                  : hfi_fail(error, HF_EINVAL, "call", "give a callback", "no callback");
    if (rc == 0)
        rc = find_host(caller, &request, &target, error);
    if (rc)
        return rc;
    struct hfi_call *call = copy(target, &request);
    struct hf_response *response = call ? new_response() : NULL;
    if (!response) {
        hfi_free(call);
        hfi_target_unref(target);
        return hfi_fail(error, HF_ENOMEM, "call", NULL, "out of memory");
    }
    call->caller = caller;
    call->response = response;
    call->done = done;
    call->user = user;
    *out = call;
    return 0;
}

void hfi_call_discard(struct hfi_call *call) {
    if (!call)
        return;
    hf_response_free(call->response);
    hfi_target_unref(call->target);
    hfi_free(call);
}

void hfi_call_drop_answer(struct hfi_call *call) {
    struct hf_response *response = call->response;
    hfi_free(response->answer);
    memset(response, 0, offsetof(struct hf_response, outcome));
}

static size_t header_room(const struct hfi_attempt_facts *facts) {
    size_t room = facts->header_texts ? facts->header_texts_length : 0;
    for (size_t i = 0; i < facts->header_count && !facts->header_texts; i++)
        room += strlen(facts->headers[i].name) + strlen(facts->headers[i].value) + 2;
    return room;
}

/* The headers as they are, their texts at `at`. */
static void copy_headers(const struct hfi_attempt_facts *facts, struct hf_header *copy, char *at) {
    if (facts->header_texts && facts->header_count > 0)
        memcpy(at, facts->header_texts, facts->header_texts_length);
    for (size_t i = 0; i < facts->header_count; i++) {
        const struct hf_header *header = &facts->headers[i];
        if (facts->header_texts) {
            copy[i].name = at + (header->name - facts->header_texts);
            copy[i].value = at + (header->value - facts->header_texts);
        } else {
            at = put(put(at, header->name, &copy[i].name), header->value, &copy[i].value);
        }
    }
}

void hfi_call_keep_answer(struct hfi_call *call, const struct hfi_attempt_facts *facts) {
    struct hf_response *response = call->response;
    size_t texts = header_room(facts), headers = facts->header_count * sizeof(struct hf_header);
    hfi_call_drop_answer(call);
    response->status = facts->status;
    if (headers + facts->body_length == 0)
        return;
    char *answer = facts->body_length < SIZE_MAX / 2 ? hfi_alloc_unset(headers + texts + facts->body_length + 1) : NULL;
    if (!answer) {
        response->status = 0;
        /* The peer did answer, but we cannot say what: never a success with an empty body. */
        enum hf_sent sent = response->outcome.sent;
        hfi_outcome_set(&response->outcome, HF_OUTCOME_FAILURE, HF_RETRY_LATER, HF_VERDICT_NEUTRAL, HF_CLASS_TRANSIENT,
                        "local.memory", "local.memory");
        hfi_outcome_message(&response->outcome, "no memory for an answer of %zu bytes", facts->body_length);
        response->outcome.sent = sent;
        return;
    }
    char *body = answer + headers + texts;
    copy_headers(facts, (struct hf_header *)(void *)answer, answer + headers);
    if (facts->body_length > 0)
        memcpy(body, facts->body, facts->body_length);
    body[facts->body_length] = '\0';
    response->answer = answer;
    response->body = body;
    response->body_length = facts->body_length;
    response->headers = (struct hf_header *)(void *)answer;
    response->header_count = facts->header_count;
}
