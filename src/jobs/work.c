/* SPDX-License-Identifier: MIT */
/*
 * How an execution ends, for kinds and handlers: fills the ending, frees it. Must never make a success of an outcome that
 * is none. The thread that has the work.
 */
#include "jobs/work.h"

#include "base/alloc.h"

void hfi_ending_free(struct hfi_ending *ending) {
    hfi_free(ending->data);
    hfi_free(ending->detail);
    ending->data = NULL;
    ending->length = 0;
    ending->detail = NULL;
}

enum hf_result hfi_work_outcome(struct hf_work *work, const struct hf_outcome *outcome) {
    struct hfi_ending *ending = &work->ending;
    ending->outcome = *outcome;
    if (outcome->touched && outcome->kind == HF_OUTCOME_SUCCESS)
        return ending->result = HF_RESULT_OK;
    return ending->result = outcome->klass == HF_CLASS_PERMANENT || outcome->klass == HF_CLASS_POISON
                                ? HF_RESULT_PERMANENT
                                : HF_RESULT_FAILED;
}
