/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_COMMANDS_DEMO_STORY_H
#define HFI_PROGRAM_COMMANDS_DEMO_STORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/holdfast.h"

#include "program/commands/demo_chart.h"
#include "program/web/misbehaving.h"

#define DEMO_SAMPLES_MAX 4096

/* Everything the demo knows at its end. */
struct hfi_demo_result {
    uint64_t accepted;
    struct hf_job_counts jobs;
    struct hf_runner_counts runner;
    struct hfi_misbehaving_counts server;
    uint64_t error_lines;   /* `job.dead` at level Error */
    uint64_t trips;         /* closed -> open, as the log told */
    uint64_t peak_parked;
    bool drained;           /* every job came to an end in time */
    struct hfi_demo_sample samples[DEMO_SAMPLES_MAX];
    size_t sample_count;
};

typedef void (*hfi_demo_progress_fn)(const struct hfi_demo_sample *now, const char *act, int64_t total_ms, void *user);

/*
 * Plays the story for `seconds` on a store at `store_url`: jobs flow, the downstream hangs, dies, comes back. Blocks.
 * 0 or a negative HF_E… with details when it could not be played at all.
 */
int hfi_demo_play(const char *store_url, unsigned seconds, hfi_demo_progress_fn progress, struct hfi_demo_result *result,
              struct hf_error *error, void *user);

#endif
