/* SPDX-License-Identifier: MIT */
#ifndef HFI_COMMANDS_RELOAD_H
#define HFI_COMMANDS_RELOAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "program/config/config.h"

/* Reloads the downstreams of a running node on SIGHUP, on a thread of its own. */
struct hfi_reload {
    struct hf_runner *runner;
    const struct hfi_config *config; /* as the node was started with */
    const char *path;                /* of --config, else the file that was found; NULL none */
    pthread_t thread;
    bool started;
    _Atomic bool over;
};
/* Before the node runs, on the main thread: SIGHUP is blocked in it and in what it starts from now on. */
void hfi_reload_start(struct hfi_reload *reload, struct hf_runner *runner, const struct hfi_config *config, const char *path);
void hfi_reload_end(struct hfi_reload *reload);

#endif
