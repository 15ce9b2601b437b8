/* SPDX-License-Identifier: MIT */
/*
 * Probe requests: a downstream that names a path for it is asked there after a break, and its jobs stay parked until it
 * answered well. One request at a time and only while due jobs wait; the breaker judges it as any other call. Must never
 * ask more than the breaker admits, nor ask on after a drain began. Loop thread.
 */
#include "base/log.h"
#include "jobs/runner/runner_state.h"
#include "resilience/call.h"

#define AGAIN_MS 1000 /* after an answer that decided nothing */

static void ended(struct hf_response *response, void *user) {
    struct hfi_site *site = user;
    struct hfi_runner *runner = site->runner;
    const struct hf_outcome *outcome = hf_response_outcome(response);
    bool well = outcome->kind == HF_OUTCOME_SUCCESS;
    site->probe = NULL;
    site->probe_at_us = well ? 0 : hfi_mono_after_ms(hfi_runner_mono(runner), AGAIN_MS).us;
    HFI_COUNT(runner, attempts, outcome->attempts);
    hfi_log(well ? HF_LOG_DEBUG : HF_LOG_INFO, "downstream.probe", HFI_S("downstream", hf_downstream_name(site->downstream)),
            HFI_S("outcome", hf_outcome_kind_name(outcome->kind)), HFI_S("error_type", outcome->error_type), NULL);
    hf_response_free(response);
    runner->out--;
    hfi_claim_poke(runner);
    if (runner->life != HFI_LIFE_RUNNING)
        hfi_drain_check(runner);
}

static void ask(struct hfi_runner *runner, struct hfi_site *site) {
    struct hf_request request = hf_request_to(hf_downstream_name(site->downstream), "GET", site->probe_path);
    request.no_retry = true;
    int code = hfi_call_start(runner->parts.caller, &request, ended, site, &site->probe, NULL);
    if (code == 0) {
        runner->out++;
        return;
    }
    site->probe = NULL;
    site->probe_at_us = hfi_mono_after_ms(hfi_runner_mono(runner), AGAIN_MS).us;
    hfi_log(HF_LOG_WARNING, "downstream.probe", HFI_S("downstream", hf_downstream_name(site->downstream)),
            HFI_S("why", hf_strerror(code)), NULL);
}

bool hfi_probe_asks(const struct hfi_site *site, enum hf_breaker_state state) {
    return site->parks && site->probe_path != NULL &&
           (state == HF_BREAKER_OPEN || state == HF_BREAKER_HALF_OPEN || state == HF_BREAKER_ISOLATED);
}

void hfi_probe_look(struct hfi_runner *runner) {
    struct hf_mono now = hfi_runner_mono(runner);
    for (size_t i = 0; i < runner->site_count; i++) {
        struct hfi_site *site = runner->sites[i];
        if (site->probe_due && site->slots.blocked && site->probe == NULL && now.us >= site->probe_at_us)
            ask(runner, site);
    }
}

void hfi_probe_stop(struct hfi_runner *runner) {
    for (size_t i = 0; i < runner->site_count; i++) {
        if (runner->sites[i]->probe != NULL)
            hfi_call_cancel(runner->sites[i]->probe);
    }
}
