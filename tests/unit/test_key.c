/* SPDX-License-Identifier: MIT */
/* URLs taken apart, and the key that all URLs of one server share (B30). Table tests and a property. */
#include "resilience/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

static const char *key_of(const char *text) {
    static char key[HFI_KEY_LENGTH];
    struct hfi_url url;
    const char *wrong = hfi_url_split(text, &url);
    if (wrong)
        fail_msg("%s: %s", text, wrong);
    size_t length = hfi_key_print(&url, key);
    assert_int_equal(length, strlen(key));
    return key;
}

/* B30: scheme, host and port make the key; nothing else does. */
static void test_b30_vectors(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"http://example.com", "http://example.com"},
        {"HTTP://EXAMPLE.com/", "http://example.com"},
        {"http://example.com:80/a/b?c=d", "http://example.com"},
        {"http://example.com?c=d", "http://example.com"},
        {"https://example.com:443", "https://example.com"},
        {"https://example.com:00443", "https://example.com"},
        {"https://example.com:80", "https://example.com:80"},
        {"http://example.com:443", "http://example.com:443"},
        {"https://user:secret@example.com/x", "https://example.com"},
        {"https://user@evil.test:1@example.com/x", "https://example.com"},
        {"https://example.com./x", "https://example.com"},
        {"https://Example.Com.:8443", "https://example.com:8443"},
        {"https://xn--mnchen-3ya.example", "https://xn--mnchen-3ya.example"},
        {"http://[::1]/", "http://[::1]"},
        {"http://[0:0:0:0:0:0:0:1]:80", "http://[::1]"},
        {"http://[2001:DB8:0:0:1:0:0:1]:8080/x", "http://[2001:db8::1:0:0:1]:8080"},
        {"http://[::ffff:10.0.0.1]", "http://[::ffff:10.0.0.1]"},
        {"http://[::FFFF:0a00:0001]", "http://[::ffff:10.0.0.1]"},
        {"http://127.0.0.1:8080", "http://127.0.0.1:8080"},
        {"http://127.0.0.1.", "http://127.0.0.1"},
        {"http://a_b-c.test", "http://a_b-c.test"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(key_of(rows[i][0]), rows[i][1]);
}

/* B30: one bad host must not take another with it: what is different has another key. */
static void test_b30_different(void **state) {
    (void)state;
    static const char *const urls[] = {"http://a.test",    "https://a.test", "http://a.test:81", "http://b.test",
                                       "http://a.a.test",  "http://[::1]",   "http://[::2]",     "http://[::1]:81",
                                       "http://127.0.0.1", "http://atest",   "https://a.test:81"};
    char keys[sizeof urls / sizeof *urls][64];
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        snprintf(keys[i], sizeof keys[i], "%s", key_of(urls[i]));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(keys[i], keys[j]);
    }
}

static void test_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "example.com",
                                      "//example.com",
                                      "ftp://a.test",
                                      "file:///etc/passwd",
                                      "httpx://a",
                                      "http:/a",
                                      "http://",
                                      "https://?x",
                                      "http:///x",
                                      "http://:80",
                                      "http://a.test:",
                                      "http://a.test:0",
                                      "http://a.test:65536",
                                      "http://a.test:+80",
                                      "http://a.test:8 0",
                                      "http://a.test:99999999999",
                                      "http://a.test/#f",
                                      "http://a.test\\b",
                                      "http://a b.test",
                                      "http://a.test/\r\nHost: b",
                                      "http://a.test/\t",
                                      "http://\xc3\xa9.test",
                                      "http://a.test/\x7f",
                                      "http://a..b",
                                      "http://.a",
                                      "http://.",
                                      "http://..",
                                      "http://a%2eb",
                                      "http://a%00b",
                                      "http://a,b",
                                      "http://a!b",
                                      "http://[::1",
                                      "http://::1]",
                                      "http://[::1]x",
                                      "http://[::1]x:80",
                                      "http://a[::1]",
                                      "http://[]",
                                      "http://[1]",
                                      "http://[::1%25eth0]",
                                      "http://[fe80::1%eth0]",
                                      "http://[v1.x]",
                                      "http://[::ffff:1.2.3]",
                                      "http://1",
                                      "http://0",
                                      "http://2130706433",
                                      "http://0x7f000001",
                                      "http://0x7f.1",
                                      "http://0X7F.0.0.1",
                                      "http://0177.0.0.1",
                                      "http://127.1",
                                      "http://127.0.0.1.1",
                                      "http://256.0.0.1",
                                      "http://a.0x",
                                      "http://a.1",
                                      "http://1.2.3.04",
                                      "http://u:p@"};
    struct hfi_url url;
    char text[400];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!hfi_url_split(bad[i], &url))
            fail_msg("%s was taken", bad[i]);
    /* The longest host and label, and one byte more. */
    memset(text, 'a', sizeof text);
    memcpy(text, "http://", 7);
    for (size_t at = 7 + 63; at < sizeof text; at += 64)
        text[at] = '.';
    text[7 + 253] = '\0';
    assert_null(hfi_url_split(text, &url));
    assert_int_equal(strlen(key_of(text)), 7 + 253);
    text[7 + 253] = 'a';
    text[7 + 254] = '\0';
    assert_non_null(hfi_url_split(text, &url));
    snprintf(text, sizeof text, "http://%064d.test", 0);
    assert_non_null(hfi_url_split(text, &url));
}

static void test_parts(void **state) {
    (void)state;
    struct hfi_url url;
    const char *text = "HTTPS://us%40er:pa:ss@h.test:8443/a/b?q=1?2";
    assert_null(hfi_url_split(text, &url));
    assert_true(url.https);
    assert_int_equal(url.scheme, 8);
    assert_int_equal(url.userinfo_length, strlen("us%40er:pa:ss"));
    assert_int_equal(url.host_length, strlen("h.test"));
    assert_memory_equal(url.host, "h.test", 6);
    assert_int_equal(url.port, 8443);
    assert_memory_equal(url.place, "/a/b", url.path_length);
    assert_int_equal(url.path_length, 4);
    assert_string_equal(url.query, "q=1?2");
    assert_null(hfi_url_split("http://h?", &url));
    assert_int_equal(url.path_length, 0);
    assert_string_equal(url.query, "");
    assert_null(hfi_url_split("http://h/@x", &url));
    assert_null(url.userinfo);
}

/* Any bytes: no reading outside the text (ASan), no key without its host, and a key is a URL with itself as key. */
static void test_any_bytes(void **state) {
    (void)state;
    static const char *const pieces[] = {"http://", "https://",  "HTTP:", "//",   "a",    "Z",   ".", ":", "80", "443",
                                         "@",       "[",         "]",     "::1",  "%",    "?",   "/", "#", "-",  "_",
                                         "0x",      "127.0.0.1", "\x01",  "\xff", "user", "xn--"};
    uint64_t seed = hf_test_seed();
    srandom((unsigned)seed);
    for (int i = 0; i < 200000; i++) {
        char text[256] = "", again[600];
        struct hfi_url url;
        if (random() % 2)
            strcat(text, pieces[random() % 2]);
        for (int n = (int)(random() % 8); n > 0; n--)
            strcat(text, pieces[(size_t)random() % (sizeof pieces / sizeof *pieces)]);
        char *copy = strdup(text); /* exactly as long as it is */
        if (!hfi_url_split(copy, &url)) {
            snprintf(again, sizeof again, "%s", key_of(copy));
            if (!strstr(again, "://") || strcmp(key_of(again), again) != 0)
                fail_msg("%s has the key %s, seed %llu", text, again, (unsigned long long)seed);
        }
        free(copy);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_b30_vectors), cmocka_unit_test(test_b30_different), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_parts),       cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
