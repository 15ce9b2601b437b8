/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_SIGPIPE_H
#define HFI_BASE_SIGPIPE_H

#include <signal.h>
#include <stdbool.h>

/*
 * Keeps SIGPIPE away from the calling thread between block and restore, without touching what the host does with it in
 * other threads; one raised meanwhile is taken away. A thread of our own only blocks.
 */
struct hfi_sigpipe {
    sigset_t before;
    bool was_pending;
};
void hfi_sigpipe_block(struct hfi_sigpipe *saved);
void hfi_sigpipe_restore(const struct hfi_sigpipe *saved);

#endif
