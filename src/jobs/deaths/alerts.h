/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_DEATHS_ALERTS_H
#define HFI_JOBS_DEATHS_ALERTS_H

#include "base/scheduler.h"
#include "jobs/deaths/sink.h"
#include "jobs/writer.h"

/*
 * Sends the alert rows that deaths left in the store. Each sink has its own pump: it takes due rows for a while
 * (owner, epoch), sends them, and writes back `sent` or when to try again. So one that hangs or fails keeps no other
 * from sending [S0.26], and a crash between death and alert loses nothing. Failures are Warnings and never make alerts;
 * an alert that could not be delivered for 7 days is one Error line. Loop thread.
 */
struct hfi_alerts;

struct hfi_alerts_done { /* tries that ended */
    uint64_t sent, failed;
    uint64_t summaries, digests; /* of those sent */
    uint64_t undelivered;        /* of those that failed: the last one */
};
struct hfi_alerts_options {
    struct hfi_scheduler *scheduler;
    struct hfi_writer *writer;
    struct hfi_sink **sinks; /* become the sender's */
    size_t sink_count;
    void (*changed)(const struct hfi_alerts_done *more, void *user); /* also when it became idle: nothing */
    void *user;
};
int hfi_alerts_new(const struct hfi_alerts_options *options, struct hfi_alerts **alerts);
void hfi_alerts_begin(struct hfi_alerts *alerts, int64_t node); /* again with a new id after a new join */
void hfi_alerts_wake(struct hfi_alerts *alerts); /* somebody died */
/* Nothing due and nothing on its way, as far as the last look tells. */
bool hfi_alerts_idle(const struct hfi_alerts *alerts);
/* No new ones; what is on its way is finished, or with `hurry` cancelled. `changed` tells when it is over. */
void hfi_alerts_stop(struct hfi_alerts *alerts, bool hurry);
bool hfi_alerts_stopped(const struct hfi_alerts *alerts);
void hfi_alerts_free(struct hfi_alerts *alerts); /* stopped, or never begun; NULL is fine */

#endif
