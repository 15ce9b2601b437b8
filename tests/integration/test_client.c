/* SPDX-License-Identifier: MIT */
/* The public client against a real socket: blocking and not, from many threads, cancelled and closed. */
#include "support/support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assembly/client.h"
#include "loop/loop.h"
#include "resilience/outcome.h"
#include "support/call_world.h"
#include "support/peer.h"

struct world {
    struct peer *peer;
    struct hf_client *client;
    struct hf_policy_options policy;
    char url[64];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned ended; /* callbacks that ran */
};
static struct world *w;

static int set_up(void **state) {
    (void)state;
    w = calloc(1, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    hf_policy_options_init(&w->policy);
    w->policy.retry_base_ms = 1;
    w->policy.retry_cap_ms = 5;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hf_client_close(w->client);
    peer_free(w->peer);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    free(w);
    return 0;
}

static struct hf_downstream_options downstream(void) {
    struct hf_downstream_options options = hf_downstream_at("peer", w->url);
    options.policy = &w->policy;
    return options;
}

static void serve(const struct peer_step *steps, size_t count) {
    w->peer = peer_new(steps, count);
    assert_non_null(w->peer);
    snprintf(w->url, sizeof w->url, "http://127.0.0.1:%d", peer_port(w->peer));
    struct hf_downstream_options options = downstream();
    assert_int_equal(hf_client_new(&options, 1, &w->client, NULL), 0);
}
#define SERVE(...)                                                                                                     \
    serve((struct peer_step[]){__VA_ARGS__}, sizeof(struct peer_step[]){__VA_ARGS__} / sizeof(struct peer_step))

/* One blocking call; the outcome stays in the response, which the caller frees. */
static struct hf_response *call(const char *method, const char *key) {
    struct hf_request request = hf_request_to("peer", method, "/");
    struct hf_response *response = NULL;
    request.idempotency_key = key;
    assert_int_equal(hf_call(w->client, &request, &response, NULL), 0);
    assert_non_null(response);
    return response;
}

/* Every attempt reported is a request seen, whatever happened to it. */
static void test_requests_are_attempts(void **state) {
    (void)state;
    SERVE({.answer = PEER_OK}, {.answer = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"}, {.then = PEER_CLOSE},
          {.answer = "HTTP/1.1 200 OK\r\nCont", .then = PEER_CLOSE}, {.answer = PEER_OK}, {.then = PEER_RESET});
    struct hf_response *response = call("GET", NULL);
    size_t length;
    assert_int_equal(hf_response_status(response), 200);
    assert_memory_equal(hf_response_body(response, &length), "ok", 3);
    assert_int_equal(length, 2);
    assert_string_equal(hf_response_header(response, "content-LENGTH"), "2");
    assert_null(hf_response_header(response, "X-None"));
    hf_response_free(response);
    response = call("POST", "key");
    const struct hf_outcome *outcome = hf_response_outcome(response);
    assert_int_equal(hf_outcome_get_kind(outcome), HF_OUTCOME_SUCCESS);
    assert_int_equal(hf_outcome_get_attempts(outcome), 4);
    hf_response_free(response);
    response = call("POST", NULL); /* on a reused connection that dies: sent once, and perhaps taken (L1) */
    outcome = hf_response_outcome(response);
    assert_int_equal(hf_outcome_get_attempts(outcome), 1);
    assert_int_equal(hf_outcome_get_sent(outcome), HF_SENT_MAYBE);
    assert_int_equal(hf_outcome_get_class(outcome), HF_CLASS_TRANSIENT);
    hf_response_free(response);
    assert_int_equal(peer_requests(w->peer), 6);
}

static void expect(const char *type, enum hf_class klass, enum hf_stage stage, enum hf_sent sent) {
    struct hf_response *response = call("GET", NULL);
    const struct hf_outcome *outcome = hf_response_outcome(response);
    assert_string_equal(hf_outcome_get_error_type(outcome), type);
    assert_int_equal(hf_outcome_get_class(outcome), klass);
    assert_int_equal(hf_outcome_get_stage(outcome), stage);
    assert_int_equal(hf_outcome_get_sent(outcome), sent);
    hf_response_free(response);
}

static void test_failures(void **state) {
    (void)state;
    w->policy.retry_max = 0;
    SERVE({.answer = "HTTP/1.1 200 OK\r\nContent-", .then = PEER_CLOSE},
          {.answer = "HTTP/1.1 404 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", .then = PEER_CLOSE},
          {.answer = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nx", .then = PEER_CLOSE}, {.then = PEER_CLOSE});
    expect("http.truncated_headers", HF_CLASS_TRANSIENT, HF_STAGE_RECEIVE, HF_SENT_MAYBE);
    expect("http.404", HF_CLASS_PERMANENT, HF_STAGE_RECEIVE, HF_SENT_YES);
    expect("curl.partial_file", HF_CLASS_TRANSIENT, HF_STAGE_RECEIVE, HF_SENT_YES);
    expect("curl.got_nothing", HF_CLASS_TRANSIENT, HF_STAGE_WAIT, HF_SENT_MAYBE);
}

/* L6: an answer that comes byte by byte ends at the attempt's limit, and so does one that never comes. */
static void test_attempt_limit(void **state) {
    (void)state;
    w->policy.retry_max = 0;
    w->policy.connect_timeout_ms = 250;
    w->policy.attempt_timeout_ms = 250;
    w->policy.total_timeout_ms = 60000;
    SERVE({.answer = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789012345678901234567890123456789"
                     "012345678901234567890123456789012345678901234567890123456789",
           .drip_ms = 20},
          {.then = PEER_HANG}, {.answer = PEER_OK});
    int64_t from = hfi_mono_now().us;
    struct hf_response *dripped = call("GET", NULL); /* how many bytes came is the machine's business */
    assert_string_equal(hf_outcome_get_error_type(hf_response_outcome(dripped)), "timeout.attempt");
    hf_response_free(dripped);
    expect("timeout.attempt", HF_CLASS_TRANSIENT, HF_STAGE_WAIT, HF_SENT_MAYBE);
    assert_true(hfi_mono_now().us - from >= 500000); /* never early */
    expect("", HF_CLASS_OK, HF_STAGE_RECEIVE, HF_SENT_YES);
}

static void test_refused(void **state) {
    (void)state;
    SERVE({.answer = PEER_OK});
    peer_free(w->peer);
    w->peer = NULL;
    struct hf_response *response = call("POST", NULL); /* nothing was sent: even this may be tried again */
    const struct hf_outcome *outcome = hf_response_outcome(response);
    assert_string_equal(hf_outcome_get_error_type(outcome), "curl.couldnt_connect");
    assert_int_equal(hf_outcome_get_stage(outcome), HF_STAGE_CONNECT);
    assert_int_equal(hf_outcome_get_sent(outcome), HF_SENT_NO);
    assert_int_equal(hf_outcome_get_attempts(outcome), 4);
    hf_response_free(response);
}

struct ending {
    char type[64];
    int deadlock; /* what hf_call said inside the callback */
    bool start_next;
    struct ending *next;
};

static void note(struct hf_response *response, void *user) {
    struct ending *ending = user;
    struct hf_request request = hf_request_to("peer", "GET", "/");
    struct hf_response *none = NULL;
    snprintf(ending->type, sizeof ending->type, "%s", hf_outcome_get_error_type(hf_response_outcome(response)));
    hf_response_free(response);
    ending->deadlock = hf_call(w->client, &request, &none, NULL);
    if (ending->next && hf_call_start(w->client, &request, NULL, note, ending->next, NULL))
        ending->next->deadlock = 1;
    pthread_mutex_lock(&w->lock);
    w->ended++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void wait_for(unsigned ended) {
    pthread_mutex_lock(&w->lock);
    while (w->ended < ended)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

/* A blocking call on the loop would wait for itself. Starting another one there is fine. */
static void test_callbacks(void **state) {
    (void)state;
    struct ending second = {.deadlock = 0}, first = {.next = &second};
    SERVE({.answer = PEER_OK});
    struct hf_request request = hf_request_to("peer", "GET", "/");
    assert_int_equal(hf_call_start(w->client, &request, NULL, note, &first, NULL), 0);
    wait_for(2);
    assert_int_equal(first.deadlock, HF_EDEADLK);
    assert_int_equal(second.deadlock, HF_EDEADLK);
    assert_string_equal(second.type, "");
}

static void test_cancel(void **state) {
    (void)state;
    struct ending hung = {.deadlock = 0}, early = {.deadlock = 0};
    uint64_t id, early_id;
    SERVE({.then = PEER_HANG}, {.answer = PEER_OK});
    struct hf_request request = hf_request_to("peer", "GET", "/");
    assert_int_equal(hf_call_start(w->client, &request, &id, note, &hung, NULL), 0);
    while (peer_requests(w->peer) == 0)
        sched_yield();
    hf_call_cancel(w->client, id + 1000);
    hf_call_cancel(w->client, id);
    hf_call_cancel(w->client, id);
    wait_for(1);
    hf_call_cancel(w->client, id);
    assert_string_equal(hung.type, "call.cancelled");
    assert_int_equal(hf_call_start(w->client, &request, &early_id, note, &early, NULL), 0);
    hf_call_cancel(w->client, early_id);
    wait_for(2);
    hf_response_free(call("GET", NULL));
}

/* Closing ends every call; each callback has run when it returns. What still wants to start is told. */
static void test_close(void **state) {
    (void)state;
    static struct ending endings[20];
    struct ending refused = {.deadlock = 0};
    memset(endings, 0, sizeof endings);
    SERVE({.then = PEER_HANG});
    struct hf_request request = hf_request_to("peer", "GET", "/");
    endings[3].next = &refused;
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(hf_call_start(w->client, &request, NULL, note, &endings[i], NULL), 0);
    struct hf_downstream *kept = hf_client_downstream(w->client, "peer");
    assert_null(hf_client_downstream(w->client, "nobody"));
    hf_client_close(w->client);
    w->client = NULL;
    assert_int_equal(w->ended, 20);
    for (size_t i = 0; i < 20; i++)
        assert_string_equal(endings[i].type, "call.cancelled");
    assert_int_equal(refused.deadlock, 1); /* HF_ECLOSED */
    assert_string_equal(hf_downstream_name(kept), "peer");
    hf_downstream_unref(kept);
}

#define THREADS 16
#define CALLS 50
static atomic_uint successes;

static void *caller_thread(void *user) {
    (void)user;
    for (int i = 0; i < CALLS; i++) {
        struct hf_request request = hf_request_to("peer", "GET", "/");
        struct hf_response *response = NULL;
        if (hf_call(w->client, &request, &response, NULL) == 0 && hf_response_status(response) == 200)
            atomic_fetch_add(&successes, 1);
        hf_response_free(response);
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    atomic_store(&successes, 0);
    SERVE({.answer = PEER_OK});
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, caller_thread, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&successes), THREADS * CALLS);
    assert_int_equal(peer_requests(w->peer), THREADS * CALLS);
    assert_true(peer_connections(w->peer) <= THREADS);
}

static void test_errors(void **state) {
    (void)state;
    struct hf_error error;
    struct hf_response *response = NULL;
    hf_error_init(&error);
    SERVE({.answer = PEER_OK});
    struct hf_request request = hf_request_to("nobody", "GET", "/");
    assert_int_equal(hf_call(w->client, &request, &response, &error), HF_ENOENT);
    assert_string_equal(error.what, "nobody");
    assert_int_equal(hf_call_start(w->client, &request, NULL, note, NULL, NULL), HF_ENOENT);
    assert_int_equal(hf_call_start(w->client, NULL, NULL, note, NULL, NULL), HF_EINVAL);
    assert_int_equal(hf_call(NULL, &request, &response, NULL), HF_EINVAL);
    assert_null(response);
    struct hf_client *other = NULL;
    struct hf_downstream_options options = downstream();
    w->policy.attempt_timeout_ms = w->policy.total_timeout_ms + 1;
    assert_int_equal(hf_client_new(&options, 1, &other, &error), HF_ECONFIG);
    assert_true(error.why[0] != '\0');
    assert_null(other);
    hf_client_close(NULL);
    hf_response_free(NULL);
    assert_int_equal(w->ended, 0);
}

static void stop_loop(struct hf_response *response, void *user) {
    struct hfi_scheduler *loop = user;
    assert_int_equal(hf_response_status(response), 200);
    hf_response_free(response);
    loop->ops->stop(loop);
}

static void keep_type(struct hf_response *response, void *user) {
    struct ending *ending = user;
    snprintf(ending->type, sizeof ending->type, "%s", hf_outcome_get_error_type(hf_response_outcome(response)));
    hf_response_free(response);
    w->ended++;
}

static void stop_now(struct hfi_task *task, void *user) {
    struct hfi_scheduler *loop = user;
    (void)task;
    loop->ops->stop(loop);
}

/* On a loop that somebody else runs: calls come back there, and a close on it ends what is open. */
static void test_borrowed(void **state) {
    (void)state;
    struct hfi_scheduler *loop = NULL;
    struct hf_client *client = NULL;
    struct ending open[3] = {{.deadlock = 0}, {.deadlock = 0}, {.deadlock = 0}};
    SERVE({.answer = PEER_OK}, {.then = PEER_HANG});
    struct hf_downstream_options options = downstream();
    struct hf_request request = hf_request_to("peer", "GET", "/");
    assert_int_equal(hfi_loop_new(&loop), 0);
    assert_int_equal(hfi_client_borrow(loop, &options, 1, &client, NULL), 0);
    assert_int_equal(call_count_of(hfi_client_caller(client)), 1);
    assert_int_equal(hf_call_start(client, &request, NULL, stop_loop, loop, NULL), 0);
    loop->ops->run(loop);
    for (int i = 0; i < 3; i++)
        assert_int_equal(hf_call_start(client, &request, NULL, keep_type, &open[i], NULL), 0);
    hf_client_close(client); /* their starts have not even come to the loop */
    assert_int_equal(w->ended, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(open[i].type, "call.cancelled");
    struct hfi_task last = {.run = stop_now, .user = loop};
    loop->ops->post(loop, &last);
    loop->ops->run(loop); /* takes the tasks that were left */
    loop->ops->close(loop);
}

/* The whole way with no memory somewhere: an error or an outcome of ours, never a crash, a hang or a false success. */
static int whole_way(void *user) {
    struct hf_downstream_options options = downstream();
    struct hf_request request = hf_request_to("peer", "POST", "/");
    struct hf_response *response = NULL;
    struct hf_client *client = NULL;
    struct hf_error error;
    (void)user;
    hf_error_init(&error);
    request.body = "x";
    request.body_length = 1;
    int rc = hf_client_new(&options, 1, &client, &error);
    if (rc)
        return rc == HF_EIO ? HF_ENOMEM : rc; /* no memory for a lock looks like that */
    rc = hf_call(client, &request, &response, &error);
    if (rc == 0) {
        const struct hf_outcome *outcome = hf_response_outcome(response);
        const char *type = hf_outcome_get_error_type(outcome);
        if (hf_outcome_get_kind(outcome) != HF_OUTCOME_SUCCESS)
            rc = strncmp(type, "local.", 6) == 0 || strncmp(type, "timeout.", 8) == 0 ? HF_ENOMEM : HF_ESTATE;
    }
    hf_response_free(response);
    hf_client_close(client);
    return rc;
}

static void test_no_memory(void **state) {
    (void)state;
    SERVE({.answer = "HTTP/1.1 200 OK\r\nX-Test: yes\r\nContent-Length: 5\r\n\r\nhello"});
    w->policy.retry_max = 0;
    w->policy.connect_timeout_ms = 300;
    w->policy.attempt_timeout_ms = 300;
    assert_true(hf_test_alloc_sweep(whole_way, NULL) > 10);
}

/* R15, R14: the budget runs out through the public calls, and the outcome says whose it was. */
static void test_budget_runs_out(void **state) {
    (void)state;
    static const struct peer_step busy = {.answer = "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"};
    struct hf_request request = hf_request_to("peer", "GET", "/");
    unsigned attempts = 0, refused = 0;
    w->policy.budget_floor = 2;
    w->policy.budget_ratio = 0;
    w->policy.budget_window_ms = 3600000; /* however slow this machine is */
    w->policy.breaker_min_calls = 1000;
    serve(&busy, 1);
    for (int i = 0; i < 10; i++) {
        struct hf_response *response = NULL;
        assert_int_equal(hf_call(w->client, &request, &response, NULL), 0);
        const struct hf_outcome *outcome = hf_response_outcome(response);
        attempts += hf_outcome_get_attempts(outcome);
        if (hf_outcome_get_retry_refused(outcome)) {
            refused++;
            assert_string_equal(hf_outcome_get_error_type(outcome), "http.500");
            assert_non_null(strstr(hf_outcome_get_message(outcome), "our own retry budget"));
            assert_true(hf_outcome_get_retry_after_ms(outcome) > 0);
        }
        hf_response_free(response);
    }
    assert_int_equal(attempts, 12);
    assert_int_equal(refused, 10);
    peer_settle(w->peer);
    assert_int_equal(peer_requests(w->peer), 12);
}

/* A hedge over real sockets: the hung attempt goes, the peer saw exactly what the outcome reports. */
static void test_hedge(void **state) {
    (void)state;
    static const struct peer_step steps[] = {{.then = PEER_HANG}, {.answer = PEER_OK}};
    struct hf_request request = hf_request_to("peer", "GET", "/");
    struct hf_response *response = NULL;
    w->policy.hedge_max = 1;
    w->policy.hedge_delay_ms = 20;
    w->policy.total_timeout_ms = 170000;
    serve(steps, 2);
    assert_int_equal(hf_call(w->client, &request, &response, NULL), 0);
    const struct hf_outcome *outcome = hf_response_outcome(response);
    assert_int_equal(hf_response_status(response), 200);
    assert_int_equal(hf_outcome_get_attempts(outcome), 2);
    assert_int_equal(hf_outcome_get_hedges(outcome), 1);
    assert_int_equal(hf_outcome_get_retries(outcome), 0);
    hf_response_free(response);
    peer_settle(w->peer);
    assert_int_equal(peer_seen(w->peer), 2);
    assert_int_equal(peer_open(w->peer), 1); /* the loser's connection is gone */
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_budget_runs_out),
        T(test_hedge),
        T(test_requests_are_attempts),
        T(test_failures),
        T(test_attempt_limit),
        T(test_refused),
        T(test_callbacks),
        T(test_cancel),
        T(test_close),
        T(test_threads),
        T(test_errors),
        T(test_no_memory),
        T(test_borrowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
