/* SPDX-License-Identifier: MIT */
/*
 * Random lives of jobs against what must hold in every one: the epoch never falls, executions are real starts that were
 * not taken back, a death and only a death makes a dead letter (S0.15), terminal states stay (S1.27). I37, I43, I46.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/transition.h"
#include "seed.h"

#define T0 INT64_C(1780000000000000)

struct life {
    struct hfi_job job;
    uint32_t starts, taken_back, failures, deaths, snoozes; /* counted here, by hand */
    int64_t now;
};

static const char *const types[] = {"http.503", "validation.x", "timeout.execution", ""};

static void make_event(struct hfi_random *random, struct life *life, struct hf_outcome *outcome,
                       struct hfi_event *event) {
    memset(event, 0, sizeof *event);
    /* mostly what can happen next, sometimes anything */
    static const enum hfi_event_kind running[] = {HFI_EVENT_SUCCEEDED, HFI_EVENT_FAILED,  HFI_EVENT_FAILED,
                                                  HFI_EVENT_FAILED,    HFI_EVENT_REJECTED, HFI_EVENT_SNOOZED,
                                                  HFI_EVENT_GIVEN_BACK, HFI_EVENT_LAPSED};
    uint64_t dice = hfi_random_below(random, 10);
    if (dice == 0)
        event->kind = (enum hfi_event_kind)hfi_random_below(random, HFI_EVENT_COUNT);
    else if (life->job.state == HF_JOB_PENDING)
        event->kind = HFI_EVENT_CLAIMED;
    else if (life->job.state == HF_JOB_RUNNING && life->job.started_at_us == 0 && dice < 9)
        event->kind = HFI_EVENT_STARTED;
    else if (life->job.state == HF_JOB_RUNNING)
        event->kind = running[hfi_random_below(random, 8)];
    else
        event->kind = HFI_EVENT_REQUEUED;
    event->now.us = life->now;
    event->node = 1 + (int64_t)hfi_random_below(random, 2);
    event->delay_ms = (int64_t)hfi_random_below(random, 5000);
    event->crash = hfi_random_below(random, 4) == 0;
    event->may_have_sent = hfi_random_below(random, 3) == 0;
    event->actor = "model";
    hfi_outcome_init(outcome);
    if (hfi_random_below(random, 8) == 0)
        return;
    hfi_outcome_set(outcome, HF_OUTCOME_FAILURE, HF_RETRY_NONE, HF_VERDICT_FAILURE,
                    (enum hf_class)(hfi_random_below(random, 9) == 0 ? HF_CLASS_PERMANENT : HF_CLASS_TRANSIENT),
                    types[hfi_random_below(random, 4)], "model");
    outcome->sent = (enum hf_sent)hfi_random_below(random, 3);
    outcome->retry_after_ms = hfi_random_below(random, 3) ? -1 : (int64_t)hfi_random_below(random, 10000000);
    event->outcome = outcome;
}

static void count(struct life *life, const struct hfi_event *event, const struct hfi_job *before,
                  const struct hfi_change *change) {
    bool ran = before->state == HF_JOB_RUNNING && before->started_at_us != 0;
    switch (event->kind) {
    case HFI_EVENT_STARTED:
        life->starts++;
        break;
    case HFI_EVENT_REJECTED:
    case HFI_EVENT_QUARANTINED:
        life->taken_back += ran;
        break;
    case HFI_EVENT_GIVEN_BACK:
        life->taken_back += ran && change->job.give_backs > before->give_backs;
        life->failures += change->has_death && strcmp(change->death.cause, "outcome.unknown") == 0;
        break;
    case HFI_EVENT_FAILED:
        life->failures++;
        break;
    case HFI_EVENT_LAPSED:
        life->failures += ran;
        break;
    case HFI_EVENT_SNOOZED:
        life->snoozes++;
        break;
    case HFI_EVENT_REQUEUED:
        life->starts = life->taken_back = life->failures = life->snoozes = 0;
        break;
    default:
        break;
    }
}

static void check(struct life *life, const struct hfi_event *event, const struct hfi_rules *rules,
                  const struct hfi_job *before, const struct hfi_change *change) {
    const struct hfi_job *job = &change->job;
    bool left_running = before->state == HF_JOB_RUNNING && job->state != HF_JOB_RUNNING;
    bool by_owner = event->node == before->owner && event->kind != HFI_EVENT_LAPSED;
    bool moves = event->kind == HFI_EVENT_CLAIMED || event->kind == HFI_EVENT_REQUEUED || (left_running && !by_owner);
    assert_int_equal(job->epoch, before->epoch + (moves ? 1 : 0)); /* I46: up by one, never down */
    assert_int_equal(job->executions, life->starts - life->taken_back);
    assert_int_equal(job->failures, life->failures);
    assert_int_equal(job->snoozes, life->snoozes);
    bool death = job->state == HF_JOB_DEAD || job->state == HF_JOB_QUARANTINED;
    assert_int_equal(change->has_death, death); /* every death has its letter, nothing else has one [S0.15] */
    life->deaths += change->has_death;
    assert_int_equal(job->deaths, life->deaths);
    if (change->has_death) {
        assert_int_equal(change->death.death_no, life->deaths);
        assert_true(change->death.error_type[0] && change->death.rule[0] && change->death.cause[0]);
        assert_int_equal(change->death.quarantined, job->state == HF_JOB_QUARANTINED);
        assert_true(change->has_history);
    }
    uint32_t used = job->executions - job->snoozes;
    assert_true(used <= hfi_max_executions(job, rules)); /* never one more than the budget */
    if (job->state == HF_JOB_PENDING)
        assert_int_equal(job->finished_at_us, 0);
    assert_int_equal(job->owner != 0, job->state == HF_JOB_RUNNING);
    if (before->state >= HF_JOB_SUCCEEDED)
        assert_int_equal(event->kind, HFI_EVENT_REQUEUED); /* S1.27 */
    if (job->state == HF_JOB_PENDING && event->kind == HFI_EVENT_FAILED) {
        int64_t wait = hfi_curve_wait_ms(rules->policy, job->failures, rules->random);
        assert_true(job->run_at_us >= event->now.us + wait * 1000); /* I34, I37 */
    }
    assert_true(!rules->repeatable || !change->has_death || strcmp(change->death.cause, "outcome.unknown") != 0);
}

static void lives(void **state) {
    (void)state;
    struct hfi_random random;
    static struct hfi_change changes[2];
    static const char *const never[] = {"validation"};
    uint64_t events = 0, refused = 0;
    hfi_random_seed(&random, test_seed("transition lives"));
    for (int n = 0; n < 4000; n++) {
        struct life life = {.now = T0};
        struct hfi_curve curve;
        hfi_curve_default(&curve);
        struct hfi_rules rules = {.policy = &curve, .repeatable = n % 3 != 0, .max_crashes = 3, .max_give_backs = 2,
                                  .retry_after_cap_ms = 3600000, .give_up_after_ms = 86400000,
                                  .never_retry = never, .never_retry_count = 1};
        life.job = (struct hfi_job){.id = n + 1, .type = "t", .queue = "q", .downstream = "d", .run_at_us = T0,
                                    .reason = "", .error_type = ""};
        life.job.max_executions = (uint32_t)hfi_random_below(&random, 4);
        for (int step = 0; step < 80; step++) {
            struct hf_outcome outcome;
            struct hfi_event event;
            struct hfi_change *change = &changes[step & 1];
            life.now += (int64_t)hfi_random_below(&random, 7200) * 1000000;
            rules.random = hfi_random_next(&random);
            rules.unhealthy_since_us = hfi_random_below(&random, 2) ? T0 : 0;
            make_event(&random, &life, &outcome, &event);
            struct hfi_job before = life.job;
            if (hfi_transition(&life.job, &event, &rules, change) != 0) {
                refused++;
                continue;
            }
            events++;
            count(&life, &event, &before, change);
            check(&life, &event, &rules, &before, change);
            life.job = change->job;
        }
    }
    printf("%" PRIu64 " events, %" PRIu64 " refused\n", events, refused);
    assert_true(events > 50000 && refused > 5000); /* the model walks, and bumps into walls */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lives)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
