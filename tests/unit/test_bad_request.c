/* SPDX-License-Identifier: MIT */
/*
 * Every field of a request, wrong in every way: nothing is started, and the complaint has the field, the reason and a fix.
 */
#include "support/support.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/call_world.h"

static void done(struct hf_response *response, void *user) {
    (void)user;
    hf_response_free(response);
}

static void expect(const struct hf_request *request, const char *field, const char *words) {
    struct hf_error error;
    struct hfi_call *call = NULL;
    char text[1024];
    hf_error_init(&error);
    int rc = hfi_call_new(world->caller, request, done, NULL, &call, &error);
    hfi_call_discard(rc == 0 ? call : NULL);
    hf_error_print(&error, text, sizeof text);
    if (!words) {
        if (rc != 0)
            fail_msg("%s: a good one was refused: %s", field, text);
        return;
    }
    if (rc != HF_EINVAL && rc != HF_ETEXT && rc != HF_ENOENT)
        fail_msg("%s (%s): %d", field, words, rc);
    if (!strstr(text, words) || !error.what[0] || !error.why[0] || !error.fix[0])
        fail_msg("%s: no word of `%s`, or no reason or fix: %s", field, words, text);
    if (strstr(text, "secret"))
        fail_msg("%s: shown: %s", field, text);
}

/* One field of a good request made wrong; `words` of the complaint, or NULL when it is right. */
#define ROW(field, words, ...)                                                                                         \
    do {                                                                                                               \
        struct hf_request r = hf_request_to("d", "POST", "/");                                                         \
        __VA_ARGS__;                                                                                                   \
        expect(&r, #field, words);                                                                                     \
    } while (0)

static int open_world(void **state) {
    int rc = call_world_set_up(state);
    CALL_WORLD_OPEN(hfi_script_status(1, 200));
    return rc;
}

static void test_names(void **state) {
    (void)state;
    static const char *const bad_methods[] = {NULL, "", " ", "G ET", "GET ", "GET\r\nX: 1", "G\tT", "GET/", "G\x01T", "\xc3\xa9",
                                              "CONNECT", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG"};
    ROW(size, "request", r.size = 0);
    ROW(downstream, "downstream", r.downstream = NULL);
    ROW(downstream, "downstream", r.downstream = "");
    ROW(downstream, "no such downstream", r.downstream = "D");
    for (size_t i = 0; i < sizeof bad_methods / sizeof *bad_methods; i++)
        ROW(method, "method", r.method = bad_methods[i]);
    ROW(method, NULL, r.method = "M-SEARCH");
    ROW(method, NULL, r.method = "get");
}

static void test_places(void **state) {
    (void)state;
    static const char *const bad_paths[] = {"a", "?a=secret", "#secret", "@evil.test/", ":80/", "http://a/", "/a b", "/a\nb", "/a\tb", "/a?secret",
                                            "/a#secret", "/\xc3\xa9", "/a\x7f", "/a\x01"};
    static const char *const good_paths[] = {"", "/", "//a", "/../a", "/%zz%", "/a%20b", "/~a;b=c/@d:e", "/\"<>\\^`{|}"};
    static const char *const bad_queries[] = {"a b", "secret#a", "a\r\nX: y", "\xff", "a\x7f"};
    for (size_t i = 0; i < sizeof bad_paths / sizeof *bad_paths; i++)
        ROW(path, "path", r.path = bad_paths[i]);
    for (size_t i = 0; i < sizeof good_paths / sizeof *good_paths; i++)
        ROW(path, NULL, r.path = good_paths[i]);
    ROW(path, NULL, r.path = NULL);
    ROW(url, "url", r.url = "http://a.test/"); /* the downstream has its own */
    for (size_t i = 0; i < sizeof bad_queries / sizeof *bad_queries; i++)
        ROW(query, "query", r.query = bad_queries[i]);
    ROW(query, NULL, r.query = "");
    ROW(query, NULL, r.query = "a=b&c=%zz?/@");
    char *longest = malloc(100000);
    memset(longest, 'p', 99999);
    longest[0] = '/';
    longest[8193] = '\0';
    ROW(path, "8192", r.path = longest);
    ROW(query, "8192", r.query = longest);
    longest[8192] = '\0';
    ROW(path, NULL, r.path = longest);
    ROW(query, NULL, r.query = longest);
    free(longest);
}

static void test_headers(void **state) {
    (void)state;
    struct hf_header header = {"X-A", "secret\r\nX-Evil: 1"}, own = {"Idempotency-Key", "secret"};
    ROW(headers, "X-A", r.headers = &header, r.header_count = 1);
    header = (struct hf_header){"Transfer-Encoding", "chunked"};
    ROW(headers, "Transfer-Encoding", r.headers = &header, r.header_count = 1);
    ROW(header_count, "headers", r.header_count = 1);
    ROW(header_count, "headers", r.header_count = SIZE_MAX);
    char key[300];
    memset(key, 'k', sizeof key);
    key[256] = '\0';
    ROW(idempotency_key, "idempotency_key", r.idempotency_key = key);
    ROW(idempotency_key, "idempotency_key", r.idempotency_key = "");
    ROW(idempotency_key, "idempotency_key", r.idempotency_key = "secret\r\n");
    ROW(idempotency_key, "idempotency_key", r.idempotency_key = "k", r.headers = &own, r.header_count = 1);
    key[255] = '\0';
    ROW(idempotency_key, NULL, r.idempotency_key = key);
}

static void test_body_and_limits(void **state) {
    (void)state;
    struct hf_rule nothing;
    hf_rule_init(&nothing);
    ROW(body, "body", r.body_length = 1);
    ROW(body_length, "body", r.body_length = SIZE_MAX);
    ROW(body_length, NULL, r.body = "x", r.body_length = 0);
    ROW(body, "HEAD", r.method = "HEAD", r.body = "x", r.body_length = 1);
    ROW(total_timeout_ms, "total_timeout_ms", r.total_timeout_ms = -1);
    ROW(total_timeout_ms, "total_timeout_ms", r.total_timeout_ms = INT64_MIN);
    ROW(total_timeout_ms, NULL, r.total_timeout_ms = INT64_MAX);
    ROW(no_retry, NULL, r.no_retry = true);
    ROW(attempt_timeout_ms, "attempt_timeout_ms", r.attempt_timeout_ms = -1);
    ROW(attempt_timeout_ms, "attempt_timeout_ms", r.attempt_timeout_ms = INT64_MIN);
    ROW(attempt_timeout_ms, NULL, r.attempt_timeout_ms = INT64_MAX);
    ROW(no_hedge, NULL, r.no_hedge = true);
    ROW(own_limit, NULL, r.own_limit = true);
    ROW(rules, "rules[0]", r.rules = &nothing, r.rule_count = 1);
    ROW(rule_count, "rules", r.rule_count = 1);
    assert_int_equal(hfi_scripted_started(world->script), 0);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, open_world, call_world_tear_down)
    const struct CMUnitTest tests[] = {T(test_names), T(test_places), T(test_headers), T(test_body_and_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
