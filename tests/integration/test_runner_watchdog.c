/* SPDX-License-Identifier: MIT */
/* The watchdog of a runner as a program has it. It waits for what has to come, and nothing here depends on speed. */
#include "support.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/holdfast.h"

struct stuck {
    struct hf_runner *runner;
    _Atomic bool healthy_then;
    _Atomic int phases[2];
    _Atomic unsigned runners; /* times that the loop was named */
};

/* ThreadSanitizer keeps signals back from a thread that sleeps in a call. */
#if defined __SANITIZE_THREAD__
#define STACKS 0
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define STACKS 0
#endif
#endif
#ifndef STACKS
#define STACKS 1
#endif

static int pipes[2];         /* what the loop hangs in */
static _Atomic int in_stack; /* how often the log showed the function that hangs */

__attribute__((noinline)) static void hang_in_a_read(void) {
    char byte;
    while (read(pipes[0], &byte, 1) != 1)
        continue;
    atomic_signal_fence(memory_order_seq_cst); /* no tail call: it stays on the stack */
}

/* Is one of the frames, "module+0x12ab(name+0x3) < …", within that function? */
static void find_frame(enum hf_log_level level, const char *event, const char *fields, void *user) {
    Dl_info info;
    const char *stack = strcmp(event, "loop.late") == 0 ? strstr(fields, "\"stack\":\"") : NULL;
    (void)level;
    (void)user;
    if (stack == NULL || dladdr((void *)(uintptr_t)hang_in_a_read, &info) == 0)
        return;
    uintptr_t start = (uintptr_t)hang_in_a_read - (uintptr_t)info.dli_fbase;
    for (const char *at = strstr(stack, "+0x"); at != NULL; at = strstr(at + 1, "+0x")) {
        uintptr_t offset = (uintptr_t)strtoull(at + 3, NULL, 16);
        if (offset > start && offset < start + 400)
            atomic_fetch_add(&in_stack, 1);
    }
}

static void hang_in_it(enum hf_runner_phase phase, void *user) {
    struct stuck *stuck = user;
    atomic_fetch_add(&stuck->phases[phase], 1);
    if (phase == HF_RUNNER_READY)
        hang_in_a_read();
}

static void note_hung(const char *loop, void *user) {
    struct stuck *stuck = user;
    if (strcmp(loop, "runner") != 0)
        return;
    atomic_store(&stuck->healthy_then, hf_runner_healthy(stuck->runner));
    atomic_fetch_add(&stuck->runners, 1);
}

/* S4.7, S4.13: a loop that hangs is bad health first, told with the stack of its thread, then acted on by its name; one that
 * goes on is good health again. */
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
    options.stack_signal = SIGRTMIN + 7;
    options.life_user = &stuck;
    assert_int_equal(pipe(pipes), 0);
    hf_log_set(HF_LOG_ERROR, find_frame, NULL);
    assert_int_equal(hf_runner_new(store, &options, &stuck.runner, NULL), 0);
    assert_true(hf_runner_healthy(stuck.runner));
    assert_int_equal(hf_runner_start(stuck.runner, NULL), 0);
    while (atomic_load(&stuck.runners) == 0 || (STACKS && atomic_load(&in_stack) == 0))
        sched_yield();
    assert_int_equal(write(pipes[1], "x", 1), 1);
    while (!hf_runner_healthy(stuck.runner)) /* it goes round again */
        sched_yield();
    assert_false(atomic_load(&stuck.healthy_then));
    assert_int_equal(hf_runner_drain(stuck.runner), 0);
    hf_runner_look(stuck.runner, &counts);
    assert_true(counts.missed_beats >= 1);
    assert_int_equal(stuck.phases[HF_RUNNER_READY], 1);
    assert_int_equal(stuck.phases[HF_RUNNER_STOPPING], 1);
    hf_runner_free(stuck.runner);
    stuck.runner = NULL;
    struct hf_error refused = hf_error_none();
    assert_int_not_equal(signal(SIGUSR2, SIG_IGN), SIG_ERR);
    options.stack_signal = SIGUSR2; /* it is the program's */
    assert_int_equal(hf_runner_new(store, &options, &stuck.runner, &refused), HF_EEXIST);
    assert_string_equal(refused.what, "stack_signal");
    options.stack_signal = 0;
    close(pipes[0]);
    close(pipes[1]);
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
