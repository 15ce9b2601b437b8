/* SPDX-License-Identifier: MIT */
/*
 * The round of a node that lets quarantined jobs in again, after its start and whenever it is configured anew. Which ones
 * is not decided here (jobs/readmit.c). Loop thread.
 */
#include "base/log.h"
#include "jobs/readmit.h"
#include "jobs/runner/runner_state.h"

#define PAGE 100

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
