/* SPDX-License-Identifier: MIT */
/*
 * Gives the store what the attempts of this node took: once a minute, and when a drain is over; one downstream after the
 * other, so that the writer has a small operation at a time. Must never lose what the store did not take, nor hold a drain
 * up for it a second time. Loop thread.
 */
#include "base/alloc.h"
#include "base/log.h"
#include "jobs/runner/runner_state.h"

#define EVERY_US INT64_C(60000000)

static void next(struct hfi_runner *runner);

static void stored(struct hfi_op *op, void *user) {
    struct hfi_runner *runner = user;
    runner->out--;
    runner->measure_out = false;
    if (op->code != 0) { /* kept for the next minute */
        hfi_recorder_put_back(hfi_downstream_recorder(runner->measure_of), runner->measured.bytes, runner->measured.length);
        hfi_log(HF_LOG_WARNING, "upkeep.failed", HFI_S("what", "measure"), HFI_S("why", hf_strerror(op->code)), NULL);
        runner->measure_site = SIZE_MAX;
    }
    hfi_packed_end(&runner->measured);
    hf_downstream_unref(runner->measure_of);
    next(runner);
    if (runner->life != HFI_LIFE_RUNNING)
        hfi_drain_check(runner);
}

/* Something to tell of this one? Taken then. */
static bool take(struct hfi_runner *runner, const struct hfi_site *site) {
    struct hfi_recorder *recorder = hfi_downstream_recorder(site->downstream);
    if (recorder == NULL)
        return false;
    hfi_recorder_take(recorder, &runner->measured);
    if (!hfi_packed_empty(&runner->measured)) {
        runner->measure_of = hf_downstream_ref(site->downstream); /* a reload may take it from the site */
        return true;
    }
    hfi_packed_end(&runner->measured);
    return false;
}

static void next(struct hfi_runner *runner) {
    struct hfi_op_measure *op = &runner->measure_op;
    while (runner->measure_site < runner->site_count) {
        const struct hfi_site *site = runner->sites[runner->measure_site++];
        if (!take(runner, site))
            continue;
        op->key = hf_downstream_name(site->downstream);
        op->now = hfi_runner_wall(runner);
        op->bytes = runner->measured.bytes;
        op->length = runner->measured.length;
        runner->measure_out = true;
        hfi_runner_submit(runner, &op->op, HFI_OP_MEASURE, stored, runner);
        return;
    }
}

static void begin(struct hfi_runner *runner) {
    runner->measured_at = hfi_runner_mono(runner);
    runner->measure_site = 0;
    next(runner);
}

void hfi_measurer_round(struct hfi_runner *runner) {
    if (runner->measured_at.us == 0)
        runner->measured_at = hfi_runner_mono(runner);
    if (!runner->measure_out && hfi_sub(hfi_runner_mono(runner).us, runner->measured_at.us) >= EVERY_US)
        begin(runner);
}

void hfi_measurer_last(struct hfi_runner *runner) {
    if (runner->measure_out || runner->measure_ended)
        return;
    runner->measure_ended = true;
    begin(runner);
}
