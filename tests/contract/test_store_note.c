/* SPDX-License-Identifier: MIT */
/* Contract of the store: progress and checkpoint of a running job, written by its owner alone; what nodes measured. */
#include "store_world.h"

#include <stdlib.h>

#include "jobs/measuring.h"
#include "resilience/spread.h"

static int note(const struct hfi_job *job, unsigned set, int64_t progress, const char *text, const void *checkpoint,
                size_t length) {
    struct hfi_op_note op = {.op = {.kind = HFI_OP_NOTE}, .id = job->id, .epoch = job->epoch, .set = set,
                             .progress = progress, .text = text, .checkpoint = checkpoint, .length = length};
    return world_do(&op.op);
}

static int checkpoint(const struct hfi_job *job, const char *text) {
    return note(job, HFI_NOTE_CHECKPOINT, 0, "", text, strlen(text));
}

static struct hfi_job *claim_again(void) {
    world.now.us += 3 * HOUR;
    struct hfi_job *job = world_start_type("a");
    assert_non_null(job);
    return job;
}

static void lapse(void) {
    struct hfi_op_sweep op = {.op = {.kind = HFI_OP_SWEEP}, .book = world.book, .owner = world.node, .by = 999,
                              .now = world.now, .limit = 10};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.lapsed, 1);
    hfi_free(op.notes);
    struct hfi_op_join join = {.op = {.kind = HFI_OP_JOIN}, .name = "again", .host = "here", .boot = "b", .pid = 3,
                               .now = world.now};
    assert_int_equal(world_do(&join.op), 0);
    world.node = join.node;
}

static void progress_is_seen_and_outlives_the_outcome(void **state) {
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(world_job(id)->progress, 0);
    assert_string_equal(world_job(id)->progress_text, "");
    assert_int_equal(note(job, HFI_NOTE_PROGRESS, 41, "41 of 100", NULL, 0), 0);
    assert_int_equal(note(job, HFI_NOTE_PROGRESS, 42, "42 of 100", NULL, 0), 0);
    assert_int_equal(world_job(id)->progress, 42);
    assert_string_equal(world_job(id)->progress_text, "42 of 100");
    assert_int_equal(world_job(id)->state, HF_JOB_RUNNING);
    assert_int_equal(world_job(id)->epoch, job->epoch);
    assert_int_equal(world_fail(&job, false), 0); /* its owner's copy knows nothing of it */
    assert_int_equal(world_job(id)->progress, 42);
    job = claim_again();
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = "r", .result_length = 1), 0);
    assert_int_equal(world_job(id)->progress, 42);
    assert_string_equal(world_job(id)->progress_text, "42 of 100");
    assert_int_equal(world_job(id)->result_length, 1);
}

/* S2.31: whatever ended the execution, the next one is given the last checkpoint; any bytes. */
static void a_checkpoint_is_given_to_the_next_execution(void **state) {
    (void)state;
    unsigned char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (unsigned char)i;
    int64_t id = world_put_type("a");
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(job->checkpoint_length, 0);
    assert_int_equal(checkpoint(job, "one"), 0);
    assert_int_equal(note(job, HFI_NOTE_CHECKPOINT | HFI_NOTE_PROGRESS, 2, "two", all, sizeof all), 0);
    assert_int_equal(world_job(id)->checkpoint_length, 256);
    assert_memory_equal(world_job(id)->checkpoint, all, 256);
    lapse(); /* the node is gone */
    job = claim_again();
    assert_int_equal(job->checkpoint_length, 256);
    assert_memory_equal(job->checkpoint, all, 256);
    assert_int_equal(job->progress, 2);
    assert_int_equal(world_fail(&job, false), 0);
    job = claim_again();
    assert_int_equal(job->checkpoint_length, 256);
    assert_int_equal(APPLY(&job, SNOOZED, .delay_ms = 0), 0);
    job = claim_again();
    assert_int_equal(job->checkpoint_length, 256);
    assert_int_equal(note(job, HFI_NOTE_CHECKPOINT, 0, "", NULL, 0), 0); /* none any more */
    assert_int_equal(APPLY(&job, GIVEN_BACK, .message = NULL), 0);
    job = claim_again();
    assert_int_equal(job->checkpoint_length, 0);
}

static void a_checkpoint_of_64_kib_is_kept_whole(void **state) {
    (void)state;
    char *big = malloc(HFI_CHECKPOINT_MAX);
    assert_non_null(big);
    memset(big, 'x', HFI_CHECKPOINT_MAX);
    world_put_type("a");
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(note(job, HFI_NOTE_CHECKPOINT, 0, "", big, HFI_CHECKPOINT_MAX), 0);
    assert_int_equal(world_fail(&job, false), 0);
    job = claim_again();
    assert_int_equal(job->checkpoint_length, HFI_CHECKPOINT_MAX);
    assert_memory_equal(job->checkpoint, big, HFI_CHECKPOINT_MAX);
    free(big);
}

/* I8, I50: an owner that is none any more, or a job that is gone, changes nothing. */
static void a_stale_note_changes_nothing(void **state) {
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_job *first = world_start_type("a");
    assert_int_equal(note(first, HFI_NOTE_CHECKPOINT | HFI_NOTE_PROGRESS, 1, "one", "one", 3), 0);
    struct hfi_job old = *first;
    lapse();
    assert_int_equal(note(&old, HFI_NOTE_PROGRESS, 9, "nine", NULL, 0), HF_ESTALE); /* pending */
    assert_int_equal(checkpoint(&old, "nine"), HF_ESTALE);
    struct hfi_job *job = claim_again();
    assert_int_equal(note(&old, HFI_NOTE_CHECKPOINT | HFI_NOTE_PROGRESS, 9, "nine", "nine", 4), HF_ESTALE);
    assert_int_equal(world_job(id)->progress, 1);
    assert_string_equal(world_job(id)->progress_text, "one");
    assert_int_equal(world_job(id)->checkpoint_length, 3);
    assert_int_equal(checkpoint(job, "two"), 0);
    assert_int_equal(APPLY(&job, SUCCEEDED, .result = NULL), 0);
    assert_int_equal(checkpoint(job, "late"), HF_ESTALE);
    assert_memory_equal(world_job(id)->checkpoint, "two", 3);
    struct hfi_job nobody = {.id = id + 1000, .epoch = 1};
    assert_int_equal(checkpoint(&nobody, "x"), HF_ESTALE);
    assert_int_equal(note(&nobody, HFI_NOTE_PROGRESS, 1, "", NULL, 0), HF_ESTALE);
}

static void a_note_leaves_a_cancel_request_and_the_fence_as_they_are(void **state) {
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_job *job = world_start_type("a");
    struct hfi_op_cancel cancel = {.op = {.kind = HFI_OP_CANCEL}, .id = id, .actor = "ann", .reason = "why",
                                   .now = world.now};
    assert_int_equal(world_do(&cancel.op), 0);
    assert_int_equal(checkpoint(job, "one"), 0);
    assert_int_equal(world_job(id)->cancel_requested_at_us, world.now.us);
    assert_int_equal(APPLY(&job, CANCELLED, .message = NULL), 0);
    assert_string_equal(world_job(id)->cancel_reason, "why");
}

/* S1.19: a requeued job begins from the top. */
static void a_requeue_forgets_both(void **state) {
    (void)state;
    int64_t id = world_put_type("a");
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(note(job, HFI_NOTE_CHECKPOINT | HFI_NOTE_PROGRESS, 7, "seven", "seven", 5), 0);
    assert_int_equal(world_fail(&job, true), 0);
    assert_int_equal(world_job(id)->state, HF_JOB_DEAD);
    assert_int_equal(world_job(id)->checkpoint_length, 5); /* evidence until then */
    struct hfi_op_requeue op = {.op = {.kind = HFI_OP_REQUEUE}, .id = id, .actor = "ann", .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(world_job(id)->progress, 0);
    assert_string_equal(world_job(id)->progress_text, "");
    assert_int_equal(world_job(id)->checkpoint_length, 0);
    job = claim_again();
    assert_int_equal(job->checkpoint_length, 0);
    assert_int_equal(job->progress, 0);
}

static void a_redriven_job_begins_without(void **state) {
    (void)state;
    world_put_type("a");
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(note(job, HFI_NOTE_CHECKPOINT | HFI_NOTE_PROGRESS, 7, "seven", "seven", 5), 0);
    assert_int_equal(world_fail(&job, true), 0);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_redrive op = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = 1, .action = &action, .now = world.now};
    assert_int_equal(world_do(&op.op), 0);
    job = claim_again();
    assert_int_equal(job->id, op.new_job);
    assert_int_equal(job->checkpoint_length, 0);
    assert_int_equal(job->progress, 0);
}

/* ------------------------------------------------------------------ measured attempts */

static int measure(const char *key, const void *bytes, size_t length) {
    struct hfi_op_measure op = {.op = {.kind = HFI_OP_MEASURE}, .key = key, .now = world.now, .bytes = bytes, .length = length};
    int code = world_do(&op.op);
    assert_false(op.more);
    return code;
}

/* One spread: so many in that bucket. */
static int measure_one(const char *key, unsigned bucket, uint64_t count) {
    struct hfi_packed packed;
    hfi_packed_begin(&packed);
    hfi_packed_put(&packed, bucket, count);
    int code = measure(key, packed.bytes, packed.length);
    hfi_packed_end(&packed);
    return code;
}

struct measured {
    struct hfi_spread spread;
    int64_t hours[8];
    size_t count;
};
static bool add_measured(int64_t hour, const void *bytes, size_t length, void *user) {
    struct measured *measured = user;
    measured->hours[measured->count++ % 8] = hour;
    return hfi_packed_add(bytes, length, &measured->spread, 1) == 0;
}

static const struct measured *measured_since(const char *key, int64_t from_hour) {
    static struct measured measured;
    memset(&measured, 0, sizeof measured);
    assert_int_equal(world.store->ops->look_measured(world.store, key, from_hour, add_measured, &measured, NULL), 0);
    return &measured;
}

/* One row an hour, to which every node adds; each downstream by itself; a week, whoever measures next. */
static void what_is_measured_is_added_up_by_the_hour(void **state) {
    (void)state;
    int64_t first = hfi_measured_hour(world.now.us);
    assert_int_equal(measured_since("shop", 0)->count, 0);
    assert_int_equal(measure_one("shop", 10, 3), 0);
    assert_int_equal(measure_one("shop", 10, 4), 0);
    assert_int_equal(measure_one("shop", 4000, UINT64_MAX), 0);
    assert_int_equal(measure_one("shop", 4000, 1), 0);
    assert_int_equal(measure_one("mail", 10, 100), 0);
    const struct measured *measured = measured_since("shop", 0);
    assert_int_equal(measured->count, 1);
    assert_int_equal(measured->hours[0], first);
    assert_int_equal(measured->spread.counts[10], 7);
    assert_true(measured->spread.counts[4000] == UINT64_MAX); /* never over */
    world.now.us += HOUR;
    assert_int_equal(measure_one("shop", 10, 5), 0);
    world.now.us -= 3 * HOUR; /* a clock that stepped back */
    assert_int_equal(measure_one("shop", 10, 20), 0);
    measured = measured_since("shop", 0);
    assert_int_equal(measured->count, 3);
    assert_int_equal(measured->hours[0], first - 2);
    assert_int_equal(measured->hours[2], first + 1);
    assert_int_equal(measured_since("shop", first + 1)->spread.counts[10], 5);
    assert_int_equal(measured_since("sho", 0)->count, 0);
    world.now.us += 2 * HOUR + HFI_MEASURED_HOURS * HOUR;
    assert_int_equal(measure_one("mail", 10, 1), 0);
    measured = measured_since("shop", 0);
    assert_int_equal(measured->count, 2); /* the hour that is a week ago is still there */
    assert_int_equal(measured->hours[0], first);
    world.now.us += HOUR;
    assert_int_equal(measure_one("mail", 10, 1), 0);
    assert_int_equal(measured_since("shop", 0)->count, 1);
    assert_int_equal(measured_since("mail", 0)->count, 2);
}

static void strange_bytes_are_refused(void **state) {
    (void)state;
    assert_int_equal(measure_one("shop", 10, 3), 0);
    assert_int_equal(measure("shop", "strange", 7), HF_EINVAL);
    assert_int_equal(measure("new", "", 0), HF_EINVAL);
    assert_int_equal(measured_since("new", 0)->count, 0);
    assert_int_equal(measured_since("shop", 0)->spread.counts[10], 3);
}

WORLD_MAIN(WORLD_TEST(what_is_measured_is_added_up_by_the_hour), WORLD_TEST(strange_bytes_are_refused),
           WORLD_TEST(progress_is_seen_and_outlives_the_outcome),
           WORLD_TEST(a_checkpoint_is_given_to_the_next_execution), WORLD_TEST(a_checkpoint_of_64_kib_is_kept_whole),
           WORLD_TEST(a_stale_note_changes_nothing),
           WORLD_TEST(a_note_leaves_a_cancel_request_and_the_fence_as_they_are), WORLD_TEST(a_requeue_forgets_both),
           WORLD_TEST(a_redriven_job_begins_without))
