/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_FORWARD_H
#define HOLDFAST_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "job.h"
#include "store.h"

HF_BEGIN

/* What kind of death: of a job that ran, of a job that never ran, of a message that never became a job [S2.29]. */
enum hf_forward_of { HF_FORWARD_DEAD, HF_FORWARD_QUARANTINED, HF_FORWARD_MESSAGES };

struct hf_curve_options;

/*
 * A forwarder: which deaths it takes, and where a copy goes. The copy is a job: put in the transaction of the death, with
 * the payload, content type, tags, correlation id and idempotency key of the dead job; it is leased, retried and kept as
 * jobs are. The dead letter stays as it is, and shows where it went. A copy that dies is never forwarded. Several that
 * match each make a copy of their own. Texts are copied. Since 0.1.
 */
struct hf_forward_options {
    uint32_t size;
    const char *name;        /* 1…100 bytes, without control characters; not `handler` */
    const char *source;      /* of the dead jobs: an outbox's, or as enqueued. NULL: any, also those enqueued by hand */
    const char *queue, *type; /* of the dead jobs; NULL: any */
    int32_t death_class;     /* enum hf_death_class; -1: any */
    enum hf_forward_of of;   /* HF_FORWARD_DEAD */
    /* exactly one of these three */
    const char *to_queue;    /* a job in this queue */
    const char *downstream;  /* an HTTP call of it */
    const char *const *command; /* a process, the payload on stdin; HOLDFAST_DEAD_LETTER and HOLDFAST_ERROR_TYPE beside the usual */
    size_t command_length;
    const char *to_type;     /* with to_queue: NULL = the dead job's */
    const char *method;      /* with downstream: POST */
    const char *path;        /* with downstream: "" */
    bool error_header;       /* with downstream: send Holdfast-Error, the type alone, and Holdfast-Dead-Letter */
    const struct hf_curve_options *curve; /* with downstream or command: NULL = the runner's */
};
static inline void hf_forward_options_init(struct hf_forward_options *options) {
    memset(options, 0, sizeof *options);
    options->size = (uint32_t)sizeof *options;
    options->death_class = -1;
    options->method = "POST";
    options->path = "";
}
/* HF_EINVAL, HF_ETEXT, HF_ETOOBIG with a reason: what a runner would refuse about it by itself. Any thread. Since 0.1. */
HF_API int hf_forward_check(const struct hf_forward_options *options, struct hf_error *error);

/* What became of the deaths that one forwarder, or the death handlers (`handler`), took; in the whole store. */
struct hf_forward_view {
    uint32_t size;
    const char *name;
    uint64_t taken;     /* deaths it took */
    uint64_t forwarded; /* of these: their copies succeeded */
    uint64_t failed;    /* of these: their copies died, were quarantined or cancelled; one that was redriven well is both */
};
struct hf_forward_list;
HF_API int hf_forward_list_open(struct hf_store *store, struct hf_forward_list **list, struct hf_error *error); /* by name */
HF_API size_t hf_forward_list_count(const struct hf_forward_list *list);
HF_API const struct hf_forward_view *hf_forward_list_at(const struct hf_forward_list *list, size_t index);
HF_API void hf_forward_list_free(struct hf_forward_list *list);

HF_END

#endif
