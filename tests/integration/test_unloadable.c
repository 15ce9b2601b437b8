/* SPDX-License-Identifier: MIT */
/* A redirect to a URL that libcurl does not load. This program has a curl_easy_setopt of its own, which refuses one. */
#include "support/support.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/http.h"
#include "support/peer.h"

static CURLcode refusal;

#undef curl_easy_setopt
CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...) {
    static CURLcode (*real)(CURL *easy, CURLoption option, ...);
    va_list arguments;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "curl_easy_setopt");
    va_start(arguments, option);
    CURLcode rc;
    if (option >= CURLOPTTYPE_OFF_T && option < CURLOPTTYPE_BLOB) {
        rc = real(easy, option, va_arg(arguments, curl_off_t));
    } else if (option < CURLOPTTYPE_OBJECTPOINT) {
        rc = real(easy, option, va_arg(arguments, long));
    } else {
        void *value = va_arg(arguments, void *);
        rc = option == CURLOPT_URL && strstr(value, "unloadable") ? refusal : real(easy, option, value);
    }
    va_end(arguments);
    return rc;
}

/* The end of a call that is sent on to such a URL: what our own address says of it, and how often the peer is asked. */
static void expect(CURLcode code, const char *type, enum hf_class class, unsigned requests) {
    static const struct peer_step away = {
        .answer = "HTTP/1.1 302 Go\r\nLocation: /unloadable\r\nContent-Length: 0\r\n\r\n"};
    char url[64];
    struct peer *peer = peer_new(&away, 1);
    struct hf_client *client = NULL;
    struct hf_response *response = NULL;
    struct hf_policy_options policy;
    struct hf_downstream_options options = hf_downstream_at("peer", url);
    struct hf_request request = hf_request_to("peer", "GET", "/");
    assert_non_null(peer);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", peer_port(peer));
    hf_policy_options_init(&policy);
    policy.retry_base_ms = policy.retry_cap_ms = 1;
    policy.retry_max = 2;
    options.policy = &policy;
    options.redirects_max = 3;
    refusal = code;
    assert_int_equal(hf_client_new(&options, 1, &client, NULL), 0);
    assert_int_equal(hf_call(client, &request, &response, NULL), 0);
    const struct hf_outcome *outcome = hf_response_outcome(response);
    assert_string_equal(hf_outcome_get_error_type(outcome), type);
    assert_int_equal(hf_outcome_get_class(outcome), class);
    assert_int_equal(hf_outcome_get_verdict(outcome), HF_VERDICT_NEUTRAL);
    assert_int_equal(hf_outcome_get_sent(outcome), HF_SENT_YES);
    hf_response_free(response);
    hf_client_close(client);
    assert_int_equal(peer_requests(peer), requests);
    peer_free(peer);
}

/* It will never be loaded: said as it is, and not tried again. */
static void test_no_url(void **state) {
    (void)state;
    expect(CURLE_BAD_FUNCTION_ARGUMENT, "local.url", HF_CLASS_PERMANENT, 1);
}

static void test_no_memory(void **state) {
    (void)state;
    expect(CURLE_OUT_OF_MEMORY, "local.memory", HF_CLASS_TRANSIENT, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_url), cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
