/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_BLOCKING_H
#define HFI_BASE_BLOCKING_H

#include <stdbool.h>

/* Threads that must not block (loops, the writer) say so; hfi_may_block() is then false on them. */
/* Threads that turn a loop or commit for others call this at their start with true; hfi_may_block() is then false on
   them, and blocking functions answer HF_EDEADLK. */
void hfi_thread_must_not_block(bool must_not);
bool hfi_may_block(void);

#endif
