/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_CAUSE_H
#define HFI_RESILIENCE_CAUSE_H

#include <stdbool.h>

#include "holdfast/guard.h"
#include "resilience/outcome.h"

/* What a failure counts as in "why is it open". Never asked for a success. */
enum hf_cause hfi_cause_of(const struct hf_outcome *outcome);

/* Is there any beside OTHER? Else there is nothing to name. */
bool hfi_causes_named(const struct hf_causes *causes);
#define HFI_CAUSES_ROOM 128
/* "12 connect, 2 http 5xx": the most frequent first, zeros left out; "" when all are zero. */
char *hfi_causes_print(const struct hf_causes *causes, char *text);

#endif
