/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_KINDS_ISOLATED_CHILD_H
#define HFI_JOBS_KINDS_ISOLATED_CHILD_H

#include <pthread.h>

#include "base/text.h"
#include "jobs/work.h"

/* An isolated execution in its own process, as the files of that process share it. */
struct hfi_child_wait { /* a checkpoint the node has not answered */
    uint64_t number;
    hf_checkpoint_fn done;
    void *user;
    struct hfi_child_wait *next;
};

struct hfi_child_execution {
    struct hf_work work;
    struct hfi_job job;
    struct hfi_type type;
    struct hfi_scheduler clock; /* of the listener: mono, post, on_thread */
    struct hfi_desk desk;
    struct hfi_bytes input;
    int node;  /* the socket */
    int wake;  /* the listener: a task waits, or it is over */
    pthread_t listener;
    bool listening;
    pthread_mutex_t lock; /* of all below, and of writes to the node */
    bool gone;            /* the node, or the end was said: nobody listens any more */
    bool over;            /* the listener should end */
    struct hfi_task *first, **last;
    struct hfi_child_wait *waiting;
    uint64_t number;
    int64_t beat_spacing_us;
    _Atomic int64_t beat_us; /* of the last one that was sent */
};

/* Begins to talk: HELLO is said, and a thread listens. 0 or one of sysexits. */
int hfi_child_talk(struct hfi_child_execution *execution);
bool hfi_child_say_end(struct hfi_child_execution *execution); /* nothing can be said after it */
void hfi_child_hang_up(struct hfi_child_execution *execution);
/* Is the work one of this process? */
bool hfi_child_is(const struct hf_work *work);

#endif
