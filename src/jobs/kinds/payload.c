/* SPDX-License-Identifier: MIT */
/*
 * Payloads against what their type says they are, before anything of it runs. Must never change one, nor show it. Loop
 * thread.
 */
#include <jansson.h>

#include "base/text.h"
#include "jobs/work.h"

/* False only when that is sure: without memory to tell, whoever reads it says so itself. */
static bool is_json(const char *payload, size_t length) {
    json_error_t fault;
    json_t *value = json_loadb(payload, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &fault);
    bool read = value || json_error_code(&fault) == json_error_out_of_memory;
    json_decref(value);
    return read;
}

bool hfi_payload_reads(struct hf_work *work) {
    const struct hfi_job *job = work->job;
    const char *payload = job->payload_length > 0 ? job->payload : "";
    enum hf_payload wanted = work->type->options.payload;
    if (wanted == HF_PAYLOAD_JSON && !is_json(payload, job->payload_length)) {
        hfi_work_unreadable(work, "payload.json", "job.payload", "the payload is no JSON with each name once");
        return false;
    }
    if (wanted == HF_PAYLOAD_TEXT && !hfi_text_valid(payload, job->payload_length)) {
        hfi_work_unreadable(work, "payload.text", "job.payload", "the payload is no UTF-8 text");
        return false;
    }
    return true;
}
