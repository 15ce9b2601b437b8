/* SPDX-License-Identifier: MIT */
/*
 * Processes as jobs, on the real loop: payload in, output out, how they end, what they leave behind. S0.1, S0.33, S1.18,
 * S2.7, S3.4, I65, I66.
 */
#include "exec_stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ------------------------------------------------------------------ in and out */

static void every_byte_comes_back_I65(void **state) {
    (void)state;
    static unsigned char bytes[65536];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 167 + (i >> 8));
    job.payload = bytes;
    job.payload_length = sizeof bytes;
    set_command("/bin/cat", NULL, NULL);
    go();
    assert_result(bytes, sizeof bytes);
    assert_true(atomic_load(&work.may_have_sent));
}

static void no_payload_is_an_empty_stdin(void **state) {
    (void)state;
    set_command("/bin/cat", NULL, NULL);
    go();
    assert_result("", 0);
}

static void child_may_ignore_its_stdin(void **state) {
    (void)state;
    job.payload_length = (size_t)4 << 20;
    void *bytes = calloc(1, job.payload_length);
    job.payload = bytes;
    run_script("exec <&-; echo done");
    free(bytes);
    assert_result("done\n", 5);
}

static void floods_are_cut_and_drained(void **state) {
    (void)state;
    run_script("head -c 20000000 /dev/zero; echo said >&2");
    static const char zeros[65536];
    assert_result(zeros, sizeof zeros);
}

static void evidence_keeps_both_ends_I66(void **state) {
    (void)state;
    run_script("echo first >&2; head -c 3000000 /dev/zero | tr '\\0' '\\377' >&2; echo >&2; echo last word >&2; exit 3");
    assert_failed("exit.3", HF_RESULT_FAILED);
    const char *detail = work.ending.detail;
    size_t length = strlen(detail);
    assert_true(length <= HFI_DETAIL_MAX && length > HFI_DETAIL_MAX / 2);
    assert_true(hfi_text_valid(detail, length));
    assert_int_equal(strncmp(detail, "first\n", 6), 0);
    assert_string_equal(detail + length - 10, "last word\n");
    assert_non_null(strstr(detail, " bytes left out ...]"));
    assert_non_null(strstr(work.ending.outcome.message, "last word"));
}

static void stdout_is_the_evidence_of_the_silent(void **state) {
    (void)state;
    run_script("echo 'no such account'; exit 1");
    assert_failed("exit.1", HF_RESULT_FAILED);
    assert_string_equal(work.ending.detail, "no such account\n");
    assert_non_null(strstr(work.ending.outcome.message, "no such account"));
}

/* ------------------------------------------------------------------ how it ends */

static void exit_codes_are_classified_S0_1(void **state) {
    static const struct {
        const char *text, *error_type;
        enum hf_result result;
    } cases[] = {{"exit 75", "exit.75", HF_RESULT_FAILED},       {"exit 1", "exit.1", HF_RESULT_FAILED},
                 {"exit 64", "exit.64", HF_RESULT_PERMANENT},    {"exit 255", "exit.255", HF_RESULT_FAILED},
                 {"kill -SEGV $$", "signal.SIGSEGV", HF_RESULT_FAILED}, {"kill -KILL $$", "signal.SIGKILL", HF_RESULT_FAILED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_script(cases[i].text);
        assert_failed(cases[i].error_type, cases[i].result);
        assert_int_equal(work.ending.outcome.sent, HF_SENT_MAYBE);
        tear_down(state);
        set_up(state);
    }
}

/* S3.14: the word of a command that cannot read a payload of the declared kind; one that was told to stop says nothing by it. */
static void exit_65_is_an_unreadable_payload_S3_14(void **state) {
    (void)state;
    type.options.payload = HF_PAYLOAD_JSON;
    run_script("echo 'line 3: what is a quux?' >&2; exit 65");
    assert_failed("payload.unreadable", HF_RESULT_UNREADABLE);
    assert_int_equal(work.ending.outcome.klass, HF_CLASS_POISON);
    assert_non_null(strstr(work.ending.outcome.message, "what is a quux?"));
    assert_non_null(strstr(work.ending.detail, "what is a quux?"));
    tear_down(state);
    set_up(state);
    type.options.payload = HF_PAYLOAD_TEXT;
    run_and_stop("trap 'exit 65' TERM; echo >$READY; while :; do sleep 0.01; done");
    assert_failed("exit.65", HF_RESULT_PERMANENT);
}

static void what_cannot_start_is_permanent(void **state) {
    (void)state;
    static const struct {
        const char *program, *directory, *error_type;
    } cases[] = {{"/nonexistent/program", NULL, "exec.not_found"},
                 {"/etc/passwd", NULL, "exec.not_permitted"},
                 {"/bin/true", "/nonexistent", "exec.no_directory"}};
    for (size_t i = 0; i < 3; i++) {
        set_command(cases[i].program, NULL, NULL);
        type.options.directory = cases[i].directory;
        assert_int_not_equal(kind->ops->start(kind, &work), 0);
        assert_failed(cases[i].error_type, HF_RESULT_PERMANENT);
        assert_int_equal(work.ending.outcome.sent, HF_SENT_NO);
        assert_false(atomic_load(&work.may_have_sent));
    }
    assert_int_equal(ends, 0);
}

static int open_descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void shortage_is_no_failure_of_the_job(void **state) {
    (void)state;
    struct rlimit before, none;
    set_command("/bin/true", NULL, NULL);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    int descriptors = open_descriptors(), free_fd = dup(0);
    close(free_fd);
    for (rlim_t more = 0; more < 5; more++) {
        none.rlim_cur = (rlim_t)free_fd + more;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        int code = kind->ops->start(kind, &work);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_not_equal(code, 0);
        assert_int_equal(work.ending.outcome.kind, HF_OUTCOME_REJECTED);
        assert_string_equal(work.ending.outcome.error_type, "local.processes");
        assert_int_equal(open_descriptors(), descriptors);
    }
}

/* ------------------------------------------------------------------ its surroundings */

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void environment_is_what_is_listed_S1_18(void **state) {
    (void)state;
    static const char *const listed[] = {"GREETING=hello world", "INHERITED", "ABSENT"};
    assert_int_equal(setenv("INHERITED", "yes", 1), 0);
    assert_int_equal(setenv("SECRET", "never", 1), 0);
    assert_int_equal(unsetenv("ABSENT"), 0);
    type.options.environment = listed;
    type.options.environment_length = 3;
    set_command("/usr/bin/env", NULL, NULL);
    go();
    assert_int_equal(work.ending.result, HF_RESULT_OK);
    char text[4096];
    char *lines[32];
    size_t count = 0;
    memcpy(text, work.ending.data, work.ending.length);
    text[work.ending.length] = '\0';
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        lines[count++] = line;
    qsort(lines, count, sizeof *lines, by_name);
    char node[80], run[80];
    snprintf(node, sizeof node, "HOLDFAST_NODE=%s-0", store_uuid);
    snprintf(run, sizeof run, "HOLDFAST_RUN=%s-17.0", store_uuid);
    const char *const expected[] = {"GREETING=hello world", "HOLDFAST_EXECUTION=2", "HOLDFAST_JOB=17",
                                    "HOLDFAST_KEY=store-17", node, run, "HOLDFAST_TYPE=script",
                                    "INHERITED=yes", "TRACEPARENT=00-ab-cd-01"};
    assert_int_equal(count, 9);
    for (size_t i = 0; i < 9; i++)
        assert_string_equal(lines[i], expected[i]);
}

static void nothing_is_inherited_S1_18(void **state) {
    (void)state;
    sigset_t some, before;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    sigaddset(&some, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &some, &before);
    void (*interrupt)(int) = signal(SIGINT, SIG_IGN);
    int leaked[3];
    for (int i = 0; i < 3; i++)
        leaked[i] = fcntl(0, F_DUPFD, 60 + 7 * i); /* not close-on-exec */
    run_script("grep -E '^Sig(Blk|Ign)' /proc/self/status; for f in /proc/$$/fd/*; do echo fd ${f##*/}; done; pwd;"
               "read pid comm state parent group session rest </proc/self/stat; [ $group = $$ ] && [ $session = $$ ] && echo leads");
    for (int i = 0; i < 3; i++)
        close(leaked[i]);
    signal(SIGINT, interrupt);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(work.ending.result, HF_RESULT_OK);
    char text[4096];
    memcpy(text, work.ending.data, work.ending.length);
    text[work.ending.length] = '\0';
    assert_non_null(strstr(text, "SigBlk:\t0000000000000000"));
    const char *ignored = strstr(text, "SigIgn:\t");
    assert_non_null(ignored);
    assert_int_equal(strtoull(ignored + 8, NULL, 16) & ~UINT64_C(0x180000000), 0); /* 32, 33: glibc's own, in any spawn */
    assert_non_null(strstr(text, "fd 2\n"));
    for (char *at = strstr(text, "fd "); at; at = strstr(at + 1, "fd "))
        assert_true(atoi(at + 3) <= 3 || atoi(at + 3) == 10); /* the shell's own look at the folder */
    assert_non_null(strstr(text, "\n/\n"));
    assert_non_null(strstr(text, "leads\n"));
}

static void arguments_are_no_shell_S0_33(void **state) {
    (void)state;
    set_command("/bin/echo", "$(id); `id` | cat", "a b");
    job.payload = "; rm -rf /";
    job.payload_length = 10;
    go();
    assert_result("$(id); `id` | cat a b\n", 22);
}

/* ------------------------------------------------------------------ stopping */

static void term_ends_it_S2_7(void **state) {
    (void)state;
    run_and_stop("echo >$READY; while :; do sleep 1; done");
    assert_failed("signal.SIGTERM", HF_RESULT_FAILED);
}

static void exit_with_0_after_term_is_no_success_S0_1(void **state) {
    (void)state;
    run_and_stop("trap 'exit 0' TERM; echo >$READY; while :; do sleep 0.01; done");
    assert_failed("exec.stopped", HF_RESULT_FAILED);
}

static void kill_follows_term_S3_4(void **state) {
    (void)state;
    type.options.kill_grace_ms = 50;
    int64_t before = hfi_mono_now().us;
    run_and_stop("trap '' TERM; echo >$READY; while :; do sleep 0.01; done");
    assert_failed("signal.SIGKILL", HF_RESULT_FAILED);
    assert_true(hfi_mono_now().us - before >= 50000);
}

static void hurry_kills_at_once(void **state) {
    (void)state;
    script("trap '' TERM; while :; do sleep 0.01; done"); /* a grace of 30 s: the test's timeout would tell */
    assert_int_equal(kind->ops->start(kind, &work), 0);
    kind->ops->stop(kind, &work, false);
    kind->ops->stop(kind, &work, true);
    loop->ops->run(loop);
    assert_true(strncmp(work.ending.outcome.error_type, "signal.SIG", 10) == 0);
}

/* ------------------------------------------------------------------ what it leaves behind */

static int pid_in(const char *path) {
    int pid = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    return pid;
}

static void group_is_killed_after_its_leader(void **state) {
    (void)state;
    int status;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    run_script("sleep 1000 & echo $!");
    assert_int_equal(work.ending.result, HF_RESULT_OK);
    char text[32] = "";
    memcpy(text, work.ending.data, work.ending.length);
    assert_int_equal(waitpid(atoi(text), &status, 0), atoi(text));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void grandchild_that_holds_stdout_does_not_hold_us(void **state) {
    (void)state;
    char variable[4096];
    const char *path = hf_test_path("pid");
    const char *const listed[] = {variable, "PATH"};
    snprintf(variable, sizeof variable, "PIDFILE=%s", path);
    unlink(path);
    type.options.environment = listed;
    type.options.environment_length = 2;
    run_script("setsid sh -c 'echo $$ >$PIDFILE.new; mv $PIDFILE.new $PIDFILE; exec sleep 1000' &\n"
               "while [ ! -e $PIDFILE ]; do sleep 0.01; done; echo done");
    assert_result("done\n", 5);
    int pid = pid_in(path); /* it got away, as it wanted; it does not hold the job */
    assert_int_equal(kill(pid, SIGKILL), 0);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void status_taken_by_others_is_no_success(void **state) {
    (void)state;
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    script("exit 0");
    int code = kind->ops->start(kind, &work); /* fails when it is over, and gone, before we can look */
    if (code == 0)
        loop->ops->run(loop);
    signal(SIGCHLD, before);
    assert_int_equal(ends, code == 0 ? 1 : 0);
    assert_failed("exec.status_lost", HF_RESULT_FAILED);
    assert_true(atomic_load(&work.may_have_sent));
}

static void runs_leave_nothing_behind(void **state) {
    (void)state;
    static struct hf_work many[200];
    int before = open_descriptors();
    script("cat; echo x >&2; exit $((HOLDFAST_EXECUTION - 2))");
    job.payload = "payload";
    job.payload_length = 7;
    for (int i = 0; i < 200; i += 20) {
        ends = 0;
        wanted_ends = 20;
        for (int j = i; j < i + 20; j++) {
            prepare(&many[j]);
            assert_int_equal(kind->ops->start(kind, &many[j]), 0);
        }
        loop->ops->run(loop);
    }
    for (int i = 0; i < 200; i++) {
        assert_int_equal(many[i].ending.result, HF_RESULT_OK);
        assert_int_equal(many[i].ending.length, 7);
        hfi_ending_free(&many[i].ending);
    }
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD); /* no zombie */
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    int before = open_descriptors();
    bool whole = false;
    script("echo out; echo err >&2; exit 1");
    for (long nth = 1; !whole; nth++) {
        ends = 0;
        prepare(&work);
        hfi_alloc_fail(nth, 0);
        int code = kind->ops->start(kind, &work);
        if (code == 0)
            loop->ops->run(loop);
        whole = hfi_alloc_count() < nth;
        hfi_alloc_fail(0, 0);
        assert_int_equal(ends, code == 0 ? 1 : 0);
        assert_int_not_equal(work.ending.result, HF_RESULT_OK);
        assert_true(work.ending.outcome.error_type[0]);
        hfi_ending_free(&work.ending);
        assert_int_equal(open_descriptors(), before);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    }
    assert_string_equal(work.ending.outcome.error_type, "exit.1");
}

/* ------------------------------------------------------------------ limits */

static void limits_are_those_of_the_type(void **state) {
    (void)state;
    type.options.max_memory = INT64_C(3) << 30;
    type.options.max_cpu_ms = 1500;
    type.options.max_files = 20;
    type.options.max_processes = 3000;
    struct rlimit before, after;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    set_command("/bin/cat", "/proc/self/limits", NULL);
    go();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
    assert_memory_equal(&before, &after, sizeof before); /* ours stay */
    assert_int_equal(work.ending.result, HF_RESULT_OK);
    char text[8192];
    memcpy(text, work.ending.data, work.ending.length);
    text[work.ending.length] = '\0';
    unsigned long long soft, hard;
    assert_int_equal(sscanf(strstr(text, "Max address space"), "Max address space %llu %llu", &soft, &hard), 2);
    assert_true(soft == 3ull << 30 && hard == 3ull << 30);
    assert_int_equal(sscanf(strstr(text, "Max cpu time"), "Max cpu time %llu %llu", &soft, &hard), 2);
    assert_true(soft == 2 && hard == 3);
    assert_int_equal(sscanf(strstr(text, "Max open files"), "Max open files %llu %llu", &soft, &hard), 2);
    assert_true(soft == 20 && hard == 20);
    assert_int_equal(sscanf(strstr(text, "Max processes"), "Max processes %llu %llu", &soft, &hard), 2);
    assert_true(soft == 3000 && hard == 3000);
}

static void processor_time_ends_in_a_signal(void **state) {
    (void)state;
    type.options.max_cpu_ms = 1;
    run_script("while :; do :; done");
    assert_failed("signal.SIGXCPU", HF_RESULT_FAILED);
}

/* What holds without limits holds with them: surroundings, output, failures, nothing left. */
static void limited_children_are_like_others_S1_18(void **state) {
    type.options.max_files = 64;
    environment_is_what_is_listed_S1_18(state);
    hfi_ending_free(&work.ending);
    ends = 0;
    prepare(&work);
    type.options.environment_length = 0;
    nothing_is_inherited_S1_18(state);
    hfi_ending_free(&work.ending);
    prepare(&work);
    ends = 0;
    what_cannot_start_is_permanent(state);
    hfi_ending_free(&work.ending);
    type.options.directory = NULL;
    type.options.max_memory = 1 << 20; /* too little for any program */
    run_script("exit 0");
    assert_int_not_equal(work.ending.result, HF_RESULT_OK);
    type.options.max_memory = 0;
    hfi_ending_free(&work.ending);
    ends = 0;
    prepare(&work);
    runs_leave_nothing_behind(state);
    wanted_ends = 1;
    every_allocation_may_fail(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_byte_comes_back_I65),
        TEST(no_payload_is_an_empty_stdin),
        TEST(child_may_ignore_its_stdin),
        TEST(floods_are_cut_and_drained),
        TEST(evidence_keeps_both_ends_I66),
        TEST(stdout_is_the_evidence_of_the_silent),
        TEST(exit_65_is_an_unreadable_payload_S3_14),
        TEST(exit_codes_are_classified_S0_1),
        TEST(what_cannot_start_is_permanent),
        TEST(shortage_is_no_failure_of_the_job),
        TEST(environment_is_what_is_listed_S1_18),
        TEST(nothing_is_inherited_S1_18),
        TEST(arguments_are_no_shell_S0_33),
        TEST(term_ends_it_S2_7),
        TEST(exit_with_0_after_term_is_no_success_S0_1),
        TEST(kill_follows_term_S3_4),
        TEST(hurry_kills_at_once),
        TEST(group_is_killed_after_its_leader),
        TEST(grandchild_that_holds_stdout_does_not_hold_us),
        TEST(status_taken_by_others_is_no_success),
        TEST(runs_leave_nothing_behind),
        TEST(every_allocation_may_fail),
        TEST(limits_are_those_of_the_type),
        TEST(processor_time_ends_in_a_signal),
        TEST(limited_children_are_like_others_S1_18),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
