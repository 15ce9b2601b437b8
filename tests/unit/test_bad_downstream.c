/* SPDX-License-Identifier: MIT */
/*
 * Every option of a downstream, wrong in every way: refused with the option's reason and a fix, and never shown if it may
 * be secret. Tests of what good ones do are elsewhere.
 */
#include "support/support.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/faults.h"
#include "holdfast/http.h"

static void expect(const struct hf_downstream_options *options, const char *field, const char *words) {
    struct hf_error error;
    char text[1024];
    hf_error_init(&error);
    int rc = hf_downstream_check(options, &error);
    hf_error_print(&error, text, sizeof text);
    if (!words) {
        if (rc != 0)
            fail_msg("%s: a good one was refused: %s", field, text);
        return;
    }
    if (rc != HF_EINVAL && rc != HF_ETEXT && rc != HF_ECONFIG && rc != HF_ETOOBIG)
        fail_msg("%s (%s): %d, %s", field, words, rc, options->url);
    if (!strstr(text, words) || !error.what[0] || !error.why[0] || !error.fix[0])
        fail_msg("%s: no word of `%s`, or no reason or fix: %s", field, words, text);
    if (strstr(text, "hidden"))
        fail_msg("%s: shown: %s", field, text);
}

/* One field of a good downstream made wrong; `words` of the complaint, or NULL when it is right. */
#define ROW(field, words, ...)                                                                                         \
    do {                                                                                                               \
        struct hf_downstream_options o = hf_downstream_at("d", "http://a.test");                                       \
        __VA_ARGS__;                                                                                                   \
        expect(&o, #field, words);                                                                                     \
    } while (0)

static void test_names_and_sizes(void **state) {
    (void)state;
    ROW(size, "size", o.size = 0);
    ROW(size, "size", o.size = 3);
    ROW(name, "required", o.name = NULL);
    ROW(url, "required", o.url = NULL);
    ROW(policy, NULL, o.policy = NULL);
    ROW(per_host, "per_host", o.per_host = true);
    ROW(per_host, NULL, o.per_host = true, o.url = NULL);
    ROW(per_host, "per_host", o.per_host = true, o.url = NULL, o.probe_path = "/");
    ROW(hosts_max, "hosts_max", o.per_host = true, o.url = NULL, o.hosts_max = 0);
    ROW(hosts_max, "hosts_max", o.per_host = true, o.url = NULL, o.hosts_max = 1000001);
    ROW(hosts_max, "hosts_max", o.per_host = true, o.url = NULL, o.hosts_max = UINT32_MAX);
    ROW(hosts_max, NULL, o.per_host = true, o.url = NULL, o.hosts_max = 1000000);
    expect(&(struct hf_downstream_options){0}, "all", "size");
}

static void test_urls(void **state) {
    (void)state;
    static const char *const good[] = {
        "http://a", "HTTPS://a.test:65535/x/y/", "http://[::1]:80/", "http://u:p%20q@a/", "http://127.0.0.1:1",
        "http://a.test:443", "https://a.test/%zz%", "http://a_b.test", "http://xn--bcher-kva.test/"};
    static const char *const bad[] = {
        "",                       "a.test",                  "//a.test",           "ftp://a/",
        "file:///etc/passwd",     "javascript:hidden",       "gopher://a",         "httpx://a",
        "http:/a",                "http:a",                  "http//a",            "http://",
        "http:///x",              "http://:80/",             "http://a:",          "http://a:/",
        "http://a:0/",            "http://a:65536/",         "http://a:99999999999999999999", "http://a:8x/",
        "http://a:abc",           "http://a:-1",             "http://a:+80",       "http://a: 80",
        "http://u:hidden@/",      "http://u:hidden@a:port/", "http://a/?q=hidden", "http://a?hidden",
        "http://a/#hidden",       "http://a b/",             " http://a",          "http://a ",
        "http://a/\thidden",      "http://a\r\nX: hidden/",  "http://a\x01/",      "http://a\x7f/",
        "http://a\\b/",           "http://a/\\hidden",       "http://\xc3\xa9/",   "http://a/\xff",
        "http://[::1/",           "http://::1]/",            "http://[]/",         "http://[::1]hidden/",
        "http://[::1]:0/"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ROW(url, NULL, o.url = good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ROW(url, "url", o.url = bad[i]);
}

/* Long ones are taken up to 8 KiB. */
static void test_long_urls(void **state) {
    (void)state;
    char *url = malloc(100000);
    strcpy(url, "http://a.test/");
    memset(url + strlen(url), 'p', 99900);
    url[8192] = '\0';
    ROW(url, NULL, o.url = url);
    url[8192] = 'p';
    url[8193] = '\0';
    ROW(url, "8192", o.url = url);
    url[8193] = 'p';
    url[99900] = '\0';
    ROW(url, "8192", o.url = url);
    free(url);
}

static void header_row(const char *name, const char *value, const char *words) {
    struct hf_header header = {name, value};
    ROW(headers, words, o.headers = &header, o.header_count = 1);
}

static void test_headers(void **state) {
    (void)state;
    static const char *const framing[] = {"Content-Length", "content-length", "Transfer-Encoding", "Connection", "Expect",
                                          "Upgrade", "TE", "Trailer", "Keep-Alive", "Proxy-Connection",
                                          "HTTP2-Settings", "Holdfast-Timeout-Ms", "Holdfast-Attempt", "holdfast-attempt"};
    static const char *const bad_names[] = {NULL, "", " ", "a b", "a:", ":a", "a\r\nb", "a\n", "\xc3\xa9", "a\x7f", "(a)", "a/b", "\"a\""};
    ROW(header_count, "headers", o.header_count = 1);
    ROW(header_count, NULL, o.header_count = 0);
    for (size_t i = 0; i < sizeof framing / sizeof *framing; i++)
        header_row(framing[i], "hidden", framing[i]);
    for (size_t i = 0; i < sizeof bad_names / sizeof *bad_names; i++)
        header_row(bad_names[i], "hidden", "header");
    for (int byte = 1; byte < 0x20; byte++) {
        char value[] = {'h', 'i', 'd', 'd', 'e', 'n', (char)byte, 'x', '\0'};
        header_row("X-A", value, byte == '\t' ? NULL : "X-A");
    }
    header_row("X-A", "hidden\x7f", "X-A");
    header_row("X-A", NULL, "X-A");
    header_row("X-A", "", NULL);
    header_row("Host", "virtual.test", NULL); /* libcurl sends it instead of its own */
    header_row("X-A", "caf\xc3\xa9", NULL); /* obs-text, RFC 9110 5.5 */
    header_row("X_!#$%&'*+.^`|~-9", "x", NULL);
}

static void test_signing(void **state) {
    (void)state;
    static const char *const good = "0123456789abcdef", *const shorter = "hidden-too-shor", *const broken = "whsec_hidden!";
    struct hf_header own = {"Webhook-Signature", "hidden"};
    ROW(signing_secret_count, "signing", o.signing_secret_count = 1);
    ROW(signing_secret_count, "signing", o.signing_secrets = &good, o.signing_secret_count = 9);
    ROW(signing_secret_count, "signing", o.signing_secrets = &good, o.signing_secret_count = SIZE_MAX);
    ROW(signing_secrets, NULL, o.signing_secrets = &good, o.signing_secret_count = 1);
    ROW(signing_secrets, "signing", o.signing_secrets = &shorter, o.signing_secret_count = 1);
    ROW(signing_secrets, "signing", o.signing_secrets = &broken, o.signing_secret_count = 1);
    ROW(signing_secrets, "webhook-signature", o.signing_secrets = &good, o.signing_secret_count = 1, o.headers = &own,
        o.header_count = 1);
}

static void test_limits(void **state) {
    (void)state;
    static const int64_t bad[] = {-1, INT64_MIN, INT64_MAX, (INT64_C(1) << 40) + 1};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ROW(response_limit, "response_limit", o.response_limit = bad[i]);
        ROW(header_limit, "header_limit", o.header_limit = bad[i]);
    }
    ROW(response_limit, NULL, o.response_limit = 0);
    ROW(response_limit, NULL, o.response_limit = INT64_C(1) << 40);
    ROW(header_limit, "header_limit", o.header_limit = 0);
    ROW(header_limit, "header_limit", o.header_limit = 262145);
    ROW(header_limit, NULL, o.header_limit = 262144);
    ROW(header_limit, NULL, o.header_limit = 1);
    ROW(accept_compressed, NULL, o.accept_compressed = true);
    ROW(deny_private_networks, NULL, o.deny_private_networks = true);
    ROW(send_remaining_time, NULL, o.send_remaining_time = true);
    ROW(send_attempt, NULL, o.send_attempt = true);
}

/* What the files hold, right and wrong, is looked at with real ones in integration/test_tls.c. */
static void test_reach(void **state) {
    (void)state;
    static const char *const bad_files[] = {"", "/nowhere/at/all.pem", "/", "/dev/null"};
    static const char *const bad_proxies[] = {"", "a.test:3128", "https://a.test:3128", "socks5://u:hidden@a.test:1080", "http://a.test",
                                              "http://u:hidden@a.test:0", "http://u:hidden@a.test:1/x", "http://u:hidden@a.test:1?x",
                                              "http://u:hidden@", "http://a.test:3128\r\nX: y", "http://127.1:3128"};
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
        ROW(ca_file, "ca_file", o.url = "https://a.test", o.ca_file = bad_files[i]);
        ROW(client_cert, "client_cert", o.url = "https://a.test", o.client_cert = o.client_key = bad_files[i]);
    }
    ROW(client_cert, "client_key", o.url = "https://a.test", o.client_cert = "/dev/null");
    ROW(client_key, "client_cert", o.url = "https://a.test", o.client_key = "/dev/null");
    ROW(client_cert, "client_cert", o.client_cert = o.client_key = "/dev/null"); /* http shows none */
    ROW(tls_min, "tls_min", o.tls_min = (enum hf_tls)2);
    ROW(tls_min, "tls_min", o.tls_min = (enum hf_tls)-1);
    ROW(tls_min, NULL, o.tls_min = HF_TLS_1_3);
    ROW(http2, "http2", o.http2 = true);
    ROW(http2, NULL, o.http2 = true, o.url = "https://a.test");
    for (size_t i = 0; i < sizeof bad_proxies / sizeof *bad_proxies; i++)
        ROW(proxy, "proxy", o.proxy = bad_proxies[i]);
    ROW(proxy, NULL, o.proxy = "http://u:p@127.0.0.1:3128");
    ROW(proxy, "private networks", o.proxy = "http://u:hidden@a.test:3128", o.deny_private_networks = true);
    ROW(redirects_max, "redirects", o.redirects_max = 6);
    ROW(redirects_max, "redirects", o.redirects_max = UINT32_MAX);
    ROW(redirects_max, NULL, o.redirects_max = 5);
    ROW(redirects_other_hosts, "redirects", o.redirects_other_hosts = true);
    ROW(redirects_other_hosts, NULL, o.redirects_other_hosts = true, o.redirects_max = 1);
}

static void test_probe_and_rules(void **state) {
    (void)state;
    static const char *const bad[] = {"", "healthz", "//a b", "/a b", "/a?b", "/a#b", "/a\r\nX: y", "/\xc3\xa9", "http://a/", "/a\x7f"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ROW(probe_path, "probe_path", o.probe_path = bad[i]);
    ROW(probe_path, NULL, o.probe_path = "/");
    struct hf_rule nothing;
    hf_rule_init(&nothing);
    ROW(rules, "rules[0]", o.rules = &nothing, o.rule_count = 1);
    ROW(rule_count, "rules", o.rule_count = 1);
}

/* Whether the policy allows them is asked when the downstream is made. */
static void test_faults(void **state) {
    (void)state;
    struct hf_fault faults[HF_FAULTS_MAX + 1];
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        hf_fault_init(&faults[i], HF_FAULT_RESET);
    ROW(faults, NULL, o.faults = faults, o.fault_count = HF_FAULTS_MAX);
    ROW(faults, "faults", o.fault_count = 1);
    ROW(fault_count, NULL, o.faults = faults, o.fault_count = 0);
    ROW(fault_count, "faults", o.faults = faults, o.fault_count = HF_FAULTS_MAX + 1);
    ROW(fault_count, "faults", o.faults = faults, o.fault_count = SIZE_MAX);
    faults[0].share = 0;
    ROW(faults, "faults[0].share", o.faults = faults, o.fault_count = 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names_and_sizes), cmocka_unit_test(test_urls),
                                       cmocka_unit_test(test_long_urls),       cmocka_unit_test(test_headers),
                                       cmocka_unit_test(test_signing),         cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_reach),           cmocka_unit_test(test_probe_and_rules),
                                       cmocka_unit_test(test_faults)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
