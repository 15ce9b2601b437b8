/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_FORWARD_H
#define HFI_JOBS_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/forward.h"
#include "jobs/record.h"

/*
 * What a death sets off besides its alerts: death handlers and forwarders. Each is a job of its own, put into the store
 * in the very transaction of the death, so leases, retries, limits and histories are those of jobs. Such a job is known
 * by its source; it never sets off another one, whatever becomes of it, so nothing goes in circles. Its own death is a
 * death as any: a row, an Error line, alerts.
 */
#define HFI_RESERVED "holdfast."                   /* names that begin so are ours */
#define HFI_FORWARD_SOURCE "holdfast.dead"         /* source of these jobs */
#define HFI_FORWARD_QUEUE "holdfast.deaths"        /* where they wait, unless they go to another queue */
#define HFI_FORWARD_TYPE "holdfast.forward."       /* and the name of the forwarder: to a downstream or a command */
#define HFI_DEATH_TYPE "holdfast.death."           /* and the job type: its handler */
#define HFI_DEATH_HANDLER "handler"                /* how a handler's row is called */
#define HFI_FORWARD_NAME_MAX 100

struct hfi_forward {
    const char *name;
    const char *source, *queue, *type; /* NULL any */
    int32_t death_class;               /* -1 any */
    uint32_t of;                       /* bits of 1 << enum hf_forward_of */
    const char *to_queue;
    const char *to_type; /* NULL: the dead job's own */
    bool handler;
};
struct hfi_forwards {
    const struct hfi_forward *items;
    size_t count;
};

bool hfi_forward_reserved(const char *name);
/* Was the job made by a death? */
bool hfi_forward_is(const struct hfi_job *job);
/* Does it want this death? Never that of a job made by a death, nor a message of which only a part is left. */
bool hfi_forward_takes(const struct hfi_forward *forward, const struct hfi_job *job, const struct hfi_death *death);

/* The job it makes; borrows the dead job's texts and bytes, and the room's. Id, lane and policy are the store's. */
struct hfi_forward_room {
    char message_id[24 + sizeof((struct hfi_death *)0)->error_type], key[HFI_KEY_MAX + 1];
};
void hfi_forward_job(const struct hfi_forward *forward, const struct hfi_job *dead, const struct hfi_death *death,
                     int64_t dead_id, const char *uuid, struct hf_wall now, struct hfi_forward_room *room,
                     struct hfi_job *job);

/* The same job, but it tells of this letter: the message id for it, into the room; returns it. */
const char *hfi_forward_retell(const struct hfi_job *job, int64_t dead_id, struct hfi_forward_room *room);
/* Of a job made by a death: the dead letter it tells of, 0 for others; and the type of the error, "" if there was none. */
int64_t hfi_forward_letter(const struct hfi_job *job);
const char *hfi_forward_error_type(const struct hfi_job *job);

/* HF_ESTATE: whoever does it here as well does it twice, unless he means to [S2.32]. */
int hfi_forwarded_already(struct hf_error *error, const char *what, int64_t id, int64_t job);
/* HF_ESTATE: that imported letter's job tells of one that is not here. */
int hfi_forward_stray(struct hf_error *error, int64_t id);

#endif
