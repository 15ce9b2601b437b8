/* SPDX-License-Identifier: MIT */
/* The watchdog of a runner as a program has it. It waits for what has to come, and nothing here depends on speed. */
#include "support.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "holdfast/holdfast.h"

struct stuck {
    struct hf_runner *runner;
    _Atomic bool loose, healthy_then;
    _Atomic int phases[2];
    _Atomic unsigned runners; /* times that the loop was named */
};

static void hang_in_it(enum hf_runner_phase phase, void *user) {
    struct stuck *stuck = user;
    atomic_fetch_add(&stuck->phases[phase], 1);
    while (phase == HF_RUNNER_READY && !atomic_load(&stuck->loose))
        sched_yield();
}

static void note_hung(const char *loop, void *user) {
    struct stuck *stuck = user;
    if (strcmp(loop, "runner") != 0)
        return;
    atomic_store(&stuck->healthy_then, hf_runner_healthy(stuck->runner));
    atomic_fetch_add(&stuck->runners, 1);
    atomic_store(&stuck->loose, true);
}

/* S4.7, S4.13: a loop that hangs is bad health first, then acted on by its name; one that goes on is good health again. */
static void a_hung_loop_is_told_by_name_S4_13(void **state) {
    (void)state;
    struct stuck stuck = {.healthy_then = true};
    struct hf_store_options store_options;
    struct hf_store *store = NULL;
    struct hf_runner_options options;
    struct hf_runner_counts counts = {.size = sizeof counts};
    hf_store_options_init(&store_options);
    assert_int_equal(hf_store_open("memory:", &store_options, &store, NULL), 0);
    hf_runner_options_init(&options);
    options.watchdog_ms = 40;
    options.watchdog_grace_ms = 40;
    options.hung = note_hung;
    options.phase = hang_in_it;
    options.life_user = &stuck;
    hf_log_set(HF_LOG_ERROR + 1, NULL, NULL);
    assert_int_equal(hf_runner_new(store, &options, &stuck.runner, NULL), 0);
    assert_true(hf_runner_healthy(stuck.runner));
    assert_int_equal(hf_runner_start(stuck.runner, NULL), 0);
    while (atomic_load(&stuck.runners) == 0)
        sched_yield();
    while (!hf_runner_healthy(stuck.runner)) /* it goes round again */
        sched_yield();
    assert_false(atomic_load(&stuck.healthy_then));
    assert_int_equal(hf_runner_drain(stuck.runner), 0);
    hf_runner_look(stuck.runner, &counts);
    assert_true(counts.missed_beats >= 1);
    assert_int_equal(stuck.phases[HF_RUNNER_READY], 1);
    assert_int_equal(stuck.phases[HF_RUNNER_STOPPING], 1);
    hf_log_set(HF_LOG_INFO, NULL, NULL);
    hf_runner_free(stuck.runner);
    options.watchdog_ms = -1;
    struct hf_error error = hf_error_none();
    assert_int_equal(hf_runner_new(store, &options, &stuck.runner, &error), HF_ECONFIG);
    hf_store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hung_loop_is_told_by_name_S4_13),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
