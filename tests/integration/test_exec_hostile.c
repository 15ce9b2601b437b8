/* SPDX-License-Identifier: MIT */
/* Processes that mean no good, as jobs: none holds, floods or outlives its node. S0.1, S0.33, S2.7, I65, I66. */
#include "exec_stage.h"

/* 64 KiB and more than a pipe holds, never read: no SIGPIPE, nobody waits. */
static void payload_may_be_ignored_while_it_runs(void **state) {
    (void)state;
    static char bytes[65536 + 1];
    for (size_t length = sizeof bytes - 2; length <= sizeof bytes; length++) {
        memset(bytes, 'p', sizeof bytes);
        job.payload = bytes;
        job.payload_length = length;
        run_script("echo unread");
        assert_result("unread\n", 7);
        hfi_ending_free(&work.ending);
        ends = 0;
        prepare(&work);
        run_script("head -c 1 >/dev/null; exec <&-; echo closed");
        assert_result("closed\n", 7);
        hfi_ending_free(&work.ending);
        ends = 0;
        prepare(&work);
    }
}

static void closed_outputs_are_no_end(void **state) {
    (void)state;
    run_script("exec >&- 2>&-; sleep 0.05; exit 7");
    assert_failed("exit.7", HF_RESULT_FAILED);
}

static void flood_that_ignores_term_is_killed_S2_7(void **state) {
    (void)state;
    type.options.kill_grace_ms = 20;
    run_and_stop("trap '' TERM; echo >$READY; while :; do echo flood; echo flood >&2; done");
    assert_failed("signal.SIGKILL", HF_RESULT_FAILED);
    assert_true(strlen(work.ending.detail) <= HFI_DETAIL_MAX);
}

/* Grandchildren in the group die with it, also when their parent ends first and they hold its pipes. */
static void group_that_holds_stdout_dies_at_the_limit(void **state) {
    (void)state;
    int64_t before = hfi_mono_now().us;
    run_script("(trap '' TERM; sleep 1000) & (trap '' TERM; exec sleep 1000) & echo done");
    assert_result("done\n", 5);
    assert_true(hfi_mono_now().us - before < INT64_C(900000000)); /* not by their own end */
}

static void nobody_but_the_payload_is_on_stdin_S0_33(void **state) {
    (void)state;
    static const char payload[] = "$(touch /tmp/no)\n`id`\0;exit 1\n";
    job.payload = payload;
    job.payload_length = sizeof payload - 1;
    set_command("/bin/cat", NULL, NULL);
    go();
    assert_result(payload, sizeof payload - 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(payload_may_be_ignored_while_it_runs),
        TEST(closed_outputs_are_no_end),
        TEST(flood_that_ignores_term_is_killed_S2_7),
        TEST(group_that_holds_stdout_dies_at_the_limit),
        TEST(nobody_but_the_payload_is_on_stdin_S0_33),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
