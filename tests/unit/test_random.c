/* SPDX-License-Identifier: MIT */
#include "support/support.h"

#include <string.h>

#include "base/random.h"

static void seeds_give_their_numbers_everywhere(void **state) {
    (void)state;
    /* splitmix64 of seed 0, as published; then xoshiro256** of the state 1, 2, 3, 4, as published with it. */
    struct hfi_random random;
    hfi_random_seed(&random, 0);
    assert_true(random.state[0] == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(random.state[1] == UINT64_C(0x6e789e6aa1b965f4));
    assert_true(random.state[2] == UINT64_C(0x06c45d188009454f));
    assert_true(random.state[3] == UINT64_C(0xf88bb8a8724c81ec));
    random = (struct hfi_random){{1, 2, 3, 4}};
    assert_true(hfi_random_next(&random) == 11520);
    assert_true(hfi_random_next(&random) == 0);
    assert_true(hfi_random_next(&random) == 1509978240);
    assert_true(hfi_random_next(&random) == UINT64_C(1215971899390074240));
}

static void below_stays_below_and_is_even(void **state) {
    (void)state;
    struct hfi_random random;
    hfi_random_seed(&random, hf_test_seed());
    assert_int_equal(hfi_random_below(&random, 0), 0);
    unsigned counts[10] = {0};
    for (int i = 0; i < 1000000; i++) {
        assert_int_equal(hfi_random_below(&random, 1), 0);
        uint64_t drawn = hfi_random_below(&random, 10);
        assert_true(drawn < 10);
        counts[drawn]++;
    }
    for (int i = 0; i < 10; i++) /* 300 a standard deviation: 10 of them */
        assert_in_range(counts[i], 97000, 103000);
    /* Of a bound of 3/4 of all, plain modulo would give the lower third twice as often. */
    unsigned low = 0;
    uint64_t bound = UINT64_MAX / 4 * 3;
    for (int i = 0; i < 100000; i++)
        low += hfi_random_below(&random, bound) < bound / 3;
    assert_in_range(low, 31800, 34900);
}

static void entropy_fills_all(void **state) {
    (void)state;
    unsigned char bytes[302];
    unsigned char seen[300] = {0};
    for (int round = 0; round < 20; round++) {
        memset(bytes, 0, sizeof bytes);
        hfi_entropy(bytes + 1, 300);
        assert_int_equal(bytes[0], 0);
        assert_int_equal(bytes[301], 0);
        for (int i = 0; i < 300; i++)
            seen[i] |= bytes[i + 1];
    }
    for (int i = 0; i < 300; i++)
        assert_int_not_equal(seen[i], 0);
    hfi_entropy(bytes, 0);
}

static void uuids_are_version_4_and_differ(void **state) {
    (void)state;
    char text[37], previous[37] = "";
    for (int i = 0; i < 1000; i++) {
        assert_ptr_equal(hfi_uuid(text), text);
        assert_int_equal(strlen(text), 36);
        for (int at = 0; at < 36; at++) {
            if (at == 8 || at == 13 || at == 18 || at == 23)
                assert_int_equal(text[at], '-');
            else
                assert_non_null(strchr("0123456789abcdef", text[at]));
        }
        assert_int_equal(text[14], '4');
        assert_non_null(strchr("89ab", text[19]));
        assert_string_not_equal(text, previous);
        memcpy(previous, text, sizeof text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds_give_their_numbers_everywhere),
        cmocka_unit_test(below_stays_below_and_is_even),
        cmocka_unit_test(entropy_fills_all),
        cmocka_unit_test(uuids_are_version_4_and_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
