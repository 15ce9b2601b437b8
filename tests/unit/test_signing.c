/* SPDX-License-Identifier: MIT */
/* Signatures as Standard Webhooks has them, with its published vector, and what may be a secret. */
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "resilience/http/sign.h"

#define VECTOR_SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define VECTOR_ID "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define VECTOR_TIME 1614265330
#define VECTOR_BODY "{\"test\": 2432232314}"
#define VECTOR_SIGNATURE "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

static struct hfi_signing *make(const char *const *secrets, size_t count) {
    struct hfi_signing *signing = NULL;
    assert_int_equal(hfi_signing_new(secrets, count, "d", &signing, NULL), 0);
    assert_non_null(signing);
    return signing;
}

static void test_vector(void **state) {
    (void)state;
    char text[HFI_SIGN_ROOM(1)];
    struct hfi_signing *signing = make((const char *const[]){VECTOR_SECRET}, 1);
    assert_int_equal(hfi_sign(signing, VECTOR_ID, VECTOR_TIME, VECTOR_BODY, strlen(VECTOR_BODY), text), 0);
    assert_string_equal(text, VECTOR_SIGNATURE);
    assert_int_equal(strlen(text), HFI_SIGN_ONE);
    assert_int_equal(hfi_sign(signing, VECTOR_ID, VECTOR_TIME + 1, VECTOR_BODY, strlen(VECTOR_BODY), text), 0);
    assert_string_not_equal(text, VECTOR_SIGNATURE);
    hfi_signing_free(signing);
}

/* All secrets sign while one is exchanged; a plain text is its own bytes. No body and bytes of any kind sign too. */
static void test_rotation(void **state) {
    (void)state;
    char text[HFI_SIGN_ROOM(2)], empty[HFI_SIGN_ROOM(2)];
    struct hfi_signing *signing = make((const char *const[]){VECTOR_SECRET, "a plain text of 26 letters"}, 2);
    assert_int_equal(signing->keys[1].length, 26);
    assert_int_equal(hfi_sign(signing, VECTOR_ID, VECTOR_TIME, VECTOR_BODY, strlen(VECTOR_BODY), text), 0);
    assert_memory_equal(text, VECTOR_SIGNATURE " v1,", HFI_SIGN_ONE + 4);
    assert_int_equal(strlen(text), 2 * HFI_SIGN_ONE + 1);
    assert_string_not_equal(text + HFI_SIGN_ONE + 1, VECTOR_SIGNATURE);
    assert_int_equal(hfi_sign(signing, VECTOR_ID, VECTOR_TIME, NULL, 0, empty), 0);
    assert_int_equal(strlen(empty), 2 * HFI_SIGN_ONE + 1);
    assert_int_equal(hfi_sign(signing, VECTOR_ID, VECTOR_TIME, "\0\xff\n", 3, text), 0);
    assert_string_not_equal(text, empty);
    hfi_signing_free(signing);
}

/* What is no secret is refused; the reason never shows it. */
static void test_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        NULL,
        "",
        "hidden15letters",
        "whsec_",
        "whsec_aGlkZGVu",
        "whsec_hidden hidden hidden hidd",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa=w",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2Lahidden===",
    };
    struct hfi_signing *signing = NULL;
    struct hf_error error;
    char text[512], longest[HFI_SIGNING_BYTES_MAX + 2];
    const char *many[HFI_SIGNING_SECRETS_MAX + 1];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *list[2] = {VECTOR_SECRET, bad[i]};
        hf_error_init(&error);
        assert_int_equal(hfi_signing_new(list, 2, "hooks", &signing, &error), HF_EINVAL);
        hf_error_print(&error, text, sizeof text);
        assert_non_null(strstr(text, "hooks: signing: "));
        assert_non_null(strstr(text, "secret 2"));
        assert_null(strstr(text, "hidden"));
        assert_null(strstr(text, "MfKQ"));
    }
    memset(longest, 's', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(hfi_signing_new((const char *const[]){longest}, 1, "d", &signing, NULL), HF_EINVAL);
    longest[HFI_SIGNING_BYTES_MAX] = '\0';
    hfi_signing_free(make((const char *const[]){longest}, 1));
    hfi_signing_free(make((const char *const[]){"a text 16 bytes."}, 1));
    for (size_t i = 0; i < HFI_SIGNING_SECRETS_MAX + 1; i++)
        many[i] = VECTOR_SECRET;
    assert_int_equal(hfi_signing_new(many, HFI_SIGNING_SECRETS_MAX + 1, "d", &signing, NULL), HF_EINVAL);
    hfi_signing_free(make(many, HFI_SIGNING_SECRETS_MAX));
    assert_int_equal(hfi_signing_new(NULL, 1, "d", &signing, NULL), HF_EINVAL);
    assert_null(signing);
    assert_int_equal(hfi_signing_new(NULL, 0, "d", &signing, NULL), 0);
    assert_null(signing); /* unsigned */
    hfi_signing_free(NULL);
}

static void test_base64_decode(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"", ""},         {"Zg==", "f"},        {"Zm8=", "fo"},        {"Zm9v", "foo"},
                                          {"Zm9vYg==", "foob"}, {"Zm9vYmE=", "fooba"}, {"Zm9vYmFy", "foobar"}};
    static const char *const bad[] = {"Z", "Zg", "Zg=", "Zg=a", "=Zg=", "Z===", "====", "Zm9v\n", "Zm9-", "Zm 9"};
    unsigned char bytes[16];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(hfi_base64_decode(rows[i][0], bytes), strlen(rows[i][1]));
        assert_int_equal(hfi_base64_decode(rows[i][0], NULL), strlen(rows[i][1]));
        assert_memory_equal(bytes, rows[i][1], strlen(rows[i][1]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (hfi_base64_decode(bad[i], NULL) != -1)
            fail_msg("`%s` was taken", bad[i]);
    for (int length = 0; length < 16; length++) { /* there and back, with every kind of byte */
        unsigned char from[16];
        char text[HFI_BASE64_LENGTH(16)];
        for (int i = 0; i < length; i++)
            from[i] = (unsigned char)(i * 37 + length * 101);
        hfi_base64(from, (size_t)length, text);
        assert_int_equal(hfi_base64_decode(text, bytes), length);
        assert_memory_equal(bytes, from, (size_t)length);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vector), cmocka_unit_test(test_rotation),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_base64_decode)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
