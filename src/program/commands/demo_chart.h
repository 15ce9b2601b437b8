/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_COMMANDS_DEMO_CHART_H
#define HFI_PROGRAM_COMMANDS_DEMO_CHART_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/guard.h"

/* What the demo saw at one moment; counters since the start. */
struct hfi_demo_sample {
    int64_t at_ms;
    uint64_t ok, failed, unanswered, gone; /* requests by how the server treated them */
    uint64_t parked, pending, running;
    enum hf_breaker_state breaker;
};

/* Draws calls per second by outcome, parked jobs and the breaker's state over time. 0 or -1 with errno. */
int hfi_demo_chart_write(const char *path, const struct hfi_demo_sample *samples, size_t count);

#endif
