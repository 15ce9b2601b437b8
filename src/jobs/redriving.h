/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_REDRIVING_H
#define HFI_JOBS_REDRIVING_H

#include "base/clock.h"
#include "holdfast/dead.h"
#include "jobs/record.h"

/*
 * Redrive tasks: the record, and the rules by which one goes on, waits and ends, the same for every store. A step of a
 * task is one transaction in which letters are redriven and the record moves on, so it needs no lease: a crash leaves
 * either both or nothing, and two that step at once come one after the other. Pure.
 */
#define HFI_REDRIVE_STEP 100    /* letters redriven in one step at most */
#define HFI_REDRIVE_LOOK 2000   /* letters looked at */
#define HFI_REDRIVE_JUDGED 10   /* ended jobs before a share means something */
#define HFI_REDRIVE_NOTE_MAX 300
#define HFI_REDRIVE_WAIT_MS 1000 /* for a canary's ends */
#define HFI_REDRIVE_FULL_MS 5000 /* for space on the disk */

struct hfi_redrive_task {
    int64_t id;
    int32_t state; /* enum hf_redrive_state */
    int32_t death_class;
    int64_t since_us, after_id, upper_id;
    uint64_t total, redriven, refused, succeeded, failed, cancelled;
    uint32_t canary;
    int32_t stop_permille; /* -1 none */
    double rate_per_s;
    int64_t full_at_us; /* of the rate's bucket */
    int64_t next_at_us, created_at_us, ended_at_us;
    bool new_key, force;
    char actor[HFI_NAME_MAX + 1], reason[1001], note[HFI_REDRIVE_NOTE_MAX + 1];
    char type[HFI_TYPE_MAX + 1], queue[HFI_NAME_MAX + 1], error_type[64], fingerprint[17];
};

/* 0 or HF_EINVAL, HF_ETEXT, HF_ETOOBIG; actor and reason are checked before. */
int hfi_redrive_begin(struct hfi_redrive_task *task, const struct hf_redrive_options *options, const char *actor,
                      const char *reason, struct hf_error *error);
void hfi_redrive_filter(const struct hfi_redrive_task *task, struct hf_dead_filter *filter); /* its texts are the task's */
/* What each of its letters is redriven with; its texts are the task's. */
void hfi_redrive_action(const struct hfi_redrive_task *task, struct hf_dead_action *action);

/* How many letters may be redriven now, at most HFI_REDRIVE_STEP. 0: it has ended with this call, or waits until next_at_us. */
uint32_t hfi_redrive_allowed(struct hfi_redrive_task *task, struct hf_wall now);
/* One more letter: redriven (code 0), or refused with a code of REDRIVE; `other` is its new_job. */
void hfi_redrive_one(struct hfi_redrive_task *task, int64_t dead_id, int code, int64_t other);
/* The step is over: so many were redriven; `finished`: no letter is left to look at. */
void hfi_redrive_moved(struct hfi_redrive_task *task, struct hf_wall now, uint32_t redriven, bool finished);
/* A job that it made ended so. */
void hfi_redrive_job_ended(struct hfi_redrive_task *task, int job_state);
/* HF_ESTATE: it has ended. */
int hfi_redrive_cancelled(struct hfi_redrive_task *task, struct hf_wall now, const char *actor, const char *reason);

bool hfi_redrive_waits(const struct hfi_redrive_task *task); /* for its canary */
void hfi_redrive_view_fill(struct hf_redrive_view *view, const struct hfi_redrive_task *task); /* its texts are the task's */

#endif
