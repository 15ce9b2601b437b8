/* SPDX-License-Identifier: MIT */
/*
 * A call made by a handler: the execution's key and what is left of its time go with it, and what the call put on the
 * wire comes back to the execution. Must never let a call of a job that is not repeatable try twice. The handler's thread.
 */
#include <string.h>

#include "base/blocking.h"
#include "base/text.h"
#include "holdfast/http.h"
#include "jobs/forward.h"
#include "jobs/store.h"
#include "jobs/work.h"

int hf_work_call(struct hf_work *work, const struct hf_request *given, struct hf_response **response,
                 struct hf_error *error) {
    struct hf_request request;
    if (!work->client && work->wire)
        return hfi_fail(error, HF_ENOENT, "hf_work_call", "make one with hf_client_new and give it to hf_isolated_client",
                        "an isolated execution has no client of its node");
    if (!work->client)
        return hfi_fail(error, HF_ENOENT, "hf_work_call", "give the runner downstreams", "this runner has no client");
    if (!given || given->size < sizeof given->size)
        return hfi_fail(error, HF_EINVAL, "request", "call hf_request_init first", "its size is not set");
    hf_request_init(&request);
    memcpy(&request, given, given->size < sizeof request ? given->size : sizeof request);
    request.size = (uint32_t)sizeof request;
    const struct hf_type_options *type = &work->type->options;
    if (!request.idempotency_key && !type->no_idempotency_key)
        request.idempotency_key = work->key;
    if (!type->repeatable)
        request.no_retry = true;
    int64_t left = hf_work_remaining_ms(work);
    if (left != INT64_MAX && (request.total_timeout_ms == 0 || left < request.total_timeout_ms))
        request.total_timeout_ms = left > 0 ? left : 1; /* 0 would be the policy's own */
    int code = hf_call(work->client, &request, response, error);
    if (code != 0)
        return code;
    const struct hf_outcome *outcome = hf_response_outcome(*response);
    atomic_fetch_add(&work->attempts, outcome->attempts);
    if (outcome->sent != HF_SENT_NO)
        atomic_store(&work->may_have_sent, true);
    return 0;
}

enum hf_result hf_work_forward(struct hf_work *work, const struct hf_request *request) {
    struct hf_response *response = NULL;
    struct hf_error error;
    char why[sizeof error.what + sizeof error.why + 4];
    hf_error_init(&error);
    if (hf_work_call(work, request, &response, &error) != 0) {
        hf_error_print(&error, why, sizeof why);
        return hf_work_failed(work, "call.not_started", why);
    }
    enum hf_result result = hf_work_end_as(work, hf_response_outcome(response));
    hf_response_free(response);
    return result;
}

int hf_work_death(const struct hf_work *work, struct hf_dead **dead, struct hf_error *error) {
    int64_t letter = hfi_forward_letter(work->job);
    *dead = NULL;
    if (!hfi_may_block())
        return hfi_fail(error, HF_EDEADLK, "hf_work_death", "call it on another thread", "this thread must not block");
    if (letter == 0 || !work->store)
        return hfi_fail(error, HF_ENOENT, "hf_work_death", NULL, "job %lld tells of no death", (long long)work->job->id);
    return work->store->ops->get_dead(work->store, letter, dead, error);
}
