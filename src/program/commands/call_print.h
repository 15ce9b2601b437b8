/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_CALL_PRINT_H
#define HFI_PROGRAM_CALL_PRINT_H

#include "holdfast/http.h"

/* What is kept of one call. Times in µs, phases from the start of the last attempt, -1 = not reached. */
struct hfi_call_record {
    int64_t started_us, took_us;
    enum hf_outcome_kind kind;
    enum hf_class class_of;
    enum hf_verdict verdict;
    int status;
    uint32_t attempts, retries;
    bool retry_refused;
    char error_type[64], message[160], rule[48];
    int64_t resolve_us, connect_us, tls_us, first_byte_us, total_us, retry_after_ms;
};
void hfi_call_record_fill(struct hfi_call_record *record, const struct hf_response *response, int64_t now_us);

/* Prints the records as a command's result, with the latencies of `seen` when there are many; the exit code. */
int hfi_call_print(const struct hfi_call_record *records, size_t count, const struct hf_downstream_view *seen);
int hfi_call_exit(const struct hfi_call_record *records, size_t count); /* 0 when all succeeded, else 1 */

#endif
