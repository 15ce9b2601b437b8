/* SPDX-License-Identifier: MIT */
#include "support/support.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/timer_heap.h"
#include "holdfast/error.h"

#define COUNT 500

struct item {
    struct hfi_timer timer;
    int64_t at;
    uint64_t armed_as; /* the model: order of arming; 0 = not armed */
};

static struct hfi_timer *fired[COUNT * 2];
static size_t fired_count;

static void note(struct hfi_timer *timer, void *user) {
    (void)user;
    fired[fired_count++] = timer;
}

static int model_order(const void *a, const void *b) {
    const struct item *x = *(struct item *const *)a;
    const struct item *y = *(struct item *const *)b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->armed_as < y->armed_as ? -1 : 1;
}

/* Random arming, moving and disarming; then firing must follow a plain sort of what the model holds. */
static void follows_a_sorted_list(void **state) {
    (void)state;
    static struct item items[COUNT];
    struct hfi_random random;
    hfi_random_seed(&random, hf_test_seed());
    for (int round = 0; round < 20; round++) {
        struct hfi_timer_heap heap;
        hfi_timer_heap_init(&heap);
        uint64_t armed = 0;
        for (int i = 0; i < COUNT; i++) {
            hfi_timer_init(&items[i].timer, note, NULL);
            items[i].armed_as = 0;
        }
        for (int step = 0; step < COUNT * 4; step++) {
            struct item *item = &items[hfi_random_below(&random, COUNT)];
            if (hfi_random_below(&random, 3) == 0) {
                hfi_timer_heap_disarm(&heap, &item->timer);
                item->armed_as = 0;
            } else {
                item->at = (int64_t)hfi_random_below(&random, 60); /* many equal times */
                item->armed_as = ++armed;
                assert_int_equal(hfi_timer_heap_arm(&heap, &item->timer, (struct hf_mono){item->at}), 0);
            }
        }
        struct item *expected[COUNT];
        size_t count = 0;
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(hfi_timer_armed(&items[i].timer), items[i].armed_as != 0);
            if (items[i].armed_as)
                expected[count++] = &items[i];
        }
        qsort(expected, count, sizeof expected[0], model_order);
        fired_count = 0;
        for (int64_t now = 0; now < 60; now++)
            hfi_timer_heap_fire(&heap, (struct hf_mono){now});
        assert_int_equal(fired_count, count);
        for (size_t i = 0; i < count; i++)
            assert_ptr_equal(fired[i], &expected[i]->timer);
        assert_null(hfi_timer_heap_head(&heap));
        hfi_timer_heap_free(&heap);
    }
}

static struct hfi_timer_heap shared;

static void again(struct hfi_timer *timer, void *user) {
    note(timer, user);
    if (fired_count < COUNT)
        assert_int_equal(hfi_timer_heap_arm(&shared, timer, (struct hf_mono){5}), 0);
}

/* What is armed by a callback waits for the next call, however early it is due. */
static void one_turn_fires_each_once(void **state) {
    (void)state;
    struct hfi_timer self, other;
    fired_count = 0;
    hfi_timer_heap_init(&shared);
    hfi_timer_init(&self, again, NULL);
    hfi_timer_init(&other, note, NULL);
    assert_int_equal(hfi_timer_heap_arm(&shared, &self, (struct hf_mono){5}), 0);
    assert_int_equal(hfi_timer_heap_arm(&shared, &other, (struct hf_mono){5}), 0);
    assert_int_equal(hfi_timer_heap_fire(&shared, (struct hf_mono){4}), 0);
    assert_int_equal(hfi_timer_heap_fire(&shared, (struct hf_mono){5}), 2);
    assert_ptr_equal(fired[0], &self);
    assert_ptr_equal(fired[1], &other);
    assert_int_equal(hfi_timer_heap_fire(&shared, (struct hf_mono){5}), 1);
    hfi_timer_heap_free(&shared);
}

static void disarm_other(struct hfi_timer *timer, void *user) {
    note(timer, user);
    hfi_timer_heap_disarm(&shared, user);
}

static void disarmed_in_the_same_turn_does_not_fire(void **state) {
    (void)state;
    struct hfi_timer first, second;
    fired_count = 0;
    hfi_timer_heap_init(&shared);
    hfi_timer_init(&first, disarm_other, &second);
    hfi_timer_init(&second, note, NULL);
    assert_int_equal(hfi_timer_heap_arm(&shared, &first, (struct hf_mono){1}), 0);
    assert_int_equal(hfi_timer_heap_arm(&shared, &second, (struct hf_mono){1}), 0);
    assert_int_equal(hfi_timer_heap_fire(&shared, (struct hf_mono){9}), 1);
    assert_false(hfi_timer_armed(&second));
    hfi_timer_heap_disarm(&shared, &second);
    hfi_timer_heap_free(&shared);
}

static void without_memory_it_stays_disarmed(void **state) {
    (void)state;
    struct hfi_timer timers[17];
    hfi_timer_heap_init(&shared);
    for (int i = 0; i < 17; i++)
        hfi_timer_init(&timers[i], note, NULL);
    hfi_alloc_fail(1, 1);
    assert_int_equal(hfi_timer_heap_arm(&shared, &timers[0], (struct hf_mono){1}), HF_ENOMEM);
    assert_false(hfi_timer_armed(&timers[0]));
    hfi_alloc_fail(0, 0);
    for (int i = 0; i < 16; i++)
        assert_int_equal(hfi_timer_heap_arm(&shared, &timers[i], (struct hf_mono){i}), 0);
    hfi_alloc_fail(1, 1);
    assert_int_equal(hfi_timer_heap_arm(&shared, &timers[16], (struct hf_mono){1}), HF_ENOMEM);
    assert_false(hfi_timer_armed(&timers[16]));
    assert_int_equal(hfi_timer_heap_arm(&shared, &timers[3], (struct hf_mono){-1}), 0); /* a move needs none */
    assert_ptr_equal(hfi_timer_heap_head(&shared), &timers[3]);
    hfi_alloc_fail(0, 0);
    hfi_timer_heap_free(&shared);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_a_sorted_list),
        cmocka_unit_test(one_turn_fires_each_once),
        cmocka_unit_test(disarmed_in_the_same_turn_does_not_fire),
        cmocka_unit_test(without_memory_it_stays_disarmed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
