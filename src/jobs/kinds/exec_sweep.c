/* SPDX-License-Identifier: MIT */
/*
 * Kills what a stopped execution left running outside its process group: whatever forked away with a session of its own
 * still carries the execution's mark in its environment. Must never hit a process of another execution, nor search the
 * processes once for each of many that end together. Loop thread, for some milliseconds.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "jobs/kinds/exec_run.h"
#include "jobs/leftovers.h"

#define AT_ONCE 64
#define ROUNDS 8 /* somebody who forks faster than that is left to the sweep of the node's leftovers */

static void sweep(struct hfi_task *task, void *user) {
    struct hfi_exec *exec = user;
    struct hfi_run *runs = NULL;
    char marks[AT_ONCE][HFI_RUN_MARK_ROOM];
    const char *entries[AT_ONCE];
    size_t count = 0, killed = 0;
    (void)task;
    exec->sweep_posted = false;
    for (struct hfi_run *run; count < AT_ONCE && (run = exec->sweeping) != NULL; count++) {
        exec->sweeping = run->next_swept;
        run->next_swept = runs;
        runs = run;
        entries[count] = hfi_leftovers_run(marks[count], run->work->store_uuid, run->work->job->id, run->work->job->epoch);
    }
    if (exec->sweeping != NULL) { /* the others in the turn after this one */
        exec->sweep_posted = true;
        exec->scheduler->ops->post(exec->scheduler, &exec->sweep);
    }
    size_t found = 1;
    for (int round = 0; round < ROUNDS && found > 0; round++)
        killed += found = hfi_leftovers_kill_marked(entries, count);
    if (killed > 0)
        hfi_log(HF_LOG_WARNING, "job.leftovers", HFI_I("job", runs->work->job->id), HFI_S("type", runs->work->job->type),
                HFI_I("executions", count), HFI_I("killed", killed), NULL);
    for (struct hfi_run *next; runs != NULL; runs = next) {
        next = runs->next_swept;
        runs->in_sweep = false;
        runs->swept = true;
        hfi_run_swept(runs);
    }
}

void hfi_run_sweep(struct hfi_run *run) {
    struct hfi_exec *exec = run->exec;
    run->in_sweep = true;
    run->next_swept = exec->sweeping;
    exec->sweeping = run;
    if (exec->sweep_posted)
        return;
    exec->sweep_posted = true;
    exec->sweep.run = sweep;
    exec->sweep.user = exec;
    exec->scheduler->ops->post(exec->scheduler, &exec->sweep);
}
