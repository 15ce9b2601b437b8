/* SPDX-License-Identifier: MIT */
/* What of a URL may be shown: no user, no password, no value of a query, whatever the text is (2.8). */
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "holdfast/http.h"
#include "support/seed.h"

static const char *const rows[][2] = {
    {"", ""},
    {"https://a.test", "https://a.test"},
    {"https://a.test:8443/b/c;d", "https://a.test:8443/b/c;d"},
    {"https://user:secret@a.test/b", "https://a.test/b"},
    {"https://secret@a.test", "https://a.test"},
    {"https://u:secret@secret@a.test:1/b", "https://a.test:1/b"},
    {"https://a.test/b?token=secret", "https://a.test/b?token=***"},
    {"https://a.test?a=secret&b=secret;c=secret", "https://a.test?a=***&b=***;c=***"},
    {"https://a.test/?secret", "https://a.test/?***"},
    {"https://a.test/?a==secret&&secret", "https://a.test/?a=***&&***"},
    {"https://a.test/?", "https://a.test/?"},
    {"https://a.test/?u=https://u:secret@b.test/", "https://a.test/?u=***"},
    {"https://a.test/@b/c", "https://a.test/@b/c"},
    {"https://a.test#secret", "https://a.test#***"},
    {"https://a.test/b?c=secret#secret?d=secret", "https://a.test/b?c=***#***"},
    {"https://[::1]:443/b", "https://[::1]:443/b"},
    {"https://u:secret@[::1]/b", "https://[::1]/b"},
    /* no URL, and complained about: rather too little */
    {"user:secret@a.test/b", "a.test/b"},
    {"https://user:secret/secret@a.test/b", "https://a.test/b"},
    {"https://user:secret?secret@a.test/b", "https://a.test/b"},
    {"https://user:secret#secret@a.test/b", "https://a.test/b"},
    {"https://user:secret\\secret@a.test/b", "https://a.test/b"},
    {"/b?u=https://u:secret@a.test", "a.test"},
    {"/b?u=secret", "/b?u=***"},
    {"//user:secret@a.test/b", "a.test/b"},
    {"postgres://user:secret@a.test/db?password=secret", "postgres://a.test/db?password=***"},
    {"sqlite:/var/lib/jobs.db", "sqlite:/var/lib/jobs.db"},
    {"ftp://user:secret@", "ftp://"},
};

static void test_rows(void **state) {
    (void)state;
    char text[256];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t length = hf_url_redact(rows[i][0], text, sizeof text);
        if (strcmp(text, rows[i][1]) != 0)
            fail_msg("%s became %s, not %s", rows[i][0], text, rows[i][1]);
        assert_int_equal(length, strlen(text));
        assert_null(strstr(text, "secret"));
    }
}

/* Cut anywhere, the length is that of the whole. */
static void test_room(void **state) {
    (void)state;
    char text[64];
    const char *url = "https://u:p@a.test/b?c=d", *whole = "https://a.test/b?c=***";
    for (size_t room = 0; room < sizeof text; room++) {
        memset(text, 'x', sizeof text);
        assert_int_equal(hf_url_redact(url, text, room), strlen(whole));
        if (room > 0) {
            assert_int_equal(strlen(text), room - 1 < strlen(whole) ? room - 1 : strlen(whole));
            assert_memory_equal(text, whole, strlen(text));
        }
        assert_int_equal(text[room], 'x');
    }
}

/* A secret in the userinfo of anything that begins like a URL does not come through, and redacting twice changes nothing. */
static void test_random(void **state) {
    (void)state;
    static const char marks[] = "ab:/?#@[]%&=;\\.0";
    struct hfi_random random;
    uint64_t seed = test_seed("redact");
    hfi_random_seed(&random, seed);
    for (int round = 0; round < 20000; round++) {
        char url[128] = "https://u:zzz", once[160], twice[160];
        size_t length = strlen(url), more = hfi_random_below(&random, 30);
        for (size_t i = 0; i < more; i++)
            url[length++] = marks[hfi_random_below(&random, sizeof marks - 1)];
        snprintf(url + length, sizeof url - length, "@a.test/");
        hf_url_redact(url, once, sizeof once);
        hf_url_redact(once, twice, sizeof twice);
        if (strstr(once, "zzz"))
            fail_msg("%s became %s (HF_SEED=%llu)", url, once, (unsigned long long)seed);
        assert_string_equal(once, twice);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_room), cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
