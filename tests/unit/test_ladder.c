/* SPDX-License-Identifier: MIT */
/* What is estimated from measured attempts: known distributions, cut and uncut; and what is suggested from it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/ladder.h"
#include "resilience/measured.h"
#include "seed.h"

static struct hfi_spread ended, cut, uncut;

static double uniform(struct hfi_random *random) {
    return ((double)(hfi_random_next(random) >> 11) + 0.5) / 9007199254740992.0;
}

/* The known distributions, in µs. */
enum law { LOGNORMAL, EXPONENTIAL, PARETO, LAWS };
struct model {
    enum law law;
    double scale, shape;
};

static struct model any_model(struct hfi_random *random) {
    return (struct model){(enum law)hfi_random_below(random, LAWS), exp(log(1000) + uniform(random) * log(1000)),
                          0.3 + uniform(random)};
}

static double draw(const struct model *model, struct hfi_random *random) {
    double u = uniform(random);
    switch (model->law) {
    case LOGNORMAL:
        return model->scale * exp(model->shape * sqrt(-2 * log(u)) * cos(6.283185307179586 * uniform(random)));
    case EXPONENTIAL:
        return -model->scale * log(u);
    default:
        return model->scale * pow(u, -1 / (1 + model->shape * 2));
    }
}

/* The true share that is over by then. */
static double over_by(const struct model *model, double us) {
    switch (model->law) {
    case LOGNORMAL:
        return 0.5 * erfc(-log(us / model->scale) / model->shape / sqrt(2));
    case EXPONENTIAL:
        return 1 - exp(-us / model->scale);
    default:
        return us <= model->scale ? 0 : 1 - pow(us / model->scale, -(1 + model->shape * 2));
    }
}

static void clear(void) {
    memset(&ended, 0, sizeof ended);
    memset(&cut, 0, sizeof cut);
    memset(&uncut, 0, sizeof uncut);
}

static void the_binomial_is_the_known_one(void **state) {
    (void)state;
    assert_true(fabs(hfi_binomial_below(10, 0.5, 5) - 0.623046875) < 1e-9);
    assert_true(fabs(hfi_binomial_below(10, 0.1, 0) - pow(0.9, 10)) < 1e-9);
    assert_true(fabs(hfi_binomial_below(3000, 0.001, 0) - pow(0.999, 3000)) < 1e-9);
    assert_true(fabs(hfi_binomial_below(3000, 0.001, 3) - 0.64723) < 1e-4);
    assert_true(fabs(hfi_binomial_below(1000000, 0.0019, 1828) - hfi_binomial_below(1000000, 0.0021, 1828) - 0.0491) < 2e-3);
    assert_true(fabs(hfi_binomial_below(1000000, 0.0021, 2024) - 0.0496) < 1e-3);
    assert_true(hfi_binomial_below(10, 0.5, -1) == 0);
    assert_true(hfi_binomial_below(10, 0.5, 10) == 1);
}

static void so_many_samples_are_needed(void **state) {
    (void)state;
    assert_int_equal(hfi_survival_needed(0.5), 5);
    assert_int_equal(hfi_survival_needed(0.99), 299);
    assert_int_equal(hfi_survival_needed(0.999), 2995);
    assert_true(hfi_survival_needed(1) == UINT64_MAX);
    for (uint64_t n = 297; n < 302; n++) { /* with one less there is no bound, whatever they are */
        struct hfi_survival survival = {&ended, NULL};
        clear();
        hfi_spread_add(&ended, 1000, n);
        int64_t bound = hfi_survival_bound(&survival, 0.99);
        assert_int_equal(bound, n >= 299 ? hfi_spread_edge(hfi_spread_bucket(1000)) : -1);
        assert_true(hfi_survival_quantile(&survival, 0.99) > 0);
    }
}

static void nothing_was_seen(void **state) {
    (void)state;
    struct hfi_later later;
    struct hfi_survival survival = {&ended, &cut};
    clear();
    assert_int_equal(hfi_survival_quantile(&survival, 0.5), -1);
    assert_int_equal(hfi_survival_bound(&survival, 0.5), -1);
    assert_true(hfi_survival_share(&survival, 1000) == -1);
    assert_false(hfi_survival_later(&survival, 1000, 1.5, &later));
    hfi_spread_add(&cut, 1000, 5000); /* all of them were cut */
    assert_int_equal(hfi_survival_quantile(&survival, 0.5), -1);
    assert_int_equal(hfi_survival_bound(&survival, 0.5), -1);
    assert_true(hfi_survival_share(&survival, 1000000) == 0);
}

/* The bound keeps the share it was asked for, in 95 of 100 samples drawn, whatever the law; all of them are within a few. */
static void the_bound_keeps_the_share(void **state) {
    (void)state;
    static const double keeps[] = {0.5, 0.9, 0.99, 0.999};
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("bound"));
    int rounds = getenv("HF_FULL") ? 2000 : 200, kept = 0;
    for (int round = 0; round < rounds; round++) {
        struct model model = any_model(&random);
        double keep = keeps[hfi_random_below(&random, 4)];
        int count = (int)hfi_survival_needed(keep) + (int)hfi_random_below(&random, 3000);
        clear();
        for (int i = 0; i < count; i++)
            hfi_spread_add(&ended, (int64_t)ceil(draw(&model, &random)), 1);
        struct hfi_survival survival = {&ended, NULL};
        int64_t bound = hfi_survival_bound(&survival, keep), quantile = hfi_survival_quantile(&survival, keep);
        assert_true(bound >= quantile && quantile > 0);
        kept += over_by(&model, (double)bound) >= keep;
    }
    /* 0.95 expected; lower than 0.895 (full: 0.935) has less than 1 in 1,000 to happen */
    assert_true(kept >= rounds * (rounds > 200 ? 935 : 895) / 1000);
}

/* Cut at a limit, and some early at random as a hedge that lost: as if they had not been, up to the limit. */
static void cut_samples_are_not_lost(void **state) {
    (void)state;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("cut"));
    for (int round = 0; round < 30; round++) {
        struct model model = any_model(&random), early = {EXPONENTIAL, 0, 0};
        clear();
        double limit = model.scale * 2.5;
        early.scale = model.scale * 3;
        double worst = 0;
        for (int i = 0; i < 20000; i++) {
            double us = draw(&model, &random), gives_up = draw(&early, &random);
            double end = gives_up < limit ? gives_up : limit;
            hfi_spread_add(&uncut, (int64_t)us, 1);
            if (us <= end)
                hfi_spread_add(&ended, (int64_t)us, 1);
            else
                hfi_spread_add(&cut, (int64_t)end, 1);
        }
        struct hfi_survival whole = {&uncut, NULL}, censored = {&ended, &cut}, blind = {&ended, NULL};
        assert_int_equal(hfi_survival_samples(&censored), 20000);
        for (double share = 0.1; share < 0.95; share += 0.1) {
            int64_t at = hfi_survival_quantile(&whole, share);
            if (at < 0 || (double)at > limit * 0.95)
                break;
            worst = fmax(worst, fabs(hfi_survival_share(&censored, at) - hfi_survival_share(&whole, at)));
        }
        assert_true(worst < 0.025);
        /* who forgets what was cut takes the rest for all */
        assert_true(hfi_survival_share(&blind, (int64_t)(limit * 0.9)) > hfi_survival_share(&censored, (int64_t)(limit * 0.9)));
        assert_int_equal(hfi_survival_quantile(&censored, 0.9999), -1);
    }
}

/* With a tail as of Pareto the estimate is exact; calls that hang for ever never answer later. */
static void a_little_later(void **state) {
    (void)state;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("later"));
    struct model tail = {PARETO, 1000, 0.2};
    struct hfi_survival survival = {&ended, &cut};
    struct hfi_later later;
    clear();
    for (int i = 0; i < 100000; i++) {
        double us = draw(&tail, &random);
        hfi_spread_add(us <= 10000 ? &ended : &cut, us <= 10000 ? (int64_t)us : 10001, 1);
    }
    assert_true(hfi_survival_later(&survival, 10000, 1.5, &later));
    double truth = 1 - pow(1.5, -1.4);
    assert_true(later.low < later.share && later.share < later.high);
    assert_true(fabs(later.share - truth) < 0.06 && later.high - later.low < 0.08);
    clear();
    hfi_spread_add(&ended, 200, 5000);
    hfi_spread_add(&cut, 10005, 400);
    hfi_spread_add(&ended, 12000, 100); /* under another limit: they reached this one too */
    assert_true(hfi_survival_later(&survival, 10000, 1.5, &later));
    assert_true(later.share == 0 && later.low == 0 && later.high < 0.01);
    assert_int_equal(later.reached, 500);
    clear();
    hfi_spread_add(&ended, 200, 5000);
    hfi_spread_add(&cut, 10005, HFI_LATER_LEAST - 1);
    assert_false(hfi_survival_later(&survival, 10000, 1.5, &later));
    assert_int_equal(later.reached, HFI_LATER_LEAST - 1);
}

/* ------------------------------------------------------------------ suggestions */

static struct hf_measured *measured;
static struct hf_policy_options policy;
static struct hf_suggestion suggestion;

static struct hfi_spread *spread(enum hf_phase phase, enum hf_fate fate) {
    return &measured->spreads[hfi_measured_at(phase, fate)];
}

static int make_measured(void **state) {
    (void)state;
    hf_policy_options_init(&policy);
    hf_suggestion_init(&suggestion);
    return hfi_measured_new(&measured);
}

static int free_measured(void **state) {
    (void)state;
    hf_measured_free(measured);
    return 0;
}

static void suggest(double keep) {
    hfi_measured_settle(measured);
    assert_int_equal(hf_ladder_suggest(measured, &policy, keep, &suggestion), 0);
}

static void too_few_are_said_and_nothing_is_guessed(void **state) {
    (void)state;
    hfi_spread_add(spread(HF_PHASE_ATTEMPT, HF_FATE_ENDED), 5000, 2994);
    suggest(0.999);
    assert_int_equal(suggestion.attempt.basis, HF_BASIS_TOO_FEW);
    assert_int_equal(suggestion.attempt.samples, 2994);
    assert_true(suggestion.attempt.quantile_us == -1 && suggestion.attempt.kept_now == -1);
    assert_int_equal(suggestion.attempt.needed, 2995);
    assert_int_equal(suggestion.attempt.value_ms, policy.attempt_timeout_ms);
    assert_int_equal(suggestion.total.value_ms, policy.total_timeout_ms);
    assert_int_equal(suggestion.window.value_ms, policy.breaker_window_ms);
    assert_int_equal(suggestion.connect.basis, HF_BASIS_TOO_FEW);
    assert_int_equal(suggestion.connect.samples, 0);
    assert_int_equal(hf_policy_check(&suggestion.policy, NULL, NULL), 0);
    assert_int_equal(hf_ladder_suggest(measured, &policy, 0, &suggestion), HF_EINVAL);
    assert_int_equal(hf_ladder_suggest(measured, &policy, 1, &suggestion), HF_EINVAL);
    assert_int_equal(hf_ladder_suggest(measured, &policy, NAN, &suggestion), HF_EINVAL);
}

static void a_limit_that_cuts_too_much_is_raised_a_step(void **state) {
    (void)state;
    struct hf_cut by = {.size = sizeof by};
    policy.attempt_timeout_ms = 1000;
    policy.connect_timeout_ms = 1000;
    hfi_spread_add(spread(HF_PHASE_ATTEMPT, HF_FATE_ENDED), 500000, 9000);
    hfi_spread_add(spread(HF_PHASE_ATTEMPT, HF_FATE_ENDED), 900000, 500);
    hfi_spread_add(spread(HF_PHASE_ATTEMPT, HF_FATE_CUT_ATTEMPT), 1002000, 500);
    hfi_spread_add(spread(HF_PHASE_ATTEMPT, HF_FATE_CUT_CONNECT), 1002000, 100); /* says nothing of this limit */
    suggest(0.99);
    assert_int_equal(suggestion.attempt.basis, HF_BASIS_CUT);
    assert_int_equal(suggestion.attempt.value_ms, 1500);
    assert_true(fabs(suggestion.attempt.kept_now - 0.95) < 1e-9);
    assert_int_equal(suggestion.attempt.samples, 10000);
    assert_int_equal(hf_ladder_cut(measured, &policy, HF_FATE_CUT_ATTEMPT, &by), 0);
    assert_int_equal(by.attempts, 10100);
    assert_int_equal(by.cut, 500);
    assert_int_equal(by.reached, 1000);
    assert_int_equal(by.ended, 500);
    assert_true(by.later == 0.5 && by.low > 0.46 && by.high < 0.54);
    assert_int_equal(hf_ladder_cut(measured, &policy, HF_FATE_CUT_CONNECT, &by), 0);
    assert_true(by.cut == 100 && by.later == -1);
    assert_int_equal(hf_ladder_cut(measured, &policy, HF_FATE_ENDED, &by), HF_EINVAL);
}

/* Whatever was measured: what is proposed is a ladder by the rules of `holdfast check`, and keeps what it was asked for. */
static void what_is_suggested_is_a_ladder_that_keeps_the_share(void **state) {
    (void)state;
    struct hfi_random random;
    hfi_random_seed(&random, test_seed("suggest"));
    int rounds = getenv("HF_FULL") ? 1000 : 60, kept = 0;
    for (int round = 0; round < rounds; round++) {
        struct model model = any_model(&random);
        double keep = hfi_random_below(&random, 2) ? 0.99 : 0.95;
        model.scale *= 100; /* 0.1 to 100 s */
        memset(measured, 0, sizeof *measured);
        hf_policy_options_init(&policy);
        policy.retry_max = (uint32_t)hfi_random_below(&random, 4);
        measured->hours = 1 + hfi_random_below(&random, 100);
        double limit = (double)policy.attempt_timeout_ms * 1000;
        for (int i = 0; i < 3000; i++) {
            double us = draw(&model, &random);
            hfi_spread_add(spread(HF_PHASE_ATTEMPT, us <= limit ? HF_FATE_ENDED : HF_FATE_CUT_ATTEMPT),
                           (int64_t)ceil(us <= limit ? us : limit), 1);
            hfi_spread_add(spread(HF_PHASE_SETUP, HF_FATE_ENDED), (int64_t)(us / 20), 1);
        }
        suggest(keep);
        assert_int_equal(hf_policy_check(&suggestion.policy, NULL, NULL), 0);
        assert_true(suggestion.policy.connect_timeout_ms <= suggestion.policy.attempt_timeout_ms);
        if (suggestion.attempt.basis == HF_BASIS_MEASURED) /* as it should */
            kept += over_by(&model, (double)suggestion.attempt.value_ms * 1000) >= keep;
        else
            kept += suggestion.attempt.basis == HF_BASIS_CUT && over_by(&model, limit) < keep + 0.02;
    }
    assert_true(kept >= rounds * 85 / 100); /* 95 of 100 expected */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_binomial_is_the_known_one), cmocka_unit_test(so_many_samples_are_needed),
        cmocka_unit_test(nothing_was_seen),              cmocka_unit_test(the_bound_keeps_the_share),
        cmocka_unit_test(cut_samples_are_not_lost),      cmocka_unit_test(a_little_later),
        cmocka_unit_test_setup_teardown(too_few_are_said_and_nothing_is_guessed, make_measured, free_measured),
        cmocka_unit_test_setup_teardown(a_limit_that_cuts_too_much_is_raised_a_step, make_measured, free_measured),
        cmocka_unit_test_setup_teardown(what_is_suggested_is_a_ladder_that_keeps_the_share, make_measured, free_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
