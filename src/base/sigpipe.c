/* SPDX-License-Identifier: MIT */
/* Writing to a peer that is gone must give an error, not kill the host. Must never change a disposition. Any thread. */
#include "base/sigpipe.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

void hfi_sigpipe_block(struct hfi_sigpipe *saved) {
    sigset_t pipe_signal, pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigemptyset(&pending);
    sigpending(&pending);
    saved->was_pending = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&saved->before);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &saved->before);
}

void hfi_sigpipe_restore(const struct hfi_sigpipe *saved) {
    if (!saved->was_pending) { /* else it is the host's own: it stays */
        sigset_t pipe_signal;
        const struct timespec no_wait = {0, 0};
        sigemptyset(&pipe_signal);
        sigaddset(&pipe_signal, SIGPIPE);
        while (sigtimedwait(&pipe_signal, NULL, &no_wait) < 0 && errno == EINTR)
            continue;
    }
    pthread_sigmask(SIG_SETMASK, &saved->before, NULL);
}
