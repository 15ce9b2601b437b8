/* SPDX-License-Identifier: MIT */
/*
 * The pair enter/leave that every attempt goes through: breaker, rate limit, bulkhead, and the counts of how it ended. Must
 * never count a local refusal as a sample. Any thread; the closed path takes no lock and allocates nothing.
 */
#include <string.h>

#include "holdfast/error.h"
#include "resilience/cause.h"
#include "resilience/downstream.h"

/* What an admission that was refused is to the caller. No sample (B19). */
static int refuse(const struct hf_downstream *downstream, enum hfi_admission admission, int64_t retry_after_ms,
                  struct hf_outcome *rejection) {
    static const struct {
        const char *type, *why;
    } rows[] = {
        [HFI_ADMITTED] = {"breaker.none", "admitted"},
        [HFI_REFUSED_OPEN] = {"breaker.open", "the circuit is open"},
        [HFI_REFUSED_HALF_OPEN] = {"breaker.half_open", "all probes are under way"},
        [HFI_REFUSED_RAMP] = {"breaker.ramp", "the peer recovers: only so many calls at once"},
        [HFI_REFUSED_ISOLATED] = {"breaker.isolated", "isolated by hand"},
        [HFI_REFUSED_GATE] = {"downstream.gate", "the peer asked to be left alone for a while"},
        [HFI_REFUSED_FULL] = {"bulkhead.full", ""},
        [HFI_REFUSED_RATE] = {"rate.limited", ""},
    };
    if (rejection == NULL)
        return HF_EREJECTED;
    hfi_outcome_init(rejection);
    hfi_outcome_rejected(rejection, rows[admission].type, retry_after_ms);
    if (admission == HFI_REFUSED_FULL)
        hfi_outcome_message(rejection, "%u attempts are in flight", hfi_bulkhead_max(&downstream->bulkhead));
    else if (admission == HFI_REFUSED_RATE)
        hfi_outcome_message(rejection, "our own limit of %g/s", hfi_downstream_policy(downstream)->options.rate_per_s);
    else
        hfi_outcome_say(rejection, rows[admission].why);
    return HF_EREJECTED;
}

static void count_refusal(struct hf_downstream *downstream, bool by_rate) {
    struct hfi_shard_use use = hfi_shards_mine(&downstream->breaker.shards);
    HFI_SHARD_ADD(use, rejections, 1);
    if (by_rate) /* then there is one */
        atomic_fetch_add_explicit(&hfi_downstream_extra(downstream)->rate_limited, 1, memory_order_relaxed);
}

void hfi_downstream_refused(struct hf_downstream *downstream, const struct hf_outcome *rejection) {
    count_refusal(downstream, strcmp(rejection->error_type, "rate.limited") == 0);
}

/* Gives a place back, and tells a guard that waits for it. */
static void free_place(struct hf_downstream *downstream, struct hfi_shard_use use, uint32_t term) {
    hfi_bulkhead_leave(use, term);
    if (!atomic_load_explicit(&downstream->queues, memory_order_relaxed))
        return;
    atomic_thread_fence(memory_order_seq_cst); /* the place before the look at who waits (waiting.h) */
    struct hfi_downstream_extra *extra = atomic_load(&downstream->extra);
    struct hfi_line *line = extra != NULL ? atomic_load(&extra->line) : NULL;
    if (line != NULL && atomic_load(&line->waiting) > 0)
        hfi_line_announce(line);
}

/* A place, for who has passed the breaker and the rate limit. */
static bool take_place(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit) {
    struct hfi_shards *shards = &downstream->breaker.shards;
    struct hfi_bulkhead *bulkhead = &downstream->bulkhead;
    if (now.us >= atomic_load_explicit(&bulkhead->term_end_us, memory_order_relaxed))
        hfi_bulkhead_turn(bulkhead, shards, now, hfi_downstream_policy(downstream)->breaker.lease_ms);
    return hfi_bulkhead_enter(bulkhead, shards, hfi_shards_mine(shards), &permit->term);
}

static enum hfi_admission ask_carefully(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                                        int64_t *retry_after_ms) {
    struct hfi_breaker *breaker = &downstream->breaker;
    bool special = atomic_load_explicit(&downstream->special, memory_order_relaxed);
    struct hfi_downstream_extra *extra = special ? hfi_downstream_extra(downstream) : NULL;
    int64_t wait_us;
    permit->state = 0;
    if (extra != NULL && extra->parent != NULL && hfi_breaker_isolated(&extra->parent->breaker, now, retry_after_ms))
        return HFI_REFUSED_ISOLATED; /* that means all its hosts */
    enum hfi_admission admission = hfi_breaker_enter(breaker, now, permit, retry_after_ms);
    if (admission != HFI_ADMITTED)
        return admission;
    struct hfi_rate *rate = extra != NULL && hfi_rate_on(&extra->rate) ? &extra->rate : NULL;
    if (rate != NULL && !hfi_rate_take(rate, now, &wait_us)) {
        hfi_breaker_forgo(breaker, now, permit);
        *retry_after_ms = hfi_us_to_ms_up(wait_us);
        return HFI_REFUSED_RATE;
    }
    if (take_place(downstream, now, permit))
        return HFI_ADMITTED;
    if (rate != NULL)
        hfi_rate_give_back(rate);
    hfi_breaker_forgo(breaker, now, permit); /* no sample, and no end either (B19) */
    *retry_after_ms = HFI_FULL_WAIT_MS;
    return HFI_REFUSED_FULL;
}

/* The common case in one piece: closed, nothing to heed beside the places, and one of the thread's own shard is free. False:
   nothing has happened. */
static inline bool enter_plainly(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit) {
    struct hfi_breaker *breaker = &downstream->breaker;
    struct hfi_bulkhead *bulkhead = &downstream->bulkhead;
    struct hfi_histogram *histogram;
    struct hfi_shard *shard = hfi_shards_alone(&breaker->shards, &histogram);
    if (shard == NULL || atomic_load_explicit(&downstream->special, memory_order_relaxed) ||
        now.us >= atomic_load_explicit(&bulkhead->term_end_us, memory_order_relaxed) ||
        !hfi_breaker_enter_closed(breaker, now, permit))
        return false;
    uint64_t word = atomic_load_explicit(&shard->word, memory_order_relaxed);
    int32_t in_flight = hfi_shard_in_flight(shard, word);
    if (in_flight >= hfi_word_places(word) ||
        !atomic_compare_exchange_strong_explicit(&shard->word, &word, hfi_word_next(word), memory_order_acq_rel,
                                                 memory_order_relaxed))
        return false;
    permit->term = hfi_bulkhead_taken(bulkhead, (struct hfi_shard_use){shard, NULL, true}, in_flight);
    return true;
}

/* The way back of the same: a success that needs no lock. False: nothing has happened. */
static inline bool leave_plainly(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                                 enum hf_verdict verdict) {
    struct hfi_histogram *histogram;
    struct hfi_shard *shard = hfi_shards_alone(&downstream->breaker.shards, &histogram);
    if (shard == NULL || verdict != HF_VERDICT_SUCCESS || permit->state != HFI_PERMIT_HELD ||
        atomic_load_explicit(&downstream->queues, memory_order_relaxed) ||
        !hfi_bulkhead_holds(&downstream->bulkhead, permit->term) ||
        !hfi_breaker_leave_closed(&downstream->breaker, now, permit, verdict,
                                  (struct hfi_shard_use){shard, NULL, true}))
        return false;
    HFI_SHARD_ADD_ALONE(shard, left[permit->term & 1], 1);
    int64_t took_us = now.us - permit->started_us;
    if (took_us <= 0 && atomic_load_explicit(&downstream->coarse, memory_order_relaxed))
        return true;
    if (histogram != NULL)
        hfi_histogram_add_alone(histogram, took_us);
    else
        hfi_histogram_add(&downstream->histogram, took_us);
    return true;
}

static inline int ask(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                      struct hf_outcome *rejection, enum hfi_admission *admission) {
    if (enter_plainly(downstream, now, permit))
        return 0;
    int64_t retry_after_ms = 1;
    *admission = ask_carefully(downstream, now, permit, &retry_after_ms);
    return *admission == HFI_ADMITTED ? 0 : refuse(downstream, *admission, retry_after_ms, rejection);
}

int hfi_downstream_enter(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                         struct hf_outcome *rejection) {
    enum hfi_admission admission = HFI_ADMITTED;
    if (rejection == NULL && hfi_breaker_is_open(&downstream->breaker, now) &&
        !atomic_load_explicit(&downstream->special, memory_order_relaxed)) {
        permit->state = 0; /* the plainest refusal: nobody wants to know how long */
        count_refusal(downstream, false);
        return HF_EREJECTED;
    }
    int code = ask(downstream, now, permit, rejection, &admission);
    if (code != 0)
        count_refusal(downstream, admission == HFI_REFUSED_RATE);
    return code;
}

int hfi_downstream_ask(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                       struct hf_outcome *rejection) {
    enum hfi_admission admission;
    return ask(downstream, now, permit, rejection, &admission);
}

/* A peer that named a wait gets it, from everybody; never for longer than the policy's cap. */
static void gate(struct hf_downstream *downstream, struct hf_mono now, const struct hf_outcome *outcome) {
    const struct hf_policy_options *options = &hfi_downstream_policy(downstream)->options;
    int64_t wait_ms = outcome->retry_after_ms < options->gate_cap_ms ? outcome->retry_after_ms : options->gate_cap_ms;
    if (wait_ms > 0 && options->gate_scope == HF_GATE_DOWNSTREAM)
        hfi_breaker_gate(&downstream->breaker, hfi_mono_after_ms(now, wait_ms));
}

/* HF_ESTATE: it has come back before, or lapsed. */
static int check_held(const struct hf_downstream *downstream, struct hf_permit *permit) {
    if (permit->state != HFI_PERMIT_HELD)
        return HF_ESTATE;
    if (hfi_bulkhead_holds(&downstream->bulkhead, permit->term))
        return 0;
    permit->state = HFI_PERMIT_REPORTED; /* lapsed: counted as ended then, its place is another's (R21) */
    return HF_ESTATE;
}

/* What every way back of an attempt does: the breaker hears of it, the place is free. */
static int end(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
               struct hfi_shard_use use, enum hf_verdict verdict, enum hf_cause cause, bool life) {
    int code = check_held(downstream, permit);
    if (code != 0)
        return code;
    if (!hfi_breaker_leave_closed(&downstream->breaker, now, permit, verdict, use))
        hfi_breaker_leave(&downstream->breaker, now, permit, verdict, cause, life);
    free_place(downstream, use, permit->term);
    return 0;
}

static int leave(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                 enum hf_verdict verdict, enum hf_cause cause, bool life) {
    struct hfi_shard_use use = hfi_shards_mine(&downstream->breaker.shards);
    int code = end(downstream, now, permit, use, verdict, cause, life);
    if (code != 0)
        return code;
    int64_t took_us = hfi_sub(now.us, permit->started_us);
    if (took_us <= 0 && atomic_load_explicit(&downstream->coarse, memory_order_relaxed))
        return 0; /* below what the clock can tell: the rest of the attempts, see whole_histogram */
    if (use.histogram != NULL)
        hfi_histogram_add_alone(use.histogram, took_us);
    else
        hfi_histogram_add(&downstream->histogram, took_us);
    return 0;
}

static int leave_carefully(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                           const struct hf_outcome *outcome) {
    enum hf_cause cause = outcome->verdict == HF_VERDICT_FAILURE ? hfi_cause_of(outcome) : HF_CAUSE_OTHER;
    int code = leave(downstream, now, permit, outcome->verdict, cause, outcome->life);
    if (code == 0 && (outcome->gate_downstream || outcome->gate_limit))
        gate(downstream, now, outcome);
    return code;
}

int hfi_downstream_leave(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                         const struct hf_outcome *outcome) {
    bool gates = outcome->gate_downstream || outcome->gate_limit;
    bool plain = !gates && leave_plainly(downstream, now, permit, outcome->verdict);
    int code = plain ? 0 : leave_carefully(downstream, now, permit, outcome);
    struct hfi_downstream_extra *extra = NULL;
    if (code == 0 && hfi_phases_any(&outcome->phases) && (extra = hfi_downstream_need_extra(downstream)) != NULL)
        hfi_phases_add(&extra->phases, &outcome->phases);
    return code;
}

/* Hosts have one policy, so they are measured as one. */
void hfi_downstream_record(struct hf_downstream *downstream, const struct hf_outcome *outcome) {
    struct hf_downstream *parent = hfi_downstream_parent(downstream);
    struct hfi_downstream_extra *extra = hfi_downstream_need_extra(parent != NULL ? parent : downstream);
    if (extra != NULL && outcome->phases.total_us >= 0)
        hfi_recorder_add(&extra->recorder, outcome);
}

int hfi_downstream_leave_as(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                            enum hf_verdict verdict) {
    if (leave_plainly(downstream, now, permit, verdict))
        return 0;
    return leave(downstream, now, permit, verdict, HF_CAUSE_OTHER, false);
}

void hfi_downstream_give_back(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit) {
    if (check_held(downstream, permit) != 0)
        return;
    hfi_breaker_drop(&downstream->breaker, now, permit);
    free_place(downstream, hfi_shards_mine(&downstream->breaker.shards), permit->term);
    struct hfi_downstream_extra *extra = hfi_downstream_extra(downstream);
    if (extra != NULL)
        hfi_rate_give_back(&extra->rate);
    atomic_fetch_add_explicit(&downstream->given_back, 1, memory_order_relaxed);
}
