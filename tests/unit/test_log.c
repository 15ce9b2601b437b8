/* SPDX-License-Identifier: MIT */
#include "support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

static struct {
    int count;
    enum hf_log_level level;
    char event[64];
    char fields[16384];
} heard;

static void hear(enum hf_log_level level, const char *event, const char *fields, void *user) {
    assert_ptr_equal(user, &heard);
    heard.count++;
    heard.level = level;
    snprintf(heard.event, sizeof heard.event, "%s", event);
    snprintf(heard.fields, sizeof heard.fields, "%s", fields);
}

static void a_sink_gets_typed_fields(void **state) {
    (void)state;
    hf_log_set(HF_LOG_INFO, hear, &heard);
    heard.count = 0;
    hfi_log(HF_LOG_ERROR, "job.dead", HFI_I("job", INT64_MIN), HFI_S("error_type", "http.\"404\"\n"), HFI_B("last", 3),
            HFI_B("first", 0), HFI_S("none", NULL), NULL);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.level, HF_LOG_ERROR);
    assert_string_equal(heard.event, "job.dead");
    assert_string_equal(heard.fields,
                        "{\"job\":-9223372036854775808,\"error_type\":\"http.\\\"404\\\"\\n\",\"last\":true,"
                        "\"first\":false,\"none\":null}");
    hfi_log(HF_LOG_INFO, "empty", NULL);
    assert_string_equal(heard.fields, "{}");
    hf_log_set(HF_LOG_INFO, NULL, NULL);
}

static void levels_are_kept(void **state) {
    (void)state;
    heard.count = 0;
    hf_log_set(HF_LOG_WARNING, hear, &heard);
    assert_false(hfi_log_wants(HF_LOG_INFO));
    assert_true(hfi_log_wants(HF_LOG_WARNING));
    hfi_log(HF_LOG_INFO, "no", NULL);
    hfi_log(HF_LOG_DEBUG, "no", NULL);
    assert_int_equal(heard.count, 0);
    hfi_log(HF_LOG_WARNING, "yes", NULL);
    assert_int_equal(heard.count, 1);
    hf_log_set(HF_LOG_INFO, NULL, NULL);
}

/* I66: cut at 4,000 bytes, on a code point. */
static void long_texts_are_cut(void **state) {
    (void)state;
    char text[9000];
    memset(text, 'x', 3999);
    for (int i = 3999; i + 2 < 9000; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    text[8999] = '\0';
    hf_log_set(HF_LOG_INFO, hear, &heard);
    hfi_log(HF_LOG_INFO, "long", HFI_S("text", text), NULL);
    assert_int_equal(strlen(heard.fields), strlen("{\"text\":\"\"}") + 3999);
    hf_log_set(HF_LOG_INFO, NULL, NULL);
}

static void without_memory_the_event_still_goes_out(void **state) {
    (void)state;
    hf_log_set(HF_LOG_INFO, hear, &heard);
    heard.count = 0;
    hfi_alloc_fail(1, 1);
    errno = 77;
    hfi_log(HF_LOG_ERROR, "job.dead", HFI_I("job", 1), NULL);
    hfi_alloc_fail(0, 0);
    assert_int_equal(errno, 77);
    assert_int_equal(heard.count, 1);
    assert_string_equal(heard.event, "job.dead");
    assert_string_equal(heard.fields, "{\"fields_lost\":true}");
    hf_log_set(HF_LOG_INFO, NULL, NULL);
}

static void log_some(void) {
    hfi_log(HF_LOG_WARNING, "breaker.open", HFI_S("downstream", "p\xc3\xa4y\xff"), HFI_I("calls", 20), NULL);
    hfi_log(HF_LOG_ERROR, "bare", NULL);
}

/* Swaps stderr for `fd` while `work` runs. */
static void with_stderr(int fd, void (*work)(void)) {
    int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    fflush(stderr);
    dup2(fd, STDERR_FILENO);
    work();
    dup2(saved, STDERR_FILENO);
    close(saved);
}

static void stderr_gets_json_lines(void **state) {
    (void)state;
    FILE *file = tmpfile();
    char line[1000];
    json_t *root;
    with_stderr(fileno(file), log_some);
    rewind(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_non_null(root = json_loads(line, 0, NULL));
    int64_t when;
    assert_int_equal(hfi_rfc3339_parse(json_string_value(json_object_get(root, "time")), &when), 0);
    assert_true(hfi_wall_now().us - when >= 0);
    assert_string_equal(json_string_value(json_object_get(root, "level")), "warning");
    assert_string_equal(json_string_value(json_object_get(root, "event")), "breaker.open");
    assert_string_equal(json_string_value(json_object_get(root, "downstream")), "p\xc3\xa4y\xef\xbf\xbd");
    assert_int_equal(json_integer_value(json_object_get(root, "calls")), 20);
    json_decref(root);
    assert_non_null(fgets(line, sizeof line, file));
    assert_non_null(root = json_loads(line, 0, NULL));
    assert_int_equal(json_object_size(root), 3);
    json_decref(root);
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
}

/* A closed pipe, a full device: no signal, no changed errno, no waiting. */
static void a_broken_stderr_harms_nobody(void **state) {
    (void)state;
    int ends[2];
    sigset_t before, after, pending;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    errno = 77;
    with_stderr(ends[1], log_some); /* SIGPIPE has its default here: it would kill the test */
    close(ends[1]);
    sigpending(&pending);
    assert_false(sigismember(&pending, SIGPIPE));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&before, SIGPIPE), sigismember(&after, SIGPIPE));
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (full >= 0) {
        with_stderr(full, log_some);
        close(full);
    }
    int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    close(STDERR_FILENO);
    errno = 77;
    log_some();
    assert_int_equal(errno, 77);
    dup2(saved, STDERR_FILENO);
    close(saved);
}

#define LINES 100
#define THREADS 4
static void *log_lines(void *user) {
    char text[3000];
    memset(text, *(const char *)user, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < LINES; i++) /* longer than what a pipe takes in one piece (PIPE_BUF, 4096) */
        hfi_log(HF_LOG_INFO, "line", HFI_S("a", text), HFI_S("b", text), HFI_S("c", text), HFI_I("number", i), NULL);
    return NULL;
}
static void log_from_threads(void) {
    static char names[THREADS][2] = {"a", "b", "c", "d"};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_lines, names[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}
static int whole_lines; /* read after the join */
static void *read_lines(void *user) {
    char line[16384];
    while (fgets(line, sizeof line, user)) {
        json_t *root = json_loads(line, 0, NULL);
        whole_lines += root && json_object_size(root) == 7;
        json_decref(root);
    }
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state) {
    (void)state;
    int ends[2];
    pthread_t reader;
    whole_lines = 0;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    FILE *file = fdopen(ends[0], "r");
    assert_int_equal(pthread_create(&reader, NULL, read_lines, file), 0);
    with_stderr(ends[1], log_from_threads);
    close(ends[1]);
    pthread_join(reader, NULL);
    fclose(file);
    assert_int_equal(whole_lines, THREADS * LINES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sink_gets_typed_fields),    cmocka_unit_test(levels_are_kept),
        cmocka_unit_test(long_texts_are_cut),          cmocka_unit_test(without_memory_the_event_still_goes_out),
        cmocka_unit_test(stderr_gets_json_lines),      cmocka_unit_test(a_broken_stderr_harms_nobody),
        cmocka_unit_test(lines_of_threads_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
