/* SPDX-License-Identifier: MIT */
/*
 * hf_call while a resolver hangs (L2): it ends by its limit, other calls of the same loop go on meanwhile, and what is
 * left behind is bounded and harms neither others nor the end of the process. Nothing here measures time: the resolver
 * hangs until it is let go.
 */
#include "support/support.h"

#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast/http.h"
#include "resilience/http/lookups.h"
#include "support/names.h"
#include "support/peer.h"

#define PER_DOWNSTREAM HFI_LOOKUPS_PER_DOWNSTREAM
#define HOSTS (HFI_LOOKUPS_MAX / PER_DOWNSTREAM)
#define LIMIT_MS 300

static struct peer *peer;
static struct hf_client *client;
static const char *const hosts[] = {"slow0.test", "slow1.test", "slow2.test", "slow3.test", "slow4.test", "slow5.test",
                                    "slow6.test", "slow7.test", "fast.test",  "127.0.0.1",  "bad.test"};
enum { COUNT = sizeof hosts / sizeof *hosts };

static int open_all(void) {
    static const struct peer_step ok = {.answer = PEER_OK};
    static char urls[COUNT][64];
    struct hf_policy_options policy;
    struct hf_downstream_options options[COUNT];
    hf_policy_options_init(&policy);
    policy.retry_max = 0;
    peer = peer_new(&ok, 1);
    for (size_t i = 0; peer && i < COUNT; i++) {
        snprintf(urls[i], sizeof urls[i], "http://%s:%d", hosts[i], peer_port(peer));
        options[i] = hf_downstream_at(hosts[i], urls[i]);
        options[i].policy = &policy;
    }
    names_hang();
    return peer ? hf_client_new(options, COUNT, &client, NULL) : -1;
}

static int set_up(void **state) {
    (void)state;
    return open_all();
}

/* After every test: the threads end, and nothing is counted any more. */
static int tear_down(void **state) {
    (void)state;
    hf_client_close(client);
    peer_free(peer);
    names_let_go();
    names_wait();
    return hfi_lookup_count(hfi_mono_now()) == 0 ? 0 : -1;
}

struct end {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct hf_response *response;
};

static void on_done(struct hf_response *response, void *user) {
    struct end *end = user;
    pthread_mutex_lock(&end->lock);
    end->response = response;
    pthread_cond_signal(&end->changed);
    pthread_mutex_unlock(&end->lock);
}

static struct hf_request request_to(const char *host) {
    struct hf_request request = hf_request_to(host, "POST", "/");
    request.total_timeout_ms = strncmp(host, "slow", 4) == 0 ? LIMIT_MS : 0;
    return request;
}

static void start(struct end *end, const char *host) {
    struct hf_request request = request_to(host);
    pthread_mutex_init(&end->lock, NULL);
    pthread_cond_init(&end->changed, NULL);
    end->response = NULL;
    assert_int_equal(hf_call_start(client, &request, NULL, on_done, end, NULL), 0);
}

static void expect(const struct hf_response *response, const char *type, enum hf_stage stage, unsigned attempts) {
    const struct hf_outcome *outcome = hf_response_outcome(response);
    assert_string_equal(hf_outcome_get_error_type(outcome), type);
    assert_int_equal(hf_outcome_get_stage(outcome), stage);
    assert_int_equal(hf_outcome_get_attempts(outcome), attempts);
    if (type[0])
        assert_int_equal(hf_outcome_get_sent(outcome), HF_SENT_NO);
}

static void wait_for(struct end *end, const char *type, enum hf_stage stage) {
    pthread_mutex_lock(&end->lock);
    while (!end->response)
        pthread_cond_wait(&end->changed, &end->lock);
    pthread_mutex_unlock(&end->lock);
    expect(end->response, type, stage, 1);
    hf_response_free(end->response);
    pthread_mutex_destroy(&end->lock);
    pthread_cond_destroy(&end->changed);
}

static void call(const char *host, const char *type, enum hf_stage stage, unsigned attempts) {
    struct hf_request request = request_to(host);
    struct hf_response *response = NULL;
    assert_int_equal(hf_call(client, &request, &response, NULL), 0);
    expect(response, type, stage, attempts);
    hf_response_free(response);
}

static struct hf_downstream_view look(const char *host) {
    struct hf_downstream *downstream = hf_client_downstream(client, host);
    struct hf_downstream_view view = {.size = sizeof view};
    hf_downstream_look(downstream, &view);
    hf_downstream_unref(downstream);
    return view;
}

static void wait_until_inside(unsigned count) {
    while (names_inside() < count)
        sched_yield();
    assert_int_equal(names_inside(), count);
}

/* L2: 300 ms while the resolver hangs end after 300 ms; the loop serves others all the time. */
static void test_others_go_on(void **state) {
    (void)state;
    struct end slow;
    start(&slow, hosts[0]);
    wait_until_inside(1);
    for (int i = 0; i < 50; i++)
        call("127.0.0.1", "", HF_STAGE_RECEIVE, 1);
    call("fast.test", "", HF_STAGE_RECEIVE, 1); /* another lookup, beside the one that hangs */
    call("bad.test", "curl.couldnt_resolve_host", HF_STAGE_RESOLVE, 1);
    wait_for(&slow, "timeout.total", HF_STAGE_RESOLVE);
    assert_int_equal(names_inside(), 1); /* it came back while its lookup did not */
    call("127.0.0.1", "", HF_STAGE_RECEIVE, 1);
}

/* At most 4 lookups of one downstream are out. One more is refused here: no attempt, no sample, nobody else's harm. */
static void test_per_downstream(void **state) {
    (void)state;
    for (unsigned i = 0; i < PER_DOWNSTREAM; i++)
        call(hosts[0], "timeout.total", HF_STAGE_RESOLVE, 1);
    wait_until_inside(PER_DOWNSTREAM);
    struct hf_downstream_view before = look(hosts[0]);
    call(hosts[0], "local.lookups", HF_STAGE_LOCAL, 0);
    struct hf_downstream_view after = look(hosts[0]);
    assert_int_equal(after.window_calls, before.window_calls);
    assert_int_equal(after.window_failures, 0);
    assert_int_equal(after.in_flight, 0);
    assert_int_equal(names_count(), PER_DOWNSTREAM);
    call("fast.test", "", HF_STAGE_RECEIVE, 1);
    names_let_go();
    names_wait();
    call(hosts[0], "", HF_STAGE_RECEIVE, 1);
}

/* At most 32 of the whole process. Addresses need none. */
static void test_per_process(void **state) {
    (void)state;
    struct end ends[HOSTS];
    for (unsigned round = 0; round < PER_DOWNSTREAM; round++) {
        for (unsigned i = 0; i < HOSTS; i++)
            start(&ends[i], hosts[i]);
        for (unsigned i = 0; i < HOSTS; i++)
            wait_for(&ends[i], "timeout.total", HF_STAGE_RESOLVE);
    }
    wait_until_inside(HFI_LOOKUPS_MAX);
    call("fast.test", "local.lookups", HF_STAGE_LOCAL, 0);
    call("127.0.0.1", "", HF_STAGE_RECEIVE, 1);
    assert_int_equal(names_count(), HFI_LOOKUPS_MAX);
}

/* A client that is closed waits for no resolver, nor does the end of a process. */
static int end_with_lookups_out(void) {
    struct hf_request request = request_to(hosts[0]);
    struct hf_response *response = NULL;
    if (open_all() || hf_call(client, &request, &response, NULL))
        return 2;
    hf_response_free(response);
    hf_client_close(client);
    peer_free(peer);
    return names_inside() == 1 ? 0 : 3; /* and now the end of the process, with a thread in the resolver */
}

static void test_exit(void **state) {
    (void)state;
    char name[] = "/proc/self/exe", argument[] = "exit";
    char *const arguments[] = {name, argument, NULL};
    pid_t child;
    int status;
    assert_int_equal(posix_spawn(&child, name, NULL, NULL, arguments, environ), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(test_others_go_on), T(test_per_downstream), T(test_per_process),
                                       cmocka_unit_test(test_exit)};
    (void)argv;
    if (names_start())
        return 1;
    if (argc > 1)
        return end_with_lookups_out();
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
