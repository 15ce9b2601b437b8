/* SPDX-License-Identifier: MIT */
/*
 * Which quarantined jobs are let in again, and the round of a node that does it after its start, and whenever it is
 * configured anew. Must never let in what would be quarantined again for the same reason: that would go round for ever. The rule: any thread; the rest: loop thread.
 */
#include "jobs/readmit.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "jobs/runner_state.h"

#define PAGE 100

bool hfi_readmits(const struct hfi_rulebook *book, const char *type_name, const char *cause, const char *schema) {
    const struct hfi_type *type = hfi_rulebook_type(book, type_name);
    if (!type || !type->options.release_quarantined)
        return false;
    return strcmp(cause, "unknown_type") == 0 || strcmp(schema, type->options.schema) != 0;
}

bool hfi_readmits_any(const struct hfi_rulebook *book) {
    for (size_t i = 0; i < hfi_rulebook_type_count(book); i++)
        if (hfi_rulebook_type_at(book, i)->options.release_quarantined)
            return true;
    return false;
}

void hfi_readmit_requeue(const struct hfi_op_readmit *op, int64_t id, const char *type, const char *cause,
                         struct hfi_readmit_room *room, struct hfi_op_requeue *requeue) {
    if (strcmp(cause, "unknown_type") == 0)
        snprintf(room->reason, sizeof room->reason, "its type is known now");
    else
        snprintf(room->reason, sizeof room->reason, "its type has schema `%.100s` now",
                 hfi_rulebook_type(op->book, type)->options.schema);
    *requeue = (struct hfi_op_requeue){.op = {.kind = HFI_OP_REQUEUE},
                                       .id = id,
                                       .actor = HFI_BY_HOLDFAST,
                                       .reason = room->reason,
                                       .now = op->now};
}

static void readmitted(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    const struct hfi_op_readmit *readmit = &runner->readmit_op;
    bool renewed = runner->readmit_book != runner->book;
    runner->out--;
    runner->readmit_out = false;
    hfi_rulebook_free(runner->readmit_book);
    runner->readmit_book = NULL;
    if (op->code != 0) { /* the next round asks again */
        hfi_log(HF_LOG_WARNING, "upkeep.failed", HFI_S("what", "readmit"), HFI_S("why", hf_strerror(op->code)), NULL);
    } else {
        runner->readmit_wanted = readmit->more;
        if (readmit->readmitted > 0) {
            HFI_COUNT(runner, readmitted, readmit->readmitted);
            hfi_log(HF_LOG_INFO, "job.readmitted", HFI_I("jobs", readmit->readmitted), NULL);
            if (runner->life == HFI_LIFE_RUNNING && !runner->lost)
                hfi_claim_stale(runner);
        }
    }
    if (renewed)
        hfi_readmit_begin(runner); /* that page was of the old types */
    if (runner->life != HFI_LIFE_RUNNING)
        hfi_drain_check(runner);
}

void hfi_readmit_begin(struct hfi_runner *runner) {
    if (!runner->readmit_out) /* else the writer has it, and it begins again when it comes back */
        runner->readmit_op.after_id = 0;
    runner->readmit_wanted = hfi_readmits_any(runner->book);
}

void hfi_readmit_round(struct hfi_runner *runner) {
    struct hfi_op_readmit *op = &runner->readmit_op;
    if (!runner->readmit_wanted || runner->readmit_out)
        return;
    op->book = runner->readmit_book = hfi_rulebook_hold(runner->book);
    op->now = hfi_runner_wall(runner);
    op->limit = PAGE;
    runner->readmit_out = true;
    hfi_runner_submit(runner, &op->op, HFI_OP_READMIT, readmitted, runner);
}

bool hfi_readmit_idle(const struct hfi_runner *runner) {
    return !runner->readmit_wanted && !runner->readmit_out;
}
