/* SPDX-License-Identifier: MIT */
/*
 * A page of quarantined jobs in the memory store: those that can be run now are requeued. Under the store's lock.
 */
#include "jobs/readmit.h"

#include "sim/memory_state.h"

static void look(struct hfi_memory *store, struct hfi_op_readmit *op, const struct hfi_memory_job *row) {
    const struct hfi_memory_dead *dead = hfi_memory_last_death(store, row->job);
    struct hfi_readmit_room room;
    struct hfi_op_requeue one;
    if (!dead || dead->status != HF_DEAD_DEAD || !hfi_readmits(op->book, row->job->type, dead->death.cause, dead->death.schema))
        return;
    hfi_readmit_requeue(op, row->job->id, row->job->type, dead->death.cause, &room, &one);
    op->readmitted += hfi_memory_requeue(store, &one) == 0;
}

int hfi_memory_readmit(struct hfi_memory *store, struct hfi_op_readmit *op) {
    uint32_t looked = 0;
    int64_t last = 0;
    op->readmitted = 0;
    for (size_t i = 0; i < store->jobs.count && looked < op->limit; i++) {
        const struct hfi_memory_job *row = store->jobs.items[i];
        if (row->job->id <= op->after_id || row->job->state != HF_JOB_QUARANTINED)
            continue;
        last = row->job->id;
        looked++;
        look(store, op, row);
    }
    op->more = looked == op->limit;
    op->after_id = op->more ? last : 0;
    return 0;
}
