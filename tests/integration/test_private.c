/* SPDX-License-Identifier: MIT */
/*
 * private_networks: deny (2.8, pitfalls 1.4). This program has a resolver of its own and a network of its own: 1.2.3.4
 * is where the peer is, whatever its real address. So a name can lead outside first and inside later (rebinding).
 */
#include "support/support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "holdfast/guard.h"
#include "holdfast/http.h"
#include "support/peer.h"

#define OUTSIDE "1.2.3.4"
#define DEAD "1.2.3.5" /* outside, and nobody there */

static atomic_bool turned; /* `rebind.test` leads inside now */
static atomic_int asked;

static struct addrinfo *entry(const char *address, const char *service, struct addrinfo *next) {
    struct addrinfo *info = calloc(1, sizeof *info + sizeof(struct sockaddr_in));
    struct sockaddr_in *in = (struct sockaddr_in *)(info + 1);
    in->sin_family = AF_INET;
    in->sin_port = htons((uint16_t)(service ? atoi(service) : 0));
    inet_pton(AF_INET, address, &in->sin_addr);
    info->ai_family = AF_INET;
    info->ai_socktype = SOCK_STREAM;
    info->ai_protocol = IPPROTO_TCP;
    info->ai_addr = (struct sockaddr *)in;
    info->ai_addrlen = sizeof *in;
    info->ai_next = next;
    return info;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list) {
    (void)hints;
    atomic_fetch_add(&asked, 1);
    if (strcmp(name, "rebind.test") == 0)
        *list = entry(atomic_load(&turned) ? "127.0.0.1" : OUTSIDE, service, NULL);
    else if (strcmp(name, "mixed.test") == 0)
        *list = entry("10.0.0.1", service, entry(OUTSIDE, service, NULL));
    else if (strcmp(name, "half-dead.test") == 0)
        *list = entry(DEAD, service, entry("169.254.169.254", service, NULL));
    else if (strcmp(name, "outside.test") == 0)
        *list = entry(OUTSIDE, service, NULL);
    else
        *list = entry("127.0.0.1", service, NULL);
    return 0;
}

void freeaddrinfo(struct addrinfo *list) {
    while (list) {
        struct addrinfo *next = list->ai_next;
        free(list);
        list = next;
    }
}

/* The network: 1.2.3.4 is the loopback of this machine, and says that it is 1.2.3.4. */
static atomic_bool outside[4096];

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length) { /* as glibc declares it */
    struct sockaddr_in in = {0};
    memcpy(&in, address.__sockaddr__, length < sizeof in ? length : sizeof in);
    if (in.sin_family == AF_INET && in.sin_addr.s_addr == inet_addr(DEAD)) {
        errno = ECONNREFUSED;
        return -1;
    }
    bool mapped = in.sin_family == AF_INET && in.sin_addr.s_addr == inet_addr(OUTSIDE);
    atomic_store(&outside[fd & 4095], mapped);
    if (!mapped)
        return (int)syscall(SYS_connect, fd, address.__sockaddr__, length);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return (int)syscall(SYS_connect, fd, &in, sizeof in);
}

int getpeername(int fd, __SOCKADDR_ARG address, socklen_t *restrict length) {
    int rc = (int)syscall(SYS_getpeername, fd, address.__sockaddr__, length);
    if (rc == 0 && atomic_load(&outside[fd & 4095]))
        inet_pton(AF_INET, OUTSIDE, &address.__sockaddr_in__->sin_addr);
    return rc;
}

static struct peer *peer;
static struct hf_client *client;
static struct hf_policy_options policy;

static int set_up(void **state) {
    (void)state;
    static const struct peer_step ok = {.answer = PEER_OK};
    atomic_store(&turned, false);
    atomic_store(&asked, 0);
    peer = peer_new(&ok, 1);
    hf_policy_options_init(&policy);
    policy.retry_base_ms = policy.retry_cap_ms = 1;
    policy.breaker_min_calls = 1;
    return peer ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    hf_client_close(client);
    client = NULL;
    peer_free(peer);
    return 0;
}

static struct hf_downstream_options at(const char *name, const char *host, bool deny, char *url, size_t room) {
    struct hf_downstream_options options = hf_downstream_at(name, url);
    snprintf(url, room, "http://%s:%d", host, peer_port(peer));
    options.deny_private_networks = deny;
    options.policy = &policy;
    return options;
}

static void open_at(const char *host) {
    char url[128];
    struct hf_downstream_options options = at("d", host, true, url, sizeof url);
    hf_client_close(client);
    client = NULL;
    assert_int_equal(hf_client_new(&options, 1, &client, NULL), 0);
}

static struct hf_response *call(const char *name) {
    struct hf_request request = hf_request_to(name, "GET", "/");
    struct hf_response *response = NULL;
    assert_int_equal(hf_call(client, &request, &response, NULL), 0);
    return response;
}

static void expect_taken(const char *name) {
    struct hf_response *response = call(name);
    if (hf_response_status(response) != 200)
        fail_msg("%s", hf_outcome_get_error_type(hf_response_outcome(response)));
    hf_response_free(response);
}

/* Refused before a byte went out, for good, and no word about the downstream's health. */
static void expect_denied(const char *name) {
    struct hf_response *response = call(name);
    const struct hf_outcome *outcome = hf_response_outcome(response);
    struct hf_downstream *downstream = hf_client_downstream(client, name);
    struct hf_downstream_view view = {.size = sizeof view};
    assert_string_equal(hf_outcome_get_error_type(outcome), "local.private_network");
    assert_int_equal(hf_outcome_get_class(outcome), HF_CLASS_PERMANENT);
    assert_int_equal(hf_outcome_get_retry(outcome), HF_RETRY_NONE);
    assert_int_equal(hf_outcome_get_verdict(outcome), HF_VERDICT_NEUTRAL);
    assert_int_equal(hf_outcome_get_sent(outcome), HF_SENT_NO);
    assert_int_equal(hf_outcome_get_stage(outcome), HF_STAGE_LOCAL);
    assert_int_equal(hf_outcome_get_attempts(outcome), 1);
    hf_downstream_look(downstream, &view);
    assert_int_equal(view.state, HF_BREAKER_CLOSED);
    assert_int_equal(view.window_failures, 0);
    hf_downstream_unref(downstream);
    hf_response_free(response);
}

/* All the ways to write an address of this machine or its neighbours. */
static void test_numeric_hosts(void **state) {
    (void)state;
    static const char *const hosts[] = {
        "127.0.0.1",       "127.255.255.254",      "0.0.0.0",            "10.0.0.1",
        "192.168.0.1",     "172.16.0.1",           "169.254.169.254",    "100.64.0.1",
        "255.255.255.255", "224.0.0.1",            "[::1]",              "[::]",
        "[::ffff:127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]", "[fd00::1]",    "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]", "[fe80::1]",            "localhost",          "inside.test",
        "LOCALHOST."};
    /* Forms that libraries read in different ways never come so far. */
    static const char *const odd[] = {"127.1", "2130706433", "0x7f.1", "0x7f000001", "017700000001", "0177.0.0.1", "0",
                                      "[fe80::1%25lo]"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        open_at(hosts[i]);
        expect_denied("d");
    }
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char url[128];
        struct hf_client *none = NULL;
        struct hf_downstream_options options = at("d", odd[i], true, url, sizeof url);
        assert_int_equal(hf_client_new(&options, 1, &none, NULL), HF_EINVAL);
    }
    assert_int_equal(peer_connections(peer), 0);
}

static void test_outside(void **state) {
    (void)state;
    open_at("outside.test");
    expect_taken("d");
    open_at(OUTSIDE);
    expect_taken("d");
}

/* A name that led outside when it was looked at, and leads inside when it is used. */
static void test_rebinding(void **state) {
    (void)state;
    open_at("rebind.test");
    expect_taken("d");
    atomic_store(&turned, true);
    open_at("rebind.test");
    expect_denied("d");
    assert_int_equal(atomic_load(&asked), 2);
    assert_int_equal(peer_requests(peer), 1);
}

/* Of several addresses only the public ones are used; if those are dead, that is the failure. */
static void test_several_addresses(void **state) {
    (void)state;
    open_at("mixed.test");
    expect_taken("d");
    open_at("half-dead.test");
    struct hf_response *response = call("d");
    const struct hf_outcome *outcome = hf_response_outcome(response);
    assert_string_equal(hf_outcome_get_error_type(outcome), "curl.couldnt_connect");
    assert_int_equal(hf_outcome_get_class(outcome), HF_CLASS_TRANSIENT);
    hf_response_free(response);
}

/* An open connection of a downstream that may go there is no way around. */
static void test_pooled_connection(void **state) {
    (void)state;
    char urls[2][128];
    struct hf_downstream_options options[] = {at("trusted", "inside.test", false, urls[0], sizeof urls[0]),
                                              at("foreign", "inside.test", true, urls[1], sizeof urls[1])};
    assert_int_equal(hf_client_new(options, 2, &client, NULL), 0);
    expect_taken("trusted");
    expect_denied("foreign");
    expect_taken("trusted");
    assert_int_equal(peer_requests(peer), 2);
}

/* A public host may send us on, but not inside. */
static void test_redirect_inside(void **state) {
    (void)state;
    char url[128], answer[256];
    struct hf_downstream_options options = at("d", "outside.test", true, url, sizeof url);
    struct peer_step away = {.answer = answer};
    struct peer *gate = peer_new(&away, 1);
    assert_non_null(gate);
    snprintf(answer, sizeof answer, "HTTP/1.1 307 Go\r\nLocation: http://inside.test:%d/\r\nContent-Length: 0\r\n\r\n",
             peer_port(peer));
    snprintf(url, sizeof url, "http://outside.test:%d", peer_port(gate));
    options.redirects_max = 2;
    options.redirects_other_hosts = true;
    assert_int_equal(hf_client_new(&options, 1, &client, NULL), 0);
    struct hf_response *response = call("d");
    const struct hf_outcome *outcome = hf_response_outcome(response);
    assert_string_equal(hf_outcome_get_error_type(outcome), "local.private_network");
    assert_int_equal(hf_outcome_get_class(outcome), HF_CLASS_PERMANENT);
    assert_int_equal(hf_outcome_get_sent(outcome), HF_SENT_YES); /* the first host had it */
    assert_int_equal(peer_requests(gate), 1);
    assert_int_equal(peer_requests(peer), 0);
    hf_response_free(response);
    hf_client_close(client);
    client = NULL;
    options.deny_private_networks = false;
    assert_int_equal(hf_client_new(&options, 1, &client, NULL), 0);
    expect_taken("d");
    peer_free(gate);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(test_numeric_hosts), T(test_outside), T(test_rebinding),
                                       T(test_several_addresses), T(test_pooled_connection), T(test_redirect_inside)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
