/* SPDX-License-Identifier: MIT */
/* The memory store without memory: an operation that fails has changed nothing, and nothing is leaked. */
#include <string.h>

#include "support.h"

#include "base/alloc.h"
#include "jobs/views.h"
#include "sim/memory_store.h"

#define BROKEN (-99) /* half of an operation was done */

static struct hf_wall now = {1000000};

static int run(struct hfi_store *store, struct hfi_op *op) {
    store->ops->commit(store, &op, 1);
    return op->code;
}

static struct hf_job_counts count(struct hfi_store *store) {
    struct hf_job_counts counts;
    store->ops->count_jobs(store, &counts, NULL);
    return counts;
}

static int put_three(struct hfi_store *store) {
    static const char *const keys[] = {"k1", "k2", "k1"};
    struct hfi_put puts[3];
    struct hfi_spec_room rooms[3];
    struct hf_job_spec spec;
    const int64_t waits[] = {1};
    memset(puts, 0, sizeof puts);
    hf_job_spec_init(&spec);
    spec.type = "a";
    spec.source = "s";
    spec.curve_ms = waits;
    spec.curve_length = 1;
    for (int i = 0; i < 3; i++) {
        spec.unique_key = keys[i];
        spec.source_message_id = i == 0 ? "m0" : i == 1 ? "m1" : "m2";
        hfi_spec_check(&spec, now, 100, &puts[i].job, &rooms[i], NULL);
        puts[i].curve = &rooms[i].curve;
    }
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = puts, .count = 3};
    int code = run(store, &op.op);
    if (code == 0)
        return puts[2].existed && puts[2].id == puts[0].id && count(store).pending == 2 ? 0 : BROKEN;
    if (count(store).pending != 0 || puts[0].id != 0)
        return BROKEN;
    if (run(store, &op.op) == 0 && (puts[0].id != 1 || puts[0].existed)) /* no key, message or id is left taken */
        return BROKEN;
    return code;
}

static int claim_all(struct hfi_store *store, struct hfi_job **jobs) {
    struct hfi_curve curve;
    hfi_curve_default(&curve);
    struct hfi_admitted lane = {.lane = 1, .max = 2, .policy = &curve};
    struct hfi_op_claim op = {.op = {.kind = HFI_OP_CLAIM}, .node = 1, .now = now, .start = true, .lanes = &lane,
                              .lane_count = 1, .max = 2, .jobs = jobs};
    int code = run(store, &op.op);
    if (code != 0)
        return count(store).pending == 2 && count(store).running == 0 && op.count == 0 ? code : BROKEN;
    return op.count == 2 ? 0 : BROKEN;
}

static int kill_first(struct hfi_store *store, struct hfi_job *job) {
    static struct hfi_op_apply op;
    static const char *const sinks[] = {"ops", "pager"};
    struct hf_outcome outcome;
    hfi_outcome_init(&outcome);
    hfi_outcome_set(&outcome, HF_OUTCOME_FAILURE, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, HF_CLASS_PERMANENT, "t", "r");
    op = (struct hfi_op_apply){.op = {.kind = HFI_OP_APPLY}, .job = job,
                               .event = {.kind = HFI_EVENT_FAILED, .now = now, .node = 1, .outcome = &outcome},
                               .rules = {.policy = job->policy}, .sinks = sinks, .sink_count = 2};
    int code = run(store, &op.op);
    struct hf_job_counts counts = count(store);
    bool whole = counts.dead == 1 && counts.dead_letters_open == 1 && counts.alerts_unsent == 2;
    bool nothing = counts.dead == 0 && counts.dead_letters_open == 0 && counts.alerts_unsent == 0 && counts.running == 2;
    return code == 0 ? (whole ? 0 : BROKEN) : nothing ? code : BROKEN; /* S0.32d: at once or not at all */
}

static int redrive(struct hfi_store *store) {
    struct hf_dead_action action;
    hf_dead_action_init(&action);
    action.actor = "ann";
    struct hfi_op_redrive op = {.op = {.kind = HFI_OP_REDRIVE}, .dead_id = 1, .action = &action, .now = now};
    int code = run(store, &op.op);
    uint64_t made = count(store).pending, open = count(store).dead_letters_open;
    return code == 0 ? (made == 1 && open == 0 ? 0 : BROKEN) : made == 0 && open == 1 ? code : BROKEN;
}

static int attempt(void *user) {
    struct hf_store_options options;
    struct hfi_store *store = NULL;
    struct hfi_job *jobs[2] = {NULL, NULL};
    (void)user;
    hf_store_options_init(&options);
    int code = hfi_memory_store_new(&options, &store);
    if (code != 0)
        return code;
    struct hfi_op_join join = {.op = {.kind = HFI_OP_JOIN}, .name = "one", .host = "h", .boot = "b", .now = now};
    code = run(store, &join.op);
    if (code == 0)
        code = put_three(store);
    if (code == 0)
        code = claim_all(store, jobs);
    if (code == 0)
        code = kill_first(store, jobs[0]);
    if (code == 0)
        code = redrive(store);
    hfi_free(jobs[0]);
    hfi_free(jobs[1]);
    store->ops->close(store);
    return code;
}

static void every_operation_is_whole_or_has_not_been(void **state) {
    (void)state;
    assert_true(hf_test_alloc_sweep(attempt, NULL) > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_operation_is_whole_or_has_not_been)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
