/* SPDX-License-Identifier: MIT */
/*
 * Calls under chance: random policies, scripts, starts, cancels, reloads, hands, steps of the wall clock, rate limits and
 * injected faults on virtual time. Whatever happens, the laws of the call hold: one end each, within the total, attempts
 * that add up, one token for each retry, nothing left behind. HF_SEED repeats a run; HF_FULL=1 makes ten times as many.
 * R8, R9, R18, R19, R21, B19, F2.
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
    int64_t totals_ms[CALLS]; /* of the policy it began under */
    bool cancelled[CALLS];
    int64_t cancelled_ms[CALLS];
    char queries[CALLS][16];
    uint64_t refused; /* starts that the transport did not take */
    uint32_t most_retries, most_hedges; /* of all policies so far */
    bool reloaded, faulty;
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

static void shape_policy(struct hf_policy_options *policy) {
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
    policy->breaker_window_ms = 2 * policy->attempt_timeout_ms + (int64_t)below(60000);
    policy->breaker_slices = HFI_WINDOW_SLICES_MIN + (uint32_t)below(50);
    policy->rate_per_s = below(4) == 0 ? 1 + (double)below(20) : 0;
    policy->rate_burst = policy->rate_per_s > 0 ? (uint32_t)below(4) : 0;
    policy->allow_fault_injection = true;
    model.most_retries = policy->retry_max > model.most_retries ? policy->retry_max : model.most_retries;
    model.most_hedges = policy->hedge_max > model.most_hedges ? policy->hedge_max : model.most_hedges;
}

/* Another policy while calls run. */
static void reload(void) {
    struct hf_policy *policy;
    struct hf_error error;
    struct hf_policy_options next;
    hf_policy_options_init(&next);
    hf_error_init(&error);
    shape_policy(&next);
    int code = hf_policy_new(&next, &policy, &error);
    if (code != 0)
        fail_msg("%s: %s", error.what, error.why);
    assert_int_equal(hfi_downstream_reload(world->d, world->s->ops->mono(world->s), policy), 0);
    hf_policy_unref(policy);
    world->policy = next;
    model.reloaded = true;
}

static void inject(void) {
    struct hf_fault faults[2];
    hf_fault_init(&faults[0], HF_FAULT_STATUS);
    hf_fault_init(&faults[1], HF_FAULT_RESET);
    faults[0].status = 503;
    faults[0].share = faults[1].share = 0.1;
    faults[1].delay_ms = (int64_t)below(500);
    assert_int_equal(hf_downstream_inject(world->d, faults, 1 + below(2), NULL), 0);
    model.faulty = true;
}

/* What happens around the calls. */
static void meddle(void) {
    struct hf_mono now = world->s->ops->mono(world->s);
    switch (below(60)) {
    case 0:
        hfi_breaker_isolate(&world->d->breaker, now, 1 + (int64_t)below(3000), "by hand");
        break;
    case 1:
        hfi_breaker_close(&world->d->breaker, now);
        break;
    case 2:
        hfi_virtual_step_wall(world->s, (int64_t)below(7200000000) - 3600000000); /* an hour to and fro */
        break;
    case 3:
        reload();
        break;
    default:
        break;
    }
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
    model.totals_ms[i] = world->policy.total_timeout_ms;
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
    int64_t total = model.totals_ms[i];
    if (request->total_timeout_ms && request->total_timeout_ms < total)
        total = request->total_timeout_ms;
    assert_int_equal(end->count, 1);
    assert_true(outcome->touched);
    assert_true(end->at_ms - model.started_ms[i] <= total); /* the total always wins (S0.31) */
    if (model.cancelled[i])
        assert_int_equal(end->at_ms, model.cancelled_ms[i]);
    bool hedges = !request->no_retry && !request->no_hedge;
    uint32_t most = hedges ? 1 + model.most_hedges : 1; /* attempts of a try */
    assert_true(outcome->attempts <= (request->no_retry ? 1 : model.most_retries + 1) * most);
    assert_true(outcome->attempts <= 1 + outcome->retries + outcome->hedges); /* each further one was paid for */
    assert_true(outcome->retries <= model.most_retries);
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
    if (!model.faulty)
        assert_int_equal(sends_of(i) > 0, outcome->sent != HF_SENT_NO);
    if (sends_of(i) > 0)
        assert_int_not_equal(outcome->sent, HF_SENT_NO); /* "not sent" is proof */
    if (strcmp(request->method, "POST") == 0 && !request->idempotency_key)
        assert_true(sends_of(i) <= 1); /* what may not be repeated is on the wire once at most (R19) */
}

/* What the downstream has counted is what the calls were told, and nothing is left in it. */
static void check_downstream(uint64_t attempts, uint64_t retries, uint64_t hedges, uint64_t refusals) {
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(world->d, world->s->ops->mono(world->s), &view);
    assert_int_equal(view.in_flight, 0);
    assert_int_equal(view.probes_in_flight, 0);
    assert_int_equal(atomic_load(&world->d->bulkhead.queued), 0);
    assert_int_equal(view.retries, retries);
    assert_int_equal(view.hedges, hedges);
    assert_int_equal(view.retries_refused, refusals);
    /* A token for each (R9, R18); of others, only those of hedges that the transport then did not take. */
    assert_in_range(hfi_budget_charged(&world->d->budget) - retries - hedges, 0, model.most_hedges > 0 ? model.refused : 0);
    assert_int_equal(attempts + model.refused, hfi_scripted_started(world->script) + view.faults);
    /* Every attempt on the wire was a permit and came back, and no refusal was anything else (B19, R21). */
    uint64_t unused = view.permits_issued - attempts - model.refused; /* of hedges for which no token was there */
    assert_in_range(unused, 0, model.most_hedges > 0 ? view.neutrals : 0);
    assert_int_equal(view.successes + view.failures + view.neutrals, view.permits_issued);
    assert_int_equal(view.calls, view.permits_issued + view.rejections);
    assert_true(view.neutrals >= model.refused);
    assert_true(view.window_calls <= view.successes + view.failures);
    assert_true(hfi_downstream_adds_up(world->d));
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
    assert_int_equal(hfi_scripted_open(world->script), 0);
    check_downstream(attempts, retries, hedges, refusals);
    /* Never two retries for one token: without a share of the calls no ten seconds have more than the floor (R9). */
    uint64_t spans = (uint64_t)call_now_ms() / 9000 + 1; /* nine at least: the oldest slice leaves as a whole */
    if (world->policy.budget_ratio == 0 && !model.reloaded)
        assert_true(retries + hedges <= spans * world->policy.budget_floor);
}

static void test_laws(void **state) {
    uint64_t seed = hf_test_seed();
    (void)state;
    uint64_t rounds = getenv("HF_FULL") != NULL ? 10 * ROUNDS : ROUNDS;
    for (uint64_t round = 0; round < rounds; round++) {
        memset(&model, 0, sizeof model);
        hfi_random_seed(&model.random, seed + round);
        assert_int_equal(call_world_set_up(NULL), 0);
        shape_policy(&world->policy);
        call_world_open_with(chance, NULL);
        if (below(4) == 0)
            inject();
        for (int i = 0; i < CALLS; i++) {
            start(i);
            if (below(4) == 0)
                maybe_cancel(i + 1);
            meddle();
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
