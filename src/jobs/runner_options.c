/* SPDX-License-Identifier: MIT */
/*
 * The defaults of a runner. Must never write past the size the caller's struct has: an older one is shorter. Any thread.
 */
#include <string.h>
#include <unistd.h>

#include "holdfast/runner.h"

#define SECOND INT64_C(1000)
#define DAY (86400 * SECOND)

static uint32_t default_workers(void) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    return cpus > 4 && cpus < 10000 ? 2 * (uint32_t)cpus : 8; /* [S3.8] */
}

void hf_runner_options_init_sized(struct hf_runner_options *options, uint32_t size) {
    struct hf_runner_options defaults = {
        .size = size,
        .workers = default_workers(),
        .drain_timeout_ms = 25 * SECOND, /* [S3.4] */
        .lease_ms = 60 * SECOND,         /* [S1.10] */
        .heartbeat_ms = 15 * SECOND,
        .poll_ms = 250, /* [S1.23] */
        .execution_timeout_ms = 120 * SECOND,
        .abandon_after_ms = 300 * SECOND,
        .max_give_backs = 20,
        .max_crashes = 3,
        .max_calls_per_job = 100,
        .unknown_type_grace_ms = 600 * SECOND,
        .keep_succeeded_ms = 7 * DAY,
        .keep_cancelled_ms = 7 * DAY,
        .keep_dead_ms = 30 * DAY,
        .keep_quarantined_ms = 30 * DAY,
        .keep_dead_letters_ms = 90 * DAY,
        .keep_inbox_ms = 30 * DAY,
        .keep_audit_ms = 365 * DAY,
        .watchdog_ms = 60 * SECOND, /* [S4.7] */
        .watchdog_grace_ms = 300 * SECOND,
    };
    memset(options, 0, size);
    memcpy(options, &defaults, size < sizeof defaults ? size : sizeof defaults);
}
