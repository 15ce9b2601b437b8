/* SPDX-License-Identifier: MIT */
/*
 * What a handler says while it runs and at its end, what it is given, and who else hears of it: progress, checkpoints,
 * snoozes, causes, observers, the retry hook. In virtual time.
 */
#include "handler_stage.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

static void finish(struct hf_work *work, enum hf_result result) {
    assert_int_equal(hf_work_finish(work, result), 0);
}

/* ------------------------------------------------------------------ progress and checkpoints */

/* I65, I66: whatever its text holds, it is stored as clean UTF-8, cut on a code point. */
static void progress_is_few_writes_and_the_last_one_stays(void **state) {
    (void)state;
    char text[400];
    int64_t id = begin_one();
    for (int i = 1; i <= 1000; i++)
        assert_int_equal(hf_work_progress(held(0), i, "on its way"), 0);
    stage_advance(&stage, 1000);
    assert_int_equal(look(id)->progress, 1000);
    assert_string_equal(look(id)->progress_text, "on its way");
    assert_in_range(stage.nodes[0].door.seen[HFI_OP_NOTE], 1, 2);
    memset(text, 'x', sizeof text);
    memcpy(text + HF_PROGRESS_TEXT_MAX - 2, "\xf0\x9f\x98\x80", 4); /* a character across the limit */
    text[0] = (char)0xff;
    text[sizeof text - 1] = '\0';
    hf_work_progress(held(0), 1001, text);
    hf_work_progress(held(0), 1002, text); /* just before the end: not lost */
    finish(held(0), hf_work_ok(held(0), NULL, 0));
    stage_advance(&stage, 100);
    assert_int_equal(look(id)->state, HF_JOB_SUCCEEDED);
    assert_int_equal(look(id)->progress, 1002);
    size_t length = strlen(look(id)->progress_text);
    assert_in_range(length, HF_PROGRESS_TEXT_MAX - 5, HF_PROGRESS_TEXT_MAX);
    assert_memory_equal(look(id)->progress_text, "\xef\xbf\xbdxxx", 6);
    assert_int_equal(look(id)->progress_text[length - 1], 'x');
}

/* I8, I50: the job has another owner, or is gone: a logged no-op. */
static void a_stale_word_is_a_logged_no_op(void **state) {
    (void)state;
    int64_t id = begin_one();
    struct hfi_rulebook *book = stage.nodes[0].book;
    struct hfi_op_sweep op = {.book = book, .owner = 1, .by = 99, .only = id, .epoch = 1, .now = {wall_us()}, .limit = 1};
    assert_int_equal(stage_do(&stage, &op.op, HFI_OP_SWEEP), 0); /* somebody took it */
    assert_int_equal(op.lapsed, 1);
    assert_int_equal(hf_work_progress(held(0), 7, "seven"), 0); /* it is not known yet */
    stage_advance(&stage, 10);
    assert_int_equal(stage_logged(&stage, "job.stale"), 1);
    assert_int_equal(hf_work_checkpoint(held(0), "x", 1), HF_ESTALE);
    assert_int_equal(stage_logged(&stage, "job.stale"), 2);
    finish(held(0), hf_work_ok(held(0), NULL, 0));
    stage_advance(&stage, 100);
    assert_int_equal(stage_logged(&stage, "job.stale"), 3);
    assert_int_equal(stage_counts(&stage, 0).lost, 1);
    assert_int_equal(look(id)->progress, 0);
    assert_int_equal(look(id)->checkpoint_length, 0);
    assert_int_equal(look(id)->state, HF_JOB_PENDING);
    hfi_free(op.notes);
}

/* S2.31: works in steps, fails in the middle, goes on behind the last one it had done. */
static int done[10];
static void in_steps(struct hf_work *work) {
    size_t length;
    const char *at = hf_work_last_checkpoint(work, &length);
    int step = at == NULL ? 0 : at[0];
    assert_int_equal(length, at == NULL ? 0 : 1);
    for (; step < 10; step++) {
        if (hf_work_execution(work) == 1 && step == 4) {
            finish(work, hf_work_failed(work, "broke", "in step 4"));
            return;
        }
        done[step]++;
        char next = (char)(step + 1);
        assert_int_equal(hf_work_checkpoint(work, &next, 1), 0);
    }
    finish(work, hf_work_ok(work, NULL, 0));
}

static void a_checkpoint_resumes_at_the_last_step(void **state) {
    (void)state;
    memset(done, 0, sizeof done);
    play.act = in_steps;
    int64_t id = begin_one();
    stage_advance(&stage, 61000);
    assert_int_equal(look(id)->state, HF_JOB_SUCCEEDED);
    for (int i = 0; i < 10; i++)
        assert_int_equal(done[i], 1);
}

static void bounds_of_a_checkpoint(void **state) {
    (void)state;
    char *big = calloc(1, HF_CHECKPOINT_MAX + 1);
    int64_t id = begin_one();
    assert_int_equal(hf_work_checkpoint(held(0), big, HF_CHECKPOINT_MAX + 1), HF_ETOOBIG);
    assert_int_equal(hf_work_checkpoint(held(0), big, HF_CHECKPOINT_MAX), 0);
    assert_int_equal(look(id)->checkpoint_length, HF_CHECKPOINT_MAX);
    stage.nodes[0].door.refuse = HF_EIO; /* not durable, so it does not say so */
    assert_int_equal(hf_work_checkpoint(held(0), "x", 1), HF_EIO);
    stage.nodes[0].door.refuse = 0;
    assert_int_equal(look(id)->checkpoint_length, HF_CHECKPOINT_MAX);
    assert_int_equal(hf_work_checkpoint(held(0), NULL, 0), 0);
    assert_int_equal(look(id)->checkpoint_length, 0);
    finish(held(0), hf_work_ok(held(0), NULL, 0));
    stage_advance(&stage, 10);
    free(big);
}

/* ------------------------------------------------------------------ what it is given */

static void on_third(struct hf_work *work) {
    finish(work, hf_work_execution(work) < 3 ? hf_work_failed(work, "flaky", "not yet") : hf_work_ok(work, NULL, 0));
}

/* S2.31, S1.9, I80: flaky twice, then a plain success: no death, no alert. */
static void flaky_succeeds_on_the_third(void **state) {
    (void)state;
    play.act = on_third;
    int64_t id = begin_one();
    stage_advance(&stage, 400000);
    assert_int_equal(look(id)->state, HF_JOB_SUCCEEDED);
    assert_int_equal(look(id)->executions, 3);
    assert_string_equal(look(id)->error_type, "");
    assert_int_equal(stage_logged(&stage, "job.dead"), 0);
}

static void in_vain(struct hf_work *work, enum hf_stop why, void *user) {
    (void)work;
    (void)why;
    (void)user;
    play.stops++;
}

/* S1.18: the second execution sees nothing that the first one set. S1.7, S1.17, S2.11, S3.17: what it does see. */
static void each_execution_is_a_fresh_one(void **state) {
    (void)state;
    char key[HFI_KEY_MAX + 1], first[64];
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 1000);
    struct hf_job_spec spec = hf_job_of("mail", "body");
    spec.max_executions = 9;
    spec.tags = "a,b";
    spec.correlation_id = "corr-1";
    spec.trace_context = "00-trace";
    int64_t id = stage_put(&stage, &spec);
    stage_advance(&stage, 300);
    struct hf_work *work = held(0);
    assert_int_equal(hf_work_execution(work), 1);
    assert_int_equal(hf_work_max_executions(work), 9);
    assert_string_equal(hf_work_tags(work), "a,b");
    assert_string_equal(hf_work_correlation_id(work), "corr-1");
    assert_string_equal(hf_work_trace_context(work), "00-trace");
    snprintf(key, sizeof key, "%s", hf_work_key(work));
    snprintf(first, sizeof first, "%s", hf_work_execution_id(work));
    hf_work_on_stop(work, in_vain, NULL);
    hf_work_progress(work, 5, "five");
    hf_work_cancel(work, "a word it takes back");
    hf_work_ok(work, "result", 6);
    finish(work, hf_work_failed(work, "x", "y"));
    stage_advance(&stage, 61000);
    work = held(1);
    assert_int_equal(hf_work_job(work), id);
    assert_int_equal(hf_work_execution(work), 2);
    assert_string_equal(hf_work_key(work), key);
    assert_string_not_equal(hf_work_execution_id(work), first);
    assert_string_not_equal(hf_work_execution_id(work), key);
    assert_false(hf_work_is_cancelled(work));
    assert_null(work->on_stop);
    assert_false(work->finished || work->told || work->progress_new);
    assert_int_equal(work->ending.result, 0);
    assert_null(work->ending.data);
    assert_int_equal(hf_work_finish(work, HF_RESULT_OK), 0); /* the result of the first is not there to be taken */
    stage_advance(&stage, 100);
    assert_string_equal(look(id)->error_type, "handler.unknown_result");
    assert_int_equal(play.stops, 0);
}

/* S1.29: payloads of two versions wait together; each is read as what it is, and stays as it was stored. */
static int versions[3];
static void by_version(struct hf_work *work) {
    size_t length;
    const char *payload = hf_work_payload(work, &length);
    int version = strcmp(hf_work_content_type(work), "application/vnd.mail.v2+json") == 0 ? 2 : 1;
    assert_int_equal(length, 2);
    assert_int_equal(payload[1], '0' + version);
    versions[version]++;
    finish(work, hf_work_ok(work, NULL, 0));
}

static void two_payload_versions_wait_together(void **state) {
    (void)state;
    int64_t ids[10];
    play.act = by_version;
    stage_begin(&stage, 0, &options);
    for (int i = 0; i < 10; i++) {
        struct hf_job_spec spec = hf_job_of("mail", i % 2 == 0 ? "v1" : "v2");
        spec.content_type = i % 2 == 0 ? "application/json" : "application/vnd.mail.v2+json";
        ids[i] = stage_put(&stage, &spec);
    }
    stage_advance(&stage, 1000);
    assert_int_equal(versions[1], 5);
    assert_int_equal(versions[2], 5);
    for (int i = 0; i < 10; i++)
        assert_memory_equal(look(ids[i])->payload, i % 2 == 0 ? "v1" : "v2", 2);
}

/*
 * S3.14: after 30 days the payload means nothing to the handler any more: that job alone is put aside, with its payload and
 * a reason for a person, and the next one runs.
 */
static void reads_v2_only(struct hf_work *work) {
    size_t length;
    const char *payload = hf_work_payload(work, &length);
    bool known = length == 2 && memcmp(payload, "v2", 2) == 0;
    finish(work, known ? hf_work_ok(work, NULL, 0) : hf_work_unreadable(work, "not of version 2"));
}

static void a_payload_that_drifted_is_put_aside_S3_14(void **state) {
    (void)state;
    int64_t ids[2];
    play.act = reads_v2_only;
    for (int i = 0; i < 2; i++) {
        struct hf_job_spec spec = hf_job_of("mail", i == 0 ? "v1" : "v2");
        spec.run_at_us = wall_us() + 30 * 86400 * SECOND;
        ids[i] = stage_put(&stage, &spec);
    }
    stage_advance(&stage, INT64_C(30) * 86400000 - 1000);
    stage_begin(&stage, 0, &options); /* the node of another version */
    stage_advance(&stage, 900);
    assert_int_equal(play.starts, 0);
    stage_advance(&stage, 1000);
    assert_int_equal(look(ids[0])->state, HF_JOB_QUARANTINED);
    assert_int_equal(look(ids[0])->executions, 0); /* it never ran */
    assert_string_equal(look(ids[0])->error_type, "payload.unreadable");
    assert_string_equal(look(ids[0])->error_class, "poison");
    assert_memory_equal(look(ids[0])->payload, "v1", 2);
    assert_int_equal(look(ids[1])->state, HF_JOB_SUCCEEDED);
    assert_false(stage_over(&stage, 0));
}

/* S1.26: wire name, default queue and labels of the type; an enqueue may choose another queue. */
static void a_type_has_labels_and_jobs_any_queue(void **state) {
    (void)state;
    play.options.labels = "team=billing,tier=1";
    play.options.queue = "letters";
    stage_begin(&stage, 0, &options);
    stage_enqueue(&stage, "mail", "letters");
    stage_enqueue(&stage, "mail", "other");
    stage_advance(&stage, 1000);
    assert_int_equal(play.starts, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(hf_work_labels(held(i)), "team=billing,tier=1");
        assert_string_equal(hf_work_type(held(i)), "mail");
    }
    assert_string_not_equal(hf_work_queue(held(0)), hf_work_queue(held(1)));
    finish(held(0), hf_work_ok(held(0), NULL, 0));
    finish(held(1), hf_work_ok(held(1), NULL, 0));
    stage_advance(&stage, 100);
}

/* ------------------------------------------------------------------ how it ends */

/* I36: 0 is now and no failure; I37: whatever was snoozed before, the curve begins at its first wait. */
static void snoozes_50_times(struct hf_work *work) {
    finish(work, hf_work_execution(work) <= 50 ? hf_work_snooze(work, 0) : hf_work_failed(work, "x", "y"));
}

static void a_snooze_is_no_failure(void **state) {
    (void)state;
    play.act = snoozes_50_times;
    int64_t id = begin_one();
    stage_advance(&stage, 5000);
    assert_int_equal(look(id)->snoozes, 50);
    assert_int_equal(look(id)->failures, 1);
    assert_int_equal(look(id)->run_at_us - past(id, 50)->ended_at_us, 60 * SECOND);
    assert_string_equal(past(id, 0)->error_type, "");
}

/* I36. */
static void snoozes_100000_times(struct hf_work *work) {
    finish(work, hf_work_execution(work) <= 100000 ? hf_work_snooze(work, 0) : hf_work_ok(work, NULL, 0));
}

static void a_hundred_thousand_snoozes(void **state) {
    (void)state;
    play.act = snoozes_100000_times;
    int64_t id = begin_one();
    for (int i = 0; i < 1000 && stage_jobs(&stage).succeeded == 0; i++)
        stage_advance(&stage, 1000);
    assert_int_equal(look(id)->state, HF_JOB_SUCCEEDED);
    assert_int_equal(look(id)->snoozes, 100000);
    assert_int_equal(look(id)->executions, 100001);
    assert_int_equal(look(id)->failures, 0);
}

static void until_a_time(void **state) {
    (void)state;
    int64_t id = begin_one(), at = wall_us() + 90 * SECOND;
    finish(held(0), hf_work_snooze_until(held(0), at));
    stage_advance(&stage, 100);
    assert_in_range(look(id)->run_at_us, at - 1000, at);
    assert_int_equal(look(id)->failures, 0);
    stage_advance(&stage, 90000);
    finish(held(1), hf_work_snooze_until(held(1), -5)); /* long past: now */
    stage_advance(&stage, 300);
    assert_int_equal(play.starts, 3);
    finish(held(2), hf_work_ok(held(2), NULL, 0));
    stage_advance(&stage, 100);
    assert_int_equal(look(id)->state, HF_JOB_SUCCEEDED);
}

/* S2.14: the node's list and the type's, and one cause inside; S2.15: a death like any other, which says why it did not wait. */
static void a_single_cause_is_looked_at(void **state) {
    (void)state;
    static const char *const ours[] = {"sql.40P01"}, *const types[] = {"validation"};
    static const struct {
        const char *type, *first, *second;
        bool dies;
    } cases[] = {
        {"import.failed", NULL, NULL, false},          {"import.failed", "sql.40P01", NULL, true},
        {"import.failed", "validation.age", NULL, true}, {"import.failed", "sql.40P01", "sql.40P01", false},
        {"sql.40P01", "other", NULL, true},            {"import.failed", "sql", NULL, false},
    };
    options.never_retry = ours;
    options.never_retry_count = 1;
    play.options.never_retry = types;
    play.options.never_retry_count = 1;
    stage_begin(&stage, 0, &options);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t id = stage_enqueue(&stage, "mail", NULL);
        stage_advance(&stage, 300);
        struct hf_work *work = held(i);
        enum hf_result result = hf_work_failed(work, cases[i].type, "why");
        if (cases[i].first != NULL)
            result = hf_work_cause(work, cases[i].first);
        if (cases[i].second != NULL)
            result = hf_work_cause(work, cases[i].second);
        finish(work, result);
        stage_advance(&stage, 100);
        assert_int_equal(look(id)->state, cases[i].dies ? HF_JOB_DEAD : HF_JOB_PENDING);
        assert_int_equal(look(id)->executions, 1);
        if (cases[i].dies)
            assert_non_null(strstr(past(id, 0)->rule, "never_retry."));
    }
    assert_int_equal(stage_logged(&stage, "job.dead"), 3);
    assert_non_null(strstr(stage_last(&stage, "job.dead"), "never_retry."));
}

/* S3.11: 500 bad jobs, dead after one execution each with the reason; the good ones among them are not held up. */
static void bad_or_good(struct hf_work *work) {
    size_t length;
    const char *payload = hf_work_payload(work, &length);
    finish(work, payload[0] == 'b' ? hf_work_permanent(work, "poisoned", "cannot be read") : hf_work_ok(work, NULL, 0));
}

static void a_poison_flood_starves_nobody(void **state) {
    (void)state;
    play.act = bad_or_good;
    for (int i = 0; i < 500; i++) {
        struct hf_job_spec bad = hf_job_of("mail", "bad"), good = hf_job_of("mail", "good");
        stage_put(&stage, &bad);
        if (i % 10 == 0)
            stage_put(&stage, &good);
    }
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 2000);
    assert_int_equal(stage_jobs(&stage).succeeded, 50);
    assert_int_equal(stage_jobs(&stage).dead, 500);
    assert_int_equal(play.starts, 550);
    assert_string_equal(look(1)->error_message, "cannot be read");
}

/* ------------------------------------------------------------------ observers and the retry hook */

static struct {
    int terminal, others, in_time;
    char last[64];
    int32_t state;
} seen;

static void observe(const struct hf_transition_view *view, void *user) {
    (void)user;
    struct hf_job *job = stage_job(&stage, view->job);
    assert_int_equal(hf_job_look(job)->state, view->state); /* committed: it is what the store says */
    hf_job_free(job);
    seen.terminal += view->terminal;
    seen.others += !view->terminal;
    seen.state = view->state;
    snprintf(seen.last, sizeof seen.last, "%s %s", view->event, view->error_type);
}

/* S1.24 */
static void observers_hear_after_the_commit(void **state) {
    (void)state;
    memset(&seen, 0, sizeof seen);
    play.observer = observe;
    begin_one();
    assert_int_equal(seen.terminal + seen.others, 0);
    finish(held(0), hf_work_failed(held(0), "x.y", "z"));
    stage_advance(&stage, 100);
    assert_string_equal(seen.last, "failed x.y");
    assert_int_equal(seen.others, 1);
    stage_advance(&stage, 61000);
    finish(held(1), hf_work_permanent(held(1), "no", "never"));
    stage_advance(&stage, 100);
    assert_string_equal(seen.last, "failed no");
    assert_int_equal(seen.state, HF_JOB_DEAD);
    assert_int_equal(seen.terminal, 1);
    stage_enqueue(&stage, "mail", NULL);
    stage_advance(&stage, 300);
    finish(held(2), hf_work_ok(held(2), NULL, 0));
    stage_advance(&stage, 100);
    assert_string_equal(seen.last, "succeeded ");
    stage_enqueue(&stage, "nobodys", NULL);
    stage_advance(&stage, 3000);
    assert_string_equal(seen.last, "quarantined unknown_type");
    assert_int_equal(seen.terminal, 3);
}

static struct {
    int asked;
    int64_t delay_ms, planned_ms, cap_ms;
    bool permanent;
    const char *type;
} hook;

static void rule(const struct hf_retry_view *view, struct hf_retry_ruling *ruling, void *user) {
    (void)user;
    hook.asked++;
    hook.planned_ms = view->delay_ms;
    hook.cap_ms = view->cap_ms;
    assert_string_equal(hf_outcome_get_error_type(view->outcome), hook.type);
    assert_int_equal(ruling->delay_ms, view->delay_ms);
    ruling->permanent = hook.permanent;
    if (hook.delay_ms >= 0)
        ruling->delay_ms = hook.delay_ms;
}

/* S1.25: it may move a retry, within the cap, or deny it; it is asked once, however often the write is tried. */
static void the_retry_hook_moves_or_denies(void **state) {
    (void)state;
    memset(&hook, 0, sizeof hook);
    hook.type = "x";
    play.hook = rule;
    static const int64_t asked[] = {-1, 90000, 0, INT64_MAX}, given[] = {60000, 90000, 0, 7200000};
    stage_begin(&stage, 0, &options);
    for (size_t i = 0; i < 4; i++) {
        int64_t id = stage_enqueue(&stage, "mail", NULL);
        stage_advance(&stage, 300);
        struct hf_work *work = held(play.held_count - 1);
        hook.delay_ms = asked[i];
        finish(work, hf_work_failed(work, "x", "y"));
        stage.nodes[0].door.refuse = HF_EIO;
        stage.nodes[0].door.refuse_kinds = UINT64_C(1) << HFI_OP_APPLY;
        stage_advance(&stage, 200);
        stage.nodes[0].door.refuse = 0;
        stage_advance(&stage, 400);
        assert_int_equal(hook.asked, (int)i + 1);
        assert_int_equal(hook.planned_ms, 60000);
        assert_int_equal(look(id)->failures, 1);
        assert_int_equal(look(id)->run_at_us - past(id, 0)->ended_at_us, given[i] * 1000);
        if (i > 0)
            assert_string_equal(look(id)->not_before_reason, "retry_hook");
        struct hfi_op_cancel op = {.op = {.kind = HFI_OP_CANCEL}, .id = id, .actor = "t", .now = {wall_us()}};
        stage_do(&stage, &op.op, HFI_OP_CANCEL);
        stage_advance(&stage, 300);
        if (play.held_count == 4 && i == 2) { /* 0 = now: it began again meanwhile */
            finish(held(3), hf_work_ok(held(3), NULL, 0));
            stage_advance(&stage, 100);
        }
    }
    hook.permanent = true;
    hook.delay_ms = -1;
    int64_t id = stage_enqueue(&stage, "mail", NULL);
    stage_advance(&stage, 300);
    struct hf_work *work = held(play.held_count - 1);
    finish(work, hf_work_failed(work, "x", "y"));
    stage_advance(&stage, 100);
    assert_int_equal(look(id)->state, HF_JOB_DEAD);
    assert_string_equal(past(id, 0)->rule, "retry_hook");
    int asked_now = hook.asked;
    id = stage_enqueue(&stage, "mail", NULL); /* what dies anyway is none of its business */
    stage_advance(&stage, 300);
    work = held(play.held_count - 1);
    finish(work, hf_work_permanent(work, "x", "y"));
    stage_advance(&stage, 100);
    assert_int_equal(look(id)->state, HF_JOB_DEAD);
    assert_int_equal(hook.asked, asked_now);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(progress_is_few_writes_and_the_last_one_stays),
        TEST(a_stale_word_is_a_logged_no_op),
        TEST(a_checkpoint_resumes_at_the_last_step),
        TEST(bounds_of_a_checkpoint),
        TEST(flaky_succeeds_on_the_third),
        TEST(each_execution_is_a_fresh_one),
        TEST(two_payload_versions_wait_together),
        TEST(a_payload_that_drifted_is_put_aside_S3_14),
        TEST(a_type_has_labels_and_jobs_any_queue),
        TEST(a_snooze_is_no_failure),
        TEST(a_hundred_thousand_snoozes),
        TEST(until_a_time),
        TEST(a_single_cause_is_looked_at),
        TEST(a_poison_flood_starves_nobody),
        TEST(observers_hear_after_the_commit),
        TEST(the_retry_hook_moves_or_denies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
