/* SPDX-License-Identifier: MIT */
/*
 * A downstream: the machines that all calls to one peer share, and the pair enter/leave that every attempt goes
 * through. Logs each change of its breaker as `downstream.state`. Must never count a local refusal as a sample. Any
 * thread; the closed path takes no lock and allocates nothing.
 */
#include "resilience/downstream.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "resilience/cause.h"

#define FULL_WAIT_MS 100 /* a bulkhead frees a place when an attempt ends: soon */

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
    hfi_bulkhead_init(&made->bulkhead, policy->options.bulkhead_max);
    hfi_rate_set(&made->rate, policy->options.rate_per_s, policy->options.rate_burst);
    pthread_mutex_init(&made->reloading, NULL);
    atomic_init(&made->references, 1);
    return 0;
}

/* NULL: no memory. */
static struct hf_downstream *make(const char *name, struct hf_policy *policy) {
    struct hf_downstream *made = hfi_alloc(sizeof *made);
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
    if (length == 0 || length >= sizeof (*downstream)->name)
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

void hfi_admission_outcome(enum hfi_admission admission, int64_t retry_after_ms, struct hf_outcome *outcome) {
    static const struct {
        const char *type, *why;
    } rows[] = {
        [HFI_ADMITTED] = {"breaker.none", "admitted"},
        [HFI_REFUSED_OPEN] = {"breaker.open", "the circuit is open"},
        [HFI_REFUSED_HALF_OPEN] = {"breaker.half_open", "all probes are under way"},
        [HFI_REFUSED_RAMP] = {"breaker.ramp", "the peer recovers: only so many calls at once"},
        [HFI_REFUSED_ISOLATED] = {"breaker.isolated", "isolated by hand"},
        [HFI_REFUSED_GATE] = {"downstream.gate", "the peer asked to be left alone for a while"},
    };
    hfi_outcome_init(outcome);
    hfi_outcome_rejected(outcome, rows[admission].type, retry_after_ms);
    hfi_outcome_message(outcome, "%s", rows[admission].why);
}

static void count(_Atomic uint64_t *counter) {
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static int refuse(struct hf_downstream *downstream, struct hf_outcome *rejection, enum hfi_admission admission,
                  int64_t retry_after_ms) {
    count(&downstream->calls);
    count(&downstream->rejections);
    if (rejection == NULL)
        return HF_EREJECTED;
    if (admission != HFI_ADMITTED) {
        hfi_admission_outcome(admission, retry_after_ms, rejection);
        return HF_EREJECTED;
    }
    hfi_outcome_init(rejection);
    hfi_outcome_rejected(rejection, "bulkhead.full", retry_after_ms);
    hfi_outcome_message(rejection, "%u attempts are in flight", hfi_bulkhead_max(&downstream->bulkhead));
    return HF_EREJECTED;
}

/* Gives a place back, and tells a guard that waits for it. */
static void free_place(struct hf_downstream *downstream) {
    hfi_bulkhead_leave(&downstream->bulkhead);
    struct hfi_line *line = atomic_load(&downstream->line);
    if (line != NULL && atomic_load(&line->waiting) > 0)
        hfi_line_announce(line);
}

/* No token: what was taken for the attempt goes back. No sample (B19). */
static int refuse_by_rate(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                          struct hf_outcome *rejection, int64_t wait_us) {
    free_place(downstream);
    hfi_breaker_drop(&downstream->breaker, now, permit);
    count(&downstream->calls);
    count(&downstream->rejections);
    atomic_fetch_add_explicit(&downstream->rate_limited, 1, memory_order_relaxed);
    if (rejection == NULL)
        return HF_EREJECTED;
    hfi_outcome_init(rejection);
    hfi_outcome_rejected(rejection, "rate.limited", hfi_us_to_ms_up(wait_us));
    hfi_outcome_message(rejection, "our own limit of %g/s", downstream->policy->options.rate_per_s);
    return HF_EREJECTED;
}

int hfi_downstream_enter(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                         struct hf_outcome *rejection) {
    int64_t retry_after_ms = 1, wait_us;
    if (downstream->parent != NULL && hfi_breaker_isolated(&downstream->parent->breaker, now, &retry_after_ms)) {
        permit->state = 0; /* who isolates a per_host downstream means all of its hosts */
        return refuse(downstream, rejection, HFI_REFUSED_ISOLATED, retry_after_ms);
    }
    enum hfi_admission admission = hfi_breaker_enter(&downstream->breaker, now, permit, &retry_after_ms);
    if (admission != HFI_ADMITTED)
        return refuse(downstream, rejection, admission, retry_after_ms);
    if (!hfi_bulkhead_enter(&downstream->bulkhead)) {
        hfi_breaker_drop(&downstream->breaker, now, permit); /* no sample (B19) */
        return refuse(downstream, rejection, HFI_ADMITTED, FULL_WAIT_MS);
    }
    if (hfi_rate_on(&downstream->rate) && !hfi_rate_take(&downstream->rate, now, &wait_us))
        return refuse_by_rate(downstream, now, permit, rejection, wait_us);
    count(&downstream->calls);
    return 0;
}

/* A peer that named a wait gets it, from everybody; never for longer than the policy's cap. */
static void gate(struct hf_downstream *downstream, struct hf_mono now, const struct hf_outcome *outcome) {
    const struct hf_policy_options *options = &hfi_downstream_policy(downstream)->options;
    int64_t wait_ms = outcome->retry_after_ms < options->gate_cap_ms ? outcome->retry_after_ms : options->gate_cap_ms;
    if (wait_ms > 0 && options->gate_scope == HF_GATE_DOWNSTREAM)
        hfi_breaker_gate(&downstream->breaker, hfi_mono_after_ms(now, wait_ms));
}

static int leave(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                 enum hf_verdict verdict, enum hf_cause cause, bool life) {
    int code = hfi_breaker_leave(&downstream->breaker, now, permit, verdict, cause, life);
    if (code != 0)
        return code;
    free_place(downstream);
    count(verdict == HF_VERDICT_SUCCESS   ? &downstream->successes
          : verdict == HF_VERDICT_FAILURE ? &downstream->failures
                                          : &downstream->neutrals);
    hfi_histogram_add(&downstream->histogram, hfi_sub(now.us, permit->started_us));
    return 0;
}

int hfi_downstream_leave(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                         const struct hf_outcome *outcome) {
    enum hf_cause cause = outcome->verdict == HF_VERDICT_FAILURE ? hfi_cause_of(outcome) : HF_CAUSE_OTHER;
    int code = leave(downstream, now, permit, outcome->verdict, cause, outcome->life);
    if (code == 0 && (outcome->gate_downstream || outcome->gate_limit))
        gate(downstream, now, outcome);
    return code;
}

int hfi_downstream_leave_as(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit,
                            enum hf_verdict verdict) {
    return leave(downstream, now, permit, verdict, HF_CAUSE_OTHER, false);
}

void hfi_downstream_give_back(struct hf_downstream *downstream, struct hf_mono now, struct hf_permit *permit) {
    if (hfi_breaker_leave(&downstream->breaker, now, permit, HF_VERDICT_NEUTRAL, HF_CAUSE_OTHER, false) != 0)
        return;
    free_place(downstream);
    hfi_rate_give_back(&downstream->rate);
    count(&downstream->neutrals);
}

uint32_t hfi_downstream_allowance(struct hf_downstream *downstream, struct hf_mono now, int64_t *retry_after_ms) {
    struct hfi_breaker_look look;
    hfi_breaker_look(&downstream->breaker, now, &look);
    if (look.state == HF_BREAKER_HALF_OPEN) {
        /* Who goes by this never enters without it: a lost probe has to be found out here, or nobody asks ever again. */
        hfi_breaker_tick(&downstream->breaker, now);
        hfi_breaker_look(&downstream->breaker, now, &look);
    }
    uint32_t in_flight = atomic_load_explicit(&downstream->bulkhead.in_flight, memory_order_relaxed);
    uint32_t max = hfi_bulkhead_max(&downstream->bulkhead);
    uint32_t room = in_flight < max ? max - in_flight : 0;
    uint32_t allowance = look.allowance < room ? look.allowance : room;
    int64_t at_us = look.gate_us, token_us;
    uint32_t tokens = hfi_rate_left(&downstream->rate, now, &token_us);
    if ((look.state == HF_BREAKER_OPEN || look.state == HF_BREAKER_ISOLATED) && look.until_us > at_us)
        at_us = look.until_us;
    int64_t wait_ms = at_us == HFI_FOREVER_US ? INT64_MAX : hfi_us_to_ms_up(hfi_sub(at_us, now.us));
    if (retry_after_ms != NULL)
        *retry_after_ms = allowance > 0 ? hfi_us_to_ms_up(token_us) : wait_ms > 0 ? wait_ms : FULL_WAIT_MS;
    return allowance < tokens ? allowance : tokens;
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
        atomic_store(&downstream->bulkhead.max, options->bulkhead_max);
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
    hfi_free(retired);
    return code;
}

/*
 * A break that ended a window and a longest break ago, without a call since, says nothing any more: else hosts that died
 * and were given up would fill a registry for ever.
 */
static bool is_stale(const struct hf_downstream *downstream, struct hf_mono now, const struct hfi_breaker_look *look) {
    const struct hf_policy_options *options = &hfi_downstream_policy(downstream)->options;
    int64_t age_us = hfi_add(hfi_ms_to_us(options->breaker_window_ms), hfi_ms_to_us(options->breaker_max_break_ms));
    return look->until_us != HFI_FOREVER_US && hfi_add(look->until_us, age_us) <= now.us;
}

bool hfi_downstream_forgettable(struct hf_downstream *downstream, struct hf_mono now) {
    struct hfi_breaker_look look;
    hfi_breaker_look(&downstream->breaker, now, &look);
    if (look.gate_us > now.us || atomic_load_explicit(&downstream->bulkhead.in_flight, memory_order_relaxed) > 0)
        return false;
    bool closed = look.state == HF_BREAKER_CLOSED || (look.state == HF_BREAKER_RAMP && look.allowance == UINT32_MAX);
    if (closed) /* a ramp that is over is closed with the next call */
        return look.trips == 0 && look.window.calls == 0;
    return look.state != HF_BREAKER_RAMP && is_stale(downstream, now, &look);
}

static int64_t ms_until(struct hf_mono now, int64_t at_us) {
    if (at_us == HFI_FOREVER_US)
        return INT64_MAX;
    return at_us > now.us ? hfi_us_to_ms_up(at_us - now.us) : 0;
}

void hfi_downstream_view(struct hf_downstream *downstream, struct hf_mono now, struct hf_downstream_view *view) {
    struct hfi_breaker_look look;
    uint32_t size = view->size > 0 && view->size < sizeof *view ? view->size : sizeof *view;
    struct hf_downstream_view whole = {.size = sizeof whole};
    hfi_breaker_look(&downstream->breaker, now, &look);
    whole.state = look.state;
    whole.trips = look.trips;
    whole.generation = look.generation;
    if (look.state == HF_BREAKER_OPEN || look.state == HF_BREAKER_ISOLATED)
        whole.open_for_ms = ms_until(now, look.until_us);
    whole.gate_for_ms = ms_until(now, look.gate_us);
    whole.window_calls = look.window.calls;
    whole.window_failures = look.window.failures;
    whole.window_slow = look.window.slow;
    whole.in_flight = atomic_load_explicit(&downstream->bulkhead.in_flight, memory_order_relaxed);
    whole.probes_in_flight = look.probes_in_flight;
    whole.attempts = hfi_histogram_total(&downstream->histogram);
    whole.rejections = atomic_load_explicit(&downstream->rejections, memory_order_relaxed);
    whole.retries = atomic_load_explicit(&downstream->retries, memory_order_relaxed);
    const struct hfi_faults *faults = atomic_load(&downstream->faults);
    whole.faults = faults != NULL ? atomic_load_explicit(&faults->injected, memory_order_relaxed) : 0;
    whole.rate_limited = atomic_load_explicit(&downstream->rate_limited, memory_order_relaxed);
    whole.retries_refused = atomic_load_explicit(&downstream->retries_refused, memory_order_relaxed);
    whole.hedges = atomic_load_explicit(&downstream->hedges, memory_order_relaxed);
    whole.p50_us = hfi_histogram_quantile(&downstream->histogram, 500);
    whole.p95_us = hfi_histogram_quantile(&downstream->histogram, 950);
    whole.p99_us = hfi_histogram_quantile(&downstream->histogram, 990);
    memcpy(whole.reason, look.reason, sizeof whole.reason);
    whole.window_causes = look.causes;
    whole.failures_to_trip = look.failures_to_trip;
    whole.calls = atomic_load_explicit(&downstream->calls, memory_order_relaxed);
    whole.successes = atomic_load_explicit(&downstream->successes, memory_order_relaxed);
    whole.failures = atomic_load_explicit(&downstream->failures, memory_order_relaxed);
    whole.neutrals = atomic_load_explicit(&downstream->neutrals, memory_order_relaxed);
    whole.permits_issued = whole.calls - whole.rejections;
    whole.permits_returned = whole.permits_issued - whole.in_flight;
    memcpy(view, &whole, size);
    view->size = size;
}

bool hfi_downstream_adds_up(struct hf_downstream *downstream) {
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(downstream, (struct hf_mono){0}, &view);
    uint64_t ended = view.successes + view.failures + view.neutrals;
    return view.calls == ended + view.rejections + view.in_flight &&
           view.permits_issued == view.permits_returned + view.permits_expired + view.in_flight &&
           ended == view.permits_returned + view.permits_expired && view.in_flight <= view.permits_issued;
}
