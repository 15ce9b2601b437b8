/* SPDX-License-Identifier: MIT */
/*
 * Which deaths a handler or forwarder hears of, and the job it makes of one. Must never take the death of a job that a
 * death made, nor change a byte of the payload. Pure; any thread.
 */
#include "jobs/forward.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "jobs/views.h"

bool hfi_forward_reserved(const char *name) {
    return name && strncmp(name, HFI_RESERVED, sizeof HFI_RESERVED - 1) == 0;
}

bool hfi_forward_is(const struct hfi_job *job) {
    return strcmp(job->source, HFI_FORWARD_SOURCE) == 0;
}

static bool fits(const char *wanted, const char *text) {
    return !wanted || strcmp(wanted, text) == 0;
}

bool hfi_forward_takes(const struct hfi_forward *forward, const struct hfi_job *job, const struct hfi_death *death) {
    enum hf_forward_of of = job->id == 0           ? HF_FORWARD_MESSAGES
                            : death->quarantined ? HF_FORWARD_QUARANTINED
                                                 : HF_FORWARD_DEAD;
    if (hfi_forward_is(job) || death->payload_cut || !(forward->of >> of & 1))
        return false;
    return fits(forward->source, job->source) && fits(forward->queue, job->queue) && fits(forward->type, job->type) &&
           (forward->death_class < 0 || forward->death_class == (int32_t)death->death_class);
}

static const char *print_message(struct hfi_forward_room *room, int64_t dead_id, const char *error_type) {
    snprintf(room->message_id, sizeof room->message_id, "%" PRId64 " %s", dead_id, error_type);
    return room->message_id;
}

void hfi_forward_job(const struct hfi_forward *forward, const struct hfi_job *dead, const struct hfi_death *death,
                     int64_t dead_id, const char *uuid, struct hf_wall now, struct hfi_forward_room *room,
                     struct hfi_job *job) {
    hfi_job_blank(job);
    job->state = HF_JOB_PENDING;
    job->priority = dead->priority;
    job->run_at_us = job->created_at_us = now.us;
    job->root_id = dead->root_id != 0 ? dead->root_id : dead->id;
    job->parent_id = dead->id;
    job->type = forward->to_type ? forward->to_type : dead->type;
    job->queue = forward->to_queue;
    job->source = HFI_FORWARD_SOURCE;
    job->source_message_id = print_message(room, dead_id, death->error_type);
    job->correlation_id = dead->correlation_id;
    job->trace_context = dead->trace_context;
    job->tags = dead->tags;
    job->content_type = dead->content_type;
    if (dead->id != 0 || dead->idempotency_key[0] != '\0') /* a message has no key but its own */
        job->idempotency_key = hfi_idempotency_key(dead, uuid, room->key);
    job->reason = "death";
    job->payload = dead->payload;
    job->payload_length = dead->payload_length;
}

int64_t hfi_forward_letter(const struct hfi_job *job) {
    return hfi_forward_is(job) ? strtoll(job->source_message_id, NULL, 10) : 0;
}

const char *hfi_forward_error_type(const struct hfi_job *job) {
    const char *blank = hfi_forward_is(job) ? strchr(job->source_message_id, ' ') : NULL;
    return blank ? blank + 1 : "";
}

const char *hfi_forward_retell(const struct hfi_job *job, int64_t dead_id, struct hfi_forward_room *room) {
    return print_message(room, dead_id, hfi_forward_error_type(job));
}

int hfi_forward_stray(struct hf_error *error, int64_t id) {
    return hfi_fail(error, HF_ESTATE, "dead letter", "import that one too, or resolve this one",
                    "%" PRId64 " tells of the death of another store's job, and that dead letter is not here", id);
}

int hfi_forwarded_already(struct hf_error *error, const char *what, int64_t id, int64_t job) {
    return hfi_fail(error, HF_ESTATE, what, "say --force to run it here as well", "%lld was forwarded, as job %lld",
                    (long long)id, (long long)job);
}
