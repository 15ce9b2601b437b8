/* SPDX-License-Identifier: MIT */
#include "support/support.h"

#include <string.h>

#include "base/alloc.h"

static void memory_is_zeroed(void **state) {
    (void)state;
    unsigned char *memory = hfi_alloc(1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(memory[i], 0);
    memset(memory, 0xaa, 1000);
    hfi_free(memory);
    memory = hfi_alloc_array(250, 4);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(memory[i], 0);
    hfi_free(memory);
    hfi_free(NULL);
    memory = hfi_alloc(0);
    assert_non_null(memory);
    hfi_free(memory);
}

static void sizes_that_overflow_are_refused(void **state) {
    (void)state;
    assert_null(hfi_alloc_array(SIZE_MAX / 8 + 1, 16));
    assert_null(hfi_alloc_array(SIZE_MAX, 2));
    void *none = hfi_alloc_array(SIZE_MAX, 0);
    assert_non_null(none);
    hfi_free(none);
}

static void copies(void **state) {
    (void)state;
    char *text = hfi_strdup("copied");
    assert_string_equal(text, "copied");
    text = hfi_realloc(text, 100);
    assert_string_equal(text, "copied");
    hfi_free(text);
    char *data = hfi_memdup("a\0b", 3);
    assert_memory_equal(data, "a\0b", 3);
    hfi_free(data);
    assert_null(hfi_memdup("", 0));
    assert_null(hfi_memdup(NULL, 5));
    assert_null(hfi_strdup(NULL));
}

static void the_nth_fails(void **state) {
    (void)state;
    void *memory[6];
    hfi_alloc_fail(3, 0);
    for (int i = 0; i < 6; i++)
        memory[i] = hfi_alloc(1);
    for (int i = 0; i < 6; i++)
        assert_int_equal(memory[i] == NULL, i == 2);
    assert_int_equal(hfi_alloc_count(), 6);
    for (int i = 0; i < 6; i++)
        hfi_free(memory[i]);
    hfi_alloc_fail(2, 1);
    memory[0] = hfi_strdup("kept");
    assert_non_null(memory[0]);
    assert_null(hfi_strdup("lost"));
    assert_null(hfi_realloc(memory[0], 10)); /* and the old memory is still there */
    assert_string_equal(memory[0], "kept");
    hfi_alloc_fail(0, 0);
    assert_int_equal(hfi_alloc_count(), 0);
    memory[1] = hfi_alloc(1);
    assert_non_null(memory[1]);
    assert_int_equal(hfi_alloc_count(), 1);
    hfi_free(memory[0]);
    hfi_free(memory[1]);
}

static int three_allocations(void *user) {
    int *runs = user;
    void *memory[3] = {hfi_alloc(1), hfi_strdup("x"), hfi_alloc_array(2, 2)};
    int code = memory[0] && memory[1] && memory[2] ? 0 : -2;
    for (int i = 0; i < 3; i++)
        hfi_free(memory[i]);
    ++*runs;
    return code;
}

static void the_sweep_reaches_each(void **state) {
    (void)state;
    int runs = 0;
    assert_int_equal(hf_test_alloc_sweep(three_allocations, &runs), 3);
    assert_int_equal(runs, 8); /* 3 failures and a whole one, twice */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed), cmocka_unit_test(sizes_that_overflow_are_refused), cmocka_unit_test(copies),
        cmocka_unit_test(the_nth_fails),    cmocka_unit_test(the_sweep_reaches_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
