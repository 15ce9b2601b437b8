/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_OUTCOME_H
#define HFI_RESILIENCE_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/outcome.h"

#define HFI_ERROR_TYPE_MAX 64
#define HFI_MESSAGE_MAX 512

/* Phase times of one attempt, µs from its start, -1 = not reached. */
struct hfi_phases {
    int64_t resolve_us, connect_us, tls_us, first_byte_us, total_us;
};

/* The value behind the public accessors; copied freely, owns nothing. */
struct hf_outcome {
    enum hf_outcome_kind kind;
    enum hf_retry retry;
    enum hf_verdict verdict;
    enum hf_class klass;
    enum hf_stage stage;
    enum hf_sent sent;
    int native;
    uint32_t attempts, retries, hedges;
    bool retry_refused;      /* budget */
    bool gate_downstream;    /* Retry-After of a 503 (or 429 without a limit key): gates the downstream */
    bool gate_limit;         /* Retry-After of a 429: gates the job's limit key if it has one, else the downstream */
    bool life;               /* a complete answer that proves the peer alive though the verdict is neutral (half-open only) */
    bool guess;              /* no rule knew it: transient by default [S0.3] */
    bool touched;            /* somebody filled it */
    int64_t retry_after_ms;  /* -1 none */
    struct hfi_phases phases;
    char error_type[HFI_ERROR_TYPE_MAX];
    char rule[48];
    char message[HFI_MESSAGE_MAX]; /* last: hfi_outcome_copy leaves what is behind its end */
};

void hfi_outcome_init(struct hf_outcome *outcome); /* untouched, NEUTRAL, transient, no waits, phases -1 */
void hfi_outcome_copy(struct hf_outcome *to, const struct hf_outcome *from);
void hfi_outcome_success(struct hf_outcome *outcome, const char *rule);
/* Writes the verdicts and texts; empties message, wait and gates; keeps native, stage, sent, counts and phases. */
void hfi_outcome_set(struct hf_outcome *outcome, enum hf_outcome_kind kind, enum hf_retry retry,
                     enum hf_verdict verdict, enum hf_class klass, const char *error_type, const char *rule);
void hfi_outcome_say(struct hf_outcome *outcome, const char *text); /* its message, as it is */
void hfi_outcome_message(struct hf_outcome *outcome, const char *format, ...) HF_PRINTF(2, 3);
/* Refused before the wire: kind REJECTED, breaker neutral, class transient, sent NO. Type `breaker.open` … */
void hfi_outcome_rejected(struct hf_outcome *outcome, const char *error_type, int64_t retry_after_ms);

#endif
