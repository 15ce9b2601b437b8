/* SPDX-License-Identifier: MIT */
/* What a request and a downstream may hold, and what becomes of secrets (pitfalls 1.4, 2.8). */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "support/call_world.h"

static void test_base64(void **state) {
    (void)state;
    static const char *const rows[][2] = {/* RFC 4648 10 */
                                          {"", ""},
                                          {"f", "Zg=="},
                                          {"fo", "Zm8="},
                                          {"foo", "Zm9v"},
                                          {"foob", "Zm9vYg=="},
                                          {"fooba", "Zm9vYmE="},
                                          {"foobar", "Zm9vYmFy"}};
    char text[HFI_BASE64_LENGTH(8)];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *end = hfi_base64(rows[i][0], strlen(rows[i][0]), text);
        assert_string_equal(text, rows[i][1]);
        assert_int_equal(end - text, strlen(text));
    }
    hfi_base64("\xff\xfe\xfd", 3, text);
    assert_string_equal(text, "//79");
}

static int check_header(const char *name, const char *value) {
    struct hf_header header = {name, value};
    struct hf_request request = call_get();
    struct hf_error error;
    char text[512];
    hf_error_init(&error);
    request.headers = &header;
    request.header_count = 1;
    int rc = hfi_request_check(&request, &error);
    hf_error_print(&error, text, sizeof text);
    if (value && rc)
        assert_null(strstr(text, "secret"));
    return rc;
}

static void test_headers(void **state) {
    (void)state;
    assert_int_equal(check_header("X-Fine", "a b\tc \xc3\xa9"), 0);
    assert_int_equal(check_header("X-Empty", ""), 0);
    assert_int_equal(check_header("X-A", "secret\r\nX-Evil: 1"), HF_ETEXT); /* injection, reproduced in libcurl */
    assert_int_equal(check_header("X-A", "secret\n"), HF_ETEXT);
    assert_int_equal(check_header("X-A", "secret\x7f"), HF_ETEXT);
    assert_int_equal(check_header("X-A", "secret\x01"), HF_ETEXT);
    assert_int_equal(check_header("X-A", NULL), HF_ETEXT);
    assert_int_equal(check_header("", "secret"), HF_EINVAL);
    assert_int_equal(check_header(NULL, "secret"), HF_EINVAL);
    assert_int_equal(check_header("X A", "secret"), HF_EINVAL);
    assert_int_equal(check_header("X:A", "secret"), HF_EINVAL);
    assert_int_equal(check_header("X\r\nA", "secret"), HF_EINVAL);
    assert_int_equal(check_header("X\xc3\xa9", "secret"), HF_EINVAL);
    assert_int_equal(check_header("content-length", "3"), HF_EINVAL);
    assert_int_equal(check_header("Transfer-Encoding", "chunked"), HF_EINVAL);
    assert_int_equal(check_header("Expect", "100-continue"), HF_EINVAL);
    assert_int_equal(check_header("holdfast-attempt", "7"), HF_EINVAL);
    assert_int_equal(check_header("Holdfast-Timeout-Ms", "7"), HF_EINVAL);
}

static int check(const char *method, const char *path, const char *query) {
    struct hf_request request = hf_request_to("d", method, path);
    request.query = query;
    return hfi_request_check(&request, NULL);
}

static void test_place(void **state) {
    (void)state;
    assert_int_equal(check("GET", "", NULL), 0);
    assert_int_equal(check("PATCH", "/a%20b/~c;d", "x=1&y=%0A?"), 0);
    assert_int_equal(check("M-SEARCH", "/", ""), 0);
    assert_int_equal(check("G ET", "/", NULL), HF_EINVAL);
    assert_int_equal(check("GET\r\nX: 1", "/", NULL), HF_EINVAL);
    assert_int_equal(check("", "/", NULL), HF_EINVAL);
    assert_int_equal(check(NULL, "/", NULL), HF_EINVAL);
    assert_int_equal(check("CONNECT", "/", NULL), HF_EINVAL);
    assert_int_equal(check("GET", "a", NULL), HF_EINVAL);
    assert_int_equal(check("GET", "@evil.test/", NULL), HF_EINVAL);
    assert_int_equal(check("GET", "/a b", NULL), HF_EINVAL);
    assert_int_equal(check("GET", "/a\nb", NULL), HF_EINVAL);
    assert_int_equal(check("GET", "/a?b", NULL), HF_EINVAL);
    assert_int_equal(check("GET", "/a#b", NULL), HF_EINVAL);
    assert_int_equal(check("GET", "/\xc3\xa9", NULL), HF_EINVAL);
    assert_int_equal(check("GET", "/", "a b"), HF_EINVAL);
    assert_int_equal(check("GET", "/", "a#b"), HF_EINVAL);
}

static void test_body_and_key(void **state) {
    (void)state;
    struct hf_header own = {"idempotency-key", "mine"};
    struct hf_request request = call_post("");
    char key[300];
    assert_int_equal(hfi_request_check(&request, NULL), HF_EINVAL);
    memset(key, 'k', sizeof key);
    key[256] = '\0';
    request.idempotency_key = key;
    assert_int_equal(hfi_request_check(&request, NULL), HF_EINVAL);
    key[255] = '\0';
    assert_int_equal(hfi_request_check(&request, NULL), 0);
    key[3] = '\n';
    assert_int_equal(hfi_request_check(&request, NULL), HF_ETEXT);
    request = call_post("theirs");
    request.headers = &own;
    request.header_count = 1;
    assert_int_equal(hfi_request_check(&request, NULL), HF_EINVAL);
    request = call_post(NULL);
    request.body = NULL;
    assert_int_equal(hfi_request_check(&request, NULL), HF_EINVAL);
    request = call_post(NULL);
    request.method = "HEAD";
    assert_int_equal(hfi_request_check(&request, NULL), HF_EINVAL);
    request = call_get();
    request.total_timeout_ms = -1;
    assert_int_equal(hfi_request_check(&request, NULL), HF_EINVAL);
}

static void test_start_refuses(void **state) {
    (void)state;
    CALL_WORLD_OPEN(hfi_script_status(1, 200));
    struct hf_request request = hf_request_to("e", "GET", "/");
    struct call_end end;
    assert_int_equal(call_start(&end, &request), HF_ENOENT);
    request = hf_request_to(NULL, "GET", "/");
    assert_int_equal(call_start(&end, &request), HF_EINVAL);
    request = hf_request_to("d", "GET", "x");
    assert_int_equal(call_start(&end, &request), HF_EINVAL);
    memset(&request, 0, sizeof request);
    assert_int_equal(call_start(&end, &request), HF_EINVAL);
    call_run();
    assert_int_equal(end.count, 0);
    assert_int_equal(hfi_scripted_started(world->script), 0);
}

static int try_url(const char *url, char *text, size_t room) {
    struct hfi_caller_options options = {world->s, NULL, 1};
    struct hf_error error;
    struct hfi_caller *caller = NULL;
    hf_error_init(&error);
    world->options.url = url;
    int rc = hfi_caller_new(&options, &world->options, 1, &caller, &error);
    hf_error_print(&error, text, room);
    hfi_caller_free(caller);
    return rc;
}

static void test_urls(void **state) {
    (void)state;
    char text[512];
    static const char *const good[] = {"http://a", "HTTPS://a.test:65535/x/y/", "http://[::1]:80/", "http://u:p@a/",
                                       "http://127.0.0.1:1"};
    static const char *const bad[] = {"",
                                      "ftp://a/",
                                      "a.test",
                                      "http://",
                                      "http:///x",
                                      "http://:80/",
                                      "http://a:/",
                                      "http://a:0/",
                                      "http://a:65536/",
                                      "http://a:8x/",
                                      "http://u:secret@/",
                                      "http://a/?q=secret",
                                      "http://a/#secret",
                                      "http://a b/",
                                      "http://a\r\nX: secret/",
                                      "http://a\\b/",
                                      "http://\xc3\xa9/",
                                      "http://[::1/",
                                      "http://u:secret@a:port/"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (try_url(good[i], text, sizeof text))
            fail_msg("%s: %s", good[i], text);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (try_url(bad[i], text, sizeof text) != HF_EINVAL)
            fail_msg("%s was taken", bad[i]);
        assert_null(strstr(text, "secret"));
    }
    static const char *const bad_probes[] = {"", "healthz", "/a b", "/a?b", "/a#b", "/a\r\nX: y"};
    for (size_t i = 0; i < sizeof bad_probes / sizeof *bad_probes; i++) {
        world->options.probe_path = bad_probes[i];
        if (try_url("http://a/", text, sizeof text) != HF_EINVAL)
            fail_msg("probe path %s was taken", bad_probes[i]);
    }
    world->options.probe_path = "/healthz";
    assert_int_equal(try_url("http://a/", text, sizeof text), 0);
    world->options.name = NULL;
    assert_int_equal(try_url("http://a/", text, sizeof text), HF_EINVAL);
}

/* A user in the URL becomes a header and stands nowhere else (2.8). */
static void test_userinfo(void **state) {
    (void)state;
    struct hf_request request = call_get();
    world->options.url = "http://Aladdin:open%20sesame@h.test";
    CALL_WORLD_OPEN(hfi_script_status(1, 200));
    assert_int_equal(call_once(&request).status, 200);
    assert_string_equal(hfi_scripted_header(world->script, "Authorization"),
                        "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="); /* RFC 7617 2 */
    assert_string_equal(hfi_scripted_record(world->script, 0)->url, "http://h.test/x");
    struct hf_header header = {"authorization", "Bearer x"};
    char text[512];
    world->options.headers = &header;
    world->options.header_count = 1;
    assert_int_equal(try_url("http://u:secret@a", text, sizeof text), HF_EINVAL);
    assert_null(strstr(text, "secret"));
}

/* Paths are put behind the downstream's, without doubling the slash; without one its URL stays as it is. */
static void test_join(void **state) {
    (void)state;
    static const char *const rows[][4] = {
        {"http://h", "", NULL, "http://h"},       {"http://h/", "", NULL, "http://h/"},
        {"http://h/a/", "", NULL, "http://h/a/"}, {"http://h/a//", "/b", "c", "http://h/a/b?c"},
        {"http://h/a", "/", NULL, "http://h/a/"}, {"http://h", "/b/", "", "http://h/b/?"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hf_request request = hf_request_to("d", "GET", rows[i][1]);
        world->options.url = rows[i][0];
        request.query = rows[i][2];
        CALL_WORLD_OPEN(hfi_script_status(1, 200));
        call_once(&request);
        assert_string_equal(hfi_scripted_record(world->script, 0)->url, rows[i][3]);
        call_world_tear_down(NULL);
        call_world_set_up(NULL);
    }
}

static void test_names(void **state) {
    (void)state;
    struct hf_downstream_options options[3] = {hf_downstream_at("b", "http://b/"), hf_downstream_at("a", "http://a/"),
                                               hf_downstream_at("c", "http://c/")};
    struct hfi_caller_options caller_options = {world->s, NULL, 1};
    struct hfi_caller *caller = NULL;
    assert_int_equal(hfi_caller_new(&caller_options, options, 3, &caller, NULL), 0);
    assert_int_equal(call_count_of(caller), 3);
    assert_string_equal(hf_downstream_name(call_downstream_of(caller, 0)), "b"); /* as given */
    assert_null(call_downstream_of(caller, 3));
    struct hf_downstream *a = hfi_caller_downstream(caller, "a"), *c = hfi_caller_downstream(caller, "c");
    assert_ptr_equal(a, call_downstream_of(caller, 1));
    assert_ptr_equal(c, call_downstream_of(caller, 2));
    hf_downstream_unref(a);
    hf_downstream_unref(c);
    assert_null(hfi_caller_downstream(caller, "bb"));
    hfi_caller_free(caller);
    options[2].name = "b";
    assert_int_equal(hfi_caller_new(&caller_options, options, 3, &caller, NULL), HF_EINVAL);
    assert_int_equal(hfi_caller_new(&caller_options, NULL, 0, &caller, NULL), 0);
    hfi_caller_free(caller);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, call_world_set_up, call_world_tear_down)
    const struct CMUnitTest tests[] = {T(test_base64),       T(test_headers),       T(test_place),
                                       T(test_body_and_key), T(test_start_refuses), T(test_urls),
                                       T(test_userinfo),     T(test_join),          T(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
