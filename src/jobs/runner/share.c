/* SPDX-License-Identifier: MIT */
/*
 * Probes and the ramp of a downstream are few, and all nodes share them: a node has its part by a row in the store that
 * goes with it. One node probes at a time, with all probes there are; what the ramp allows is divided. Must never let a
 * job begin on places that this node does not hold, nor hold on to probes that it has no job for. Loop thread.
 */
#include "base/log.h"
#include "jobs/runner/runner_state.h"
#include "resilience/policy.h"

#define PROBES_AGAIN_MS 250 /* another node has them */
#define RAMP_AGAIN_MS 100   /* it lets through more and more */

static enum hfi_shared mode_of(const struct hfi_site *site, const struct hfi_breaker_look *look) {
    if (look->state == HF_BREAKER_RAMP)
        return look->allowance == UINT32_MAX ? HFI_SHARED_NOTHING : HFI_SHARED_RAMP;
    return site->parks && (look->state == HF_BREAKER_HALF_OPEN || look->probe_ready) ? HFI_SHARED_PROBES
                                                                                     : HFI_SHARED_NOTHING;
}

static uint32_t less(uint32_t a, uint32_t b) {
    return a > b ? a - b : 0;
}

/* Somebody wrote about the downstream after what we know of it: first hear what. */
static bool is_behind(const struct hfi_site *site) {
    return site->share_op.version > site->stored.version;
}

uint32_t hfi_share_limit(struct hfi_site *site, const struct hfi_breaker_look *look, uint32_t allowance) {
    site->share_mode = mode_of(site, look);
    site->share_used = 0;
    switch (site->share_mode) {
    case HFI_SHARED_NOTHING:
        return allowance;
    case HFI_SHARED_PROBES:
        site->share_max = hfi_downstream_policy(site->downstream)->breaker.probes;
        site->share_used = look->probes_in_flight;
        break;
    case HFI_SHARED_RAMP:
        site->share_max = look->ramp_limit;
        site->share_used = less(look->ramp_limit, look->allowance);
        break;
    }
    if (site->share_as != site->share_mode || is_behind(site))
        return 0;
    uint32_t left = less(site->share_held, site->share_used);
    if (site->share_mode == HFI_SHARED_PROBES)
        left = site->share_held > 0 ? allowance : 0; /* all of them are ours, and the breaker counts them */
    return allowance < left ? allowance : left;
}

int64_t hfi_share_ready_at_us(const struct hfi_site *site) {
    if (site->share_mode == HFI_SHARED_NOTHING || site->share_busy)
        return 0;
    return site->share_at_us;
}

static void shared(struct hfi_op *op, void *user) {
    struct hfi_site *site = user;
    struct hfi_runner *runner = site->runner;
    const struct hfi_op_share *share = &site->share_op;
    runner->out--;
    site->share_busy = false;
    if (op->code != 0) {
        hfi_log(HF_LOG_DEBUG, "downstream.share", HFI_S("downstream", share->key), HFI_S("why", hf_strerror(op->code)),
                NULL); /* asked again in time; what was held stays */
    } else {
        site->share_held = share->held;
        site->share_as = share->want == 0 && share->keep == 0 ? HFI_SHARED_NOTHING : site->share_asked;
        if (is_behind(site))
            hfi_park_read(site);
        else if (share->held > 0)
            hfi_claim_poke(runner);
    }
    if (runner->life != HFI_LIFE_RUNNING)
        hfi_drain_check(runner);
}

static void ask(struct hfi_runner *runner, struct hfi_site *site, uint32_t want, uint32_t keep) {
    struct hfi_op_share *op = &site->share_op;
    bool probes = site->share_mode == HFI_SHARED_PROBES;
    op->key = site->key;
    op->node = runner->node;
    op->want = want;
    op->keep = keep;
    op->max = site->share_max;
    op->whole = probes;
    site->share_asked = site->share_mode;
    site->share_busy = true;
    site->share_at_us = hfi_mono_after_ms(hfi_runner_mono(runner), probes ? PROBES_AGAIN_MS : RAMP_AGAIN_MS).us;
    hfi_runner_submit(runner, &op->op, HFI_OP_SHARE, shared, site);
}

static void look_at(struct hfi_runner *runner, struct hfi_site *site) {
    uint32_t keep = site->share_used + site->slots.waiting + site->slots.asked;
    bool wants = site->slots.blocked || keep > 0 || site->probe != NULL;
    if (site->share_mode == HFI_SHARED_NOTHING || !wants) {
        if (site->share_as != HFI_SHARED_NOTHING)
            ask(runner, site, 0, 0);
        return;
    }
    bool has = site->share_as == site->share_mode && site->share_held > 0;
    if (has && site->share_mode == HFI_SHARED_PROBES)
        return;
    if (hfi_runner_mono(runner).us >= site->share_at_us || site->share_as != site->share_mode)
        ask(runner, site, site->share_max, has ? keep : 0);
}

void hfi_share_round(struct hfi_runner *runner) {
    for (size_t i = 0; i < runner->site_count && runner->node != 0 && !runner->lost; i++)
        if (!runner->sites[i]->share_busy)
            look_at(runner, runner->sites[i]);
}

/* A new node id: the rows of the old one are others'. */
void hfi_share_forget(struct hfi_runner *runner) {
    for (size_t i = 0; i < runner->site_count; i++) {
        runner->sites[i]->share_as = HFI_SHARED_NOTHING;
        runner->sites[i]->share_held = 0;
    }
}

/* A drain may take its time: others need not wait for that. */
void hfi_share_stop(struct hfi_runner *runner) {
    for (size_t i = 0; i < runner->site_count; i++) {
        struct hfi_site *site = runner->sites[i];
        if (!site->share_busy && site->share_as != HFI_SHARED_NOTHING && site->slots.used + site->slots.asked == 0)
            ask(runner, site, 0, 0);
    }
}
