/* SPDX-License-Identifier: MIT */
#ifndef HFI_SIM_VIRTUAL_H
#define HFI_SIM_VIRTUAL_H

#include "base/scheduler.h"

/*
 * The scheduler port on virtual time: the clock stands still while anything can run, then jumps to the next timer.
 * The same calls give the same order, always. A turn runs the posted tasks, then what is ready, then due timers.
 * `run` ends at stop or when nothing is left; another thread may post, but nobody waits for it.
 */
int hfi_virtual_new(struct hf_mono start_mono, struct hf_wall start_wall, struct hfi_scheduler **scheduler);

/* Run all that happens up to and including that time, then stand there (unless stopped). Not from callbacks. */
void hfi_virtual_advance(struct hfi_scheduler *scheduler, int64_t ms);
void hfi_virtual_run_until(struct hfi_scheduler *scheduler, struct hf_mono at);

/* Time passes and nothing runs, as when the process is stopped: posted tasks come late, and before timers. */
void hfi_virtual_stand_still(struct hfi_scheduler *scheduler, int64_t ms);

/* Wall time jumps by `delta_us`, as when somebody sets the clock; monotonic time does not notice. */
void hfi_virtual_step_wall(struct hfi_scheduler *scheduler, int64_t delta_us);

/* What epoll would say: `events` happened on `fd`. Reported once, when somebody watches `fd` for it. 0 if watched, else
 * HF_ENOENT. */
int hfi_virtual_ready(struct hfi_scheduler *scheduler, int fd, unsigned events);

#endif
