/* SPDX-License-Identifier: MIT */
/* Contract of the store: pages, filters, counts, queues, downstreams, pruning, the doctor. */
#include "store_world.h"

#include <stdlib.h>

#include "base/clock.h"
#include "resilience/phase_histograms.h"

static struct hf_job_list *list_jobs(const struct hf_job_filter *filter) {
    struct hf_job_list *list = NULL;
    assert_int_equal(world.store->ops->list_jobs(world.store, filter, &list, NULL), 0);
    return list;
}

static void pages_of_jobs_meet_without_gap_or_repetition(void **state) { /* I74 */
    (void)state;
    int64_t ids[57], seen[57];
    size_t count = 0, pages = 0;
    struct hf_job_filter filter;
    for (int i = 0; i < 57; i++)
        ids[i] = world_put_type("a");
    hf_job_filter_init(&filter);
    filter.limit = 10;
    do {
        struct hf_job_list *list = list_jobs(&filter);
        for (size_t i = 0; i < hf_job_list_count(list); i++) {
            assert_true(count < 57);
            seen[count++] = hf_job_list_at(list, i)->id;
            assert_null(hf_job_list_at(list, i)->payload);
        }
        filter.after_id = hf_job_list_next(list);
        hf_job_list_free(list);
        world_put_type("a"); /* what comes meanwhile is newer than the cursor: in no page */
        pages++;
    } while (filter.after_id != 0);
    assert_int_equal(pages, 6);
    assert_int_equal(count, 57);
    for (size_t i = 0; i < 57; i++)
        assert_int_equal(seen[i], ids[56 - i]); /* newest first */
}

static void a_page_that_ends_exactly_has_no_next(void **state) {
    (void)state;
    struct hf_job_filter filter;
    for (int i = 0; i < 4; i++)
        world_put_type("a");
    hf_job_filter_init(&filter);
    filter.limit = 4;
    struct hf_job_list *list = list_jobs(&filter);
    assert_int_equal(hf_job_list_count(list), 4);
    assert_int_equal(hf_job_list_next(list), 0);
    hf_job_list_free(list);
}

/* A page may come to its bound first: then it is short, and the next one goes on. */
static size_t gather_ids(struct hf_job_filter filter, int64_t *ids, size_t room, void (*between)(void)) {
    size_t count = 0, pages = 0;
    do {
        struct hf_job_list *list = list_jobs(&filter);
        for (size_t i = 0; i < hf_job_list_count(list); i++) {
            assert_true(count < room);
            ids[count++] = hf_job_list_at(list, i)->id;
        }
        assert_true(hf_job_list_next(list) == 0 || filter.after_id == 0 || hf_job_list_next(list) < filter.after_id);
        filter.after_id = hf_job_list_next(list);
        hf_job_list_free(list);
        if (between)
            between();
        assert_true(pages++ < 1000);
    } while (filter.after_id != 0);
    return count;
}

static int64_t doomed[2000];
static size_t doomed_count;

/* New rows come and old ones go while somebody reads. */
static void disturb(void) {
    world_put_type("new");
    struct hfi_op_prune prune = {.op = {.kind = HFI_OP_PRUNE}, .cancelled_before = INT64_MAX, .limit = 5};
    assert_int_equal(world_do(&prune.op), 0);
}

static void each_of_ten_thousand_of_one_instant_is_seen_once(void **state) { /* I75 */
    (void)state;
    enum { MANY = 10000 };
    static int64_t ids[MANY + 10], put[MANY];
    struct hf_job_spec spec = world_spec("a", NULL);
    struct hf_job_filter filter;
    struct hfi_put *puts = calloc(500, sizeof *puts);
    struct hfi_spec_room room;
    for (size_t at = 0; at < MANY; at += 500) {
        struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = puts, .count = 500};
        for (size_t i = 0; i < 500; i++)
            assert_int_equal(hfi_spec_check(&spec, world.now, 1000, &puts[i].job, &room, NULL), 0);
        assert_int_equal(world_do(&op.op), 0);
        for (size_t i = 0; i < 500; i++)
            put[at + i] = puts[i].id;
    }
    free(puts);
    for (doomed_count = 0; doomed_count < 60; doomed_count++) { /* these go while the pages are read */
        struct hfi_op_cancel op = {.op = {.kind = HFI_OP_CANCEL}, .id = put[doomed_count * 150 + 7], .actor = "x", .now = world.now};
        assert_int_equal(world_do(&op.op), 0);
        doomed[doomed_count] = op.id;
    }
    hf_job_filter_init(&filter);
    filter.limit = 137;
    size_t count = gather_ids(filter, ids, MANY + 10, disturb), next = 0;
    for (size_t i = 0; i < count; i++)
        assert_true(i == 0 || ids[i] < ids[i - 1]); /* newest first, none twice, none of the new ones */
    assert_int_equal(ids[0], put[MANY - 1]);
    for (size_t i = MANY; i > 0; i--) { /* whatever lived all the time was seen */
        bool goes = false;
        for (size_t d = 0; d < doomed_count; d++)
            goes = goes || doomed[d] == put[i - 1];
        if (next < count && ids[next] == put[i - 1])
            next++;
        else
            assert_true(goes);
    }
    assert_int_equal(next, count);
}

static void a_page_that_finds_little_ends_and_goes_on(void **state) { /* I74 */
    (void)state;
    int64_t ids[8];
    struct hf_job_filter filter;
    struct hf_job_spec spec = world_spec("rare", "odd");
    spec.tags = "night, import";
    spec.correlation_id = "c-1";
    spec.limit_name = "tenant";
    spec.limit_key = "7";
    spec.source = "shop";
    spec.source_message_id = "m-1";
    int64_t first = world_put(&spec);
    for (int i = 0; i < 300; i++)
        world_put_type("a");
    spec.tags = "nightly,import";
    spec.source_message_id = "m-2";
    int64_t second = world_put(&spec);
    hf_job_filter_init(&filter);
    filter.limit = 1;
    filter.type = "rare";
    assert_int_equal(gather_ids(filter, ids, 8, NULL), 2);
    assert_int_equal(ids[0], second);
    assert_int_equal(ids[1], first);
    filter.type = NULL;
    filter.queue = "odd";
    assert_int_equal(gather_ids(filter, ids, 8, NULL), 2);
    filter.queue = NULL;
    filter.limit_key = "tenant:7";
    assert_int_equal(gather_ids(filter, ids, 8, NULL), 2);
    filter.limit_key = "tenant";
    assert_int_equal(gather_ids(filter, ids, 8, NULL), 0);
    filter.limit_key = NULL;
    filter.correlation_id = "c-1";
    assert_int_equal(gather_ids(filter, ids, 8, NULL), 2);
    filter.correlation_id = NULL;
    filter.tag = "import";
    assert_int_equal(gather_ids(filter, ids, 8, NULL), 2);
    filter.tag = "night"; /* the word, not its beginning */
    assert_int_equal(gather_ids(filter, ids, 8, NULL), 1);
    assert_int_equal(ids[0], first);
    filter.source_message_id = "m-2";
    assert_int_equal(gather_ids(filter, ids, 8, NULL), 0);
    filter.tag = NULL;
    assert_int_equal(gather_ids(filter, ids, 8, NULL), 1);
    assert_int_equal(ids[0], second);
    assert_string_equal(world_job(second)->source_message_id, "m-2");
}

static size_t count_jobs(struct hf_job_filter filter) {
    struct hf_job_list *list = list_jobs(&filter);
    size_t count = hf_job_list_count(list);
    hf_job_list_free(list);
    return count;
}

static void filters_of_jobs_hold_together(void **state) {
    (void)state;
    struct hf_job_spec spec = world_spec("a", "one");
    struct hf_job_filter filter;
    world_put(&spec);
    world.now.us += MINUTE;
    spec.queue = "two";
    world_put(&spec);
    spec.type = "b";
    world_put(&spec);
    assert_non_null(world_start(world_lane("two", "b")));
    hf_job_filter_init(&filter);
    assert_int_equal(count_jobs(filter), 3);
    filter.type = "a";
    assert_int_equal(count_jobs(filter), 2);
    filter.queue = "two";
    assert_int_equal(count_jobs(filter), 1);
    filter.type = NULL;
    filter.state = HF_JOB_RUNNING;
    assert_int_equal(count_jobs(filter), 1);
    filter.state = HF_JOB_DEAD;
    assert_int_equal(count_jobs(filter), 0);
    hf_job_filter_init(&filter);
    filter.created_since_us = T0 + 1;
    assert_int_equal(count_jobs(filter), 2);
    filter.type = "nothing";
    assert_int_equal(count_jobs(filter), 0);
    hf_job_filter_init(&filter);
    filter.limit = 0; /* the default, not nothing */
    assert_int_equal(count_jobs(filter), 3);
}

static size_t count_shown(int32_t shown) {
    struct hf_job_filter filter;
    hf_job_filter_init(&filter);
    filter.shown = shown;
    return count_jobs(filter);
}

static void pending_jobs_are_shown_as_what_they_wait_for(void **state) { /* S3.13 */
    (void)state;
    int64_t now = hfi_wall_now().us; /* lists look at the clock themselves */
    struct hf_job_spec spec = world_spec("a", NULL);
    world.now.us = now;
    spec.run_at_us = now + HOUR;
    int64_t scheduled = world_put(&spec);
    spec.run_at_us = now - HOUR;
    int64_t failing = world_put(&spec);
    struct hfi_job *job = world_start_type("a");
    assert_int_equal(world_fail(&job, false), 0);
    spec.run_at_us = now - HOUR;
    int64_t ready = world_put(&spec);
    spec.downstream = "bank";
    int64_t parked = world_put(&spec);
    struct hfi_op_downstream op = {.op = {.kind = HFI_OP_DOWNSTREAM}, .key = "bank", .set = HFI_DOWNSTREAM_PHASE};
    op.state.phase = 1;
    assert_int_equal(world_do(&op.op), 0);
    assert_string_equal(world_job(scheduled)->shown, "scheduled");
    assert_string_equal(world_job(failing)->shown, "retrying");
    assert_string_equal(world_job(ready)->shown, "ready");
    assert_string_equal(world_job(parked)->shown, "parked");
    for (int32_t shown = HF_JOB_SHOWN_SCHEDULED; shown <= HF_JOB_SHOWN_READY; shown++)
        assert_int_equal(count_shown(shown), 1);
    op.state.phase = 0;
    op.state.version = 1;
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(count_shown(HF_JOB_SHOWN_PARKED), 0);
    assert_int_equal(count_shown(HF_JOB_SHOWN_READY), 2);
}

static void the_dead_and_the_quarantined_are_apart(void **state) { /* S1.14, S3.12 */
    (void)state;
    struct hf_job_filter filter;
    int64_t dead, id[2];
    world_die("a", &dead);
    int64_t other = world_put_type("b");
    struct hfi_job *job = world_start_type("b");
    assert_int_equal(APPLY(&job, QUARANTINED, .error_type = "payload.bad", .message = "x"), 0);
    hf_job_filter_init(&filter);
    filter.state = HF_JOB_DEAD;
    assert_int_equal(gather_ids(filter, id, 2, NULL), 1);
    assert_int_equal(id[0], dead);
    filter.state = HF_JOB_QUARANTINED;
    assert_int_equal(gather_ids(filter, id, 2, NULL), 1);
    assert_int_equal(id[0], other);
    assert_int_equal(world_counts().dead, 1);
    assert_int_equal(world_counts().quarantined, 1);
}

static void dead_letters_come_in_pages_and_by_filter(void **state) {
    (void)state;
    struct hf_dead_filter filter;
    struct hf_dead_list *list = NULL;
    int64_t ids[12], last = INT64_MAX;
    for (int i = 0; i < 12; i++)
        ids[i] = world_die(i % 3 ? "a" : "b", NULL);
    hf_dead_filter_init(&filter);
    filter.limit = 5;
    size_t count = 0;
    do {
        assert_int_equal(world.store->ops->list_dead(world.store, &filter, &list, NULL), 0);
        for (size_t i = 0; i < hf_dead_list_count(list); i++) {
            const struct hf_dead_view *view = hf_dead_list_at(list, i);
            assert_true(view->id < last);
            assert_string_equal(view->detail, "");
            assert_null(view->payload);
            last = view->id;
            count++;
        }
        filter.after_id = hf_dead_list_next(list);
        hf_dead_list_free(list);
    } while (filter.after_id != 0);
    assert_int_equal(count, 12);
    hf_dead_filter_init(&filter);
    filter.type = "b";
    filter.error_type = "http"; /* by dotted prefix [S2.14] */
    filter.death_class = HF_DEATH_PERMANENT;
    assert_int_equal(world.store->ops->list_dead(world.store, &filter, &list, NULL), 0);
    assert_int_equal(hf_dead_list_count(list), 4);
    char fingerprint[17];
    memcpy(fingerprint, hf_dead_list_at(list, 0)->fingerprint, 17);
    hf_dead_list_free(list);
    filter.error_type = "http.40";
    assert_int_equal(world.store->ops->list_dead(world.store, &filter, &list, NULL), 0);
    assert_int_equal(hf_dead_list_count(list), 0);
    hf_dead_list_free(list);
    filter.error_type = "http.404";
    filter.fingerprint = fingerprint;
    assert_int_equal(world.store->ops->list_dead(world.store, &filter, &list, NULL), 0);
    assert_int_equal(hf_dead_list_count(list), 4);
    hf_dead_list_free(list);
    struct hf_dead_action action = world_action("ann");
    struct hfi_op_settle settle = {.op = {.kind = HFI_OP_SETTLE}, .dead_id = ids[0], .status = HF_DEAD_RESOLVED,
                                   .action = &action, .now = world.now};
    assert_int_equal(world_do(&settle.op), 0);
    assert_int_equal(world_dead_count(HF_DEAD_DEAD), 11);
    assert_int_equal(world_dead_count(HF_DEAD_RESOLVED), 1);
    assert_int_equal(world_dead_count(-1), 12);
    hf_dead_filter_init(&filter);
    filter.queue = "nothing";
    filter.since_us = 0;
    assert_int_equal(world.store->ops->list_dead(world.store, &filter, &list, NULL), 0);
    assert_int_equal(hf_dead_list_count(list), 0);
    hf_dead_list_free(list);
}

static void counts_follow_every_change(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++)
        world_put_type("a");
    struct hfi_job *jobs[5];
    assert_int_equal(world_claim(world_lane("default", "a"), 5, true, jobs), 5);
    assert_int_equal(APPLY(&jobs[0], SUCCEEDED, .result = NULL), 0);
    assert_int_equal(world_fail(&jobs[1], true), 0);
    assert_int_equal(world_fail(&jobs[2], false), 0);
    assert_int_equal(APPLY(&jobs[3], CANCELLED, .actor = "x", .message = ""), 0);
    struct hf_job_counts counts = world_counts();
    assert_int_equal(counts.pending, 2);
    assert_int_equal(counts.running, 1);
    assert_int_equal(counts.succeeded, 1);
    assert_int_equal(counts.dead, 1);
    assert_int_equal(counts.cancelled, 1);
    assert_int_equal(counts.quarantined + counts.waiting + counts.other, 0);
    assert_int_equal(counts.dead_letters_open, 1);
    assert_int_equal(counts.alerts_unsent, 2);
}

static void queues_show_their_depth_and_pause(void **state) {
    (void)state;
    int64_t now = hfi_wall_now().us; /* lists look at the clock themselves */
    struct hf_job_spec spec = world_spec("a", "b-queue");
    spec.run_at_us = now - HOUR;
    world_put(&spec);
    spec.run_at_us = now - 2 * HOUR;
    world_put(&spec);
    spec.run_at_us = now + DAY;
    world_put(&spec);
    spec.queue = "a-queue";
    spec.run_at_us = T0;
    world_put(&spec);
    assert_non_null(world_start(world_lane("a-queue", "a")));
    struct hfi_op_pause pause = {.op = {.kind = HFI_OP_PAUSE}, .queue = "c-queue", .actor = "ann", .pause = true,
                                 .now = {now}};
    assert_int_equal(world_do(&pause.op), 0);
    struct hf_queue_list *list = NULL;
    assert_int_equal(world.store->ops->list_queues(world.store, &list, NULL), 0);
    assert_int_equal(hf_queue_list_count(list), 3);
    const struct hf_queue_view *a = hf_queue_list_at(list, 0), *b = hf_queue_list_at(list, 1),
                               *c = hf_queue_list_at(list, 2);
    assert_string_equal(a->name, "a-queue");
    assert_int_equal(a->running, 1);
    assert_int_equal(a->due + a->scheduled, 0);
    assert_string_equal(b->name, "b-queue");
    assert_int_equal(b->due, 2);
    assert_int_equal(b->scheduled, 1);
    assert_int_equal(b->oldest_due_at_us, now - 2 * HOUR);
    assert_false(b->paused);
    assert_string_equal(c->name, "c-queue");
    assert_true(c->paused);
    assert_int_equal(c->paused_until_us, 0);
    hf_queue_list_free(list);
}

static void downstreams_show_what_they_keep_back(void **state) {
    (void)state;
    struct hf_downstream_list *list = NULL;
    world_put_type("a");
    struct hfi_op_downstream op = {.op = {.kind = HFI_OP_DOWNSTREAM}, .key = "shop", .set = HFI_DOWNSTREAM_PHASE};
    op.state.phase = 1;
    op.state.trips = 3;
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(world.store->ops->list_downstreams(world.store, &list, NULL), 0);
    assert_int_equal(hf_downstream_list_count(list), 1);
    const struct hf_downstream_row *row = hf_downstream_list_at(list, 0);
    assert_string_equal(row->key, "shop");
    assert_int_equal(row->phase, 1);
    assert_int_equal(row->trips, 3);
    assert_int_equal(row->version, 1);
    assert_int_equal(row->parked, 1);
    hf_downstream_list_free(list);
    op.state.phase = 0;
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(world.store->ops->list_downstreams(world.store, &list, NULL), 0);
    assert_int_equal(hf_downstream_list_at(list, 0)->parked, 0);
    hf_downstream_list_free(list);
}

static void pruning_goes_in_small_chunks_and_keeps_what_lives(void **state) { /* S1.22, S3.6 */
    (void)state;
    struct hfi_job *jobs[9];
    for (int i = 0; i < 10; i++)
        world_put_type("a");
    assert_int_equal(world_claim(world_lane("default", "a"), 9, true, jobs), 9);
    for (int i = 0; i < 6; i++)
        assert_int_equal(APPLY(&jobs[i], SUCCEEDED, .result = NULL), 0);
    assert_int_equal(APPLY(&jobs[6], CANCELLED, .actor = "x", .message = ""), 0);
    assert_int_equal(world_fail(&jobs[7], true), 0);
    struct hfi_op_prune op = {.op = {.kind = HFI_OP_PRUNE}, .limit = 4};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.pruned, 0); /* 0 keeps for ever */
    op.succeeded_before = T0;
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(op.pruned, 0); /* they ended at T0, not before */
    op.succeeded_before = T0 + 1;
    uint32_t total = 0;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(world_do(&op.op), 0);
        assert_true(op.pruned <= 4);
        total += op.pruned;
    }
    assert_int_equal(total, 6);
    assert_int_equal(world_counts().succeeded, 0);
    assert_int_equal(world_counts().cancelled, 1);
    assert_int_equal(world_counts().dead, 1);
    assert_int_equal(world_counts().running, 1);
    assert_int_equal(world_counts().pending, 1);
    op = (struct hfi_op_prune){.op = {.kind = HFI_OP_PRUNE}, .cancelled_before = T0 + 1, .dead_before = T0 + 1,
                               .quarantined_before = T0 + 1, .dead_letters_before = T0 + 1, .limit = 100};
    assert_int_equal(world_do(&op.op), 0);
    assert_int_equal(world_counts().cancelled + world_counts().dead, 0);
    assert_int_equal(world_dead_count(-1), 1); /* the dead letter outlives its job */
}

static void the_store_says_what_it_is(void **state) {
    (void)state;
    struct hf_store_info info;
    hf_store_info_init(&info);
    assert_int_equal(world.store->ops->look(world.store, &info), 0);
    assert_string_equal(info.kind, world.kind);
    assert_int_equal(strlen(info.uuid), 36);
    assert_string_equal(info.uuid, world.store->uuid);
    assert_true(info.schema >= 1 && info.min_writer >= 1);
}

struct report {
    int errors, lines, undelivered;
};

static void count_report(bool is_error, const char *check, const char *text, const char *fix, void *user) {
    struct report *report = user;
    assert_non_null(check);
    assert_non_null(text);
    assert_non_null(fix);
    report->lines++;
    report->errors += is_error;
    report->undelivered += strstr(text, "could not be delivered") != NULL;
}

static void the_doctor_finds_nothing_in_a_healthy_store(void **state) {
    (void)state;
    struct report report = {0, 0, 0};
    world_put_type("a");
    assert_non_null(world_start_type("a"));
    assert_int_equal(world.store->ops->doctor(world.store, count_report, &report, NULL), 0);
    assert_int_equal(report.errors, 0);
}

static void the_doctor_finds_an_alert_nobody_got(void **state) { /* 3.8 */
    (void)state;
    static const char *const sinks[] = {"ops"};
    struct report report = {0, 0, 0};
    world_die("a", NULL);
    struct hfi_op_alerts op = {.op = {.kind = HFI_OP_ALERTS}, .sinks = sinks, .sink_count = 1, .node = world.node,
                               .lease_ms = 1000, .now = world.now, .limit = 1};
    assert_int_equal(world_do(&op.op), 0);
    struct hfi_op_alert_end end = {.op = {.kind = HFI_OP_ALERT_END}, .id = op.rows[0].id, .epoch = op.rows[0].epoch,
                                   .undelivered = true, .error_type = "http.410", .now = world.now};
    hfi_free(op.rows);
    assert_int_equal(world_do(&end.op), 0);
    assert_int_equal(world.store->ops->doctor(world.store, count_report, &report, NULL), 0);
    assert_int_equal(report.undelivered, 1); /* a warning: the store itself is well */
}

static void call_that_took(int64_t resolve_us, int64_t connect_us, int64_t tls_us, int64_t first_byte_us, int64_t total_us) {
    struct hf_outcome outcome;
    struct hfi_job *job = world_start_type("a");
    hfi_outcome_init(&outcome);
    hfi_outcome_success(&outcome, "http.2xx");
    outcome.phases = (struct hfi_phases){resolve_us, connect_us, tls_us, first_byte_us, total_us};
    assert_int_equal(APPLY(&job, SUCCEEDED, .outcome = &outcome), 0);
}

/* 2.7: by the history, each phase by itself; of this downstream, and of who called at all. */
static void phases_of_a_downstream_are_those_of_its_jobs(void **state) {
    (void)state;
    struct hfi_phase_tally *tally = hfi_alloc(sizeof *tally);
    assert_non_null(tally);
    for (int i = 0; i < 4; i++)
        world_put_type("a");
    call_that_took(1000, 3000, 6000, 10000, 11000);
    call_that_took(1000, 3000, 6000, 10000, 11000);
    call_that_took(-1, -1, -1, 2000, 2100); /* over a connection that was there */
    call_that_took(-1, -1, -1, -1, -1);     /* refused */
    assert_int_equal(world.store->ops->look_phases(world.store, "shop", hfi_phases_tally, tally, NULL), 0);
    assert_int_equal(hfi_latency_look(&tally->phases.resolve).count, 2);
    assert_int_equal(hfi_latency_look(&tally->phases.tls).count, 2);
    assert_int_equal(hfi_latency_look(&tally->phases.first_byte).count, 3);
    assert_int_equal(hfi_latency_look(&tally->total).count, 3);
    assert_in_range(hfi_latency_look(&tally->phases.tls).p50_us, 3000, 3000 * 107 / 100);
    assert_in_range(hfi_latency_look(&tally->phases.first_byte).p99_us, 4000, 4000 * 107 / 100);
    assert_in_range(hfi_latency_look(&tally->total).p99_us, 11000, 11000 * 107 / 100);
    memset(tally, 0, sizeof *tally);
    assert_int_equal(world.store->ops->look_phases(world.store, "mail", hfi_phases_tally, tally, NULL), 0);
    assert_int_equal(hfi_latency_look(&tally->total).count, 0);
    hfi_free(tally);
}

WORLD_MAIN(WORLD_TEST(pages_of_jobs_meet_without_gap_or_repetition), WORLD_TEST(a_page_that_ends_exactly_has_no_next),
           WORLD_TEST(filters_of_jobs_hold_together), WORLD_TEST(each_of_ten_thousand_of_one_instant_is_seen_once),
           WORLD_TEST(a_page_that_finds_little_ends_and_goes_on), WORLD_TEST(pending_jobs_are_shown_as_what_they_wait_for),
           WORLD_TEST(the_dead_and_the_quarantined_are_apart), WORLD_TEST(dead_letters_come_in_pages_and_by_filter),
           WORLD_TEST(counts_follow_every_change), WORLD_TEST(queues_show_their_depth_and_pause),
           WORLD_TEST(downstreams_show_what_they_keep_back),
           WORLD_TEST(pruning_goes_in_small_chunks_and_keeps_what_lives), WORLD_TEST(the_store_says_what_it_is),
           WORLD_TEST(the_doctor_finds_nothing_in_a_healthy_store),
           WORLD_TEST(the_doctor_finds_an_alert_nobody_got),
           WORLD_TEST(phases_of_a_downstream_are_those_of_its_jobs))
