/* SPDX-License-Identifier: MIT */
#ifndef HFI_ASSEMBLY_RUNNER_STATE_H
#define HFI_ASSEMBLY_RUNNER_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "assembly/outboxes.h"
#include "assembly/watchdog.h"
#include "jobs/type_options.h"

/* What the files of the public runner share: runner.c makes, runs and stops it, reconfigure.c gives it other options. */
enum hfi_stage { HFI_STAGE_MADE, HFI_STAGE_RUNNING, HFI_STAGE_OVER };

/* Options that a running node is to have from now on. */
struct hfi_next_options {
    struct hfi_keep keep;
    struct hf_runner_options options;
    struct hfi_rulebook *book; /* one reference, until it is taken up */
};

struct hf_runner {
    struct hfi_keep keep; /* of the options */
    struct hf_runner_options options;
    struct hf_store *store;
    struct hfi_rulebook *book; /* the newest; under `changing` once it may change */
    struct hfi_scheduler *loop;
    struct hf_client *client;
    struct hfi_runner *node;
    struct hfi_outboxes *outboxes; /* NULL: none */
    struct hfi_watchdog *watchdog; /* NULL: off */
    struct hfi_watch *stop_watch;
    int stop_fd;
    _Atomic unsigned stops; /* asked for */
    unsigned stops_seen;    /* the loop's */
    struct hfi_task begin, reload;
    _Atomic bool reload_posted;
    pthread_mutex_t changing; /* one after the other */
    _Atomic(struct hfi_next_options *) change; /* for the loop to take up; NULL none */
    struct hfi_next_options *taken;            /* the last one: the node borrows from it. The loop's */
    pthread_mutex_t lock; /* of stage, result, threaded */
    pthread_cond_t over;
    enum hfi_stage stage;
    bool threaded, joined;
    pthread_t thread;
    int result;
};

/* runner.c */
const void *hfi_option_at(const void *array, uint32_t step, size_t index); /* of an array of options of any size */
int hfi_options_copy_queues(struct hfi_keep *keep, const struct hf_runner_options *given, struct hf_runner_options *options);
int hfi_options_copy_limits(struct hfi_keep *keep, const struct hf_runner_options *given, struct hf_runner_options *options);

/* reconfigure.c */
void hfi_next_free(struct hfi_next_options *change); /* NULL is fine */
void hfi_next_take(void *runner); /* the loop thread, while nothing of the node's is out; or before it runs */

#endif
