/* SPDX-License-Identifier: MIT */
/*
 * One attempt's facts to one outcome: the transport's own reasons first, then the CURLcode, then the HTTP status. What
 * was sent and how far it came are taken from the facts, never guessed from a code. Decides nothing about retries
 * beyond the verdict. Pure, any thread.
 */
#include "resilience/classify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "resilience/effect.h"

#define LOOKUPS_FULL_WAIT_MS 1000 /* unresolved names end in seconds; ask again then */

/* Reasons a transport gives by itself; first match by dotted prefix. What is not listed is the peer's failure [S0.3].
 */
static const struct {
    const char *type;
    enum hfi_effect effect;
} reasons[] = {
    {"http.body_too_large", HFI_EFFECT_REFUSED},
    {"http.headers_too_large", HFI_EFFECT_REFUSED},
    {"http.truncated_headers", HFI_EFFECT_DOWN},
    {"http.connection_lost", HFI_EFFECT_DOWN}, /* a reused connection died; libcurl would have sent it twice (L1) */
    {"local.private_network", HFI_EFFECT_REFUSED},
    {"local.url", HFI_EFFECT_REFUSED},
    {"local", HFI_EFFECT_BUSY}, /* descriptors, memory …: never the peer's fault */
};

static void own_reason(const struct hfi_attempt_facts *facts, struct hf_outcome *outcome) {
    char rule[sizeof outcome->rule];
    enum hfi_effect effect = HFI_EFFECT_DOWN;
    if (hfi_dotted_prefix("local.lookups", facts->error_type)) {
        hfi_outcome_init(outcome);
        hfi_outcome_rejected(outcome, facts->error_type, LOOKUPS_FULL_WAIT_MS);
        return;
    }
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (hfi_dotted_prefix(reasons[i].type, facts->error_type)) {
            effect = reasons[i].effect;
            break;
        }
    }
    snprintf(rule, sizeof rule, "transport.%s", facts->error_type);
    hfi_effect_apply(outcome, effect, facts->stage, facts->sent, facts->native, facts->error_type, rule);
}

static bool says(const struct hfi_attempt_facts *facts, const char *text) {
    return facts->message != NULL && strcasestr(facts->message, text) != NULL;
}

static bool own_resources(int number) {
    return number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM || number == EADDRNOTAVAIL ||
           number == EADDRINUSE;
}

/* Where the code alone says too little: the errno, the text and the stage behind it decide. NULL: the table stands. */
static const char *finer_rule(const struct hfi_attempt_facts *facts, enum hfi_effect *effect) {
    switch (facts->native) {
    case 1: /* bad scheme, or a reply that is no HTTP at all */
        *effect = HFI_EFFECT_DOWN_FRESH;
        return facts->sent != HF_SENT_NO ? "curl.1.reply" : NULL;
    case 7:  /* a socket that could not be made looks like a refused connection */
    case 45: /* the local end */
        *effect = HFI_EFFECT_BUSY;
        return !own_resources(facts->native_errno) ? NULL : facts->native == 7 ? "curl.7.local" : "curl.45.local";
    case 28: /* died in a queue of ours: never started */
        *effect = HFI_EFFECT_BUSY;
        return facts->stage == HF_STAGE_LOCAL && facts->sent == HF_SENT_NO ? "curl.28.queue" : NULL;
    case 35: /* cut or reset in the handshake, not refused by it */
        *effect = HFI_EFFECT_DOWN;
        return facts->native_errno != 0 || says(facts, "SSL_ERROR_SYSCALL") ? "curl.35.cut" : NULL;
    case 56:
        *effect = HFI_EFFECT_REFUSED;
        if (says(facts, "Too large response headers"))
            return "curl.56.headers";
        *effect = HFI_EFFECT_BROKEN; /* TLS 1.3 refuses our certificate after the request went out */
        return says(facts, "alert") ? "curl.56.alert" : NULL;
    default:
        return NULL;
    }
}

static void by_code(const struct hfi_attempt_facts *facts, struct hf_outcome *outcome) {
    enum hfi_effect effect = HFI_EFFECT_DOWN;
    hf_classify_curl(facts->native, facts->sent, outcome);
    const char *rule = finer_rule(facts, &effect);
    if (rule != NULL) {
        char type[HFI_ERROR_TYPE_MAX];
        hfi_text_copy(type, sizeof type, outcome->error_type);
        hfi_effect_apply(outcome, effect, facts->stage, facts->sent, facts->native, type, rule);
    }
    outcome->stage = facts->stage;
    outcome->sent = facts->sent;
    /* A proxy that refused the tunnel: the request itself never left. */
    if (facts->native == 56 && says(facts, "CONNECT tunnel failed"))
        outcome->sent = HF_SENT_NO;
}

static void by_status(const struct hfi_attempt_facts *facts, struct hf_wall wall, bool policy_429, int64_t cap_ms,
                      struct hf_outcome *outcome) {
    hf_classify_http(facts->status, facts->retry_after, wall.us, outcome);
    outcome->stage = facts->stage;
    if (facts->status != 408) /* "I got no request in time": perhaps the last one's answer on this connection */
        outcome->sent = facts->sent;
    if (facts->status == 429 && policy_429)
        outcome->verdict = HF_VERDICT_FAILURE;
    if (outcome->retry_after_ms > cap_ms) {
        hfi_outcome_message(outcome, "the peer answered %d; its Retry-After of %lld ms was cut to the cap of %lld ms",
                            facts->status, (long long)outcome->retry_after_ms, (long long)cap_ms);
        outcome->retry_after_ms = cap_ms;
    }
}

void hfi_classify_attempt(const struct hfi_attempt_facts *facts, struct hf_wall wall, bool policy_429,
                          int64_t retry_after_cap_ms, struct hf_outcome *outcome) {
    if (facts->error_type != NULL)
        own_reason(facts, outcome);
    else if (facts->native != 0 && !(facts->native == 22 && facts->status != 0))
        by_code(facts, outcome);
    else
        by_status(facts, wall, policy_429, retry_after_cap_ms, outcome);
    if ((facts->error_type != NULL || facts->native != 0) && facts->message != NULL && facts->message[0] != '\0')
        hfi_outcome_message(outcome, "%s", facts->message);
    outcome->phases = facts->phases;
}

void hfi_classify_timeout(const char *which, enum hf_sent sent, enum hf_stage stage, struct hf_outcome *outcome) {
    /* Only a limit of the attempt itself says that the peer is slow; the others may cut an attempt short. */
    bool own = strcmp(which, "timeout.attempt") == 0 || strcmp(which, "timeout.connect") == 0;
    hfi_effect_apply(outcome, own ? HFI_EFFECT_DOWN : HFI_EFFECT_BUSY_LATER, stage, sent, 0, which, which);
    hfi_outcome_message(outcome, "the %s limit passed in stage %s", strchr(which, '.') ? strchr(which, '.') + 1 : which,
                        hf_stage_name(stage));
}

void hfi_classify_cancelled(enum hf_sent sent, enum hf_stage stage, struct hf_outcome *outcome) {
    hfi_outcome_init(outcome);
    hfi_outcome_set(outcome, HF_OUTCOME_NEUTRAL, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, HF_CLASS_TRANSIENT,
                    "call.cancelled", "call.cancelled");
    outcome->sent = sent;
    outcome->stage = stage;
    hfi_outcome_message(outcome, "cancelled by the caller in stage %s", hf_stage_name(stage));
}
