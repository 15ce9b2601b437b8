/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_CLASSIFY_H
#define HFI_RESILIENCE_CLASSIFY_H

#include "base/clock.h"
#include "holdfast/classify.h"
#include "resilience/outcome.h"
#include "resilience/transport.h"

/*
 * One attempt's facts to an outcome, in the order: the transport's own reasons, CURLcode, HTTP status. `policy_429`:
 * a 429 counts as a breaker failure. Retry-After is read raw against `wall` and handed on whole: no retry of
 * the call comes before it (A2), and how much of it a job takes over is the job's business (src/jobs/failure.c).
 */
void hfi_classify_attempt(const struct hfi_attempt_facts *facts, struct hf_wall wall, bool policy_429,
                          struct hf_outcome *outcome);

/* Our own limits and refusals; `sent`, `stage` from the cancelled attempt. */
void hfi_classify_timeout(const char *which, enum hf_sent sent, enum hf_stage stage, struct hf_outcome *outcome); /* "timeout.attempt", "timeout.total", "timeout.connect", "timeout.execution" */
void hfi_classify_cancelled(enum hf_sent sent, enum hf_stage stage, struct hf_outcome *outcome); /* `call.cancelled`, neutral */

#endif
