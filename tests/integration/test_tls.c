/* SPDX-License-Identifier: MIT */
/* TLS, client certificates and HTTP/2 against real peers, through the public client. 2.8, pitfalls 1.1-8, L1, R7. */
#include "support/support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/tls_peers.h"

struct world {
    struct hf_policy_options policy;
    struct hf_downstream_options options[2];
    char urls[2][64], ca[160];
    struct hf_client *client;
};
static struct world *w;

/* One downstream, `d`, that trusts the tests' authority and tries once. */
static int set_up(void **state) {
    (void)state;
    w = calloc(1, sizeof *w);
    hf_policy_options_init(&w->policy);
    w->policy.retry_max = 0;
    w->policy.breaker_min_calls = 1000;
    snprintf(w->ca, sizeof w->ca, "%s", tls_peers_file("ca.pem"));
    w->options[0] = hf_downstream_at("d", w->urls[0]);
    w->options[0].ca_file = w->ca;
    w->options[0].policy = &w->policy;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hf_client_close(w->client);
    free(w);
    return 0;
}

static void reach(size_t i, const char *peer) {
    snprintf(w->urls[i], sizeof w->urls[i], "https://127.0.0.1:%d", tls_peers_port(peer));
}

static void open_client(size_t count) {
    struct hf_error error;
    hf_error_init(&error);
    hf_client_close(w->client);
    w->client = NULL;
    if (hf_client_new(w->options, count, &w->client, &error))
        fail_msg("%s: %s", error.what, error.why);
}

static struct call_answer call(const char *downstream, const char *method) {
    struct hf_request request = hf_request_to(downstream, method, "/");
    if (strcmp(method, "POST") == 0) {
        request.body = "pay";
        request.body_length = 3;
    }
    return tls_peers_call(w->client, &request);
}

static struct call_answer call_peer(const char *peer, const char *method) {
    reach(0, peer);
    open_client(1);
    return call("d", method);
}

/* R7: what the peer saw since `before`. */
static unsigned seen_since(const char *peer, unsigned before) {
    return tls_peers_count(peer).requests - before;
}

/* What is kept of both: each phase alone, so they fit together into the fresh attempt. */
static void check_latencies(const struct call_answer *first, const struct call_answer *second) {
    struct hf_downstream *d = hf_client_downstream(w->client, "d");
    struct hf_downstream_view view = {.size = sizeof view};
    hf_downstream_look(d, &view);
    hf_downstream_unref(d);
    assert_true(view.resolve.count <= 1); /* an address may take no time at all */
    int64_t resolve_us = view.resolve.count > 0 ? view.resolve.p50_us : 0;
    assert_int_equal(view.connect.count, 1);
    assert_int_equal(view.tls.count, 1);
    assert_int_equal(view.first_byte.count, 2);
    assert_int_equal(view.attempts, 2);
    int64_t handshake_us = first->tls_us - first->connect_us; /* a quantile is up to 1/16 above */
    assert_in_range(view.tls.p99_us, handshake_us, handshake_us + handshake_us / 16);
    assert_in_range(resolve_us + view.connect.p50_us, first->connect_us, first->connect_us + first->connect_us / 16);
    int64_t waits_us[] = {first->first_byte_us - first->tls_us, second->first_byte_us};
    int64_t longer_us = waits_us[waits_us[1] > waits_us[0]];
    assert_in_range(view.first_byte.p99_us, longer_us, longer_us + longer_us / 16);
}

/* Connect, TLS, first byte and total in this order on a fresh connection; on a reused one there is no handshake. */
static void test_phases(void **state) {
    (void)state;
    struct call_answer first = call_peer("good", "GET"), second = call("d", "GET");
    assert_int_equal(first.status, 200);
    assert_true(first.connect_us > 0 && first.connect_us <= first.tls_us);
    assert_true(first.tls_us <= first.first_byte_us && first.first_byte_us <= first.total_us);
    assert_string_equal(second.body, first.body); /* the same connection */
    assert_int_equal(second.connect_us, -1);
    assert_int_equal(second.tls_us, -1);
    assert_true(second.first_byte_us > 0 && second.first_byte_us <= second.total_us);
    assert_int_equal(tls_peers_count("good").connections, 1);
    check_latencies(&first, &second);
}

/* No request can succeed until a person mends it: permanent, a failure for the breaker, nothing sent, no secrets. */
static void test_certificates_that_are_wrong(void **state) {
    (void)state;
    static const struct {
        const char *peer, *error_type, *says;
    } rows[] = {{"expired", "curl.peer_failed_verification", "expired"},
                {"wronghost", "curl.peer_failed_verification", "127.0.0.1"},
                {"unknown", "curl.peer_failed_verification", "issuer certificate"},
                {"tls11", "curl.ssl_connect_error", "protocol"}};
    w->policy.retry_max = 3;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct call_answer answer = call_peer(rows[i].peer, "GET");
        if (strcmp(answer.error_type, rows[i].error_type) != 0 || !strstr(answer.message, rows[i].says))
            fail_msg("%s: %s: %s", rows[i].peer, answer.error_type, answer.message);
        assert_int_equal(answer.class_of, HF_CLASS_PERMANENT);
        assert_int_equal(answer.verdict, HF_VERDICT_FAILURE);
        assert_int_equal(answer.stage, HF_STAGE_TLS);
        assert_int_equal(answer.sent, HF_SENT_NO);
        assert_int_equal(answer.attempts, 1);
        assert_int_equal(tls_peers_count(rows[i].peer).requests, 0);
    }
}

/* Without ca_file the system's authorities are asked, and they do not know the tests' one. */
static void test_system_authorities(void **state) {
    (void)state;
    w->options[0].ca_file = NULL;
    struct call_answer answer = call_peer("good", "GET");
    assert_string_equal(answer.error_type, "curl.peer_failed_verification");
    assert_int_equal(answer.sent, HF_SENT_NO);
}

static void test_least_version(void **state) {
    (void)state;
    assert_int_equal(call_peer("tls12", "GET").status, 200);
    w->options[0].tls_min = HF_TLS_1_3;
    assert_int_equal(call_peer("mutual13", "GET").status, 0); /* spoken, but it wants a certificate */
    assert_int_equal(call_peer("good", "GET").status, 200);
    struct call_answer old = call_peer("tls12", "GET");
    assert_string_equal(old.error_type, "curl.ssl_connect_error");
    assert_int_equal(old.class_of, HF_CLASS_PERMANENT);
    assert_int_equal(old.stage, HF_STAGE_TLS);
    assert_int_equal(old.sent, HF_SENT_NO);
}

static void copy_file(const char *from, const char *to) {
    char text[8192];
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    assert_true(in && out);
    size_t length = fread(text, 1, sizeof text, in);
    assert_int_equal(fwrite(text, 1, length, out), length);
    assert_int_equal(fclose(out), 0);
    fclose(in);
}

static void identify(size_t i, const char *name, char *cert, char *key) {
    char file[64];
    snprintf(file, sizeof file, "%s.pem", name);
    strcpy(cert, tls_peers_file(file));
    snprintf(file, sizeof file, "%s.key", name);
    strcpy(key, tls_peers_file(file));
    w->options[i].client_cert = cert;
    w->options[i].client_key = key;
}

/* Required and shown, required and missing, shown and refused; in TLS 1.3 the refusal comes after the request. */
static void test_client_certificates(void **state) {
    (void)state;
    char cert[160], key[160];
    static const char *const peers[] = {"mutual12", "mutual13"};
    for (size_t i = 0; i < 2; i++) {
        identify(0, "client-a", cert, key);
        struct call_answer good = call_peer(peers[i], "POST");
        assert_int_equal(good.status, 200);
        assert_non_null(strstr(good.body, "cn=client-a"));
        for (int foreign = 0; foreign < 2; foreign++) {
            identify(0, "client-x", cert, key);
            if (!foreign)
                w->options[0].client_cert = w->options[0].client_key = NULL;
            unsigned before = tls_peers_count(peers[i]).requests;
            struct call_answer refused = call_peer(peers[i], "POST");
            if (refused.class_of != HF_CLASS_PERMANENT || refused.stage != HF_STAGE_TLS)
                fail_msg("%s: %s stage %s: %s", peers[i], refused.error_type, hf_stage_name(refused.stage),
                         refused.message);
            assert_int_equal(refused.verdict, HF_VERDICT_FAILURE);
            assert_int_equal(refused.sent, i == 0 ? HF_SENT_NO : HF_SENT_MAYBE);
            assert_int_equal(refused.attempts, 1);
            assert_int_equal(seen_since(peers[i], before), 0);
        }
    }
}

/* A key that does not fit its certificate is our fault: permanent, and it says nothing of the peer. */
static void test_key_of_another(void **state) {
    (void)state;
    char cert[160], key[160], other[160], used[] = "/tmp/holdfast-key-XXXXXX";
    struct hf_error error;
    hf_error_init(&error);
    identify(0, "client-a", cert, key);
    strcpy(other, tls_peers_file("client-b.key"));
    reach(0, "mutual12");
    w->options[0].client_key = other;
    assert_int_equal(hf_client_new(w->options, 1, &w->client, &error), HF_EINVAL);
    assert_non_null(strstr(error.why, "client-b.key"));
    /* It was the right one at the start, and the file is another's by now. */
    int fd = mkstemp(used);
    assert_true(fd >= 0);
    close(fd);
    copy_file(key, used);
    w->options[0].client_key = used;
    open_client(1);
    copy_file(other, used);
    struct call_answer answer = call("d", "GET");
    unlink(used);
    assert_string_equal(answer.error_type, "curl.ssl_certproblem");
    assert_int_equal(answer.class_of, HF_CLASS_PERMANENT);
    assert_int_equal(answer.verdict, HF_VERDICT_NEUTRAL);
    assert_int_equal(answer.sent, HF_SENT_NO);
}

/* Two downstreams at one address share a connection only if they trust and show the same. */
static void test_connections_are_not_shared(void **state) {
    (void)state;
    char cert[2][160], key[2][160], ca2[160];
    static const char *const names[] = {"d", "e"};
    w->options[1] = w->options[0];
    w->options[1].name = "e";
    w->options[1].url = w->urls[0];
    identify(0, "client-a", cert[0], key[0]);
    identify(1, "client-b", cert[1], key[1]);
    reach(0, "mutual13");
    open_client(2);
    for (int i = 0; i < 6; i++) {
        struct call_answer answer = call(names[i % 2], "GET");
        assert_int_equal(answer.status, 200);
        assert_non_null(strstr(answer.body, i % 2 ? "cn=client-b" : "cn=client-a"));
    }
    /* The same for what is trusted: the second must not ride on what the first has verified. */
    strcpy(ca2, tls_peers_file("ca2.pem"));
    w->options[1].ca_file = ca2;
    w->options[0].client_cert = w->options[0].client_key = NULL;
    w->options[1].client_cert = w->options[1].client_key = NULL;
    reach(0, "good2");
    open_client(2);
    assert_int_equal(call("d", "GET").status, 200);
    assert_string_equal(call("e", "GET").error_type, "curl.peer_failed_verification");
    assert_int_equal(tls_peers_count("good2").requests, 1);
    w->options[1].ca_file = w->ca; /* and for the oldest version allowed */
    w->options[1].tls_min = HF_TLS_1_3;
    open_client(2);
    assert_string_not_equal(call("d", "GET").body, call("e", "GET").body);
}

/* The same connection carries many, frames that come while it is idle included; the phases are those of HTTP/1.1. */
static void test_http2(void **state) {
    (void)state;
    w->options[0].http2 = true;
    static const char *const peers[] = {"h2", "h2-chatter"};
    for (size_t i = 0; i < 2; i++) {
        struct call_answer first = call_peer(peers[i], "GET");
        assert_int_equal(first.status, 200);
        assert_true(first.connect_us <= first.tls_us && first.tls_us <= first.first_byte_us);
        for (unsigned round = 0; round < 5; round++) {
            if (i == 1)
                tls_peers_chatter(peers[i]);
            assert_string_equal(call("d", round % 2 ? "GET" : "POST").body, first.body);
        }
        assert_int_equal(tls_peers_count(peers[i]).requests, 6);
        assert_int_equal(tls_peers_count(peers[i]).connections, 1);
    }
    w->options[0].http2 = false; /* opt-in: the peer offers it, we do not take it */
    struct call_answer plain = call_peer("h2", "GET");
    assert_int_equal(plain.status, 200);
    w->options[1] = w->options[0];
    w->options[1].name = "e";
    w->options[1].url = w->urls[0];
    w->options[1].http2 = true;
    open_client(2); /* and the two do not meet on one connection */
    struct call_answer two = call("e", "GET"), one = call("d", "GET");
    assert_string_not_equal(one.body, two.body);
    w->options[0].http2 = true;
    assert_int_equal(call_peer("good", "GET").status, 200); /* a peer without it */
}

/* L1 in HTTP/2: whatever ends the stream, libcurl sends nothing a second time by itself. */
static void test_http2_ends(void **state) {
    (void)state;
    static const struct {
        const char *peer;
        int calls; /* the last of which fails */
    } rows[] = {{"h2-refused", 2}, {"h2-refused-first", 1}, {"h2-internal", 2}, {"h2-no-error", 1},
                {"h2-http1", 1},   {"h2-goaway", 2},        {"h2-close", 2},    {"h2-cut", 1}};
    w->options[0].http2 = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct call_answer answer = call_peer(rows[i].peer, "POST");
        unsigned attempts = answer.attempts;
        for (int more = 1; more < rows[i].calls; more++) {
            assert_int_equal(answer.status, 200);
            answer = call("d", "POST");
            attempts += answer.attempts;
        }
        if (answer.kind != HF_OUTCOME_FAILURE || answer.class_of != HF_CLASS_TRANSIENT || answer.sent == HF_SENT_NO)
            fail_msg("%s: %s %s %s: %s", rows[i].peer, hf_outcome_kind_name(answer.kind), answer.error_type,
                     hf_class_name(answer.class_of), answer.message);
        assert_int_equal(answer.verdict, HF_VERDICT_FAILURE);
        assert_int_equal(tls_peers_count(rows[i].peer).requests, attempts);
    }
}

/* The same with retries: each of them is counted, and each of them arrives. */
static void test_http2_retries(void **state) {
    (void)state;
    static const char *const peers[] = {"h2-refused", "h2-goaway", "h2-close", "h2-http1"};
    w->options[0].http2 = true;
    w->policy.retry_max = 3;
    w->policy.retry_base_ms = w->policy.retry_cap_ms = 1;
    w->policy.retry_jitter = HF_JITTER_NONE;
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        unsigned before = tls_peers_count(peers[i]).requests;
        struct call_answer answer = call_peer(peers[i], "GET");
        unsigned attempts = answer.attempts;
        answer = call("d", "GET");
        attempts += answer.attempts;
        assert_int_equal(seen_since(peers[i], before), attempts);
    }
}

struct flight {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned good, ended;
};

static void landed(struct hf_response *response, void *user) {
    struct flight *flight = user;
    pthread_mutex_lock(&flight->lock);
    flight->good += hf_response_status(response) == 200;
    flight->ended++;
    pthread_cond_signal(&flight->changed);
    pthread_mutex_unlock(&flight->lock);
    hf_response_free(response);
}

/* Many at once over TLS, HTTP/1.1 and HTTP/2: as many requests as attempts. */
static void test_many(void **state) {
    (void)state;
    w->policy.connect_timeout_ms = w->policy.attempt_timeout_ms = w->policy.total_timeout_ms = 120000; /* a peer in Python */
    w->policy.breaker_window_ms = 240000;
    for (int http2 = 0; http2 < 2; http2++) {
        struct flight flight = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
        w->options[0].http2 = http2;
        unsigned before = tls_peers_count("h2").requests;
        assert_int_equal(call_peer("h2", "GET").status, 200);
        struct hf_request request = hf_request_to("d", "POST", "/");
        for (int i = 0; i < 50; i++)
            assert_int_equal(hf_call_start(w->client, &request, NULL, landed, &flight, NULL), 0);
        pthread_mutex_lock(&flight.lock);
        while (flight.ended < 50)
            pthread_cond_wait(&flight.changed, &flight.lock);
        pthread_mutex_unlock(&flight.lock);
        assert_int_equal(flight.good, 50);
        assert_int_equal(seen_since("h2", before), 51);
    }
}

int main(int argc, char **argv) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_phases),
        T(test_certificates_that_are_wrong),
        T(test_system_authorities),
        T(test_least_version),
        T(test_client_certificates),
        T(test_key_of_another),
        T(test_connections_are_not_shared),
        T(test_http2),
        T(test_http2_ends),
        T(test_http2_retries),
        T(test_many),
    };
    if (argc < 2 || tls_peers_start(argv[1])) {
        fprintf(stderr, "the peers did not start: are python3 and openssl there?\n");
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tls_peers_stop();
    return failed ? 1 : 0;
}
