/* SPDX-License-Identifier: MIT */
/* The end of a call as its owner sees it: outcome, status, headers, body. A plain value; any thread, one at a time. */
#include "resilience/call.h"

#include "base/alloc.h"
#include "base/text.h"

const struct hf_outcome *hf_response_outcome(const struct hf_response *response) {
    return &response->outcome;
}

int hf_response_status(const struct hf_response *response) {
    return response->status;
}

const void *hf_response_body(const struct hf_response *response, size_t *length) {
    *length = response->body_length;
    return response->body ? response->body : "";
}

const char *hf_response_header(const struct hf_response *response, const char *name) {
    for (size_t i = 0; i < response->header_count; i++)
        if (hfi_text_equal_nocase(response->headers[i].name, name))
            return response->headers[i].value;
    return NULL;
}

void hf_response_free(struct hf_response *response) {
    if (!response)
        return;
    hfi_free(response->answer);
    hfi_free(response);
}
