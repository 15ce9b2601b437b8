/* SPDX-License-Identifier: MIT */
/* The way from other threads to a scheduler's thread. Must never run a task under its lock. */
#include "base/task_queue.h"

#include "holdfast/error.h"

int hfi_task_queue_init(struct hfi_task_queue *queue, void (*wake)(void *user), void *user) {
    *queue = (struct hfi_task_queue){.wake = wake, .user = user};
    return pthread_mutex_init(&queue->lock, NULL) == 0 ? 0 : HF_ENOMEM;
}

static void ring(struct hfi_task_queue *queue) {
    if (queue->wake && !queue->closed)
        queue->wake(queue->user);
}

void hfi_task_queue_put(struct hfi_task_queue *queue, struct hfi_task *task) {
    task->next = NULL;
    pthread_mutex_lock(&queue->lock);
    if (!queue->closed) {
        bool silent = queue->first != NULL; /* the bell was rung for the one before and is not answered yet */
        if (queue->first)
            queue->last->next = task;
        else
            queue->first = task;
        queue->last = task;
        if (!silent)
            ring(queue);
    }
    pthread_mutex_unlock(&queue->lock);
}

void hfi_task_queue_flag(struct hfi_task_queue *queue, atomic_bool *flag) {
    pthread_mutex_lock(&queue->lock);
    atomic_store(flag, true);
    ring(queue);
    pthread_mutex_unlock(&queue->lock);
}

size_t hfi_task_queue_run(struct hfi_task_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    struct hfi_task *task = queue->first;
    queue->first = NULL;
    queue->last = NULL;
    pthread_mutex_unlock(&queue->lock);
    size_t count = 0;
    while (task) {
        struct hfi_task *next = task->next; /* the task may free or post itself again */
        task->run(task, task->user);
        task = next;
        count++;
    }
    return count;
}

void hfi_task_queue_close(struct hfi_task_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    queue->first = NULL;
    queue->last = NULL;
    pthread_mutex_unlock(&queue->lock);
}

void hfi_task_queue_free(struct hfi_task_queue *queue) {
    pthread_mutex_destroy(&queue->lock);
}
