/* SPDX-License-Identifier: MIT */
/*
 * Turns the one word a classification table gives into an outcome's verdicts. The only place that knows which verdicts
 * belong together. Pure, any thread.
 */
#include "resilience/effect.h"

#include <limits.h>

void hfi_effect_apply(struct hf_outcome *outcome, enum hfi_effect effect, enum hf_stage stage, enum hf_sent sent,
                      int native, const char *error_type, const char *rule) {
    static const struct {
        enum hf_outcome_kind kind;
        enum hf_retry retry;
        enum hf_verdict verdict;
        enum hf_class klass;
    } verdicts[] = {
#define ROW(name, kind, retry, verdict, klass)                                                                         \
    {HF_OUTCOME_##kind, HF_RETRY_##retry, HF_VERDICT_##verdict, HF_CLASS_##klass},
        HFI_EFFECT_MAP(ROW)
#undef ROW
    };
    size_t row = (size_t)effect < sizeof verdicts / sizeof *verdicts ? (size_t)effect : HFI_EFFECT_DOWN;
    hfi_outcome_init(outcome);
    hfi_outcome_set(outcome, verdicts[row].kind, verdicts[row].retry, verdicts[row].verdict, verdicts[row].klass,
                    effect == HFI_EFFECT_OK ? "" : error_type, rule);
    outcome->stage = stage;
    outcome->sent = sent;
    outcome->native = native;
}

void hfi_effect_guess(struct hf_outcome *outcome, int native, const char *error_type, const char *rule) {
    hfi_effect_apply(outcome, HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE, native, error_type, rule);
    outcome->guess = true;
}

int hfi_digits(const char *text) {
    long long value = 0;
    if (text[0] == '\0')
        return -1;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        value = value * 10 + (*text - '0');
        if (value > INT_MAX)
            return -1;
    }
    return (int)value;
}
