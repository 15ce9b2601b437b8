/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_KINDS_ISOLATED_H
#define HFI_JOBS_KINDS_ISOLATED_H

#include "base/text.h"
#include "jobs/work.h"

/*
 * An execution on its way into a process of its own, and its end on the way back. Both ends are this library, of the same
 * version; the node believes what comes back no more than what a handler returns.
 */
#define HFI_ISOLATED_MAX (HFI_RESULT_MAX + HFI_DETAIL_MAX + 8192) /* of what comes back and was not taken yet */

/* What stands before the payload on its standard input. */
bool hfi_isolated_pack(const struct hf_work *work, struct hfi_bytes *head);
/* Takes the progress that stands at the beginning of `said` out of it and passes it on. */
void hfi_isolated_take(struct hf_work *work, struct hfi_bytes *said);
/* Fills the ending with the end in `said`. False: there is none, whole and of this version. */
bool hfi_isolated_end(struct hf_work *work, const struct hfi_bytes *said);

#endif
