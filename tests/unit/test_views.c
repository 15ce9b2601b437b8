/* SPDX-License-Identifier: MIT */
/* Snapshots: rows keep their own texts, lists leave payloads out, memory running out at any point leaks nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "jobs/views.h"

static void names_are_the_stored_words(void **state) {
    (void)state;
    assert_string_equal(hf_job_state_name(HF_JOB_QUARANTINED), "quarantined");
    assert_string_equal(hf_job_state_name(31), "unknown");
    assert_string_equal(hf_job_state_name(-1), "unknown");
    assert_string_equal(hf_dead_status_name(HF_DEAD_REDRIVEN), "redriven"); /* S0.14 */
    assert_string_equal(hf_dead_status_name(4), "unknown");
    assert_string_equal(hf_death_class_name(HF_DEATH_TRANSIENT_EXHAUSTED), "transient_exhausted");
    assert_string_equal(hf_death_class_name(3), "unknown");
}

static void a_list_keeps_copies_and_leaves_payloads_out(void **state) {
    (void)state;
    struct hf_job_list *list = NULL;
    assert_int_equal(hfi_job_list_new(&list), 0);
    for (int i = 0; i < 1000; i++) {
        char type[64];
        snprintf(type, sizeof type, "type.%d", i);
        struct hf_job_view row = {.id = i, .type = type, .payload = "abc", .payload_length = 3};
        assert_int_equal(hfi_job_list_add(list, &row), 0);
        memset(type, 'x', sizeof type - 1); /* the list must not look here again */
    }
    hfi_job_list_set_next(list, 17);
    assert_int_equal(hf_job_list_count(list), 1000);
    assert_int_equal(hf_job_list_next(list), 17);
    const struct hf_job_view *row = hf_job_list_at(list, 777);
    assert_int_equal(row->size, sizeof *row);
    assert_int_equal(row->id, 777);
    assert_string_equal(row->type, "type.777");
    assert_string_equal(row->queue, "");
    assert_null(row->payload);
    assert_int_equal(row->payload_length, 3);
    assert_null(hf_job_list_at(list, 1000));
    hf_job_list_free(list);
    hf_job_list_free(NULL);
}

static void a_single_view_keeps_every_byte(void **state) { /* I65 */
    (void)state;
    unsigned char all[20000];
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (unsigned char)i;
    struct hf_dead_view row = {.id = 5, .payload = all, .payload_length = sizeof all, .detail = "why"};
    struct hf_dead *dead = NULL;
    assert_int_equal(hfi_dead_new(&row, &dead), 0);
    assert_int_equal(hf_dead_look(dead)->payload_length, sizeof all);
    assert_memory_equal(hf_dead_look(dead)->payload, all, sizeof all);
    assert_string_equal(hf_dead_look(dead)->detail, "why");
    hf_dead_free(dead);
    struct hf_dead_list *list = NULL;
    assert_int_equal(hfi_dead_list_new(&list), 0);
    assert_int_equal(hfi_dead_list_add(list, &row), 0);
    assert_null(hf_dead_list_at(list, 0)->payload);
    assert_string_equal(hf_dead_list_at(list, 0)->detail, "");
    hf_dead_list_free(list);
}

static void the_default_key_is_made_on_reading(void **state) {
    (void)state;
    char key[HFI_IDEMPOTENCY_ROOM];
    struct hfi_job job = {.id = 9, .root_id = 4, .idempotency_key = "", .max_executions = 0};
    struct hf_job_view view;
    hfi_job_view_fill(&view, &job, "node", "uuid", key);
    assert_string_equal(view.idempotency_key, "uuid-4");
    assert_int_equal(view.max_executions, 0);
    job.idempotency_key = "mine";
    assert_string_equal(hfi_idempotency_key(&job, "uuid", key), "mine");
    struct hfi_curve curve = {.max_executions = 4};
    job.policy = &curve;
    hfi_job_view_fill(&view, &job, "node", "uuid", key);
    assert_int_equal(view.max_executions, 4);
    assert_false(view.max_executions_explicit);
    job.max_executions = 4; /* S2.13: given is given, even when it equals what would hold anyway */
    hfi_job_view_fill(&view, &job, "node", "uuid", key);
    assert_true(view.max_executions_explicit);
}

static void memory_may_run_out_at_any_point(void **state) {
    (void)state;
    char big[9000];
    memset(big, 'b', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    struct hf_job_view row = {.type = big, .tags = big, .payload = big, .payload_length = sizeof big};
    struct hf_history_view past = {.node = big};
    long nth = 0;
    int code;
    do {
        struct hf_job *job = NULL;
        hfi_alloc_fail(++nth, 0);
        code = hfi_job_new(&row, &job);
        if (code == 0)
            code = hfi_job_add_history(job, &past);
        hf_job_free(job);
    } while (code == HF_ENOMEM);
    hfi_alloc_fail(0, 0);
    assert_int_equal(code, 0);
    assert_true(nth > 6);
}

static void pages_are_bounded(void **state) { /* I84 */
    (void)state;
    assert_int_equal(hfi_page_limit(0), 100);
    assert_int_equal(hfi_page_limit(7), 7);
    assert_int_equal(hfi_page_limit(UINT32_MAX), 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_the_stored_words),
        cmocka_unit_test(a_list_keeps_copies_and_leaves_payloads_out),
        cmocka_unit_test(a_single_view_keeps_every_byte),
        cmocka_unit_test(the_default_key_is_made_on_reading),
        cmocka_unit_test(memory_may_run_out_at_any_point),
        cmocka_unit_test(pages_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
