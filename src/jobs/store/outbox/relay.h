/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_OUTBOX_RELAY_H
#define HFI_JOBS_OUTBOX_RELAY_H

#include "holdfast/outbox.h"
#include "jobs/rulebook.h"
#include "jobs/writer.h"

/*
 * Turns the rows of one outbox into jobs, on a thread of its own: reads a batch in order, puts it, commits, deletes it
 * [S2.33]. Whatever dies in between is done again and makes nothing new: (source, message id) is remembered [S4.11].
 * Rows that can never be a job become dead letters of class poison [S0.21]. While the store or the file refuse, it
 * tries again for ever. Several relays, in several processes, may work on one file.
 */
struct hfi_relay;

/* Where it is in its work, for tests that kill it there. */
enum hfi_relay_step {
    HFI_RELAY_READ,     /* a batch is read */
    HFI_RELAY_PUT,      /* its jobs are committed */
    HFI_RELAY_BURIED,   /* its dead letters too */
    HFI_RELAY_DELETED   /* its rows are gone */
};
struct hfi_relay_options {
    const struct hf_outbox_options *outbox; /* copied */
    struct hfi_writer *writer;
    struct hfi_rulebook *book;       /* complete; a reference is taken; NULL: no types, no sinks */
    uint32_t payload_max;
    void (*changed)(void *user);     /* its thread: somebody died, or it became idle; NULL */
    void (*at)(enum hfi_relay_step step, void *user); /* its thread; NULL */
    void *user;
};
int hfi_relay_new(const struct hfi_relay_options *options, struct hfi_relay **relay, struct hf_error *error);
void hfi_relay_renew(struct hfi_relay *relay, struct hfi_rulebook *book); /* from the next batch on; any thread */
int hfi_relay_start(struct hfi_relay *relay); /* HF_ENOMEM: no thread, it may be tried again; started: a no-op */
void hfi_relay_stop(struct hfi_relay *relay); /* after the batch at hand; does not wait */
void hfi_relay_join(struct hfi_relay *relay); /* stops and waits; what it counted stays */
void hfi_relay_free(struct hfi_relay *relay); /* stops, joins; NULL is fine */

struct hfi_relay_view {
    uint64_t relayed, poisoned; /* rows that became jobs or were known already, and that became dead letters */
    int64_t oldest_us;          /* of the first row that waits; 0 none */
    bool busy;                  /* there are rows, or it has not looked yet; false without a thread */
};
const struct hfi_pulse *hfi_relay_pulse(const struct hfi_relay *relay, const char **name); /* for a watchdog */
void hfi_relay_look(const struct hfi_relay *relay, struct hfi_relay_view *view); /* any thread */

#endif
