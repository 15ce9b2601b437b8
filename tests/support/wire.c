/* SPDX-License-Identifier: MIT */
/* Runs a case of the misbehaving peer in all its combinations and compares what was reported with what was seen. */
#include "support/wire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "holdfast/guard.h"

#define COMBINATIONS 6 /* three kinds, without and with retries */
#define RETRIES 2
#define FILLERS 4

static const struct peer_step good = {.answer = PEER_OK};

struct combination {
    const struct wire_case *row;
    struct peer *peer;
    int full, fill[FILLERS]; /* WIRE_FULL */
    unsigned kind;
    bool retries;
    struct hf_client *client;
    struct hf_response *response;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static void on_done(struct hf_response *response, void *user) {
    struct combination *c = user;
    pthread_mutex_lock(&c->lock);
    c->response = response;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* A listener whose queue is full: the kernel drops every SYN. */
static int open_full(struct combination *c) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    c->full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->full < 0 || bind(c->full, (struct sockaddr *)&address, length) || listen(c->full, 0) ||
        getsockname(c->full, (struct sockaddr *)&address, &length))
        return -1;
    for (int i = 0; i < FILLERS; i++) {
        c->fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(c->fill[i], (struct sockaddr *)&address, length);
    }
    return ntohs(address.sin_port);
}

static int open_peer(struct combination *c) {
    const struct wire_case *row = c->row;
    struct peer_step steps[3] = {row->warm ? good : row->step};
    size_t count = 1;
    if (row->warm)
        steps[count++] = row->step;
    if (row->recovers)
        steps[count++] = good;
    if (row->peer == WIRE_FULL)
        return open_full(c);
    c->peer = peer_new(steps, count);
    int port = c->peer ? peer_port(c->peer) : -1;
    if (row->peer == WIRE_REFUSES) {
        peer_free(c->peer);
        c->peer = NULL;
    }
    return port;
}

static int open_client(struct combination *c, int64_t limit_ms) {
    char url[64];
    struct hf_policy_options policy;
    struct hf_downstream_options options = hf_downstream_at("peer", url);
    hf_policy_options_init(&policy);
    policy.connect_timeout_ms = policy.attempt_timeout_ms = limit_ms;
    policy.total_timeout_ms = limit_ms * 10;
    policy.retry_max = c->retries ? RETRIES : 0;
    policy.retry_base_ms = policy.retry_cap_ms = 1;
    if (policy.breaker_window_ms < 2 * limit_ms)
        policy.breaker_window_ms = 2 * limit_ms;
    options.policy = &policy;
    options.response_limit = 1000;
    options.accept_compressed = c->row->compressed;
    int port = open_peer(c);
    snprintf(url, sizeof url, "http%s://127.0.0.1:%d", c->row->tls ? "s" : "", port);
    return port < 0 ? -1 : hf_client_new(&options, 1, &c->client, NULL);
}

static int start(struct combination *c) {
    const struct wire_case *row = c->row;
    const char *method = c->kind != WIRE_GET ? "POST" : row->method ? row->method : "GET";
    struct hf_request request = hf_request_to("peer", method, "/");
    char *body = NULL;
    if (c->kind != WIRE_GET) {
        request.body_length = row->body ? row->body : 3;
        request.body = body = malloc(request.body_length);
        memset(body, 'x', request.body_length);
    }
    request.idempotency_key = c->kind == WIRE_KEY ? "key" : NULL;
    request.total_timeout_ms = row->total_ms;
    int rc = hf_call_start(c->client, &request, NULL, on_done, c, NULL);
    free(body);
    return rc;
}

/* The good answer before, and what comes after it unasked. */
static int warm_up(struct combination *c) {
    struct hf_request request = hf_request_to("peer", "GET", "/");
    struct hf_response *response = NULL;
    if (!c->row->warm)
        return 0;
    int rc = hf_call(c->client, &request, &response, NULL);
    int status = rc == 0 ? hf_response_status(response) : 0;
    hf_response_free(response);
    if (c->row->poke)
        peer_poke(c->peer, c->row->poke, c->row->poke_closes);
    return status == 200 ? 0 : -1;
}

static int open_combination(struct combination *c, const struct wire_case *row, int which, int64_t limit_ms) {
    c->row = row;
    c->kind = 1u << (which % 3);
    c->retries = which >= 3;
    c->full = -1;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    if (!((row->kinds ? row->kinds : WIRE_ALL) & c->kind))
        return 0;
    return open_client(c, limit_ms) || warm_up(c) || start(c);
}

/* As the rules of 2.4 have it. */
static unsigned attempts_expected(const struct combination *c) {
    const struct wire_case *row = c->row;
    bool repeats = c->kind != WIRE_POST || row->sent == HF_SENT_NO;
    if (!c->retries || !repeats || row->retry == HF_RETRY_NONE || row->retry == HF_RETRY_LATER)
        return 1;
    return row->retry == HF_RETRY_FRESH || row->recovers ? 2 : 1 + RETRIES;
}

/* What the call must say: the case, or a success after it. */
static struct wire_case end_expected(const struct combination *c) {
    struct wire_case end = *c->row;
    if (end.recovers && attempts_expected(c) > 1) {
        end.type = "";
        end.klass = HF_CLASS_OK;
        end.verdict = HF_VERDICT_SUCCESS;
        end.retry = HF_RETRY_NONE;
        end.stage = HF_STAGE_RECEIVE;
        end.sent = HF_SENT_YES;
    }
    return end;
}

static unsigned differ(const struct combination *c, const char *what, const char *is, const char *should) {
    static const char *const kinds[] = {[WIRE_GET] = "GET", [WIRE_POST] = "POST", [WIRE_KEY] = "POST with a key"};
    if (strcmp(is, should) == 0)
        return 0;
    fprintf(stderr, "%s, %s, %s retries: %s is '%s' instead of '%s'\n", c->row->name, kinds[c->kind],
            c->retries ? "with" : "no", what, is, should);
    return 1;
}

static unsigned differ_number(const struct combination *c, const char *what, uint64_t is, uint64_t should) {
    char left[24], right[24];
    snprintf(left, sizeof left, "%llu", (unsigned long long)is);
    snprintf(right, sizeof right, "%llu", (unsigned long long)should);
    return differ(c, what, left, right);
}

static unsigned check_outcome(const struct combination *c) {
    const struct wire_case end = end_expected(c);
    const struct hf_outcome *outcome = hf_response_outcome(c->response);
    unsigned faults =
        differ(c, "class", hf_class_name(hf_outcome_get_class(outcome)), hf_class_name(end.klass)) +
        differ(c, "verdict", hf_verdict_name(hf_outcome_get_verdict(outcome)), hf_verdict_name(end.verdict)) +
        differ(c, "retry", hf_retry_name(hf_outcome_get_retry(outcome)), hf_retry_name(end.retry));
    if (end.races)
        return faults;
    return faults + differ(c, "type", hf_outcome_get_error_type(outcome), end.type) +
           differ(c, "stage", hf_stage_name(hf_outcome_get_stage(outcome)), hf_stage_name(end.stage)) +
           differ(c, "sent", hf_sent_name(hf_outcome_get_sent(outcome)), hf_sent_name(end.sent)) +
           differ_number(c, "attempts", hf_outcome_get_attempts(outcome), attempts_expected(c));
}

/* What the breaker was told: one sample per attempt that failed, and nothing of neutral ones. */
static unsigned check_breaker(const struct combination *c) {
    struct hf_downstream *downstream = hf_client_downstream(c->client, "peer");
    struct hf_downstream_view view = {.size = sizeof view};
    hf_downstream_look(downstream, &view);
    hf_downstream_unref(downstream);
    uint64_t attempts = hf_outcome_get_attempts(hf_response_outcome(c->response));
    uint64_t failures = c->row->verdict == HF_VERDICT_FAILURE ? attempts - (c->row->recovers && attempts > 1) : 0;
    return differ_number(c, "failures in the window", view.window_failures, failures) +
           differ_number(c, "permits out", view.in_flight, 0);
}

/* Requests seen == attempts reported. */
static unsigned check_seen(const struct combination *c) {
    const struct wire_case *row = c->row;
    unsigned attempts = hf_outcome_get_attempts(hf_response_outcome(c->response));
    if (!c->peer)
        return 0;
    peer_settle(c->peer);
    unsigned seen = row->unread ? 0 : attempts;
    return differ_number(c, "requests seen", peer_seen(c->peer), seen + row->warm) +
           (row->unread && !row->warm ? differ_number(c, "connections", peer_connections(c->peer), attempts) : 0) +
           (row->body ? 0
                      : differ_number(c, "connections open", peer_open(c->peer), 0)); /* an end behind an unread body */
}

static unsigned close_combination(struct combination *c) {
    unsigned faults = 0;
    if (c->client) {
        pthread_mutex_lock(&c->lock);
        while (!c->response)
            pthread_cond_wait(&c->changed, &c->lock);
        pthread_mutex_unlock(&c->lock);
        faults += check_outcome(c) + check_breaker(c);
        hf_client_close(c->client);
        faults += check_seen(c);
        hf_response_free(c->response);
    }
    peer_free(c->peer);
    for (int i = 0; i < FILLERS && c->full >= 0; i++)
        close(c->fill[i]);
    if (c->full >= 0)
        close(c->full);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    return faults;
}

unsigned wire_run(const struct wire_case *cases, size_t count, bool at_once, int64_t limit_ms) {
    size_t step = at_once ? count : 1;
    unsigned faults = 0;
    struct combination *all = calloc(step * COMBINATIONS, sizeof *all);
    if (!all)
        return 1;
    for (size_t from = 0; from < count; from += step) {
        memset(all, 0, step * COMBINATIONS * sizeof *all);
        for (size_t i = 0; i < step * COMBINATIONS; i++)
            if (open_combination(&all[i], &cases[from + i / COMBINATIONS], (int)(i % COMBINATIONS), limit_ms)) {
                fprintf(stderr, "%s: it could not be set up\n", cases[from + i / COMBINATIONS].name);
                abort();
            }
        for (size_t i = 0; i < step * COMBINATIONS; i++)
            faults += close_combination(&all[i]);
    }
    free(all);
    return faults;
}
