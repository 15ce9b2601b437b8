/* SPDX-License-Identifier: MIT */
#ifndef PROGRAM_COMMANDS_DEMO_STORY_H
#define PROGRAM_COMMANDS_DEMO_STORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/holdfast.h>

#include "commands/demo_chart.h"
#include "web/misbehaving.h"

#define DEMO_SAMPLES_MAX 4096

/* Everything the demo knows at its end. */
struct demo_result {
    uint64_t accepted;
    struct hf_job_counts jobs;
    struct hf_runner_counts runner;
    struct misbehaving_counts server;
    uint64_t error_lines;   /* `job.dead` at level Error */
    uint64_t trips;         /* closed -> open, as the log told */
    uint64_t peak_parked;
    bool drained;           /* every job came to an end in time */
    struct demo_sample samples[DEMO_SAMPLES_MAX];
    size_t sample_count;
};

typedef void (*demo_progress_fn)(const struct demo_sample *now, const char *act, int64_t total_ms, void *user);

/*
 * Plays the story for `seconds` on a store at `store_url`: jobs flow, the downstream hangs, dies, comes back. Blocks.
 * 0 or a negative HF_E… with details when it could not be played at all.
 */
int demo_play(const char *store_url, unsigned seconds, demo_progress_fn progress, struct demo_result *result,
              struct hf_error *error, void *user);

#endif
