/* SPDX-License-Identifier: MIT */
/* Hosts of their own and other downstreams, through the public client over real sockets: B30, V15, R16. */
#include "support/support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/event.h"
#include "holdfast/http.h"
#include "support/peer.h"

#define THREADS 4
#define CALLS 150
#define RELOADS 60

static struct peer *well, *bad;
static char well_url[64], bad_url[64];
static struct hf_client *client;
static struct hf_policy_options policy;

static struct peer *start(const struct peer_step *step, char *url, size_t room) {
    struct peer *peer = peer_new(step, 1);
    assert_non_null(peer);
    snprintf(url, room, "http://127.0.0.1:%d", peer_port(peer));
    return peer;
}

static int set_up(void **state) {
    (void)state;
    well = start(&(struct peer_step){.answer = PEER_OK}, well_url, sizeof well_url);
    bad = start(&(struct peer_step){.answer = "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"}, bad_url, sizeof bad_url);
    hf_policy_options_init(&policy);
    policy.retry_max = 0;
    client = NULL;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hf_client_close(client);
    peer_free(well);
    peer_free(bad);
    return 0;
}

static struct hf_downstream_options hooks(void) {
    struct hf_downstream_options options = hf_downstream_at("hooks", NULL);
    options.per_host = true;
    options.policy = &policy;
    return options;
}

/* The status, or 0 for what was refused here. */
static int call(const struct hf_request *request) {
    struct hf_response *response = NULL;
    if (hf_call(client, request, &response, NULL) != 0)
        return -1;
    int status = hf_response_status(response);
    hf_response_free(response);
    return status;
}

static int call_host(const char *url) {
    struct hf_request request = hf_request_to("hooks", "GET", "");
    request.url = url;
    return call(&request);
}

struct walk {
    unsigned hosts, open;
};

static void count_hosts(struct hf_downstream *downstream, void *user) {
    struct walk *walk = user;
    struct hf_downstream_view view = {.size = sizeof view};
    hf_downstream_look(downstream, &view);
    walk->hosts += hf_downstream_host(downstream) != NULL;
    walk->open += view.state == HF_BREAKER_OPEN;
}

static void count_event(const struct hf_downstream_event *event, void *user) {
    if (event->to == HF_BREAKER_OPEN && strcmp(hf_downstream_host(event->downstream), bad_url) == 0)
        atomic_fetch_add((_Atomic unsigned *)user, 1);
}

/* B30: the breaker of one dead host opens, is heard of at the downstream, and no other host is touched by it. */
static void b30_one_dead_host(void **state) {
    (void)state;
    _Atomic unsigned opened = 0;
    struct walk walk = {0};
    struct hf_downstream_options options = hooks();
    assert_int_equal(hf_client_new(&options, 1, &client, NULL), 0);
    struct hf_downstream *all = hf_client_downstream(client, "hooks"), *host = NULL;
    assert_int_equal(hf_downstream_observe(all, count_event, &opened), 0);
    for (int i = 0; i < 40; i++) {
        call_host(bad_url);
        assert_int_equal(call_host(well_url), 200);
    }
    assert_int_equal(peer_requests(bad), 20); /* then it is left alone */
    assert_int_equal(peer_requests(well), 40);
    assert_int_equal(opened, 1);
    assert_int_equal(hf_client_each(client, count_hosts, &walk), 0);
    assert_int_equal(walk.hosts, 2);
    assert_int_equal(walk.open, 1);
    assert_int_equal(hf_client_host(client, "hooks", bad_url, &host, NULL), 0);
    assert_int_equal(hf_downstream_close(host), 0); /* one host, by hand */
    assert_int_equal(call_host(bad_url), 500);
    assert_int_equal(peer_requests(bad), 21);
    assert_int_equal(hf_client_host(client, "nobody", bad_url, &host, NULL), HF_ENOENT);
    assert_int_equal(hf_client_each(client, NULL, NULL), HF_EINVAL);
    hf_downstream_unref(host);
    hf_downstream_unref(all);
}

static void *call_all_the_while(void *user) {
    _Atomic unsigned *good = user;
    for (int i = 0; i < CALLS; i++) {
        struct hf_request fixed = hf_request_to("fixed", "GET", "/x"), any = hf_request_to("hooks", "GET", "");
        any.url = well_url;
        atomic_fetch_add(good, (call(&fixed) == 200) + (call(&any) == 200));
    }
    return NULL;
}

/* V15, R16: other settings again and again while threads call: every call ends well, none is lost. */
static void v15_reloads_under_load(void **state) {
    (void)state;
    _Atomic unsigned good = 0;
    pthread_t threads[THREADS];
    struct hf_downstream_options list[2] = {hf_downstream_at("fixed", well_url), hooks()};
    list[0].policy = &policy;
    assert_int_equal(hf_client_new(list, 2, &client, NULL), 0);
    struct hf_downstream *before = hf_client_downstream(client, "fixed");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_all_the_while, &good), 0);
    for (uint32_t i = 0; i < RELOADS; i++) {
        policy.bulkhead_max = 32 + i % 3;
        policy.budget_floor = i % 5;
        policy.breaker_min_calls = 10 + i % 7;
        policy.breaker_window_ms = 60000 + 1000 * (i % 2); /* its shape: the window starts anew */
        assert_int_equal(hf_client_reload(client, list, 2, NULL), 0);
        list[0].url = "ftp://nowhere";
        assert_int_equal(hf_client_reload(client, list, 2, NULL), HF_EINVAL);
        list[0].url = well_url;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(good, THREADS * CALLS * 2);
    assert_int_equal(peer_requests(well), THREADS * CALLS * 2);
    struct hf_downstream *after = hf_client_downstream(client, "fixed");
    struct hf_downstream_view view = {.size = sizeof view};
    assert_ptr_equal(before, after);
    hf_downstream_look(after, &view);
    assert_int_equal(view.state, HF_BREAKER_CLOSED);
    assert_int_equal(view.in_flight, 0);
    assert_int_equal(view.attempts, THREADS * CALLS);
    hf_downstream_unref(before);
    hf_downstream_unref(after);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(b30_one_dead_host, set_up, tear_down),
        cmocka_unit_test_setup_teardown(v15_reloads_under_load, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
