/* SPDX-License-Identifier: MIT */
/*
 * A downstream: the machines that all calls to one peer share, from its making to its end, and their reload. Logs each
 * change of its breaker as `downstream.state`. Must never let go of a policy that a call may have begun with. Any thread.
 */
#include "resilience/downstream.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"

/* One reload at a time, of whatever downstream: they are rare and short. Guards the lists of retired policies. */
static pthread_mutex_t reloading = PTHREAD_MUTEX_INITIALIZER;

static void tell(const struct hfi_breaker_event *event, void *user) {
    struct hf_downstream *downstream = user; /* begins with its breaker */
    const char *host = hf_downstream_host(downstream);
    bool bad = event->to == HF_BREAKER_OPEN || event->to == HF_BREAKER_ISOLATED;
    bool forever = event->until_us == HFI_FOREVER_US;
    int64_t open_us = bad && !forever ? hfi_sub(event->until_us, event->at_us) : 0;
    hfi_log(bad ? HF_LOG_WARNING : HF_LOG_INFO, "downstream.state", HFI_S("downstream", downstream->name),
            HFI_S("from", hf_breaker_state_name(event->from)), HFI_S("to", hf_breaker_state_name(event->to)),
            HFI_S("reason", event->reason), HFI_I("open_for_ms", hfi_us_to_ms_up(open_us)),
            HFI_I("trips", event->trips), HFI_I("generation", event->generation),
            HFI_I("window_calls", event->window.calls), HFI_I("window_failures", event->window.failures),
            HFI_I("window_slow", event->window.slow), host != NULL ? "shost" : NULL, host, NULL);
    hfi_observers_tell(downstream, event);
    const struct hfi_watch *watch = atomic_load(&downstream->watch);
    if (watch != NULL)
        watch->fn(event, watch->user);
}

struct hfi_downstream_extra *hfi_downstream_need_extra(struct hf_downstream *downstream) {
    struct hfi_downstream_extra *there = hfi_downstream_extra(downstream);
    if (there != NULL)
        return there;
    struct hfi_downstream_extra *made = hfi_alloc(sizeof *made);
    if (made == NULL || atomic_compare_exchange_strong(&downstream->extra, &there, made))
        return made;
    hfi_free(made); /* another thread was faster */
    return there;
}

/* The limits that a policy gives. What they need is there. */
static void limit(struct hf_downstream *downstream, const struct hf_policy *policy) {
    const struct hf_policy_options *options = &policy->options;
    struct hfi_downstream_extra *extra = hfi_downstream_extra(downstream);
    atomic_store(&downstream->coarse, options->latency == HF_LATENCY_COARSE);
    if (options->bulkhead_queue > 0) /* never back: guards may wait in the queue of the policy they began with */
        atomic_store(&downstream->queues, true);
    if (extra == NULL)
        return;
    hfi_rate_set(&extra->rate, options->rate_per_s, options->rate_burst);
    atomic_store(&downstream->special, extra->parent != NULL || hfi_rate_on(&extra->rate));
}

/* NULL: no memory. */
static struct hf_downstream *make(const char *name, struct hf_policy *policy) {
    struct hf_downstream *made = hfi_alloc_lines(offsetof(struct hf_downstream, name) + strlen(name) + 1);
    uint32_t seed;
    if (made == NULL)
        return NULL;
    memcpy(made->name, name, strlen(name) + 1);
    hfi_entropy(&seed, sizeof seed);
    if ((policy->options.rate_per_s > 0 && hfi_downstream_need_extra(made) == NULL) ||
        hfi_breaker_init(&made->breaker, &policy->breaker, seed, tell) != 0) {
        hfi_free(atomic_load(&made->extra));
        hfi_free(made);
        return NULL;
    }
    hfi_bulkhead_init(&made->bulkhead, policy->options.bulkhead_max, policy->breaker.lease_ms);
    hfi_budget_init(&made->budget, policy->options.budget_window_ms, policy->budget_ratio_permille,
                    policy->options.budget_floor);
    atomic_init(&made->references, 1);
    limit(made, hf_policy_ref(policy));
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
    struct hf_downstream *made = text != NULL ? make(parent->name, hfi_downstream_counted_policy(parent)) : NULL;
    struct hfi_downstream_extra *extra = made != NULL ? hfi_downstream_need_extra(made) : NULL;
    if (extra == NULL) {
        hf_downstream_unref(made);
        hfi_free(text);
        return HF_ENOMEM;
    }
    extra->host = text;
    extra->parent = hf_downstream_ref(parent);
    atomic_store(&made->special, true);
    *downstream = made;
    return 0;
}

struct hf_downstream *hf_downstream_ref(struct hf_downstream *downstream) {
    atomic_fetch_add_explicit(&downstream->references, 1, memory_order_relaxed);
    return downstream;
}

static void free_extra(struct hfi_downstream_extra *extra) {
    if (extra == NULL)
        return;
    while (extra->retired != NULL) {
        struct hfi_retired *retired = extra->retired;
        extra->retired = retired->next;
        hf_policy_unref(retired->policy);
        hfi_free(retired);
    }
    hfi_observers_free(extra);
    hfi_line_free(extra->line);
    hfi_free(extra->phases);
    hfi_recent_free(extra->recent);
    hfi_recorder_free(extra->recorder);
    hfi_faults_free(extra->faults);
    hf_downstream_unref(extra->parent);
    hfi_free(extra->host);
    hfi_free(extra);
}

void hf_downstream_unref(struct hf_downstream *downstream) {
    if (downstream == NULL || atomic_fetch_sub_explicit(&downstream->references, 1, memory_order_acq_rel) != 1)
        return;
    hfi_breaker_end(&downstream->breaker);
    hfi_budget_end(&downstream->budget);
    hf_policy_unref(hfi_downstream_counted_policy(downstream));
    free_extra(hfi_downstream_extra(downstream));
    hfi_free(downstream);
}

const char *hf_downstream_name(const struct hf_downstream *downstream) {
    return downstream->name;
}

const char *hf_downstream_host(const struct hf_downstream *downstream) {
    const struct hfi_downstream_extra *extra = hfi_downstream_extra(downstream);
    return extra != NULL ? extra->host : NULL;
}

int hfi_downstream_reload(struct hf_downstream *downstream, struct hf_mono now, struct hf_policy *policy) {
    const struct hf_policy_options *options = &policy->options;
    struct hfi_retired *retired = hfi_alloc(sizeof *retired);
    struct hfi_downstream_extra *extra = retired != NULL ? hfi_downstream_need_extra(downstream) : NULL;
    if (extra == NULL) {
        hfi_free(retired);
        return HF_ENOMEM;
    }
    pthread_mutex_lock(&reloading);
    retired->policy = hfi_downstream_counted_policy(downstream);
    int code = hfi_breaker_reload(&downstream->breaker, now, &policy->breaker); /* with its rules the policy */
    if (code == 0) {
        hf_policy_ref(policy);
        hfi_budget_reload(&downstream->budget, now, options->budget_window_ms, policy->budget_ratio_permille,
                          options->budget_floor);
        hfi_bulkhead_reload(&downstream->bulkhead, &downstream->breaker.shards, options->bulkhead_max,
                            policy->breaker.lease_ms);
        limit(downstream, policy);
        retired->next = extra->retired;
        extra->retired = retired;
        retired = NULL;
    }
    pthread_mutex_unlock(&reloading);
    struct hfi_line *line = atomic_load(&extra->line);
    if (code == 0 && line != NULL) /* the bulkhead may be wider now */
        hfi_line_announce_all(line);
    hfi_breaker_tell(&downstream->breaker); /* an observer may reload it too */
    hfi_free(retired);
    return code;
}
