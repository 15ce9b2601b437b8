/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_TASK_QUEUE_H
#define HFI_BASE_TASK_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/scheduler.h"

/*
 * The posted tasks of one scheduler, first in, first out. `wake` runs under the queue's lock, so that it cannot meet
 * a scheduler that is being closed; it must only ring a bell.
 */
struct hfi_task_queue {
    pthread_mutex_t lock;
    struct hfi_task *first, *last;
    bool closed;
    void (*wake)(void *user); /* NULL: nobody sleeps */
    void *user;
};
int hfi_task_queue_init(struct hfi_task_queue *queue, void (*wake)(void *user), void *user); /* 0 or HF_ENOMEM */
void hfi_task_queue_put(struct hfi_task_queue *queue, struct hfi_task *task); /* any thread; dropped once closed */
/* Sets `flag` and rings, in one step under the lock: after it the caller touches nothing of the scheduler. Any thread.
 */
void hfi_task_queue_flag(struct hfi_task_queue *queue, atomic_bool *flag);
/* Runs what was queued before the call; what these tasks put waits for the next call. Returns how many ran. */
size_t hfi_task_queue_run(struct hfi_task_queue *queue);
void hfi_task_queue_close(struct hfi_task_queue *queue); /* drops what waits; from here on no wake */
void hfi_task_queue_free(struct hfi_task_queue *queue);  /* closed, and nobody is inside put or flag any more */

#endif
