/* SPDX-License-Identifier: MIT */
/*
 * The outcome: how a call or an execution ended. A plain value with three verdicts. It decides nothing by itself; an
 * outcome that nobody filled says so (`touched`), and must never look like a success [S0.1]. Any thread.
 */
#include "resilience/outcome.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

void hfi_outcome_init(struct hf_outcome *outcome) {
    memset(outcome, 0, offsetof(struct hf_outcome, error_type)); /* of the texts the end is enough */
    outcome->error_type[0] = outcome->message[0] = outcome->rule[0] = '\0';
    outcome->kind = HF_OUTCOME_NEUTRAL;
    outcome->retry = HF_RETRY_NONE;
    outcome->verdict = HF_VERDICT_NEUTRAL;
    outcome->klass = HF_CLASS_TRANSIENT; /* never "ok" before somebody said so */
    outcome->stage = HF_STAGE_LOCAL;
    outcome->sent = HF_SENT_MAYBE; /* NO is proof, and there is none yet */
    outcome->retry_after_ms = -1;
    outcome->phases = (struct hfi_phases){-1, -1, -1, -1, -1};
}

void hfi_outcome_copy(struct hf_outcome *to, const struct hf_outcome *from) {
    memmove(to, from, offsetof(struct hf_outcome, message) + strlen(from->message) + 1);
}

void hfi_outcome_set(struct hf_outcome *outcome, enum hf_outcome_kind kind, enum hf_retry retry,
                     enum hf_verdict verdict, enum hf_class klass, const char *error_type, const char *rule) {
    outcome->touched = true;
    outcome->kind = kind;
    outcome->retry = retry;
    outcome->verdict = verdict;
    outcome->klass = klass;
    outcome->retry_after_ms = -1;
    outcome->gate_downstream = false;
    outcome->gate_limit = false;
    outcome->life = false;
    outcome->guess = false;
    outcome->message[0] = '\0';
    hfi_text_copy(outcome->error_type, sizeof outcome->error_type, error_type);
    hfi_text_copy(outcome->rule, sizeof outcome->rule, rule);
}

void hfi_outcome_success(struct hf_outcome *outcome, const char *rule) {
    hfi_outcome_set(outcome, HF_OUTCOME_SUCCESS, HF_RETRY_NONE, HF_VERDICT_SUCCESS, HF_CLASS_OK, "", rule);
}

void hfi_outcome_say(struct hf_outcome *outcome, const char *text) {
    hfi_text_copy(outcome->message, sizeof outcome->message, text);
}

void hfi_outcome_message(struct hf_outcome *outcome, const char *format, ...) {
    char text[HFI_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hfi_outcome_say(outcome, text);
}

void hfi_outcome_rejected(struct hf_outcome *outcome, const char *error_type, int64_t retry_after_ms) {
    hfi_outcome_set(outcome, HF_OUTCOME_REJECTED, HF_RETRY_LATER, HF_VERDICT_NEUTRAL, HF_CLASS_TRANSIENT, error_type,
                    error_type);
    outcome->stage = HF_STAGE_LOCAL;
    outcome->sent = HF_SENT_NO;
    outcome->retry_after_ms = retry_after_ms;
}

struct hf_outcome *hf_outcome_new(void) {
    struct hf_outcome *outcome = hfi_alloc(sizeof *outcome);
    if (outcome != NULL)
        hfi_outcome_init(outcome);
    return outcome;
}

void hf_outcome_free(struct hf_outcome *outcome) {
    hfi_free(outcome);
}

void hf_outcome_copy(struct hf_outcome *to, const struct hf_outcome *from) {
    hfi_outcome_copy(to, from);
}

#define GETTER(type, name, field)                                                                                      \
    type hf_outcome_get_##name(const struct hf_outcome *outcome) {                                                     \
        return outcome->field;                                                                                         \
    }
GETTER(enum hf_outcome_kind, kind, kind)
GETTER(enum hf_retry, retry, retry)
GETTER(enum hf_verdict, verdict, verdict)
GETTER(enum hf_class, class, klass)
GETTER(enum hf_stage, stage, stage)
GETTER(enum hf_sent, sent, sent)
GETTER(int, native, native)
GETTER(const char *, error_type, error_type)
GETTER(const char *, message, message)
GETTER(const char *, rule, rule)
GETTER(int64_t, retry_after_ms, retry_after_ms)
GETTER(uint32_t, attempts, attempts)
GETTER(uint32_t, retries, retries)
GETTER(uint32_t, hedges, hedges)
GETTER(bool, retry_refused, retry_refused)
GETTER(int64_t, resolve_us, phases.resolve_us)
GETTER(int64_t, connect_us, phases.connect_us)
GETTER(int64_t, tls_us, phases.tls_us)
GETTER(int64_t, first_byte_us, phases.first_byte_us)
GETTER(int64_t, total_us, phases.total_us)

#define NAME_CASE(prefix, name, text)                                                                                  \
    case prefix##name:                                                                                                 \
        return text;
#define KIND_CASE(name, text) NAME_CASE(HF_OUTCOME_, name, text)
#define RETRY_CASE(name, text) NAME_CASE(HF_RETRY_, name, text)
#define VERDICT_CASE(name, text) NAME_CASE(HF_VERDICT_, name, text)
#define CLASS_CASE(name, text) NAME_CASE(HF_CLASS_, name, text)
#define STAGE_CASE(name, text) NAME_CASE(HF_STAGE_, name, text)
#define SENT_CASE(name, text) NAME_CASE(HF_SENT_, name, text)
#define NAMER(function, type, map, one)                                                                                \
    const char *function(type value) {                                                                                 \
        switch (value) { map(one) }                                                                                    \
        return "unknown";                                                                                              \
    }
NAMER(hf_outcome_kind_name, enum hf_outcome_kind, HF_OUTCOME_KIND_MAP, KIND_CASE)
NAMER(hf_retry_name, enum hf_retry, HF_RETRY_MAP, RETRY_CASE)
NAMER(hf_verdict_name, enum hf_verdict, HF_VERDICT_MAP, VERDICT_CASE)
NAMER(hf_class_name, enum hf_class, HF_CLASS_MAP, CLASS_CASE)
NAMER(hf_stage_name, enum hf_stage, HF_STAGE_MAP, STAGE_CASE)
NAMER(hf_sent_name, enum hf_sent, HF_SENT_MAP, SENT_CASE)

/* "failure http.503: message (transient, retry now, breaker failure, sent yes, rule http.5xx, ...)" */
size_t hf_outcome_print(const struct hf_outcome *outcome, char *text, size_t length) {
    char wait[48] = "";
    char tries[64] = "";
    char line[HFI_MESSAGE_MAX + HFI_ERROR_TYPE_MAX + 512];
    if (outcome->retry_after_ms >= 0)
        snprintf(wait, sizeof wait, ", retry after %lld ms", (long long)outcome->retry_after_ms);
    if (outcome->attempts > 0)
        snprintf(tries, sizeof tries, ", %u attempt%s", outcome->attempts, outcome->attempts == 1 ? "" : "s");
    int whole = snprintf(line, sizeof line, "%s%s%s%s%s (%s, retry %s, breaker %s, stage %s, sent %s%s%s%s, rule %s)",
                         hf_outcome_kind_name(outcome->kind), outcome->error_type[0] != '\0' ? " " : "",
                         outcome->error_type, outcome->message[0] != '\0' ? ": " : "", outcome->message,
                         hf_class_name(outcome->klass), hf_retry_name(outcome->retry),
                         hf_verdict_name(outcome->verdict), hf_stage_name(outcome->stage), hf_sent_name(outcome->sent),
                         wait, tries, outcome->retry_refused ? ", retry refused by our own budget" : "",
                         outcome->rule[0] != '\0' ? outcome->rule : "none");
    if (whole < 0)
        return 0;
    if (length > 0)
        hfi_text_copy(text, length, line); /* cut on a code point */
    return (size_t)whole;
}
