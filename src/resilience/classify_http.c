/* SPDX-License-Identifier: MIT */
/*
 * The HTTP status table (RFC 9110 section 15) and what may be repeated (9.2). Reads a status and a raw Retry-After,
 * nothing else. Must never look at a clock: `now` is handed in. Pure, any thread.
 */
#include "resilience/classify.h"

#include <stdio.h>
#include <string.h>

#include "resilience/table.h"

/*
 * First match wins. `answer`: a complete answer that proves the peer alive although it is neutral for the breaker; a
 * throttled or timed-out one proves nothing.
 */
static const struct rule {
    int from, to;
    bool with_retry_after; /* matches only when the peer names a wait */
    bool answer;
    enum hfi_effect effect;
    enum hf_stage stage;
    enum hf_sent sent;
    const char *id, *note;
} rules[] = {
#define RULE(from, to, wait, answer, effect, sent, id, note)                                                           \
    { from, to, wait, answer, HFI_EFFECT_##effect, HF_STAGE_RECEIVE, HF_SENT_##sent, "http." id, note }
    RULE(200, 299, false, false, OK, YES, "2xx", ""),
    RULE(408, 408, false, false, BUSY, MAYBE, "408", "perhaps about the last request of this connection"),
    RULE(421, 421, false, true, BUSY_FRESH, YES, "421", "misdirected: once more on a fresh connection"),
    RULE(425, 425, false, false, BUSY, YES, "425", "too early"),
    RULE(429, 429, true, false, BUSY, YES, "429.retry_after",
         "and a gate until then; `breaker_429` may make it a failure"),
    RULE(429, 429, false, false, BUSY, YES, "429", "`breaker_429` may make it a failure"),
    RULE(300, 399, false, true, REFUSED, YES, "3xx", "redirects are followed only where that is switched on"),
    RULE(400, 499, false, true, REFUSED, YES, "4xx", "the request is wrong: it would be again"),
    RULE(501, 501, false, true, REFUSED, YES, "501", "the server does not know the method"),
    RULE(505, 505, false, true, REFUSED, YES, "505", "HTTP version not supported there"),
    RULE(511, 511, false, true, REFUSED, YES, "511", "a captive portal wants a login"),
    RULE(503, 503, true, false, BUSY, YES, "503.retry_after", "and a gate until then"),
    RULE(500, 599, false, false, DOWN, YES, "5xx", ""),
    RULE(100, 199, false, false, DOWN, YES, "1xx", "announced an answer that never came"),
#undef RULE
};
#define RULES (sizeof rules / sizeof *rules)

static const struct rule *match(int status, bool with_retry_after) {
    for (size_t i = 0; i < RULES; i++) {
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
    if (rule == NULL) {
        hfi_effect_guess(outcome, status, type, "http.unknown");
        hfi_outcome_message(outcome, "the peer answered %d, which is no status of HTTP", status);
        return;
    }
    hfi_effect_apply(outcome, rule->effect, rule->stage, rule->sent, status, type, rule->id);
    if (outcome->kind != HF_OUTCOME_SUCCESS)
        hfi_outcome_message(outcome, "the peer answered %d", status);
    outcome->life = rule->answer;
    outcome->retry_after_ms = wait_ms;
    outcome->gate_limit = wait_ms >= 0 && status == 429;
    outcome->gate_downstream = wait_ms >= 0 && status == 503;
}

static void show(size_t index, struct hf_rule_row *row) {
    if (index == RULES) {
        hfi_row_rest(row, "http.unknown");
        return;
    }
    const struct rule *rule = &rules[index];
    const char *wait = rule->with_retry_after ? " with Retry-After" : "";
    if (rule->from == rule->to)
        hfi_row_fill(row, rule->effect, rule->stage, rule->sent, rule->id, rule->note, "%d%s", rule->from, wait);
    else
        hfi_row_fill(row, rule->effect, rule->stage, rule->sent, rule->id, rule->note, "%d-%d", rule->from, rule->to);
}

const struct hfi_table hfi_table_http = {
    "http", "Statuses of HTTP answers.", "RFC 9110 section 15, RFC 6585, RFC 8470", true, RULES + 1, show};

bool hf_may_repeat(const char *method, bool has_key, enum hf_sent sent) {
    static const char *const idempotent[] = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};
    if (has_key || sent == HF_SENT_NO)
        return true;
    for (size_t i = 0; method != NULL && i < sizeof idempotent / sizeof *idempotent; i++)
        if (strcmp(method, idempotent[i]) == 0) /* methods are case-sensitive: `get` is another one */
            return true;
    return false;
}
