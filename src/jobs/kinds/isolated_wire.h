/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_KINDS_ISOLATED_WIRE_H
#define HFI_JOBS_KINDS_ISOLATED_WIRE_H

#include <stdint.h>

#include "holdfast/version.h"
#include "jobs/work.h"

/*
 * Between a node and the process of an isolated execution: same machine, same version of the library, native numbers. The
 * process finds what it is about on its standard input, and both talk in frames over the socket that is its standard
 * output. It says HELLO first and END last; each CHECKPOINT is answered, in any order.
 */
#define HFI_ISOLATED_MAGIC "holdfast " HF_VERSION_TEXT
#define HFI_ISOLATED_PROTOCOL 2

struct hfi_isolated_job { /* then the texts, each with its NUL, the checkpoint and the payload */
    char magic[32];
    uint32_t protocol;
    uint32_t execution, max_executions;
    uint32_t repeatable, no_idempotency_key;
    uint32_t spare;
    int64_t job, deadline_us;     /* CLOCK_MONOTONIC; HFI_FOREVER_US: no limit */
    int64_t heartbeat_timeout_ms; /* 0: nobody listens for heartbeats */
    uint64_t checkpoint, payload;
};
#define HFI_ISOLATED_TEXTS 9 /* type, queue, labels, key, execution id, content type, tags, correlation id, trace context */

enum hfi_frame {
    HFI_FRAME_HELLO = 1,    /* to the node, as all but the last two: struct hfi_frame_hello */
    HFI_FRAME_PROGRESS,     /* struct hfi_frame_progress */
    HFI_FRAME_HEARTBEAT,    /* empty */
    HFI_FRAME_CHECKPOINT,   /* its number, uint64_t, and the bytes */
    HFI_FRAME_END,          /* struct hfi_frame_end, the result and the detail */
    HFI_FRAME_STORED,       /* struct hfi_frame_stored: what became of a checkpoint */
    HFI_FRAME_STOP          /* enum hf_stop, uint32_t: it should end */
};
struct hfi_frame_head { /* before each */
    uint32_t kind, length;
};
struct hfi_frame_hello {
    char magic[32];
    uint32_t protocol;
};
struct hfi_frame_progress {
    int64_t n;
    char text[HF_PROGRESS_TEXT_MAX + 1];
};
struct hfi_frame_stored {
    uint64_t number;
    int32_t code;
    uint32_t spare;
};
struct hfi_frame_end {
    uint32_t result, touched, kind, retry, verdict, klass, sent, attempts, causes;
    uint32_t calls, may_have_sent; /* of hf_work_call, in all */
    int32_t native;
    int64_t delay_ms, until_us, retry_after_ms;
    uint64_t result_length, detail_length;
    char error_type[HFI_ERROR_TYPE_MAX], cause[HFI_ERROR_TYPE_MAX], rule[48], message[HFI_MESSAGE_MAX], text[512];
};
#define HFI_FRAME_MAX (sizeof(struct hfi_frame_end) + HFI_RESULT_MAX + HFI_DETAIL_MAX) /* of a body */

#endif
