/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_EXEC_STAGE_H
#define TESTS_SUPPORT_EXEC_STAGE_H

/* One process as a job, on the real loop: what the tests of the exec kind share. Included by one file of a test. */
#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/work.h"
#include "loop/loop.h"

static struct hfi_scheduler *loop;
static struct hfi_kind *kind;
static struct hfi_type type;
static struct hfi_job job;
static struct hf_work work;
static const char *command[8];
static int ends;
static int wanted_ends;

static inline void ended(struct hf_work *done, void *user) {
    (void)user;
    assert_null(done->kind_state);
    if (++ends == wanted_ends)
        loop->ops->stop(loop);
}

static char store_uuid[40]; /* of this process alone: what carries its mark is killed */

static inline void prepare(struct hf_work *one) {
    snprintf(store_uuid, sizeof store_uuid, "store-of-%d", (int)getpid());
    memset(one, 0, sizeof *one);
    one->job = &job;
    one->type = &type;
    one->scheduler = loop;
    one->deadline.us = HFI_FOREVER_US;
    one->ended = ended;
    snprintf(one->key, sizeof one->key, "store-17");
    one->store_uuid = store_uuid;
    hfi_outcome_init(&one->ending.outcome);
}

static inline int set_up(void **state) {
    (void)state;
    assert_int_equal(hfi_loop_new(&loop), 0);
    assert_int_equal(hfi_kind_exec_new(loop, &kind), 0);
    memset(&type, 0, sizeof type);
    hf_type_options_init(&type.options);
    type.options.kind = HF_KIND_EXEC;
    type.options.name = "script";
    type.options.command = command;
    type.options.kill_grace_ms = 30000;
    job = (struct hfi_job){.id = 17, .executions = 2, .type = "script", .queue = "default", .trace_context = "00-ab-cd-01",
                           .payload = "", .idempotency_key = "", .source = "", .source_message_id = ""};
    ends = 0;
    wanted_ends = 1;
    prepare(&work);
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    hfi_ending_free(&work.ending);
    kind->ops->close(kind);
    loop->ops->close(loop);
    return 0;
}

static inline void set_command(const char *first, const char *second, const char *third) {
    command[0] = first;
    command[1] = second;
    command[2] = third;
    type.options.command_length = third ? 3 : second ? 2 : 1;
}

static inline void script(const char *text) {
    set_command("/bin/sh", "-c", text);
}

static inline void go(void) {
    assert_int_equal(kind->ops->start(kind, &work), 0);
    assert_int_equal(ends, 0); /* never inside start */
    loop->ops->run(loop);
    assert_int_equal(ends, 1);
}

static inline void run_script(const char *text) {
    script(text);
    go();
}

static inline void assert_result(const void *data, size_t length) {
    assert_int_equal(work.ending.result, HF_RESULT_OK);
    assert_int_equal(work.ending.length, length);
    assert_memory_equal(work.ending.data, data, length);
    assert_null(work.ending.detail);
}

static inline void assert_failed(const char *error_type, enum hf_result result) {
    assert_string_equal(work.ending.outcome.error_type, error_type);
    assert_int_equal(work.ending.result, result);
    assert_null(work.ending.data);
}

static struct hfi_watch *ready_watch;
static int ready_fd;

static inline void told_ready(struct hfi_watch *watch, unsigned events, void *user) {
    char byte;
    (void)events;
    (void)user;
    if (read(ready_fd, &byte, 1) != 1)
        return;
    loop->ops->unwatch(loop, watch);
    atomic_store(&work.stop, HFI_STOP_TIMEOUT);
    kind->ops->stop(kind, &work, false);
    kind->ops->stop(kind, &work, false); /* twice is once */
    assert_int_equal(ends, 0);
}

/* Runs a program that writes to $READY when it wants to be stopped. */
static inline void run_and_stop_command(const char *first, const char *second, const char *third) {
    char variable[4096];
    const char *path = hf_test_path("ready");
    snprintf(variable, sizeof variable, "READY=%s", path);
    const char *const listed[] = {variable, "PATH"};
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    ready_fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(ready_fd >= 0);
    assert_int_equal(loop->ops->watch(loop, ready_fd, HFI_READABLE, told_ready, NULL, &ready_watch), 0);
    type.options.environment = listed;
    type.options.environment_length = 2;
    set_command(first, second, third);
    go();
    close(ready_fd);
}

static inline void run_and_stop(const char *text) {
    run_and_stop_command("/bin/sh", "-c", text);
}

#endif
