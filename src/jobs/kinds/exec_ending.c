/* SPDX-License-Identifier: MIT */
/*
 * How an execution ended, from how its process did and what it left: exit code, signal, output, or the word of an isolated
 * handler. Must never take the exit of a process that was told to stop for success, nor a word of one that crashed behind
 * it. Loop thread.
 */
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>

#include "base/alloc.h"
#include "holdfast/classify.h"
#include "jobs/kinds/exec_run.h"

void hfi_run_failure(struct hf_outcome *outcome, const char *error_type, const char *message) {
    hfi_outcome_init(outcome);
    hfi_outcome_set(outcome, HF_OUTCOME_FAILURE, HF_RETRY_LATER, HF_VERDICT_NEUTRAL, HF_CLASS_TRANSIENT, error_type,
                    error_type);
    hfi_outcome_message(outcome, "%s", message);
}

static void classify(const struct hfi_run *run, struct hf_outcome *outcome) {
    hfi_outcome_init(outcome);
    if (run->lost)
        hfi_child_status_lost(outcome);
    else if (run->status.si_code != CLD_EXITED)
        hf_classify_signal(run->status.si_status, outcome);
    else if (run->told && run->status.si_status == 0)
        hfi_run_failure(outcome, "exec.stopped", "it was told to stop and exited with 0: it may not have finished");
    else
        hf_classify_exit(run->status.si_status, outcome);
}

/* Says why in one line, with the last thing it said itself. */
static void say_why(const struct hfi_run *run, struct hf_outcome *outcome) {
    char line[256];
    const struct hfi_pipe_end *end = run->err.kept.total > 0 || hfi_run_is_isolated(run) ? &run->err : &run->out;
    hfi_capture_last_line(&end->kept, line, sizeof line);
    outcome->stage = HF_STAGE_HANDLER;
    outcome->sent = HF_SENT_MAYBE;
    if (line[0] && !run->lost) {
        char said[sizeof outcome->message];
        hfi_text_copy(said, sizeof said, outcome->message[0] ? outcome->message : outcome->error_type);
        hfi_outcome_message(outcome, "%s: %s", said, line);
    }
}

/* The handler's word, if its process lived to say it. False: it is judged by how the process ended. */
static bool take_word(struct hfi_run *run) {
    struct hfi_ending *ending = &run->work->ending;
    if (!hfi_run_is_isolated(run) || run->lost || run->status.si_code != CLD_EXITED || run->status.si_status != 0 ||
        !hfi_isolated_end(&run->isolated))
        return false;
    if (ending->result != HF_RESULT_OK && !ending->detail)
        ending->detail = hfi_capture_text(&run->err.kept);
    return true;
}

/* By its exit status, where the type says what payloads are. An isolated handler has words for it. */
static bool says_unreadable(const struct hfi_run *run) {
    return run->work->type->options.payload != HF_PAYLOAD_BYTES && !hfi_run_is_isolated(run) && !run->lost && !run->told &&
           run->status.si_code == CLD_EXITED && run->status.si_status == EX_DATAERR;
}

void hfi_run_judge(struct hfi_run *run) {
    struct hf_work *work = run->work;
    struct hfi_ending *ending = &work->ending;
    struct hf_outcome outcome;
    if (take_word(run))
        return;
    classify(run, &outcome);
    if (hfi_run_is_isolated(run) && run->isolated.fault && !run->lost)
        hfi_run_failure(&outcome, "isolated.protocol", run->isolated.fault);
    else if (hfi_run_is_isolated(run) && outcome.kind == HF_OUTCOME_SUCCESS)
        hfi_run_failure(&outcome, "isolated.no_end", "its process exited with 0, and did not say how the execution ended");
    bool well = outcome.touched && outcome.kind == HF_OUTCOME_SUCCESS;
    if (well && run->out.kept.head.failed) {
        hfi_run_failure(&outcome, "local.memory", "no memory for its output");
        well = false;
    }
    if (well) {
        ending->length = run->out.kept.head.length;
        ending->data = hfi_memdup(run->out.kept.head.data, ending->length);
        if (!ending->data && ending->length > 0) {
            hfi_run_failure(&outcome, "local.memory", "no memory for its output");
            ending->length = 0;
            well = false;
        }
    }
    if (!well) {
        say_why(run, &outcome);
        bool silent = run->err.kept.total == 0 && !hfi_run_is_isolated(run);
        ending->detail = hfi_capture_text(silent ? &run->out.kept : &run->err.kept);
    }
    if (says_unreadable(run))
        hfi_work_unreadable(work, "payload.unreadable", "exec.unreadable", outcome.message);
    else
        hfi_work_outcome(work, &outcome);
}
