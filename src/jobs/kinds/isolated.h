/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_KINDS_ISOLATED_H
#define HFI_JOBS_KINDS_ISOLATED_H

#include "base/text.h"
#include "jobs/work.h"

/*
 * An execution on its way into a process of its own, what is said between both, and its end on the way back. Both ends are
 * this library, of the same version; the node believes what comes back no more than what a handler returns.
 */
struct hfi_isolated {
    struct hf_work *work;
    int fd;                /* to the process; whose watch it is closes it */
    struct hfi_bytes said; /* what came and is no whole frame yet */
    struct hfi_bytes end;  /* the body of END */
    bool greeted, ended;
    const char *fault;     /* NULL, or how it broke the protocol: nothing more is taken, and no end */
    struct hfi_isolated_wait *waiting; /* checkpoints with the store */
    unsigned waits;
};

/* What stands before the payload on its standard input. */
bool hfi_isolated_pack(const struct hf_work *work, struct hfi_bytes *head);
void hfi_isolated_begin(struct hfi_isolated *isolated, struct hf_work *work, int fd);
/* Takes what came and does what it says. False: it broke the protocol; kill it. */
bool hfi_isolated_feed(struct hfi_isolated *isolated, const char *data, size_t length);
/* Passes the stop on, as work->stop says. */
void hfi_isolated_stop(struct hfi_isolated *isolated);
/* Fills the ending with what its handler said. False: it said none. */
bool hfi_isolated_end(struct hfi_isolated *isolated);
void hfi_isolated_free(struct hfi_isolated *isolated); /* what the store still answers goes nowhere */

#endif
