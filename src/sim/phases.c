/* SPDX-License-Identifier: MIT */
/* Which phase of a scenario is in force when, and what counts as its outage. Pure. */
#include "sim/server.h"

size_t hfi_phase_at(const struct hf_scenario *scenario, int64_t us) {
    size_t low = 0, high = scenario->phase_count - 1;
    while (low < high) { /* the last one that has begun */
        size_t middle = (low + high + 1) / 2;
        if (hfi_ms_to_us(scenario->phases[middle].at_ms) <= us)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

size_t hfi_phase_in_force(const struct hf_scenario *scenario, int64_t us) {
    size_t at = hfi_phase_at(scenario, us);
    const struct hf_script_phase *phase = &scenario->phases[at];
    if (phase->flap_ms == 0 || at == 0)
        return at;
    return (us - hfi_ms_to_us(phase->at_ms)) / hfi_ms_to_us(phase->flap_ms) % 2 == 0 ? at : at - 1;
}

double hfi_phase_growth(const struct hf_scenario *scenario, size_t phase, int64_t us) {
    const struct hf_script_phase *at = &scenario->phases[phase];
    bool last = phase + 1 == scenario->phase_count;
    int64_t from = hfi_ms_to_us(at->at_ms), until = hfi_ms_to_us(last ? scenario->duration_ms : at[1].at_ms);
    if (at->grows_to == 1)
        return 1;
    double share = until > from ? (double)(us - from) / (double)(until - from) : 1;
    return 1 + (at->grows_to - 1) * (share < 0 ? 0 : share > 1 ? 1 : share);
}

bool hfi_phase_is_outage(const struct hf_script_phase *phase) {
    double sum = 0;
    for (int i = 0; i < HF_FAILINGS; i++)
        sum += phase->share[i];
    return phase->outage < 0 ? sum >= 0.5 : phase->outage > 0;
}

void hfi_phase_outages(const struct hf_scenario *scenario, int64_t *from_ms, int64_t *until_ms) {
    *from_ms = *until_ms = -1;
    for (size_t i = 0; i < scenario->phase_count; i++) {
        if (!hfi_phase_is_outage(&scenario->phases[i]))
            continue;
        if (*from_ms < 0)
            *from_ms = scenario->phases[i].at_ms;
        *until_ms = i + 1 < scenario->phase_count ? scenario->phases[i + 1].at_ms : -1;
    }
}
