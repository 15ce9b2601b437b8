/* SPDX-License-Identifier: MIT */
/*
 * The HTTP status table (RFC 9110 section 15) and what may be repeated (9.2). Reads a status and a raw Retry-After,
 * nothing else. Must never look at a clock: `now` is handed in. Pure, any thread.
 */
#include "resilience/classify.h"

#include <stdio.h>
#include <string.h>

#include "resilience/effect.h"

/*
 * First match wins. `answer`: a complete answer that proves the peer alive although it is neutral for the breaker; a
 * throttled or timed-out one proves nothing.
 */
static const struct rule {
    int from, to;
    bool with_retry_after; /* matches only when the peer names a wait */
    bool answer;
    enum hfi_effect effect;
    const char *id;
} rules[] = {
    {200, 299, false, false, HFI_EFFECT_OK, "http.2xx"},
    {408, 408, false, false, HFI_EFFECT_BUSY, "http.408"},
    {421, 421, false, true, HFI_EFFECT_BUSY_FRESH, "http.421"},
    {425, 425, false, false, HFI_EFFECT_BUSY, "http.425"},
    {429, 429, true, false, HFI_EFFECT_BUSY, "http.429.retry_after"},
    {429, 429, false, false, HFI_EFFECT_BUSY, "http.429"},
    {300, 399, false, true, HFI_EFFECT_REFUSED, "http.3xx"},
    {400, 499, false, true, HFI_EFFECT_REFUSED, "http.4xx"},
    {501, 501, false, true, HFI_EFFECT_REFUSED, "http.501"},
    {505, 505, false, true, HFI_EFFECT_REFUSED, "http.505"},
    {511, 511, false, true, HFI_EFFECT_REFUSED, "http.511"},
    {503, 503, true, false, HFI_EFFECT_BUSY, "http.503.retry_after"},
    {500, 599, false, false, HFI_EFFECT_DOWN, "http.5xx"},
};

static const struct rule *match(int status, bool with_retry_after) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        if (status >= rule->from && status <= rule->to && (with_retry_after || !rule->with_retry_after))
            return rule;
    }
    return NULL;
}

void hf_classify_http(int status, const char *retry_after, int64_t now_us, struct hf_outcome *outcome) {
    char type[24] = "";
    int64_t wait_ms =
        retry_after != NULL && (status == 429 || status == 503) ? hf_retry_after_ms(retry_after, now_us) : -1;
    const struct rule *rule = match(status, wait_ms >= 0);
    if (rule == NULL || rule->effect != HFI_EFFECT_OK) /* a success has no type */
        snprintf(type, sizeof type, "http.%d", status);
    hfi_effect_apply(outcome, rule != NULL ? rule->effect : HFI_EFFECT_DOWN, HF_STAGE_RECEIVE,
                     status == 408 ? HF_SENT_MAYBE : HF_SENT_YES, status, type,
                     rule != NULL ? rule->id : "http.unknown");
    if (outcome->kind != HF_OUTCOME_SUCCESS)
        hfi_outcome_message(outcome, "the peer answered %d", status);
    outcome->life = rule != NULL && rule->answer;
    outcome->retry_after_ms = wait_ms;
    outcome->gate_limit = wait_ms >= 0 && status == 429;
    outcome->gate_downstream = wait_ms >= 0 && status == 503;
}

bool hf_may_repeat(const char *method, bool has_key, enum hf_sent sent) {
    static const char *const idempotent[] = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};
    if (has_key || sent == HF_SENT_NO)
        return true;
    for (size_t i = 0; method != NULL && i < sizeof idempotent / sizeof *idempotent; i++)
        if (strcmp(method, idempotent[i]) == 0) /* methods are case-sensitive: `get` is another one */
            return true;
    return false;
}
