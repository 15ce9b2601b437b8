/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_KINDS_ISOLATED_WIRE_H
#define HFI_JOBS_KINDS_ISOLATED_WIRE_H

#include <stdint.h>

#include "holdfast/version.h"
#include "jobs/work.h"

/* Between a node and the process of an isolated execution: same machine, same version of the library, native numbers. */
#define HFI_ISOLATED_MAGIC "holdfast " HF_VERSION_TEXT

struct hfi_isolated_job { /* then the texts, each with its NUL, the checkpoint and the payload */
    char magic[32];
    int64_t job, left_ms; /* left_ms INT64_MAX: no limit */
    uint32_t execution, max_executions;
    uint64_t checkpoint, payload;
};
#define HFI_ISOLATED_TEXTS 9 /* type, queue, labels, key, execution id, content type, tags, correlation id, trace context */

enum { HFI_ISOLATED_PROGRESS = 1, HFI_ISOLATED_END = 2 };
struct hfi_isolated_record { /* before each */
    uint32_t kind, length;
};
struct hfi_isolated_progress {
    int64_t n;
    char text[HF_PROGRESS_TEXT_MAX + 1];
};
struct hfi_isolated_end { /* then the result and the detail */
    char magic[32];
    uint32_t result, touched, kind, retry, verdict, klass, sent, attempts, causes;
    int32_t native;
    int64_t delay_ms, until_us, retry_after_ms;
    uint64_t result_length, detail_length;
    char error_type[HFI_ERROR_TYPE_MAX], cause[HFI_ERROR_TYPE_MAX], rule[48], message[HFI_MESSAGE_MAX], text[512];
};

#endif
