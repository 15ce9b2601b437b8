/* SPDX-License-Identifier: MIT */
/*
 * Calls under chance: random policies, scripts, starts and cancels on virtual time. Whatever happens, the laws of the
 * call hold: one end each, within the total, attempts that add up, nothing left behind. HF_SEED repeats a run.
 */
#include "support/support.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/log.h"
#include "support/call_world.h"

#define ROUNDS 1000
#define CALLS 40

struct model {
    struct hfi_random random;
    struct call_end ends[CALLS];
    struct hf_request requests[CALLS];
    int64_t started_ms[CALLS];
    bool cancelled[CALLS];
    int64_t cancelled_ms[CALLS];
    char queries[CALLS][16];
    uint64_t refused; /* starts that the transport did not take */
    struct hfi_script_step steps[HFI_SCRIPT_RECORDS];
};
static struct model model;

static uint64_t below(uint64_t bound) {
    return hfi_random_below(&model.random, bound);
}

static struct hfi_script_step choose(void) {
    static const int statuses[] = {200, 204, 302, 400, 404, 408, 421, 429, 500, 501, 503, 503};
    static const char *const waits[] = {"0", "1", "3", "50", "100000", "junk"};
    struct hfi_script_step step;
    switch (below(8)) {
    case 0:
        return hfi_script_code((int64_t)below(3000), CURLE_COULDNT_CONNECT, HF_SENT_NO);
    case 1:
        return hfi_script_code((int64_t)below(3000), CURLE_RECV_ERROR, HF_SENT_MAYBE);
    case 2:
        return hfi_script_hang(below(2));
    case 3:
        step = hfi_script_status(0, 200);
        step.refuse = below(4) ? 0 : HF_ENOMEM;
        model.refused += step.refuse != 0;
        return step;
    default:
        step = hfi_script_status((int64_t)below(6000), statuses[below(sizeof statuses / sizeof *statuses)]);
        step.connect_ms = step.delay_ms / 2;
        if (below(3) == 0)
            step.facts.retry_after = waits[below(sizeof waits / sizeof *waits)];
        return step;
    }
}

static struct hfi_script_step chance(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    struct hfi_script_step step = choose();
    (void)spec;
    (void)user;
    if (number < HFI_SCRIPT_RECORDS)
        model.steps[number] = step;
    return step;
}

static void shape_policy(void) {
    struct hf_policy_options *policy = &world->policy;
    policy->allow_truncated = true;
    policy->connect_timeout_ms = 1 + (int64_t)below(2000);
    policy->attempt_timeout_ms = policy->connect_timeout_ms + (int64_t)below(3000);
    policy->total_timeout_ms = policy->attempt_timeout_ms + 5001 + (int64_t)below(20000);
    policy->retry_max = (uint32_t)below(5);
    policy->bulkhead_max = 1 + (uint32_t)below(6);
    policy->bulkhead_queue = (uint32_t)below(6);
    policy->hedge_max = below(2) ? (uint32_t)below(HF_HEDGE_MAX + 1) : 0;
    policy->hedge_delay_ms = 1 + (int64_t)below((uint64_t)policy->total_timeout_ms / HF_HEDGE_MAX);
    policy->hedge_p95 = below(4) == 0;
    policy->budget_floor = (uint32_t)below(12);
    policy->budget_ratio = policy->budget_floor > 0 && below(2) ? 0 : 0.2;
    policy->breaker_consecutive = below(3) == 0 ? 3 + (uint32_t)below(5) : 0;
    policy->gate_cap_ms = (int64_t)below(5000);
    policy->breaker_429_failure = below(2);
}

static void start(int i) {
    static const char *const methods[] = {"GET", "POST", "PUT", "DELETE"};
    struct hf_request *request = &model.requests[i];
    *request = hf_request_to("d", methods[below(4)], "/m");
    request->idempotency_key = below(3) == 0 ? "key" : NULL;
    snprintf(model.queries[i], sizeof model.queries[i], "n=%d.", i);
    request->query = model.queries[i];
    request->no_retry = below(8) == 0;
    request->no_hedge = below(8) == 0;
    request->attempt_timeout_ms = below(6) == 0 ? 1 + (int64_t)below(3000) : 0;
    request->total_timeout_ms = below(3) == 0 ? 1 + (int64_t)below(4000) : 0;
    model.started_ms[i] = call_now_ms();
    assert_int_equal(call_start(&model.ends[i], request), 0);
}

static void maybe_cancel(int started) {
    int i = (int)below((uint64_t)started);
    if (model.ends[i].count || model.cancelled[i])
        return;
    model.cancelled[i] = true;
    model.cancelled_ms[i] = call_now_ms();
    call_cancel(&model.ends[i]);
}

/* How many attempts of call `i` may have reached the peer. */
static unsigned sends_of(int i) {
    unsigned sends = 0;
    for (uint64_t n = 0; n < hfi_scripted_started(world->script); n++) {
        const struct hfi_script_record *record = hfi_scripted_record(world->script, n);
        const struct hfi_script_step *step = &model.steps[n];
        bool connected = record->ended.us - record->started.us >= hfi_ms_to_us(step->connect_ms);
        bool sent = record->end == HFI_SCRIPT_ANSWERED || (record->end == HFI_SCRIPT_CANCELLED && connected);
        if (strstr(record->url, model.queries[i]))
            sends += sent && step->facts.sent != HF_SENT_NO;
    }
    return sends;
}

static void check_end(int i) {
    const struct call_end *end = &model.ends[i];
    const struct hf_outcome *outcome = &end->outcome;
    const struct hf_request *request = &model.requests[i];
    int64_t total = world->policy.total_timeout_ms;
    if (request->total_timeout_ms && request->total_timeout_ms < total)
        total = request->total_timeout_ms;
    assert_int_equal(end->count, 1);
    assert_true(outcome->touched);
    assert_true(end->at_ms - model.started_ms[i] <= total); /* the total always wins (S0.31) */
    if (model.cancelled[i])
        assert_int_equal(end->at_ms, model.cancelled_ms[i]);
    bool hedges = !request->no_retry && !request->no_hedge;
    uint32_t most = hedges ? 1 + world->policy.hedge_max : 1; /* attempts of a try */
    assert_true(outcome->attempts <= (request->no_retry ? 1 : world->policy.retry_max + 1) * most);
    assert_true(outcome->attempts <= 1 + outcome->retries + outcome->hedges); /* each further one was paid for */
    assert_true(outcome->retries <= world->policy.retry_max);
    if (outcome->kind == HF_OUTCOME_REJECTED) {
        assert_int_equal(outcome->attempts, 0);
        assert_int_equal(outcome->sent, HF_SENT_NO);
        assert_true(outcome->retry_after_ms >= 1);
    }
    if (outcome->kind == HF_OUTCOME_SUCCESS)
        assert_true(end->status >= 200 && end->status < 300 && outcome->klass == HF_CLASS_OK);
    else
        assert_int_not_equal(outcome->klass, HF_CLASS_OK);
    if (outcome->sent != HF_SENT_NO)
        assert_true(outcome->attempts > 0);
    assert_int_equal(sends_of(i) > 0, outcome->sent != HF_SENT_NO); /* "not sent" is proof */
    if (strcmp(request->method, "POST") == 0 && !request->idempotency_key)
        assert_true(sends_of(i) <= 1); /* what may not be repeated is on the wire once at most (R19) */
}

static void check_world(void) {
    uint64_t attempts = 0, retries = 0, hedges = 0, refusals = 0;
    for (int i = 0; i < CALLS; i++) {
        check_end(i);
        attempts += model.ends[i].outcome.attempts;
        retries += model.ends[i].outcome.retries;
        hedges += model.ends[i].outcome.hedges;
        refusals += model.ends[i].outcome.retry_refused;
    }
    assert_int_equal(attempts + model.refused, hfi_scripted_started(world->script));
    assert_int_equal(hfi_scripted_open(world->script), 0);
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(world->d, world->s->ops->mono(world->s), &view);
    assert_int_equal(view.in_flight, 0);
    assert_int_equal(view.retries, retries);
    assert_int_equal(view.hedges, hedges);
    assert_int_equal(view.retries_refused, refusals);
    /* Never two retries for one token: without a share of the calls no ten seconds have more than the floor (R9). */
    uint64_t spans = (uint64_t)call_now_ms() / 9000 + 1; /* nine at least: the oldest slice leaves as a whole */
    if (world->policy.budget_ratio == 0)
        assert_true(retries + hedges <= spans * world->policy.budget_floor);
}

static void test_laws(void **state) {
    uint64_t seed = hf_test_seed();
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        memset(&model, 0, sizeof model);
        hfi_random_seed(&model.random, seed + round);
        assert_int_equal(call_world_set_up(NULL), 0);
        shape_policy();
        call_world_open_with(chance, NULL);
        for (int i = 0; i < CALLS; i++) {
            start(i);
            if (below(4) == 0)
                maybe_cancel(i + 1);
            hfi_virtual_advance(world->s, (int64_t)below(below(10) ? 300 : 8000));
        }
        if (below(8) == 0)
            hfi_caller_end(world->caller);
        call_run();
        check_world();
        call_world_tear_down(NULL);
    }
}

static void quiet(enum hf_log_level level, const char *event, const char *fields, void *user) {
    (void)level;
    (void)event;
    (void)fields;
    (void)user;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_laws)};
    hf_log_set(HF_LOG_DEBUG, quiet, NULL); /* so that the log lines are made, too */
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
