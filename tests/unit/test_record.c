/* SPDX-License-Identifier: MIT */
/* Copies of job records and what may be enqueued: S0.13, S0.20, S2.11, S2.13, I40, I65, I66. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "jobs/record.h"

static const struct hf_wall now = {INT64_C(1780000000000000)};

static struct hf_job_spec spec_of(const char *type) {
    struct hf_job_spec spec;
    hf_job_spec_init(&spec);
    spec.type = type;
    return spec;
}

static int check(const struct hf_job_spec *spec, struct hfi_job *job, struct hfi_spec_room *room) {
    struct hf_error error;
    hf_error_init(&error);
    int code = hfi_spec_check(spec, now, 1024, job, room, &error);
    assert_int_equal(error.code, code);
    if (code != 0)
        assert_true(error.what[0] && error.why[0]);
    return code;
}

static void copy_is_one_block_with_every_byte_I65(void **state) {
    (void)state;
    unsigned char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    struct hfi_job job = {.id = 17, .type = "mail", .queue = "default", .error_message = "größer", .epoch = 3,
                          .payload = bytes, .payload_length = sizeof bytes, .result = bytes, .result_length = 3};
    struct hfi_job *copy = hfi_job_copy(&job);
    assert_non_null(copy);
    assert_int_equal(copy->id, 17);
    assert_int_equal(copy->epoch, 3);
    assert_string_equal(copy->type, "mail");
    assert_ptr_not_equal(copy->type, job.type);
    assert_string_equal(copy->error_message, "größer");
    assert_string_equal(copy->downstream, ""); /* NULL becomes "" */
    assert_string_equal(copy->cancel_reason, "");
    assert_int_equal(copy->payload_length, 256);
    assert_memory_equal(copy->payload, bytes, 256);
    assert_ptr_not_equal(copy->payload, job.payload);
    assert_int_equal(copy->result_length, 3);
    assert_memory_equal(copy->result, bytes, 3);
    struct hfi_job *again = hfi_job_copy(copy);
    hfi_free(copy);
    assert_memory_equal(again->payload, bytes, 256);
    hfi_free(again); /* one block: nothing else to free */
    hfi_alloc_fail(1, 0);
    assert_null(hfi_job_copy(&job));
    assert_true(hfi_alloc_count() == 1);
    hfi_alloc_fail(0, 0);
}

static void defaults_are_filled(void **state) {
    (void)state;
    struct hfi_job job;
    struct hfi_spec_room room;
    struct hf_job_spec spec = spec_of("mail");
    assert_int_equal(check(&spec, &job, &room), 0);
    assert_int_equal(job.state, HF_JOB_PENDING);
    assert_string_equal(job.queue, "default");
    assert_string_equal(job.downstream, "");
    assert_string_equal(job.limit_key, "");
    assert_int_equal(job.run_at_us, now.us);
    assert_int_equal(job.created_at_us, now.us);
    assert_int_equal(job.max_executions, 0); /* not set is not a value [S2.13] */
    assert_int_equal(job.execution_timeout_ms, -1);
    assert_int_equal(room.curve.max_executions, 0);
    assert_null(job.policy);
}

static void everything_given_arrives(void **state) {
    (void)state;
    struct hfi_job job;
    struct hfi_spec_room room;
    const int64_t waits[] = {5000, 300000, 18000000};
    struct hf_job_spec spec = spec_of("mail");
    spec.queue = "critical";
    spec.priority = 9;
    spec.curve_ms = waits;
    spec.curve_length = 3;
    spec.run_at_us = now.us + 5;
    spec.expires_at_us = now.us + 6;
    spec.downstream = "smtp";
    spec.limit_name = "tenant";
    spec.limit_key = "a:b";
    spec.unique_key = "k";
    spec.payload = "xyz";
    spec.payload_length = 3;
    assert_int_equal(check(&spec, &job, &room), 0);
    assert_string_equal(job.limit_key, "tenant:a:b");
    assert_string_equal(job.breaker_key, "smtp");
    assert_string_equal(job.reason, "scheduled");
    assert_ptr_equal(job.payload, spec.payload);
    assert_int_equal(room.curve.max_executions, 4); /* S4.1: waits + 1 */
    assert_int_equal(room.curve.waits_ms[2], 18000000);
    spec.max_executions = 2;
    assert_int_equal(check(&spec, &job, &room), 0);
    assert_int_equal(room.curve.max_executions, 2);
    assert_int_equal(job.max_executions, 2); /* S2.11 */
}

#define REFUSED(code_, change)                                                                                         \
    do {                                                                                                               \
        struct hf_job_spec spec = spec_of("mail");                                                                     \
        change;                                                                                                        \
        assert_int_equal(check(&spec, &job, &room), code_);                                                            \
    } while (0)

static void contradictions_are_refused(void **state) {
    (void)state;
    struct hfi_job job;
    struct hfi_spec_room room;
    char text[1200];
    int64_t waits[65] = {0};
    memset(text, 'x', sizeof text);
    text[301] = '\0';
    REFUSED(HF_EINVAL, spec.type = NULL);
    REFUSED(HF_EINVAL, spec.type = "");
    REFUSED(HF_ETOOBIG, spec.type = text);
    REFUSED(HF_ETEXT, spec.type = "\xff");
    REFUSED(HF_ETEXT, spec.queue = "caf\xc3");
    REFUSED(HF_EINVAL, spec.queue = "a\nb");
    REFUSED(HF_EINVAL, spec.type = "a\x1f"
                                   "b"); /* I40: the separator of scopes */
    REFUSED(HF_ETOOBIG, spec.unique_key = text);
    REFUSED(HF_ETOOBIG, spec.queue = text);
    REFUSED(HF_EINVAL, spec.idempotency_key = "a\r\nX: y"); /* becomes a header */
    REFUSED(HF_EINVAL, spec.priority = 10);
    REFUSED(HF_EINVAL, spec.priority = -1);
    REFUSED(HF_EINVAL, spec.payload_length = 1);
    REFUSED(HF_ETOOBIG, (spec.payload = text, spec.payload_length = 1025));
    REFUSED(0, (spec.payload = text, spec.payload_length = 1024));
    REFUSED(HF_EINVAL, spec.run_at_us = -1);
    REFUSED(HF_EINVAL, (spec.run_at_us = 10, spec.expires_at_us = 10));
    REFUSED(HF_EINVAL, spec.source_message_id = "1");
    REFUSED(HF_EINVAL, spec.limit_key = "1");
    REFUSED(HF_EINVAL, spec.limit_name = "tenant");
    REFUSED(HF_EINVAL, (spec.limit_name = "te:nant", spec.limit_key = "1"));
    REFUSED(HF_EINVAL, spec.curve_length = 1);
    REFUSED(HF_ETOOBIG, (spec.curve_ms = waits, spec.curve_length = 65));
    REFUSED(0, (spec.curve_ms = waits, spec.curve_length = 64));
    waits[3] = -1;
    REFUSED(HF_EINVAL, (spec.curve_ms = waits, spec.curve_length = 4));
    REFUSED(HF_EINVAL, spec.size = 0);
    text[65] = '\0';
    REFUSED(HF_ETOOBIG, spec.correlation_id = text);
    text[64] = '\0';
    REFUSED(0, spec.correlation_id = text);
    assert_int_equal(hfi_spec_check(NULL, now, 1, &job, &room, NULL), HF_EINVAL);
}

/* A caller built against an older header has a shorter struct. */
static void uniqueness_is_said_in_full_or_not_at_all(void **state) {
    (void)state;
    struct hf_job_spec spec;
    struct hfi_job job;
    struct hfi_spec_room room;
    const uint32_t live = 1u << HF_JOB_PENDING | 1u << HF_JOB_WAITING | 1u << HF_JOB_RUNNING;
    hf_job_spec_init(&spec);
    spec.type = "t";
    spec.on_conflict = HF_UNIQUE_REPLACE;
    assert_int_equal(check(&spec, &job, &room), HF_EINVAL); /* of what? */
    spec.unique_key = "k";
    assert_int_equal(check(&spec, &job, &room), 0);
    assert_true(room.replace);
    int64_t parent = 1;
    spec.after_jobs = &parent;
    spec.after_count = 1;
    assert_int_equal(check(&spec, &job, &room), HF_EINVAL); /* what would the old one wait for? */
    spec.after_count = 0;
    spec.on_conflict = HF_UNIQUE_REPLACE + 1;
    assert_int_equal(check(&spec, &job, &room), HF_EINVAL);
    spec.on_conflict = HF_UNIQUE_KEEP;
    const uint32_t bad[] = {1u << HF_JOB_PENDING, live & ~(1u << HF_JOB_RUNNING), live | 1u << HF_JOB_DEAD, live | 1u << 7, UINT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        spec.unique_states = bad[i];
        assert_int_equal(check(&spec, &job, &room), HF_EINVAL);
    }
    spec.unique_states = live | 1u << HF_JOB_SUCCEEDED | 1u << HF_JOB_CANCELLED;
    assert_int_equal(check(&spec, &job, &room), 0);
    assert_int_equal(job.unique_states, spec.unique_states);
    spec.unique_window_ms = -1;
    assert_int_equal(check(&spec, &job, &room), HF_EINVAL);
    spec.unique_window_ms = INT64_MAX;
    assert_int_equal(check(&spec, &job, &room), HF_EINVAL);
    spec.unique_window_ms = 1;
    assert_int_equal(check(&spec, &job, &room), 0);
    assert_true(job.unique_period > 0);
    assert_int_equal(job.unique_states, spec.unique_states); /* as said; else succeeded belongs to it */
    spec.unique_states = 0;
    assert_int_equal(check(&spec, &job, &room), 0);
    assert_int_equal(job.unique_states, live | 1u << HF_JOB_SUCCEEDED);
}

static void shorter_specs_get_the_defaults(void **state) {
    (void)state;
    struct hfi_job job;
    struct hfi_spec_room room;
    struct hf_job_spec spec = spec_of("mail");
    spec.queue = "q";
    spec.priority = 77; /* beyond its size: not read */
    spec.size = offsetof(struct hf_job_spec, payload);
    assert_int_equal(check(&spec, &job, &room), 0);
    assert_string_equal(job.queue, "q");
    assert_int_equal(job.priority, 0);
}

static void scopes_keep_queue_and_type_apart_I40(void **state) {
    (void)state;
    char a[HFI_UNIQUE_SCOPE_MAX + 1], b[HFI_UNIQUE_SCOPE_MAX + 1];
    struct hfi_job job = {.queue = "q", .type = "t", .unique_key = "k"}, back = {.queue = "q", .type = "t"};
    assert_int_equal(hfi_unique_scope(a, sizeof a, &job), 6);
    assert_string_equal(hfi_unique_unscope(a, &back), "k");
    assert_int_equal(back.unique_period, 0);
    job.queue = "q2";
    hfi_unique_scope(b, sizeof b, &job);
    assert_string_not_equal(a, b);
    job.queue = "q";
    job.type = "t2";
    hfi_unique_scope(b, sizeof b, &job);
    assert_string_not_equal(a, b);
    job.type = "t";
    job.unique_period = 12345;
    job.unique_key = "7\x1f" "odd";
    hfi_unique_scope(a, sizeof a, &job);
    assert_string_equal(hfi_unique_unscope(a, &back), job.unique_key);
    assert_int_equal(back.unique_period, 12345);
    job.unique_key = "12345\x1f" "7\x1f" "odd"; /* no key looks like a period and a key */
    job.unique_period = 0;
    hfi_unique_scope(b, sizeof b, &job);
    assert_string_not_equal(a, b);
    job.unique_key = "";
    assert_int_equal(hfi_unique_scope(b, sizeof b, &job), 0);
    assert_string_equal(b, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_is_one_block_with_every_byte_I65),
        cmocka_unit_test(defaults_are_filled),
        cmocka_unit_test(everything_given_arrives),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(uniqueness_is_said_in_full_or_not_at_all),
        cmocka_unit_test(shorter_specs_get_the_defaults),
        cmocka_unit_test(scopes_keep_queue_and_type_apart_I40),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
