/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_DEATHS_WORDING_H
#define HFI_JOBS_DEATHS_WORDING_H

#include "base/text.h"
#include "jobs/store.h"

/* How alerts are worded, for all sinks. Pure but for the memory of `text`. */

/*
 * What happened, in one line; of a digest the line and one more for each cause, as long as they fit in `room` bytes (0:
 * all of them) with the number of the others. Never the error's message.
 */
void hfi_alert_summary(struct hfi_bytes *text, const struct hfi_alert *alert, size_t room);
/* Everything but the message, as a JSON object without its closing brace: for a `text` and what else a sink adds. */
void hfi_alert_json(struct hfi_bytes *body, const struct hfi_alert *alert);
void hfi_alert_json_field(struct hfi_bytes *body, const char *name, const char *value); /* with its comma before it */

#endif
