/* SPDX-License-Identifier: MIT */
/* Fields of a payload in the call of an http job: none leaves its place. I26 S0.33. */
#include "support/support.h"

#include <string.h>

#include "base/alloc.h"
#include "jobs/kinds/template.h"

struct filled {
    struct hfi_keep keep;
    struct hf_request request;
    struct hf_header header;
    struct hf_error error;
    int code;
};

static struct hf_type_options type;
static struct hf_header header;

static struct filled fill(const char *payload, size_t length) {
    struct filled filled = {.keep = {NULL}};
    hf_request_init(&filled.request);
    hf_error_init(&filled.error);
    filled.request.path = type.path;
    filled.request.query = type.query;
    filled.request.url = type.url;
    filled.header = header;
    filled.code = hfi_templates_fill(&type, payload, length, &filled.keep, &filled.request, &filled.header, &filled.error);
    return filled;
}

static int set_up(void **state) {
    (void)state;
    hf_type_options_init(&type);
    type.kind = HF_KIND_HTTP;
    type.name = "mail";
    header = (struct hf_header){"X-User", "u-{user}"};
    type.headers = &header;
    type.header_count = 1;
    return 0;
}

static void values_are_encoded_for_their_place(void **state) {
    (void)state;
    static const struct {
        const char *payload, *path, *query, *header;
    } rows[] = {
        {"{\"user\":\"anna\"}", "/users/anna/mail", "u=anna&x=1", "u-anna"},
        {"{\"user\":42}", "/users/42/mail", "u=42&x=1", "u-42"},
        {"{\"user\":-9223372036854775808}", "/users/-9223372036854775808/mail", "u=-9223372036854775808&x=1",
         "u--9223372036854775808"},
        {"{\"user\":true,\"other\":[1,{}]}", "/users/true/mail", "u=true&x=1", "u-true"},
        {"{\"user\":\"a/b?c#d&e=f g%\"}", "/users/a%2Fb%3Fc%23d%26e%3Df%20g%25/mail", "u=a%2Fb%3Fc%23d%26e%3Df%20g%25&x=1",
         "u-a/b?c#d&e=f g%"},
        {"{\"user\":\"\\u00e9\"}", "/users/%C3%A9/mail", "u=%C3%A9&x=1", "u-\xc3\xa9"},
        {"{\"user\":\"...\"}", "/users/.../mail", "u=...&x=1", "u-..."},
        {"{\"user\":\"{user}\"}", "/users/%7Buser%7D/mail", "u=%7Buser%7D&x=1", "u-{user}"},
    };
    type.path = "/users/{user}/mail";
    type.query = "u={user}&x=1";
    assert_true(hfi_templates_used(&type));
    assert_int_equal(hfi_templates_check(&type, NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct filled filled = fill(rows[i].payload, strlen(rows[i].payload));
        if (filled.code != 0)
            fail_msg("%s: %s", rows[i].payload, filled.error.why);
        assert_string_equal(filled.request.path, rows[i].path);
        assert_string_equal(filled.request.query, rows[i].query);
        assert_string_equal(filled.header.value, rows[i].header);
        hfi_keep_free(&filled.keep);
    }
}

static void bad_payloads_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *payload, *error_type;
    } rows[] = {
        {"", "payload.json"},           {"user", "payload.json"},      {"[1]", "payload.json"},
        {"{\"user\":\"a\"} x", "payload.json"}, {"{\"user\":\"a\",\"user\":\"b\"}", "payload.json"},
        {"{\"user\":\"a\\u0000b\"}", "payload.json"},
        {"{\"user\":\"\xff\"}", "payload.json"},
        {"{}", "payload.field"},        {"{\"User\":\"a\"}", "payload.field"},
        {"{\"user\":null}", "payload.field"},   {"{\"user\":[]}", "payload.field"}, {"{\"user\":{}}", "payload.field"},
        {"{\"user\":1.5}", "payload.field"},    {"{\"user\":\"\"}", "payload.field"},
        {"{\"user\":\".\"}", "payload.field"},  {"{\"user\":\"..\"}", "payload.field"},
        {"{\"user\":\"a\\r\\nX-Evil: 1\"}", "payload.field"}, {"{\"user\":\"a\\nb\"}", "payload.field"},
    };
    type.path = "/users/{user}/mail";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct filled filled = fill(rows[i].payload, strlen(rows[i].payload));
        if (filled.code != HF_EINVAL || strcmp(filled.error.what, rows[i].error_type) != 0)
            fail_msg("%s: %d %s", rows[i].payload, filled.code, filled.error.what);
        assert_null(strstr(filled.error.why, "Evil")); /* values are not shown */
        hfi_keep_free(&filled.keep);
    }
    struct filled binary = fill("{\"user\":\"a\0b\"}", 14);
    assert_int_equal(binary.code, HF_EINVAL);
    hfi_keep_free(&binary.keep);
}

static void urls_are_taken_whole_or_by_part(void **state) {
    (void)state;
    static const struct {
        const char *url, *payload, *expected;
    } rows[] = {
        {"{url}", "{\"url\":\"https://a.example/x?y=1\",\"user\":\"u\"}", "https://a.example/x?y=1"},
        {"https://{url}.example.com/{user}", "{\"url\":\"tenant\",\"user\":\"u/v\"}", "https://tenant.example.com/u%2Fv"},
        {"https://{url}/hook", "{\"url\":\"evil.com/@x\",\"user\":\"u\"}", "https://evil.com%2F%40x/hook"},
        {"https://a.example/{url}/b", "{\"url\":\"..\",\"user\":\"u\"}", NULL},
        {"{url}", "{\"url\":\"\",\"user\":\"u\"}", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        type.url = rows[i].url;
        struct filled filled = fill(rows[i].payload, strlen(rows[i].payload));
        assert_int_equal(filled.code, rows[i].expected ? 0 : HF_EINVAL);
        if (rows[i].expected)
            assert_string_equal(filled.request.url, rows[i].expected);
        hfi_keep_free(&filled.keep);
    }
}

static void body_is_a_field_if_asked_for(void **state) {
    (void)state;
    static const struct {
        const char *payload, *body;
    } rows[] = {{"{\"user\":1,\"mail\":\"text \\u00e9\"}", "text \xc3\xa9"}, {"{\"user\":1,\"mail\":{\"a\":[1,null]}}", "{\"a\":[1,null]}"},
                {"{\"user\":1,\"mail\":\"\"}", ""}, {"{\"user\":1,\"mail\":null}", "null"}, {"{\"user\":1}", NULL}};
    type.body_field = "mail";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct filled filled = fill(rows[i].payload, strlen(rows[i].payload));
        assert_int_equal(filled.code, rows[i].body ? 0 : HF_EINVAL);
        if (rows[i].body) {
            assert_int_equal(filled.request.body_length, strlen(rows[i].body));
            assert_memory_equal(filled.request.body, rows[i].body, strlen(rows[i].body));
        }
        hfi_keep_free(&filled.keep);
    }
}

static void stray_braces_are_told(void **state) {
    (void)state;
    static const char *const bad[] = {"/a{", "/a}", "/{}", "/{a", "/{a b}", "/{{a}}", "/{\xc3\xa9}"};
    struct hf_error error;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hf_error_init(&error);
        type.path = bad[i];
        assert_int_equal(hfi_templates_check(&type, &error), HF_EINVAL);
        assert_string_equal(error.what, "path");
    }
    type.path = "";
    header.value = "{\"json\": {}}"; /* of a header they are text */
    assert_int_equal(hfi_templates_check(&type, NULL), 0);
    assert_false(hfi_templates_used(&type));
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    static const char payload[] = "{\"user\":\"anna\",\"mail\":\"m\"}";
    type.path = "/{user}";
    type.body_field = "mail";
    bool whole = false;
    for (long nth = 1; !whole; nth++) {
        hfi_alloc_fail(nth, 0);
        struct filled filled = fill(payload, sizeof payload - 1);
        whole = hfi_alloc_count() < nth;
        hfi_alloc_fail(0, 0);
        assert_int_equal(filled.code, whole ? 0 : HF_ENOMEM);
        hfi_keep_free(&filled.keep);
    }
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(values_are_encoded_for_their_place), TEST(bad_payloads_are_refused), TEST(urls_are_taken_whole_or_by_part),
        TEST(body_is_a_field_if_asked_for),       TEST(stray_braces_are_told),    TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
