/* SPDX-License-Identifier: MIT */
/*
 * A downstream: the machines that all calls to one peer share, and the pair enter/leave that every attempt goes
 * through. Logs each change of its breaker as `downstream.state`. Must never count a local refusal as a sample. Any
 * thread; the closed path takes no lock and allocates nothing.
 */
#include "resilience/downstream.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "resilience/cause.h"

static void tell(const struct hfi_breaker_event *event, void *user) {
    struct hf_downstream *downstream = user;
    bool bad = event->to == HF_BREAKER_OPEN || event->to == HF_BREAKER_ISOLATED;
    bool forever = event->until_us == HFI_FOREVER_US;
    int64_t open_us = bad && !forever ? hfi_sub(event->until_us, event->at_us) : 0;
    hfi_log(bad ? HF_LOG_WARNING : HF_LOG_INFO, "downstream.state", HFI_S("downstream", downstream->name),
            HFI_S("from", hf_breaker_state_name(event->from)), HFI_S("to", hf_breaker_state_name(event->to)),
            HFI_S("reason", event->reason), HFI_I("open_for_ms", hfi_us_to_ms_up(open_us)),
            HFI_I("trips", event->trips), HFI_I("generation", event->generation),
            HFI_I("window_calls", event->window.calls), HFI_I("window_failures", event->window.failures),
            HFI_I("window_slow", event->window.slow), downstream->host != NULL ? "shost" : NULL, downstream->host,
            NULL);
    hfi_observers_tell(downstream, event);
    hfi_breaker_fn on_change = atomic_load(&downstream->on_change);
    if (on_change != NULL)
        on_change(event, downstream->user);
}

/* The machines of a new one. 0 or HF_ENOMEM, and then none is there. */
static int begin(struct hf_downstream *made, const struct hf_policy *policy, uint64_t seed) {
    if (hfi_breaker_init(&made->breaker, &policy->breaker, seed, tell, made) != 0)
        return HF_ENOMEM;
    if (hfi_budget_init(&made->budget, policy->options.budget_window_ms, policy->budget_ratio_permille,
                        policy->options.budget_floor) != 0) {
        hfi_breaker_end(&made->breaker);
        return HF_ENOMEM;
    }
    hfi_bulkhead_init(&made->bulkhead, &made->breaker.shards, &made->breaker.lock, policy->options.bulkhead_max,
                      policy->breaker.lease_ms);
    atomic_init(&made->coarse, policy->options.latency == HF_LATENCY_COARSE);
    atomic_init(&made->queues, policy->options.bulkhead_queue > 0);
    hfi_rate_set(&made->rate, policy->options.rate_per_s, policy->options.rate_burst);
    pthread_mutex_init(&made->reloading, NULL);
    atomic_init(&made->references, 1);
    return 0;
}

/* NULL: no memory. */
static struct hf_downstream *make(const char *name, struct hf_policy *policy) {
    struct hf_downstream *made = hfi_alloc_lines(offsetof(struct hf_downstream, name) + strlen(name) + 1);
    uint64_t seed;
    if (made == NULL)
        return NULL;
    memcpy(made->name, name, strlen(name) + 1);
    atomic_init(&made->policy, hf_policy_ref(policy));
    hfi_entropy(&seed, sizeof seed);
    if (begin(made, policy, seed) != 0) {
        hf_policy_unref(policy);
        hfi_free(made);
        return NULL;
    }
    return made;
}

static int with_defaults(const char *name, struct hf_downstream **downstream, struct hf_error *error) {
    struct hf_policy_options defaults;
    struct hf_policy *policy;
    hf_policy_options_init(&defaults);
    int code = hf_policy_new(&defaults, &policy, error);
    if (code != 0)
        return code;
    code = hf_downstream_new(name, policy, downstream, error);
    hf_policy_unref(policy);
    return code;
}

int hf_downstream_new(const char *name, struct hf_policy *policy, struct hf_downstream **downstream,
                      struct hf_error *error) {
    if (downstream == NULL || name == NULL)
        return hfi_fail(error, HF_EINVAL, "downstream", "give both", "name and the place for it are required");
    *downstream = NULL;
    if (policy == NULL)
        return with_defaults(name, downstream, error);
    size_t length = strlen(name);
    if (length == 0 || length > HFI_DOWNSTREAM_NAME_MAX)
        return hfi_fail(error, HF_EINVAL, "downstream name", "give it 1 to 120 bytes", "it has %zu bytes", length);
    if (!hfi_text_valid(name, length))
        return hfi_fail(error, HF_ETEXT, "downstream name", "give plain text", "it is not valid UTF-8");
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return hfi_fail(error, HF_ETEXT, "downstream name", "give plain text", "it holds a control character");
    *downstream = make(name, policy);
    return *downstream != NULL ? 0 : hfi_fail(error, HF_ENOMEM, "downstream", NULL, "out of memory");
}

int hfi_downstream_of_host(struct hf_downstream *parent, const char *host, struct hf_downstream **downstream) {
    char *text = hfi_strdup(host);
    struct hf_downstream *made = text != NULL ? make(parent->name, atomic_load(&parent->policy)) : NULL;
    if (made == NULL) {
        hfi_free(text);
        return HF_ENOMEM;
    }
    made->host = text;
    made->parent = hf_downstream_ref(parent);
    *downstream = made;
    return 0;
}

struct hf_downstream *hf_downstream_ref(struct hf_downstream *downstream) {
    atomic_fetch_add_explicit(&downstream->references, 1, memory_order_relaxed);
    return downstream;
}

void hf_downstream_unref(struct hf_downstream *downstream) {
    if (downstream == NULL || atomic_fetch_sub_explicit(&downstream->references, 1, memory_order_acq_rel) != 1)
        return;
    hfi_breaker_end(&downstream->breaker);
    hfi_budget_end(&downstream->budget);
    pthread_mutex_destroy(&downstream->reloading);
    while (downstream->retired != NULL) {
        struct hfi_retired *retired = downstream->retired;
        downstream->retired = retired->next;
        hf_policy_unref(retired->policy);
        hfi_free(retired);
    }
    hfi_observers_free(downstream);
    hfi_line_free(downstream->line);
    hfi_free(downstream->phases);
    hfi_recent_free(downstream->recent);
    hfi_faults_free(downstream->faults);
    hf_policy_unref(downstream->policy);
    hf_downstream_unref(downstream->parent);
    hfi_free(downstream->host);
    hfi_free(downstream);
}

const char *hf_downstream_name(const struct hf_downstream *downstream) {
    return downstream->name;
}

const char *hf_downstream_host(const struct hf_downstream *downstream) {
    return downstream->host;
}

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
    if (by_rate)
        atomic_fetch_add_explicit(&downstream->rate_limited, 1, memory_order_relaxed);
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
    struct hfi_line *line = atomic_load(&downstream->line);
    if (line != NULL && atomic_load(&line->waiting) > 0)
        hfi_line_announce(line);
}

static enum hfi_admission ask_carefully(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                                        int64_t *retry_after_ms) {
    struct hfi_breaker *breaker = &downstream->breaker;
    int64_t wait_us;
    permit->state = 0;
    if (downstream->parent != NULL && hfi_breaker_isolated(&downstream->parent->breaker, now, retry_after_ms))
        return HFI_REFUSED_ISOLATED; /* that means all its hosts */
    if (!hfi_breaker_enter_closed(breaker, now, permit)) {
        enum hfi_admission admission = hfi_breaker_enter(breaker, now, permit, retry_after_ms);
        if (admission != HFI_ADMITTED)
            return admission;
    }
    if (hfi_rate_on(&downstream->rate) && !hfi_rate_take(&downstream->rate, now, &wait_us)) {
        hfi_breaker_forgo(breaker, now, permit);
        *retry_after_ms = hfi_us_to_ms_up(wait_us);
        return HFI_REFUSED_RATE;
    }
    if (now.us >= atomic_load_explicit(&downstream->bulkhead.term_end_us, memory_order_relaxed))
        hfi_bulkhead_turn(&downstream->bulkhead, now, hfi_downstream_policy(downstream)->breaker.lease_ms);
    if (hfi_bulkhead_enter(&downstream->bulkhead, hfi_shards_mine(&breaker->shards), &permit->term))
        return HFI_ADMITTED;
    hfi_rate_give_back(&downstream->rate);
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
    if (shard == NULL || downstream->parent != NULL || hfi_rate_on(&downstream->rate) ||
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
    if (code == 0 && hfi_phases_any(&outcome->phases))
        hfi_phases_add(&downstream->phases, &outcome->phases);
    return code;
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
    hfi_rate_give_back(&downstream->rate);
    atomic_fetch_add_explicit(&downstream->given_back, 1, memory_order_relaxed);
}

int hfi_downstream_reload(struct hf_downstream *downstream, struct hf_mono now, struct hf_policy *policy) {
    const struct hf_policy_options *options = &policy->options;
    struct hfi_retired *retired = hfi_alloc(sizeof *retired);
    struct hfi_window fresh;
    if (retired == NULL)
        return HF_ENOMEM;
    pthread_mutex_lock(&downstream->reloading);
    int code = hfi_budget_prepare(&downstream->budget, options->budget_window_ms, &fresh);
    if (code == 0 && (code = hfi_breaker_reload(&downstream->breaker, now, &policy->breaker)) != 0)
        hfi_window_end(&fresh);
    if (code == 0) {
        hfi_budget_reload(&downstream->budget, now, &fresh, options->budget_window_ms, policy->budget_ratio_permille,
                          options->budget_floor);
        hfi_bulkhead_reload(&downstream->bulkhead, options->bulkhead_max, policy->breaker.lease_ms);
        atomic_store(&downstream->coarse, options->latency == HF_LATENCY_COARSE);
        if (options->bulkhead_queue > 0) /* never back: guards may wait in the queue of the policy they began with */
            atomic_store(&downstream->queues, true);
        hfi_rate_set(&downstream->rate, options->rate_per_s, options->rate_burst);
        *retired = (struct hfi_retired){downstream->retired, atomic_load(&downstream->policy)};
        downstream->retired = retired;
        atomic_store(&downstream->policy, hf_policy_ref(policy));
        retired = NULL;
    }
    pthread_mutex_unlock(&downstream->reloading);
    struct hfi_line *line = atomic_load(&downstream->line);
    if (code == 0 && line != NULL) /* the bulkhead may be wider now */
        hfi_line_announce_all(line);
    hfi_breaker_tell(&downstream->breaker); /* an observer may reload it too */
    hfi_free(retired);
    return code;
}
