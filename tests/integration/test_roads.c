/* SPDX-License-Identifier: MIT */
/* Proxies and redirects against real peers, through the public client. 2.8, 2.3, pitfalls 1.4, L5 L6 R7. */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/tls_peers.h"

struct world {
    struct hf_policy_options policy;
    struct hf_downstream_options options;
    char url[96], proxy[96], ca[160];
    struct hf_client *client;
};
static struct world *w;

static int set_up(void **state) {
    (void)state;
    w = calloc(1, sizeof *w);
    hf_policy_options_init(&w->policy);
    w->policy.retry_max = 0;
    w->options = hf_downstream_at("d", w->url);
    snprintf(w->ca, sizeof w->ca, "%s", tls_peers_file("ca.pem"));
    w->options.ca_file = w->ca;
    w->options.policy = &w->policy;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hf_client_close(w->client);
    free(w);
    return 0;
}

static void open_client(const char *scheme, const char *peer) {
    struct hf_error error;
    hf_error_init(&error);
    snprintf(w->url, sizeof w->url, "%s://127.0.0.1:%d", scheme, tls_peers_port(peer));
    hf_client_close(w->client);
    w->client = NULL;
    if (hf_client_new(&w->options, 1, &w->client, &error))
        fail_msg("%s: %s", error.what, error.why);
}

static struct call_answer call(const char *method, const char *path) {
    struct hf_request request = hf_request_to("d", method, path);
    static const struct hf_header own[] = {{"X-Own", "mine"}, {"Content-Type", "text/plain"}, {"Accept", "text/html"}};
    request.headers = own;
    request.header_count = 3;
    if (strcmp(method, "POST") == 0) {
        request.body = "pay";
        request.body_length = 3;
    }
    return tls_peers_call(w->client, &request);
}

static void through(const char *peer, const char *user) {
    snprintf(w->proxy, sizeof w->proxy, "http://%s127.0.0.1:%d", user, tls_peers_port(peer));
    w->options.proxy = w->proxy;
}

/* The environment is asked for nothing: neither for a proxy nor for whom to reach without ours. */
static void test_environment(void **state) {
    (void)state;
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        setenv(names[i], "http://127.0.0.1:1/", 1);
    open_client("http", "plain");
    assert_int_equal(call("GET", "/").status, 200);
    open_client("https", "good");
    assert_int_equal(call("GET", "/").status, 200);
    setenv("no_proxy", "*", 1);
    setenv("NO_PROXY", "127.0.0.1", 1);
    through("proxy", "");
    unsigned before = tls_peers_count("proxy").tunnels;
    open_client("https", "good");
    assert_int_equal(call("GET", "/").status, 200);
    assert_int_equal(tls_peers_count("proxy").tunnels, before + 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    unsetenv("no_proxy");
    unsetenv("NO_PROXY");
}

/* Its user goes to the proxy and not to the peer, our headers to the peer and not to the proxy; tunnels are reused. */
static void test_tunnel(void **state) {
    (void)state;
    char seen[2048];
    through("proxy", "me:hu%2Fsh@");
    open_client("https", "good");
    unsigned tunnels = tls_peers_count("proxy").tunnels, requests = tls_peers_count("good").requests;
    struct call_answer first = call("POST", "/"), second = call("POST", "/");
    assert_int_equal(first.status, 200);
    assert_string_equal(first.body, second.body);
    assert_true(first.connect_us > 0 && first.connect_us <= first.tls_us && first.tls_us <= first.first_byte_us);
    assert_int_equal(tls_peers_count("proxy").tunnels, tunnels + 1);
    assert_int_equal(tls_peers_count("good").requests, requests + 2);
    tls_peers_last("proxy", seen, sizeof seen);
    assert_non_null(strstr(seen, "Proxy-Authorization: Basic bWU6aHUvc2g=\r\n")); /* me:hu/sh */
    assert_null(strstr(seen, "X-Own"));
    tls_peers_last("good", seen, sizeof seen);
    assert_non_null(strstr(seen, "X-Own: mine\r\n"));
    assert_null(strstr(seen, "Proxy-Authorization"));
    open_client("http", "plain"); /* without TLS the proxy gets the request itself */
    assert_string_equal(call("GET", "/").body, "by the proxy");
}

/* What a proxy refuses never left: nothing was sent, whatever it says, and no secret is told. */
static void test_proxy_refuses(void **state) {
    (void)state;
    static const struct {
        const char *peer, *error_type;
        enum hf_class class_of;
        enum hf_verdict verdict;
    } rows[] = {{"proxy407", "proxy.refused", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL},
                {"proxy502", "proxy.failed", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE}};
    unsigned requests = tls_peers_count("good").requests;
    for (size_t i = 0; i < 2; i++) {
        through(rows[i].peer, "me:hush@");
        open_client("https", "good");
        struct call_answer answer = call("POST", "/");
        assert_string_equal(answer.error_type, rows[i].error_type);
        assert_int_equal(answer.class_of, rows[i].class_of);
        assert_int_equal(answer.verdict, rows[i].verdict);
        assert_int_equal(answer.stage, HF_STAGE_CONNECT);
        assert_int_equal(answer.sent, HF_SENT_NO);
        assert_int_equal(answer.status, 0);
        assert_null(strstr(answer.message, "hush"));
    }
    w->policy.connect_timeout_ms = 500; /* L5: the connect limit covers the tunnel, and a TLS that stalls */
    through("proxyhang", "");
    open_client("https", "good");
    struct call_answer hung = call("POST", "/");
    assert_string_equal(hung.error_type, "timeout.connect");
    assert_int_equal(hung.stage, HF_STAGE_CONNECT);
    assert_int_equal(hung.sent, HF_SENT_NO);
    w->options.proxy = NULL;
    open_client("https", "plain"); /* it waits for a request that never becomes one */
    struct call_answer stalled = call("POST", "/");
    assert_string_equal(stalled.error_type, "timeout.connect");
    assert_int_equal(stalled.stage, HF_STAGE_TLS);
    assert_int_equal(stalled.sent, HF_SENT_NO);
    strcpy(w->proxy, "http://127.0.0.1:1");
    w->options.proxy = w->proxy;
    open_client("https", "good");
    struct call_answer down = call("POST", "/");
    assert_string_equal(down.error_type, "curl.couldnt_connect");
    assert_int_equal(down.sent, HF_SENT_NO);
    assert_int_equal(tls_peers_count("good").requests, requests);
}

/* A body over 1 MiB makes libcurl wait for a 100-continue, unless told otherwise: here it goes out at once (1.3). */
static void test_no_expect(void **state) {
    (void)state;
    static char body[3 << 20], seen[4096];
    static const size_t lengths[] = {1048576, 1048577, sizeof body};
    struct hf_request request = hf_request_to("d", "PUT", "/");
    memset(body, 'x', sizeof body);
    request.body = body;
    for (int tls = 0; tls < 2; tls++) {
        open_client(tls ? "https" : "http", tls ? "good" : "plain");
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            char line[64];
            request.body_length = lengths[i];
            assert_int_equal(tls_peers_call(w->client, &request).status, 200);
            tls_peers_last(tls ? "good" : "plain", seen, sizeof seen);
            snprintf(line, sizeof line, "Content-Length: %zu\r\n", lengths[i]);
            assert_non_null(strstr(seen, line));
            assert_null(strcasestr(seen, "Expect"));
        }
    }
}

/* `/redirect/STATUS/LOCATION` on a peer answers so; the location is percent-encoded. */
static const char *sends(int status, const char *to) {
    static char path[512];
    size_t at = (size_t)snprintf(path, sizeof path, "/redirect/%d/", status);
    for (; *to && at + 4 < sizeof path; to++)
        at += (size_t)snprintf(path + at, sizeof path - at, "%%%02X", (unsigned char)*to);
    return path;
}

static const char *there(const char *scheme, const char *peer, const char *path) {
    static char url[256];
    snprintf(url, sizeof url, "%s://127.0.0.1:%d%s", scheme, tls_peers_port(peer), path);
    return url;
}

static unsigned all_requests(void) {
    return tls_peers_count("plain").requests + tls_peers_count("plain2").requests + tls_peers_count("good").requests;
}

/* Off by default: a 3xx is an outcome, permanent, no sign of trouble. */
static void test_redirects_are_off(void **state) {
    (void)state;
    open_client("http", "plain");
    struct call_answer answer = call("GET", sends(302, "/x"));
    assert_int_equal(answer.status, 302);
    assert_string_equal(answer.error_type, "http.302");
    assert_int_equal(answer.class_of, HF_CLASS_PERMANENT);
    assert_int_equal(answer.verdict, HF_VERDICT_NEUTRAL);
    assert_int_equal(answer.attempts, 1);
}

/* Each hop is a request and an attempt; what becomes of method and body is RFC 9110 15.4. */
static void test_redirects_followed(void **state) {
    (void)state;
    static const struct {
        int status;
        const char *method, *arrives; /* NULL: not followed */
    } rows[] = {{301, "GET", "GET"},       {302, "GET", "GET"},   {302, "HEAD", "HEAD"}, {303, "GET", "GET"},
                {303, "POST", "GET"},      {303, "HEAD", "HEAD"}, {307, "POST", "POST"}, {308, "POST", "POST"},
                {308, "DELETE", "DELETE"}, {301, "POST", NULL},   {302, "POST", NULL},   {302, "PUT", NULL},
                {300, "GET", NULL},        {304, "GET", NULL}};
    char seen[2048];
    w->options.redirects_max = 1;
    open_client("http", "plain");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned before = all_requests();
        struct call_answer answer = call(rows[i].method, sends(rows[i].status, "/to?a=b"));
        assert_int_equal(answer.attempts, all_requests() - before); /* R7 */
        assert_int_equal(answer.retries, 0);
        assert_int_equal(answer.status, rows[i].arrives ? 200 : rows[i].status);
        tls_peers_last("plain", seen, sizeof seen);
        if (!rows[i].arrives)
            continue;
        char line[64];
        snprintf(line, sizeof line, "%s /to?a=b HTTP/1.1\r\n", rows[i].arrives);
        assert_int_equal(strncmp(seen, line, strlen(line)), 0);
        assert_non_null(strstr(seen, "X-Own: mine\r\n"));
        bool body = strcmp(rows[i].arrives, "POST") == 0;
        assert_int_equal(strstr(seen, "\r\n\r\npay") != NULL, body);
        if (strcmp(rows[i].method, "POST") == 0)
            assert_int_equal(strstr(seen, "Content-Type") != NULL, body);
    }
}

/* Nothing of the one attempt is left for the next, which goes where it was told. */
static void test_nothing_is_left(void **state) {
    (void)state;
    char seen[2048];
    w->options.redirects_max = 1;
    w->options.redirects_other_hosts = true;
    open_client("http", "plain");
    assert_int_equal(call("POST", sends(303, there("http", "plain2", "/"))).status, 200);
    assert_int_equal(call("POST", "/mine").status, 200);
    tls_peers_last("plain", seen, sizeof seen);
    assert_int_equal(strncmp(seen, "POST /mine ", 11), 0);
    assert_non_null(strstr(seen, "X-Own: mine\r\n"));
    assert_non_null(strstr(seen, "\r\n\r\npay"));
}

/* Refused ones: the first answer is the outcome and says why, and the other peer never hears of it. */
static void test_redirects_refused(void **state) {
    (void)state;
    const struct {
        const char *from, *to, *says;
        bool other_hosts;
    } rows[] = {{"http", "plain2", "another scheme, host or port", false},
                {"http", "http://localhost/", "another scheme, host or port", false},
                {"https", "!plain", "from https to http", true},
                {"http", "ftp://127.0.0.1/x", "out of http and https", true},
                {"http", "file:///etc/passwd", "Location is no URL", true},
                {"http", "http://me:hush@127.0.0.1:1/", "names a user", true},
                {"http", "//user@127.0.0.1:1/", "names a user", true},
                {"http", "http://", "Location is no URL", true},
                {"http", "http://[::1", "Location is no URL", true},
                {"http", "", "it has no Location", true},
                {"http", "http://0x7f.1:%d/", "read in two ways", true}, /* as in a configured URL; all are 127.0.0.1 */
                {"http", "http://0x7f.1:%d/", "read in two ways", false},
                {"http", "http://2130706433:%d/", "read in two ways", true},
                {"http", "http://0177.0.0.1:%d/", "read in two ways", true},
                {"http", "http://127.1:%d/", "read in two ways", true},
                {"http", "//127.0.0.01:%d/", "read in two ways", true},
                {"http", "http://%%31%%32%%37.0.0.1:%d/", "read in two ways", true},
                {"http", "http:/127.0.0.1:%d/", "read in two ways", true},
                {"http", "http:///127.0.0.1:%d/", "read in two ways", true}};
    w->options.redirects_max = 5;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char to[256];
        bool peer = strcmp(rows[i].to, "plain2") == 0, down = rows[i].to[0] == '!';
        snprintf(to, sizeof to,
                 peer   ? there("http", "plain2", "/")
                 : down ? there("http", "plain", "/")
                        : rows[i].to,
                 tls_peers_port("plain"));
        w->options.redirects_other_hosts = rows[i].other_hosts;
        open_client(rows[i].from, strcmp(rows[i].from, "https") == 0 ? "good" : "plain");
        unsigned before = all_requests();
        struct call_answer answer = call("GET", sends(307, to));
        if (answer.status != 307 || !strstr(answer.message, rows[i].says))
            fail_msg("%s: %d %s", rows[i].to, answer.status, answer.message);
        assert_string_equal(answer.error_type, "http.307");
        assert_int_equal(answer.attempts, 1);
        assert_int_equal(all_requests() - before, 1);
        assert_null(strstr(answer.message, "hush"));
    }
}

/* To another host goes nothing that may be a secret: custom headers, user, cookies, key (pitfalls 1.4). */
static void test_secrets_stay(void **state) {
    (void)state;
    static const struct hf_header secrets[] = {
        {"X-Api-Key", "hush"}, {"Authorization", "Bearer hush"}, {"Cookie", "hush"}};
    static const int statuses[] = {307, 303};
    char seen[2048];
    w->options.headers = secrets;
    w->options.header_count = 3;
    w->options.redirects_max = 2;
    w->options.redirects_other_hosts = true;
    for (size_t i = 0; i < 2; i++) {
        open_client("http", "plain");
        struct call_answer answer = call("POST", sends(statuses[i], there("http", "plain2", "/to")));
        assert_int_equal(answer.status, 200);
        assert_int_equal(answer.attempts, 2);
        tls_peers_last("plain2", seen, sizeof seen);
        assert_null(strstr(seen, "hush"));
        assert_null(strstr(seen, "X-Own"));
        assert_null(strcasestr(seen, "Authorization"));
        assert_non_null(strstr(seen, "Accept: text/html\r\n"));
        tls_peers_last("plain", seen, sizeof seen);
        assert_non_null(strstr(seen, "X-Api-Key: hush\r\n"));
    }
    /* Back home by way of another host: what left stays away. */
    char back[400];
    snprintf(back, sizeof back, "%s", there("http", "plain", "/home"));
    snprintf(back, sizeof back, "%s%s", there("http", "plain2", ""), sends(307, back));
    assert_int_equal(call("GET", sends(307, back)).status, 200);
    tls_peers_last("plain", seen, sizeof seen);
    assert_int_equal(strncmp(seen, "GET /home ", 10), 0);
    assert_null(strstr(seen, "hush"));
}

/* The client certificate is not shown to another host either. */
static void test_certificate_stays(void **state) {
    (void)state;
    char cert[160], key[160], url[256];
    strcpy(cert, tls_peers_file("client-a.pem"));
    strcpy(key, tls_peers_file("client-a.key"));
    w->options.client_cert = cert;
    w->options.client_key = key;
    w->options.redirects_max = 1;
    w->options.redirects_other_hosts = true;
    open_client("https", "good");
    strcpy(url, there("https", "mutual12", "/"));
    unsigned before = tls_peers_count("mutual12").requests;
    struct call_answer answer = call("GET", sends(307, url));
    assert_string_equal(answer.error_type, "curl.ssl_connect_error");
    assert_int_equal(answer.stage, HF_STAGE_TLS);
    assert_int_equal(answer.sent, HF_SENT_YES); /* who sent us on has had it */
    assert_int_equal(answer.attempts, 2);
    assert_int_equal(tls_peers_count("mutual12").requests, before);
}

/* A chain has an end; a hop that fails is the attempt's failure, and a retry begins where the call did. */
static void test_chains(void **state) {
    (void)state;
    char two[512];
    w->options.redirects_max = 2;
    open_client("http", "plain");
    snprintf(two, sizeof two, "%s", sends(307, "/end"));
    struct call_answer answer = call("GET", sends(307, two));
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.attempts, 3);
    w->options.redirects_max = 1;
    open_client("http", "plain");
    answer = call("GET", sends(307, two));
    assert_int_equal(answer.status, 307);
    assert_int_equal(answer.attempts, 2);
    assert_non_null(strstr(answer.message, "too many"));
    w->policy.retry_max = 2;
    w->policy.retry_base_ms = w->policy.retry_cap_ms = 1;
    open_client("http", "plain");
    unsigned before = all_requests();
    answer = call("GET", sends(307, "/close"));
    assert_int_equal(answer.kind, HF_OUTCOME_FAILURE);
    assert_int_equal(answer.attempts, 6);
    assert_int_equal(answer.retries, 2);
    assert_int_equal(all_requests() - before, 6);
    answer = call("POST", sends(307, "/close")); /* not to be repeated: the first answer proves it arrived */
    assert_int_equal(answer.attempts, 2);
    assert_int_equal(answer.sent, HF_SENT_YES);
}

/* The attempt limit covers all hops, and a cut chain still counts each of its requests. */
static void test_limit_over_hops(void **state) {
    (void)state;
    w->options.redirects_max = 2;
    w->policy.connect_timeout_ms = 1000;
    w->policy.attempt_timeout_ms = 2000;
    w->policy.total_timeout_ms = 5000;
    open_client("http", "plain");
    unsigned before = all_requests();
    struct call_answer answer = call("GET", sends(307, "/hang"));
    assert_string_equal(answer.error_type, "timeout.attempt");
    assert_int_equal(answer.stage, HF_STAGE_WAIT);
    assert_int_equal(answer.attempts, 2);
    assert_int_equal(all_requests() - before, 2);
}

int main(int argc, char **argv) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_environment),
        T(test_tunnel),
        T(test_proxy_refuses),
        T(test_no_expect),
        T(test_redirects_are_off),
        T(test_redirects_followed),
        T(test_nothing_is_left),
        T(test_redirects_refused),
        T(test_secrets_stay),
        T(test_certificate_stays),
        T(test_chains),
        T(test_limit_over_hops),
    };
    if (argc < 2 || tls_peers_start(argv[1])) {
        fprintf(stderr, "the peers did not start: are python3 and openssl there?\n");
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tls_peers_stop();
    return failed ? 1 : 0;
}
