/* SPDX-License-Identifier: MIT */
/* Which threads must not block: a mark per thread, for HF_EDEADLK instead of a hang. */
/* Remembers for each thread whether it may block. Any thread, each about itself. */
#include "base/blocking.h"

static _Thread_local bool must_not_block;

void hfi_thread_must_not_block(bool must_not) {
    must_not_block = must_not;
}

bool hfi_may_block(void) {
    return !must_not_block;
}
