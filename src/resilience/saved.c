/* SPDX-License-Identifier: MIT */
/*
 * What a breaker knows, in a form that outlives the process: times in wall time. Must never let a clock that was set
 * make a break longer than the policy's longest (B27). Reads the clocks, because its callers have no scheduler. Any
 * thread.
 */
#include <string.h>

#include "base/text.h"
#include "resilience/downstream.h"

void hfi_downstream_save(struct hf_downstream *downstream, struct hf_mono now, struct hf_wall wall,
                         struct hf_downstream_saved *saved) {
    struct hfi_breaker_look look;
    struct hf_downstream_saved whole = {.size = sizeof whole};
    uint32_t size = saved->size > 0 && saved->size < sizeof whole ? saved->size : sizeof whole;
    hfi_breaker_look(&downstream->breaker, now, &look);
    whole.state = look.state;
    whole.trips = look.trips;
    if (look.state == HF_BREAKER_HALF_OPEN || look.state == HF_BREAKER_RAMP) {
        whole.state = HF_BREAKER_OPEN; /* its break is over: what takes it up begins with probes, not with everything */
        whole.until_us = wall.us;
    } else if (look.state != HF_BREAKER_CLOSED && look.until_us != HFI_FOREVER_US) {
        whole.until_us = hfi_add(wall.us, hfi_sub(look.until_us, now.us));
    }
    if (look.gate_us > now.us)
        whole.gate_until_us = hfi_add(wall.us, hfi_sub(look.gate_us, now.us));
    hfi_text_copy(whole.reason, sizeof whole.reason, look.reason);
    memcpy(saved, &whole, size);
    saved->size = size;
}

/* `until_us` of the wall clock in the other one: from now on, for at most `longest_ms`. */
static int64_t rebase(int64_t until_us, struct hf_mono now, struct hf_wall wall, int64_t longest_ms) {
    int64_t left_us = hfi_sub(until_us, wall.us), longest_us = hfi_ms_to_us(longest_ms);
    left_us = left_us < 0 ? 0 : left_us > longest_us ? longest_us : left_us;
    return hfi_add(now.us, left_us);
}

int hfi_downstream_restore(struct hf_downstream *downstream, struct hf_mono now, struct hf_wall wall,
                           const struct hf_downstream_saved *saved) {
    const struct hf_policy_options *options = &hfi_downstream_policy(downstream)->options;
    struct hf_downstream_saved whole = {0};
    struct hfi_breaker_saved machine = {0};
    memcpy(&whole, saved, saved->size < sizeof whole ? saved->size : sizeof whole);
    if (whole.state != HF_BREAKER_CLOSED && whole.state != HF_BREAKER_OPEN && whole.state != HF_BREAKER_ISOLATED)
        return HF_EINVAL;
    if (whole.until_us < 0 || whole.gate_until_us < 0)
        return HF_EINVAL;
    whole.reason[sizeof whole.reason - 1] = '\0';
    hfi_text_copy(machine.reason, sizeof machine.reason, whole.reason[0] ? whole.reason : "restored");
    machine.state = whole.state;
    machine.trips = whole.trips;
    if (whole.state == HF_BREAKER_OPEN)
        machine.until_us = rebase(whole.until_us, now, wall, options->breaker_max_break_ms);
    else if (whole.state == HF_BREAKER_ISOLATED)
        machine.until_us = whole.until_us == 0 ? HFI_FOREVER_US : rebase(whole.until_us, now, wall, INT64_MAX);
    hfi_breaker_restore(&downstream->breaker, now, &machine);
    if (whole.gate_until_us > wall.us)
        hfi_breaker_gate(&downstream->breaker,
                         (struct hf_mono){rebase(whole.gate_until_us, now, wall, options->gate_cap_ms)});
    return 0;
}

int hf_downstream_save(struct hf_downstream *downstream, struct hf_downstream_saved *saved) {
    if (downstream == NULL || saved == NULL || saved->size < sizeof saved->size)
        return HF_EINVAL;
    hfi_downstream_save(downstream, hfi_mono_now(), hfi_wall_now(), saved);
    return 0;
}

int hf_downstream_restore(struct hf_downstream *downstream, const struct hf_downstream_saved *saved) {
    if (downstream == NULL || saved == NULL || saved->size < sizeof saved->size)
        return HF_EINVAL;
    return hfi_downstream_restore(downstream, hfi_mono_now(), hfi_wall_now(), saved);
}
