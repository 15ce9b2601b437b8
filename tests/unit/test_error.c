/* SPDX-License-Identifier: MIT */
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "holdfast/error.h"
#include "holdfast/version.h"

static void every_code_has_a_name_and_a_text(void **state) {
    (void)state;
    int count = 0;
#define CHECK(name, value, text)                                                                                       \
    assert_int_equal(HF_##name, -(value));                                                                             \
    assert_string_equal(hf_error_name(HF_##name), "HF_" #name);                                                        \
    assert_string_equal(hf_strerror(HF_##name), text);                                                                 \
    count++;
    HF_ERROR_MAP(CHECK)
    assert_true(count >= 22);
    assert_string_equal(hf_error_name(0), "HF_OK");
    assert_string_equal(hf_strerror(0), "success");
    assert_string_equal(hf_error_name(-9999), "HF_EUNKNOWN");
    assert_string_equal(hf_strerror(1), "unknown error");
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", HF_VERSION_MAJOR, HF_VERSION_MINOR, HF_VERSION_PATCH);
    assert_string_equal(hf_version(), version);
    assert_string_equal(hf_version(), HF_VERSION_TEXT);
}

static void failing_fills_all_and_resets_the_rest(void **state) {
    (void)state;
    struct hf_error error;
    hf_error_init(&error);
    error.native = 7;
    error.line = 9;
    strcpy(error.file, "old");
    assert_int_equal(hfi_fail(&error, HF_EINVAL, "name", "shorten it", "%d of %d", 3, 2), HF_EINVAL);
    assert_int_equal(error.code, HF_EINVAL);
    assert_string_equal(error.what, "name");
    assert_string_equal(error.why, "3 of 2");
    assert_string_equal(error.fix, "shorten it");
    assert_int_equal(error.native, 0);
    assert_int_equal(error.line, 0);
    assert_string_equal(error.file, "");
    assert_int_equal(error.size, sizeof error);
    assert_int_equal(hfi_fail(NULL, HF_EIO, "x", NULL, "y"), HF_EIO);
    assert_int_equal(hfi_fail(&error, HF_EIO, NULL, NULL, NULL), HF_EIO);
    assert_string_equal(error.what, "");
    assert_string_equal(error.why, "");
}

/* I65, I66 */
static void long_and_broken_texts_are_cut_clean(void **state) {
    (void)state;
    struct hf_error error;
    char text[2000];
    hf_error_init(&error);
    memset(text, 'a', sizeof text);
    text[0] = '\xff';
    for (size_t i = 2; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    text[sizeof text - 1] = '\0';
    hfi_fail(&error, HF_EINVAL, text, text, "%s", text);
    assert_true(hfi_text_valid(error.what, strlen(error.what)) && strlen(error.what) >= sizeof error.what - 4);
    assert_true(hfi_text_valid(error.why, strlen(error.why)) && strlen(error.why) >= sizeof error.why - 4);
    assert_true(hfi_text_valid(error.fix, strlen(error.fix)) && strlen(error.fix) >= sizeof error.fix - 4);
}

/* An older caller has a shorter struct: what lies behind it is not ours. */
static void only_the_callers_size_is_written(void **state) {
    (void)state;
    struct hf_error error;
    hf_error_init(&error);
    memset(error.fix, 'Z', sizeof error.fix);
    error.size = (uint32_t)offsetof(struct hf_error, fix);
    hfi_fail(&error, HF_EINVAL, "what", "fix", "why");
    for (size_t i = 0; i < sizeof error.fix; i++)
        assert_int_equal(error.fix[i], 'Z');
    assert_string_equal(error.why, "why");
    char text[100];
    hf_error_print(&error, text, sizeof text);
    assert_string_equal(text, "what: why");
}

static void printing(void **state) {
    (void)state;
    struct hf_error error;
    char text[100];
    hf_error_init(&error);
    hfi_fail(&error, HF_ECONFIG, "queues.x", "write 5s", "no unit");
    assert_int_equal(hf_error_print(&error, text, sizeof text), strlen("queues.x: no unit (write 5s)"));
    assert_string_equal(text, "queues.x: no unit (write 5s)");
    strcpy(error.file, "a.yaml");
    hf_error_print(&error, text, sizeof text);
    assert_string_equal(text, "a.yaml: queues.x: no unit (write 5s)");
    error.line = 3;
    error.column = 14;
    assert_int_equal(hf_error_print(&error, text, sizeof text), 41);
    assert_string_equal(text, "a.yaml:3:14: queues.x: no unit (write 5s)");
    hfi_fail(&error, HF_ENOMEM, NULL, NULL, NULL);
    hf_error_print(&error, text, sizeof text);
    assert_string_equal(text, "out of memory");
    assert_int_equal(hf_error_print(NULL, text, sizeof text), 0);
    assert_string_equal(text, "");
}

/* At every length: terminated, whole code points, nothing behind, and the whole length returned. */
static void printing_into_any_room(void **state) {
    (void)state;
    struct hf_error error;
    hf_error_init(&error);
    hfi_fail(&error, HF_ECONFIG, "f\xc3\xbcr", "\xe2\x82\xac", "\xf0\x9f\x98\x80");
    const char *whole = "f\xc3\xbcr: \xf0\x9f\x98\x80 (\xe2\x82\xac)";
    for (size_t room = 0; room < 40; room++) {
        char text[41];
        memset(text, 'Z', sizeof text);
        assert_int_equal(hf_error_print(&error, text, room), strlen(whole));
        for (size_t i = room; i < sizeof text; i++)
            assert_int_equal(text[i], 'Z');
        if (room == 0)
            continue;
        assert_non_null(memchr(text, 0, room));
        assert_true(hfi_text_valid(text, strlen(text)));
        assert_memory_equal(text, whole, strlen(text));
        if (room > strlen(whole))
            assert_string_equal(text, whole);
    }
    assert_int_equal(hf_error_print(&error, NULL, 0), strlen(whole));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_name_and_a_text),
        cmocka_unit_test(failing_fills_all_and_resets_the_rest),
        cmocka_unit_test(long_and_broken_texts_are_cut_clean),
        cmocka_unit_test(only_the_callers_size_is_written),
        cmocka_unit_test(printing),
        cmocka_unit_test(printing_into_any_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
