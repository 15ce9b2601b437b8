/* SPDX-License-Identifier: MIT */
/*
 * Several errors of one chain as one outcome [S0.5]: the causes of an exception, the messages of a database. Must never
 * make a success of a failure, nor keep a proof of "not sent" that another error of the chain contradicts. Pure.
 */
#include "holdfast/classify.h"
#include "resilience/outcome.h"

/* How much an outcome says about the chain. */
static int weight(const struct hf_outcome *outcome) {
    if (!outcome->touched)
        return 0;
    if (outcome->klass == HF_CLASS_OK)
        return 1;
    if (outcome->guess)
        return 2;
    return outcome->klass == HF_CLASS_TRANSIENT ? 4 : 3;
}

void hf_classify_join(struct hf_outcome *outcome, const struct hf_outcome *cause) {
    int before = weight(outcome), now = weight(cause);
    enum hf_sent sent = before > 2 ? outcome->sent : HF_SENT_NO;
    if (now > 2 && cause->sent > sent)
        sent = cause->sent;
    if (now > before)
        hfi_outcome_copy(outcome, cause);
    if (before > 2 || now > 2)
        outcome->sent = sent;
}
