/* SPDX-License-Identifier: MIT */
/* Contract of the store: enqueueing, ids, unique keys, seen messages, texts and bytes. */
#include "store_world.h"

#include <stdio.h>

static void ids_grow_and_are_never_reused(void **state) {
    (void)state;
    int64_t first = world_put_type("a"), second = world_put_type("a");
    assert_true(second > first);
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    job = world_start_type("a");
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .succeeded_before = world.now.us + 1, .limit = 100};
    assert_int_equal(world_do(&prune.op), 0);
    assert_int_equal(prune.pruned, 2);
    assert_null(world_job(second));
    assert_true(world_put_type("a") > second); /* I88 */
}

static void a_new_job_is_pending_and_its_own_root(void **state) {
    (void)state;
    struct hf_job_spec spec = world_spec("mail", "post");
    spec.priority = 7;
    spec.correlation_id = "corr";
    spec.tags = "red,blue";
    spec.payload = "hello";
    spec.payload_length = 5;
    spec.content_type = "text/plain";
    spec.max_executions = 3;
    spec.run_at_us = T0 + MINUTE;
    spec.expires_at_us = T0 + HOUR;
    spec.limit_name = "tenant";
    spec.limit_key = "acme";
    int64_t id = world_put(&spec);
    const struct hf_job_view *view = world_job(id);
    char key[80];
    snprintf(key, sizeof key, "%s-%lld", world.store->uuid, (long long)id);
    assert_int_equal(view->state, HF_JOB_PENDING);
    assert_int_equal(view->priority, 7);
    assert_string_equal(view->type, "mail");
    assert_string_equal(view->queue, "post");
    assert_string_equal(view->downstream, "shop");
    assert_string_equal(view->correlation_id, "corr");
    assert_string_equal(view->tags, "red,blue");
    assert_string_equal(view->content_type, "text/plain");
    assert_string_equal(view->limit_key, "tenant:acme");
    assert_string_equal(view->idempotency_key, key);
    assert_string_equal(view->owner, "");
    assert_int_equal(view->root_id, id);
    assert_int_equal(view->parent_id, 0);
    assert_int_equal(view->epoch, 0);
    assert_int_equal(view->executions, 0);
    assert_int_equal(view->max_executions, 3);
    assert_true(view->max_executions_explicit);
    assert_int_equal(view->run_at_us, T0 + MINUTE);
    assert_int_equal(view->expires_at_us, T0 + HOUR);
    assert_int_equal(view->created_at_us, T0);
    assert_int_equal(view->payload_length, 5);
    assert_memory_equal(view->payload, "hello", 5);
    assert_int_equal(world_history(id), 0);
}

static void a_payload_may_hold_every_byte_at_any_size(void **state) { /* I65 */
    (void)state;
    static unsigned char bytes[65536];
    const size_t sizes[] = {0, 1, 256, 1024, 4096, 40000, sizeof bytes};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 167 >> (i & 3));
    for (size_t i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct hf_job_spec spec = world_spec("bytes", NULL);
        spec.payload = bytes;
        spec.payload_length = sizes[i];
        int64_t id = world_put(&spec);
        assert_int_equal(world_job(id)->payload_length, sizes[i]);
        if (sizes[i] > 0)
            assert_memory_equal(world_job(id)->payload, bytes, sizes[i]);
        struct hfi_job *job = world_start_type("bytes");
        assert_int_equal(job->payload_length, sizes[i]);
        assert_memory_equal(job->payload, bytes, sizes[i]);
        assert_int_equal(APPLY(&job, SUCCEEDED, .result = bytes, .result_length = sizes[i]), 0);
        assert_int_equal(world_job(id)->result_length, sizes[i]);
        if (sizes[i] > 0)
            assert_memory_equal(world_job(id)->result, bytes, sizes[i]);
        assert_int_equal(world_job(id)->payload_length, sizes[i]);
    }
}

static void texts_of_many_scripts_come_back_as_they_went(void **state) {
    (void)state;
    struct hf_job_spec spec = world_spec("письмо.送信", "очередь");
    spec.tags = "שלום,مرحبا,नमस्ते,🙂";
    spec.unique_key = "key \"with' ; -- quotes%_";
    spec.correlation_id = "'; DROP TABLE jobs; --";
    int64_t id = world_put(&spec);
    assert_string_equal(world_job(id)->type, spec.type);
    assert_string_equal(world_job(id)->queue, spec.queue);
    assert_string_equal(world_job(id)->tags, spec.tags);
    assert_string_equal(world_job(id)->unique_key, spec.unique_key);
    assert_string_equal(world_job(id)->correlation_id, spec.correlation_id);
}

static void a_unique_key_gives_the_job_that_holds_it(void **state) { /* I35, I36 */
    (void)state;
    struct hf_job_spec spec = world_spec("report", "default");
    int64_t again;
    bool existed;
    spec.unique_key = "daily";
    int64_t id = world_put(&spec);
    assert_int_equal(world_put_existing(&spec, &again, &existed), 0);
    assert_true(existed);
    assert_int_equal(again, id);
    assert_int_equal(world_counts().pending, 1);
    struct hfi_job *job = world_start_type("report"); /* running holds it too */
    assert_int_equal(world_put_existing(&spec, &again, &existed), 0);
    assert_true(existed);
    assert_int_equal(again, id);
    assert_int_equal(world_fail(&job, false), 0); /* and waiting for its next execution */
    assert_int_equal(world_put_existing(&spec, &again, &existed), 0);
    assert_int_equal(again, id);
    world.now.us += MINUTE;
    job = world_start_type("report");
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    assert_true(world_put(&spec) > id); /* an ended one does not */
}

static int64_t replace(struct hf_job_spec *spec, const char *payload, bool *existed) {
    int64_t id = 0;
    spec->on_conflict = HF_UNIQUE_REPLACE;
    spec->payload = payload;
    spec->payload_length = strlen(payload);
    assert_int_equal(world_put_existing(spec, &id, existed), 0);
    return id;
}

static void a_pending_one_is_replaced_under_its_id(void **state) { /* I40 */
    (void)state;
    static char large[5000];
    struct hf_job_spec spec = world_spec("report", "default");
    bool existed;
    memset(large, 'x', sizeof large - 1);
    spec.unique_key = "daily";
    spec.payload = large; /* of the side table */
    spec.payload_length = sizeof large - 1;
    spec.correlation_id = "old";
    spec.run_at_us = T0 + HOUR;
    spec.priority = 2;
    int64_t id = world_put(&spec);
    spec.run_at_us = T0 + MINUTE;
    spec.priority = 5;
    spec.correlation_id = NULL;
    spec.downstream = "other"; /* another lane */
    assert_int_equal(replace(&spec, "new", &existed), id);
    assert_true(existed);
    const struct hf_job_view *view = world_job(id);
    assert_int_equal(view->state, HF_JOB_PENDING);
    assert_int_equal(view->run_at_us, T0 + MINUTE);
    assert_int_equal(view->priority, 5);
    assert_string_equal(view->correlation_id, "");
    assert_string_equal(view->downstream, "other");
    assert_string_equal(view->unique_key, "daily");
    assert_int_equal(view->payload_length, 3);
    assert_memory_equal(view->payload, "new", 3);
    assert_int_equal(world_counts().pending, 1);
    assert_null(world_start_type("report")); /* not due before its new time */
    world.now.us += MINUTE;
    struct hfi_job *job = world_start_type("report");
    assert_non_null(job);
    assert_int_equal(job->id, id);
    assert_memory_equal(job->payload, "new", 3);
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
}

static void one_that_waits_for_its_retry_begins_anew_under_another_key(void **state) { /* I40 */
    (void)state;
    struct hf_job_spec spec = world_spec("report", "default");
    char before[120];
    bool existed;
    spec.unique_key = "daily";
    int64_t id = world_put(&spec);
    struct hfi_job *job = world_start_type("report");
    assert_int_equal(world_fail(&job, false), 0);
    assert_int_equal(world_job(id)->failures, 1);
    snprintf(before, sizeof before, "%s", world_job(id)->idempotency_key);
    assert_int_equal(replace(&spec, "corrected", &existed), id);
    const struct hf_job_view *view = world_job(id);
    assert_int_equal(view->executions, 0);
    assert_int_equal(view->failures, 0);
    assert_string_equal(view->error_type, "");
    assert_int_equal(view->run_at_us, T0);
    assert_string_not_equal(view->idempotency_key, before); /* the old payload may have been sent under it */
    assert_int_equal(world_history(id), 1);                 /* which stays on the record */
    job = world_start_type("report");
    assert_int_equal(job->id, id);
    assert_int_equal(job->executions, 1);
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    assert_int_equal(world_history(id), 2);
}

static void replacing_a_running_one_makes_exactly_one_successor(void **state) { /* I40 */
    (void)state;
    struct hf_job_spec spec = world_spec("report", "default");
    bool existed;
    spec.unique_key = "daily";
    int64_t id = world_put(&spec), next = 0;
    struct hfi_job *job = world_start_type("report");
    next = replace(&spec, "second", &existed);
    assert_false(existed);
    assert_true(next > id);
    for (int i = 0; i < 10; i++) { /* and again: the successor's payload, no further job */
        assert_int_equal(replace(&spec, "third", &existed), next);
        assert_true(existed);
    }
    spec.on_conflict = HF_UNIQUE_KEEP;
    int64_t again;
    assert_int_equal(world_put_existing(&spec, &again, &existed), 0);
    assert_true(existed);
    assert_int_equal(again, next);
    assert_int_equal(world_counts().pending, 1);
    assert_int_equal(world_fail(&job, false), 0); /* the first may go back to pending: it has no key any more */
    assert_int_equal(world_job(id)->state, HF_JOB_PENDING);
    assert_string_equal(world_job(id)->unique_key, "");
    assert_int_equal(world_counts().pending, 2);
    job = world_start_type("report");
    assert_int_equal(job->id, next);
    assert_memory_equal(job->payload, "third", 5);
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    assert_true(world_put(&spec) > next);
}

static void a_key_of_a_period_is_free_in_the_next_one(void **state) {
    (void)state;
    struct hf_job_spec spec = world_spec("report", "default");
    int64_t again;
    bool existed;
    spec.unique_key = "daily";
    spec.unique_window_ms = 3600000;
    world.now.us = T0 / HOUR * HOUR + 10 * MINUTE;
    int64_t id = world_put(&spec);
    struct hfi_job *job = world_start_type("report");
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    world.now.us += 49 * MINUTE;
    assert_int_equal(world_put_existing(&spec, &again, &existed), 0); /* it has succeeded: once an hour is enough */
    assert_true(existed);
    assert_int_equal(again, id);
    assert_int_equal(replace(&spec, "x", &existed), id); /* what has ended is not replaced */
    assert_true(existed);
    assert_int_equal(world_job(id)->state, HF_JOB_SUCCEEDED);
    assert_int_equal(world_job(id)->payload_length, 0);
    world.now.us += MINUTE;
    spec.on_conflict = HF_UNIQUE_KEEP;
    int64_t next = world_put(&spec);
    assert_true(next > id);
    assert_string_equal(world_job(next)->unique_key, "daily");
    spec.unique_window_ms = 0; /* without a period it is another key */
    assert_true(world_put(&spec) > next);
}

static void states_say_how_long_a_key_is_held(void **state) {
    (void)state;
    struct hf_job_spec spec = world_spec("report", "default");
    int64_t again;
    bool existed;
    spec.unique_key = "once";
    spec.unique_states = 1u << HF_JOB_PENDING | 1u << HF_JOB_WAITING | 1u << HF_JOB_RUNNING | 1u << HF_JOB_CANCELLED;
    int64_t id = world_put(&spec);
    struct hfi_op_cancel cancel = {.op = {.kind = HFI_OP_CANCEL}, .id = id, .actor = "me", .reason = "", .now = world.now};
    assert_int_equal(world_do(&cancel.op), 0);
    assert_int_equal(world_put_existing(&spec, &again, &existed), 0);
    assert_true(existed);
    assert_int_equal(again, id);
    spec.unique_key = "twice"; /* not when it has succeeded */
    id = world_put(&spec);
    struct hfi_job *job = world_start_type("report");
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    assert_true(world_put(&spec) > id);
}

static void a_bulk_that_replaces_its_own_jobs_keeps_one_of_each_key(void **state) { /* I36, I40 */
    (void)state;
    struct hfi_put puts[3];
    struct hfi_spec_room rooms[3];
    struct hf_job_spec spec = world_spec("bulk", NULL);
    static const char *const payloads[] = {"a", "b", "c"};
    memset(puts, 0, sizeof puts);
    spec.unique_key = "k";
    spec.on_conflict = HF_UNIQUE_REPLACE;
    for (int i = 0; i < 3; i++) {
        spec.payload = payloads[i];
        spec.payload_length = 1;
        assert_int_equal(hfi_spec_check(&spec, world.now, 1000, &puts[i].job, &rooms[i], NULL), 0);
        puts[i].replace = rooms[i].replace;
    }
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = puts, .count = 3};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(puts[2].id, puts[0].id);
    assert_memory_equal(world_job(puts[0].id)->payload, "c", 1);
    assert_int_equal(world_counts().pending, 1);
}

static void the_scope_of_a_key_is_queue_and_type(void **state) { /* I40 */
    (void)state;
    struct hf_job_spec spec = world_spec("a", "one");
    spec.unique_key = "k";
    int64_t first = world_put(&spec);
    spec.type = "b";
    assert_true(world_put(&spec) > first);
    spec.type = "a";
    spec.queue = "two";
    assert_true(world_put(&spec) > first);
    spec.unique_key = "";
    world_put(&spec);
    world_put(&spec); /* no key, no scope */
}

static void bulk_is_all_or_none_and_sees_its_own_keys(void **state) { /* I36 */
    (void)state;
    struct hfi_put puts[4];
    struct hfi_spec_room rooms[4];
    struct hf_job_spec spec = world_spec("bulk", NULL);
    memset(puts, 0, sizeof puts);
    for (int i = 0; i < 4; i++) {
        spec.unique_key = i % 2 ? "odd" : "even";
        assert_int_equal(hfi_spec_check(&spec, world.now, 1000, &puts[i].job, &rooms[i], NULL), 0);
    }
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = puts, .count = 4};
    assert_int_equal(world_do(&op.op), 0);
    assert_false(puts[0].existed || puts[1].existed);
    assert_true(puts[2].existed && puts[3].existed);
    assert_int_equal(puts[2].id, puts[0].id);
    assert_int_equal(puts[3].id, puts[1].id);
    assert_int_equal(world_counts().pending, 2);
}

static void one_commit_takes_many_operations_each_with_its_own_code(void **state) {
    (void)state;
    int64_t first = world_put_type("x");
    struct hfi_op_cancel cancel = {.op = {.kind = HFI_OP_CANCEL}, .id = 987654, .actor = "me", .reason = "",
                                   .now = world.now};
    struct hfi_op_cancel good = {.op = {.kind = HFI_OP_CANCEL}, .id = first, .actor = "me", .reason = "",
                                 .now = world.now};
    struct hfi_put put = {.id = 0};
    struct hfi_spec_room room;
    struct hf_job_spec spec = world_spec("y", NULL);
    assert_int_equal(hfi_spec_check(&spec, world.now, 1000, &put.job, &room, NULL), 0);
    struct hfi_op_put second = {.op = {.kind = HFI_OP_PUT}, .items = &put, .count = 1};
    struct hfi_op *ops[] = {&cancel.op, &second.op, &good.op};
    world.store->ops->commit(world.store, ops, 3);
    assert_int_equal(cancel.op.code, HF_ENOENT);
    assert_int_equal(second.op.code, 0);
    assert_int_equal(good.op.code, 0);
    assert_int_equal(world_job(first)->state, HF_JOB_CANCELLED);
    assert_int_equal(world_job(put.id)->state, HF_JOB_PENDING);
}

static void a_source_message_makes_one_job_ever(void **state) { /* S4.11 */
    (void)state;
    struct hf_job_spec spec = world_spec("order", NULL);
    int64_t again;
    bool existed;
    spec.source = "shop";
    spec.source_message_id = "m-1";
    int64_t id = world_put(&spec);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(world_put_existing(&spec, &again, &existed), 0);
        assert_true(existed);
        assert_int_equal(again, id);
    }
    struct hfi_job *job = world_start_type("order");
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    assert_int_equal(world_put_existing(&spec, &again, &existed), 0);
    assert_true(existed);
    assert_int_equal(again, id);
    world.now.us += 29 * DAY;
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .succeeded_before = world.now.us,
                                 .inbox_before = world.now.us - 30 * DAY, .limit = 100};
    assert_int_equal(world_do(&prune.op), 0);
    assert_null(world_job(id));
    assert_int_equal(world_put_existing(&spec, &again, &existed), 0);
    assert_true(existed); /* its job is purged, the message is known for 30 d */
    assert_int_equal(again, 0);
    prune.inbox_before = world.now.us;
    assert_int_equal(world_do(&prune.op), 0);
    assert_true(world_put(&spec) > id);
    spec.source = "other"; /* ids are per source */
    world_put(&spec);
}

static void a_message_whose_unique_key_was_taken_is_seen_all_the_same(void **state) {
    (void)state;
    struct hf_job_spec spec = world_spec("order", NULL);
    int64_t again;
    bool existed;
    spec.unique_key = "basket";
    int64_t holder = world_put(&spec);
    spec.source = "shop";
    spec.source_message_id = "m-2";
    assert_int_equal(world_put_existing(&spec, &again, &existed), 0);
    assert_true(existed);
    assert_int_equal(again, holder);
    struct hfi_job *job = world_start_type("order");
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    assert_int_equal(world_put_existing(&spec, &again, &existed), 0); /* redelivered */
    assert_true(existed);
    assert_int_equal(again, holder);
    assert_int_equal(world_counts().pending, 0);
}

static void a_curve_given_at_enqueue_is_the_jobs_own(void **state) { /* S0.10, C14 */
    (void)state;
    const int64_t waits[] = {5000, 300000, 18000000};
    struct hf_job_spec spec = world_spec("own", NULL);
    spec.curve_ms = waits;
    spec.curve_length = 3;
    int64_t id = world_put(&spec);
    assert_int_equal(world_job(id)->max_executions, 4); /* S4.1 */
    assert_false(world_job(id)->max_executions_explicit);
    struct hfi_job *job = world_start_type("own");
    assert_non_null(job->policy);
    assert_int_equal(job->policy->waits_ms[2], 18000000);
    assert_int_equal(world_fail(&job, false), 0);
    assert_int_equal(world_job(id)->run_at_us, T0 + 5 * SECOND);
}

WORLD_MAIN(WORLD_TEST(ids_grow_and_are_never_reused), WORLD_TEST(a_new_job_is_pending_and_its_own_root),
           WORLD_TEST(a_payload_may_hold_every_byte_at_any_size),
           WORLD_TEST(texts_of_many_scripts_come_back_as_they_went),
           WORLD_TEST(a_unique_key_gives_the_job_that_holds_it), WORLD_TEST(the_scope_of_a_key_is_queue_and_type),
           WORLD_TEST(a_pending_one_is_replaced_under_its_id),
           WORLD_TEST(one_that_waits_for_its_retry_begins_anew_under_another_key),
           WORLD_TEST(replacing_a_running_one_makes_exactly_one_successor),
           WORLD_TEST(a_key_of_a_period_is_free_in_the_next_one), WORLD_TEST(states_say_how_long_a_key_is_held),
           WORLD_TEST(a_bulk_that_replaces_its_own_jobs_keeps_one_of_each_key),
           WORLD_TEST(bulk_is_all_or_none_and_sees_its_own_keys),
           WORLD_TEST(one_commit_takes_many_operations_each_with_its_own_code),
           WORLD_TEST(a_source_message_makes_one_job_ever),
           WORLD_TEST(a_message_whose_unique_key_was_taken_is_seen_all_the_same),
           WORLD_TEST(a_curve_given_at_enqueue_is_the_jobs_own))
