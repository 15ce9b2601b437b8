/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_FAILURE_H
#define HFI_JOBS_FAILURE_H

#include "jobs/transition.h"

/*
 * How a failure is judged: retried on the curve, or a death, and of which class. Part of the transition; nobody else
 * calls it. Each fills history.error_…, counts what failed in change->job, and says in `failure` what follows.
 */
struct hfi_failure {
    bool dies;
    bool quarantined;
    /* dies */
    enum hf_death_class death_class;
    const char *cause;
    const char *error_type; /* NULL: the history's */
    char rule[48];          /* "": the history's */
    char prefix[96];        /* put before the message */
    /* lives */
    const char *reason;
    int64_t next_run_at_us;
};

/* Only the evidence: type, class, rule and message of what happened, from the outcome or else the event. */
void hfi_failure_note(const struct hfi_event *event, const char *type, struct hfi_change *change);
void hfi_failure_outcome(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change,
                         struct hfi_failure *failure);
void hfi_failure_lapse(const struct hfi_event *event, const struct hfi_rules *rules, struct hfi_change *change,
                       struct hfi_failure *failure);
void hfi_failure_quarantine(const struct hfi_event *event, struct hfi_change *change, struct hfi_failure *failure);
/* A rejection of a job that was due at `due_us`: has its downstream been ill for too long? */
bool hfi_failure_gives_up(const struct hfi_event *event, const struct hfi_rules *rules, int64_t due_us,
                          struct hfi_change *change, struct hfi_failure *failure);
/* Does giving a started job back end it? */
bool hfi_failure_give_back_ends(const struct hfi_event *event, const struct hfi_rules *rules,
                                struct hfi_change *change, struct hfi_failure *failure);
/* The longest wait that a retry hook may ask for: the longest of the curve, or of Retry-After. */
int64_t hfi_failure_hook_cap_ms(const struct hfi_job *job, const struct hfi_rules *rules);
/* Writes change->death and counts it. */
void hfi_failure_death(const struct hfi_failure *failure, const struct hfi_event *event, struct hfi_change *change);

/* Equal deaths have the same: of job type, downstream, class, error type and rule. */
uint64_t hfi_fingerprint(const struct hfi_job *job, const struct hfi_death *death);

#endif
