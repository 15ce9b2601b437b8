/* SPDX-License-Identifier: MIT */
#ifndef HFI_LOOP_LOOP_H
#define HFI_LOOP_LOOP_H

#include "base/scheduler.h"

/* The scheduler port on real time and libuv, with a loop of its own. 0, HF_ENOMEM or HF_EIO (no descriptors left). */
int hfi_loop_new(struct hfi_scheduler **loop);

#endif
