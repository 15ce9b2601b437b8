/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_EFFECT_H
#define HFI_RESILIENCE_EFFECT_H

#include "resilience/outcome.h"

/*
 * What the rows of the classification tables say: one word for a whole set of verdicts.
 * X(NAME, kind, retry, breaker verdict, job class)
 */
#define HFI_EFFECT_MAP(X)                                                                                              \
    X(OK, SUCCESS, NONE, SUCCESS, OK)                                                                                  \
    X(DOWN, FAILURE, NOW, FAILURE, TRANSIENT)         /* the peer is failing */                                        \
    X(DOWN_FRESH, FAILURE, FRESH, FAILURE, TRANSIENT) /* … worth one try on a new connection */                        \
    X(DOWN_LATER, FAILURE, LATER, FAILURE, TRANSIENT) /* … and will for longer than a call lasts */                    \
    X(BUSY, FAILURE, NOW, NEUTRAL, TRANSIENT)         /* no fault of the peer, or ours: locks, own memory, throttled */ \
    X(BUSY_FRESH, FAILURE, FRESH, NEUTRAL, TRANSIENT)                                                                  \
    X(BUSY_LATER, FAILURE, LATER, NEUTRAL, TRANSIENT)                                                                  \
    X(REFUSED, FAILURE, NONE, NEUTRAL, PERMANENT) /* this request can never succeed; says nothing of the peer */       \
    X(BROKEN, FAILURE, NONE, FAILURE, PERMANENT)  /* no request can succeed until a person mends the peer */

enum hfi_effect {
#define HFI_EFFECT_MEMBER(name, kind, retry, verdict, klass) HFI_EFFECT_##name,
    HFI_EFFECT_MAP(HFI_EFFECT_MEMBER)
#undef HFI_EFFECT_MEMBER
};

/* Starts `outcome` anew and gives it the verdicts of `effect`. An effect out of range counts as DOWN. */
void hfi_effect_apply(struct hf_outcome *outcome, enum hfi_effect effect, enum hf_stage stage, enum hf_sent sent,
                      int native, const char *error_type, const char *rule);

/* What no row knows: transient, a failure of the peer, perhaps sent [S0.3]. */
void hfi_effect_guess(struct hf_outcome *outcome, int native, const char *error_type, const char *rule);

/* Decimal digits as a number; -1 for anything else or above INT_MAX. */
int hfi_digits(const char *text);

#endif
