/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_NOTIFY_H
#define HFI_PROGRAM_NOTIFY_H

#include <pthread.h>
#include <stdbool.h>

#include "holdfast/runner.h"

/* Tells the supervisor that started us ($NOTIFY_SOCKET, as sd_notify does): "READY=1". Nobody listens: nothing happens. Any thread. */
void hfi_notify(const char *text);

/* Sends WATCHDOG=1 as often as $WATCHDOG_USEC asks for, while the runner is healthy; on a thread of its own. */
struct hfi_pacemaker {
    const struct hf_runner *runner;
    int period_ms, stop_fd;
    bool started;
    pthread_t thread;
};
void hfi_pacemaker_start(struct hfi_pacemaker *pacemaker, const struct hf_runner *runner); /* nothing asked for: nothing */
void hfi_pacemaker_end(struct hfi_pacemaker *pacemaker);

#endif
