/* SPDX-License-Identifier: MIT */
/*
 * A snapshot of what the attempts of a downstream took. It only adds up and looks. One thread at a time.
 */
#include "resilience/measured.h"

#include "base/alloc.h"
#include "base/text.h"
#include "resilience/downstream.h"

int hfi_measured_new(struct hf_measured **measured) {
    *measured = hfi_alloc(sizeof **measured);
    return *measured != NULL ? 0 : HF_ENOMEM;
}

void hf_measured_free(struct hf_measured *measured) {
    hfi_free(measured);
}

int hfi_measured_add(struct hf_measured *measured, const void *bytes, size_t length) {
    return hfi_packed_add(bytes, length, measured->spreads, HFI_MEASURED_SPREADS);
}

void hfi_measured_settle(struct hf_measured *measured) {
    static const enum hf_fate cuts[] = {HF_FATE_CANCELLED, HF_FATE_CUT_TOTAL, HF_FATE_CUT_ATTEMPT, HF_FATE_CUT_CONNECT};
    for (int phase = 0; phase < HF_PHASES; phase++)
        for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
            if (phase != HF_PHASE_ATTEMPT || cuts[i] != HF_FATE_CUT_CONNECT)
                hfi_spread_merge(&measured->cut[phase], &measured->spreads[hfi_measured_at((enum hf_phase)phase, cuts[i])]);
}

struct hfi_survival hfi_measured_survival(const struct hf_measured *measured, enum hf_phase phase) {
    return (struct hfi_survival){&measured->spreads[hfi_measured_at(phase, HF_FATE_ENDED)], &measured->cut[phase]};
}

int hf_downstream_measured(struct hf_downstream *downstream, struct hf_measured **measured, struct hf_error *error) {
    if (downstream == NULL || measured == NULL)
        return hfi_fail(error, HF_EINVAL, "measured", "give both", "downstream and the place for the answer are required");
    if (hfi_measured_new(measured) != 0)
        return hfi_fail(error, HF_ENOMEM, "measured", NULL, "out of memory");
    hfi_recorder_look(hfi_downstream_recorder(downstream), (*measured)->spreads);
    hfi_measured_settle(*measured);
    return 0;
}

uint64_t hf_measured_hours(const struct hf_measured *measured) {
    return measured != NULL ? measured->hours : 0;
}

static bool known(const struct hf_measured *measured, enum hf_phase phase) {
    return measured != NULL && (int)phase >= 0 && phase < HF_PHASES;
}

static const struct hfi_spread *spread_of(const struct hf_measured *measured, enum hf_phase phase, enum hf_fate fate) {
    bool there = known(measured, phase) && (int)fate >= 0 && fate < HF_FATES;
    return there ? &measured->spreads[hfi_measured_at(phase, fate)] : NULL;
}

uint64_t hf_measured_count(const struct hf_measured *measured, enum hf_phase phase, enum hf_fate fate) {
    const struct hfi_spread *spread = spread_of(measured, phase, fate);
    return spread != NULL ? hfi_spread_total(spread) : 0;
}

int64_t hf_measured_quantile(const struct hf_measured *measured, enum hf_phase phase, double share) {
    if (!known(measured, phase))
        return -1;
    struct hfi_survival survival = hfi_measured_survival(measured, phase);
    return hfi_survival_quantile(&survival, share);
}

bool hf_measured_next(const struct hf_measured *measured, enum hf_phase phase, enum hf_fate fate, uint32_t *cursor,
                      int64_t *from_us, int64_t *to_us, uint64_t *count) {
    const struct hfi_spread *spread = spread_of(measured, phase, fate);
    for (; spread != NULL && *cursor < HFI_SPREAD_BUCKETS; ++*cursor) {
        if (spread->counts[*cursor] == 0)
            continue;
        *from_us = hfi_spread_floor(*cursor);
        *to_us = hfi_spread_edge(*cursor);
        *count = spread->counts[(*cursor)++];
        return true;
    }
    return false;
}

#define NAME(name, text)                                                                                               \
    case HF_PHASE_##name:                                                                                              \
        return text;
const char *hf_phase_name(enum hf_phase phase) {
    switch (phase) { HF_PHASE_MAP(NAME) }
    return "unknown";
}
#undef NAME
#define NAME(name, text)                                                                                               \
    case HF_FATE_##name:                                                                                               \
        return text;
const char *hf_fate_name(enum hf_fate fate) {
    switch (fate) { HF_FATE_MAP(NAME) }
    return "unknown";
}
#undef NAME
