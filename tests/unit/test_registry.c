/* SPDX-License-Identifier: MIT */
/* The bounded registry of hosts: B31, B32. */
#include "resilience/registry.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "resilience/policy.h"
#include "support/support.h"

#define S INT64_C(1000000)
#define HOSTS 1000000

static struct hfi_target *origin;
static struct hfi_registry *registry;
static struct hf_mono now;

static struct hfi_target *make_origin(uint32_t max) {
    struct hf_downstream_options options = hf_downstream_at("hooks", NULL);
    struct hfi_target *made = NULL;
    options.per_host = true;
    options.hosts_max = max;
    assert_int_equal(hfi_target_new(NULL, &options, NULL, &made, NULL), 0);
    return made;
}

static void open_registry(uint32_t max) {
    origin = make_origin(max);
    registry = origin->registry;
    now.us = 1000 * S;
}

static int tear_down(void **state) {
    (void)state;
    hfi_alloc_fail(0, 0);
    if (origin) {
        hfi_target_retire(origin);
        hfi_target_unref(origin);
    }
    origin = NULL;
    return 0;
}

static struct hfi_target *take(unsigned number) {
    char key[64];
    struct hfi_target *target = NULL;
    snprintf(key, sizeof key, "https://host-%u.test", number);
    assert_int_equal(hfi_registry_take(registry, origin, key, now, &target), 0);
    assert_non_null(target);
    return target;
}

/* Is it an entry of its own, or the shared one? */
static bool is_own(const struct hfi_target *target) {
    return target->origin == origin;
}

static void fail_once(struct hfi_target *target) {
    struct hf_permit permit;
    assert_int_equal(hfi_downstream_enter(target->downstream, now, &permit, NULL), 0);
    assert_int_equal(hfi_downstream_leave_as(target->downstream, now, &permit, HF_VERDICT_FAILURE), 0);
}

static void open_breaker(struct hfi_target *target) {
    for (int i = 0; i < 20; i++)
        fail_once(target);
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(target->downstream, now, &view);
    assert_int_equal(view.state, HF_BREAKER_OPEN);
}

static void a_host_has_its_own_downstream(void **state) {
    (void)state;
    open_registry(10);
    struct hfi_target *a = take(1), *b = take(2), *again = take(1);
    assert_ptr_equal(a, again);
    assert_ptr_not_equal(a->downstream, b->downstream);
    assert_ptr_not_equal(a->downstream, origin->downstream);
    assert_ptr_equal(hfi_downstream_policy(a->downstream), hfi_downstream_policy(origin->downstream));
    assert_string_equal(hf_downstream_name(a->downstream), "hooks");
    assert_string_equal(hf_downstream_host(a->downstream), "https://host-1.test");
    assert_null(hf_downstream_host(origin->downstream));
    assert_int_equal(hfi_registry_count(registry), 2);
    hfi_target_unref(a);
    hfi_target_unref(b);
    hfi_target_unref(again);
}

static size_t in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* B31: a million hosts, and the memory of a thousand; what is open all the while is the same at the end. */
static void b31_a_million_hosts_take_bounded_memory(void **state) {
    (void)state;
    open_registry(1000);
    struct hfi_target *dead[3];
    for (unsigned i = 0; i < 3; i++) {
        dead[i] = take(HOSTS + i);
        open_breaker(dead[i]);
        hfi_target_unref(dead[i]); /* compared below, not used */
    }
    size_t limit = 0;
    for (unsigned i = 0; i < HOSTS; i++) {
        struct hfi_target *target = take(i);
        assert_true(is_own(target));
        hfi_target_unref(target);
        if (i == 2000)
            limit = in_use() + 1048576;
        if (i % 100000 == 99999)
            assert_true(in_use() < limit);
        assert_true(hfi_registry_count(registry) <= 1000);
    }
    assert_int_equal(hfi_registry_overflows(registry), 0);
    for (unsigned i = 0; i < 3; i++) {
        struct hfi_target *same = take(HOSTS + i);
        assert_ptr_equal(same, dead[i]);
        assert_int_equal(hfi_downstream_enter(same->downstream, now, &(struct hf_permit){0}, NULL), HF_EREJECTED);
        hfi_target_unref(same);
    }
}

/* B31: whatever a breaker knows keeps it; without an idle one the rest shares the overflow entry. */
static void b31_live_state_is_never_evicted(void **state) {
    (void)state;
    struct hf_permit permit;
    struct hfi_target *kept[8];
    open_registry(8);
    for (unsigned i = 0; i < 8; i++)
        kept[i] = take(i);
    open_breaker(kept[0]);
    open_breaker(kept[1]); /* half-open below */
    hfi_breaker_isolate(&kept[2]->downstream->breaker, now, 0, "by hand");
    hfi_breaker_gate(&kept[3]->downstream->breaker, (struct hf_mono){now.us + 50 * S});
    assert_int_equal(hfi_downstream_enter(kept[4]->downstream, now, &permit, NULL), 0);
    open_breaker(kept[5]); /* in its ramp below */
    now.us += 10 * S;
    assert_int_equal(hfi_downstream_enter(kept[1]->downstream, now, &(struct hf_permit){0}, NULL), 0);
    for (int i = 0; i < 3; i++) {
        struct hf_permit probe;
        assert_int_equal(hfi_downstream_enter(kept[5]->downstream, now, &probe, NULL), 0);
        assert_int_equal(hfi_downstream_leave_as(kept[5]->downstream, now, &probe, HF_VERDICT_SUCCESS), 0);
    }
    fail_once(kept[6]); /* a sample in its window */
    for (unsigned i = 0; i < 7; i++)
        hfi_target_unref(kept[i]);
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(kept[1]->downstream, now, &view);
    assert_int_equal(view.state, HF_BREAKER_HALF_OPEN);
    hfi_downstream_view(kept[5]->downstream, now, &view);
    assert_int_equal(view.state, HF_BREAKER_RAMP);
    for (unsigned i = 0; i < 100; i++) { /* kept[7] is held by us, all others know something */
        struct hfi_target *target = take(100 + i);
        assert_ptr_equal(target, origin);
        hfi_target_unref(target);
    }
    assert_int_equal(hfi_registry_overflows(registry), 100);
    for (unsigned i = 0; i < 8; i++) {
        struct hfi_target *same = take(i);
        assert_ptr_equal(same, kept[i]);
        hfi_target_unref(same);
    }
    hfi_target_unref(kept[7]); /* idle from now on: the only one that may go */
    struct hfi_target *fresh = take(500);
    assert_true(is_own(fresh));
    hfi_target_unref(fresh);
    assert_int_equal(hfi_registry_count(registry), 8);
    for (unsigned i = 0; i < 7; i++) {
        struct hfi_target *same = take(i);
        assert_ptr_equal(same, kept[i]);
        hfi_target_unref(same);
    }
    hfi_downstream_leave_as(kept[4]->downstream, now, &permit, HF_VERDICT_SUCCESS);
}

/* B31: a reference that a user holds keeps the entry, so that what he isolates is what calls will find. */
static void b31_a_held_downstream_stays(void **state) {
    (void)state;
    open_registry(1);
    struct hfi_target *target = take(1);
    struct hf_downstream *held = hf_downstream_ref(target->downstream);
    hfi_target_unref(target);
    struct hfi_target *other = take(2);
    assert_ptr_equal(other, origin);
    hfi_target_unref(other);
    hf_downstream_unref(held);
    other = take(2);
    assert_true(is_own(other));
    hfi_target_unref(other);
}

static bool has_room(unsigned number) {
    struct hfi_target *target = take(number);
    bool own = is_own(target);
    hfi_target_unref(target);
    return own;
}

/* Breaks that grew are remembered until a healthy window has passed, though nobody calls and the window is empty. */
static void b31_a_grown_break_is_remembered(void **state) {
    (void)state;
    open_registry(1);
    struct hfi_target *target = take(1);
    open_breaker(target);
    now.us += 6 * S;
    for (int i = 0; i < 3; i++) {
        struct hf_permit probe;
        assert_int_equal(hfi_downstream_enter(target->downstream, now, &probe, NULL), 0);
        assert_int_equal(hfi_downstream_leave_as(target->downstream, now, &probe, HF_VERDICT_SUCCESS), 0);
    }
    hfi_target_unref(target);
    now.us += 9 * S; /* in the ramp */
    assert_false(has_room(2));
    now.us += 2 * S; /* it is over, yet the next break would be a longer one */
    assert_false(has_room(2));
    now.us += 50 * S;
    assert_true(has_room(2));
}

/* Hosts that died and were given up do not fill the registry for ever. */
static void b31_a_break_long_over_is_forgotten(void **state) {
    (void)state;
    open_registry(1);
    struct hfi_target *target = take(1);
    open_breaker(target);
    hfi_target_unref(target);
    now.us += 60 * S; /* its break was over 55 s ago */
    assert_false(has_room(2));
    now.us += 66 * S; /* a window and a longest break ago */
    assert_true(has_room(2));
    target = take(2);
    hfi_breaker_isolate(&target->downstream->breaker, now, 0, "by hand");
    hfi_target_unref(target);
    now.us += 1000000 * S;
    assert_false(has_room(3));
}

/* B32: an eviction while somebody holds the evicted one, and memory that ends at any place: no use after free (ASan). */
static int churn(void *user) {
    struct hfi_target *held[4] = {0};
    int rc = 0;
    (void)user;
    struct hf_downstream_options options = hf_downstream_at("hooks", NULL);
    struct hfi_target *own = NULL;
    options.per_host = true;
    options.hosts_max = 3;
    rc = hfi_target_new(NULL, &options, NULL, &own, NULL);
    for (unsigned i = 0; rc == 0 && i < 40; i++) {
        char key[32];
        struct hf_permit permit;
        snprintf(key, sizeof key, "http://h%u", i % 9);
        hfi_target_unref(held[i % 4]);
        held[i % 4] = NULL;
        rc = hfi_registry_take(own->registry, own, key, now, &held[i % 4]);
        for (unsigned j = 0; j < 4; j++)
            if (held[j] && hfi_downstream_enter(held[j]->downstream, now, &permit, NULL) == 0)
                hfi_downstream_give_back(held[j]->downstream, now, &permit);
        if (rc == 0 && i == 20) { /* as a reload does */
            struct hfi_target *next = NULL;
            rc = hfi_target_new(NULL, &options, own->downstream, &next, NULL);
            if (rc == 0)
                rc = hfi_registry_adopt(next->registry, next, own->registry);
            if (next && rc) {
                hfi_target_retire(next);
                hfi_target_unref(next);
            } else if (next) {
                hfi_target_retire(own);
                hfi_target_unref(own);
                own = next;
            }
        }
    }
    if (own)
        hfi_target_retire(own);
    for (unsigned i = 0; i < 4; i++) /* they outlive the registry */
        hfi_target_unref(held[i]);
    hfi_target_unref(own);
    return rc;
}

static void b32_no_memory_anywhere(void **state) {
    (void)state;
    assert_true(hf_test_alloc_sweep(churn, NULL) > 20);
}

static void adopting_keeps_the_breakers(void **state) {
    (void)state;
    struct hfi_target *next, *target, *first = NULL;
    open_registry(3);
    for (unsigned i = 0; i < 3; i++) {
        target = take(i);
        if (i == 0)
            first = target;
        else
            hfi_target_unref(target);
    }
    open_breaker(first);
    next = make_origin(2);
    assert_int_equal(hfi_registry_adopt(next->registry, next, registry), 0);
    assert_int_equal(hfi_registry_count(next->registry), 3); /* more than it would take by itself */
    hfi_target_retire(origin);
    hfi_target_unref(origin);
    origin = next;
    registry = next->registry;
    target = take(0);
    assert_ptr_not_equal(target, first);
    assert_ptr_equal(target->downstream, first->downstream);
    hfi_target_unref(target);
    hfi_target_unref(first);
    target = take(7); /* idle ones make room, down to the new bound */
    assert_true(is_own(target));
    hfi_target_unref(target);
    assert_int_equal(hfi_registry_count(registry), 2);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_host_has_its_own_downstream),
        TEST(b31_a_million_hosts_take_bounded_memory),
        TEST(b31_live_state_is_never_evicted),
        TEST(b31_a_held_downstream_stays),
        TEST(b31_a_grown_break_is_remembered),
        TEST(b31_a_break_long_over_is_forgotten),
        TEST(b32_no_memory_anywhere),
        TEST(adopting_keeps_the_breakers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
