/* SPDX-License-Identifier: MIT */
/*
 * Limits by key and aging, as arithmetic. Must never allow a start early: all is rounded up. Pure; any thread.
 */
#include "jobs/limit.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "jobs/record.h"
#include "resilience/rate.h"

#define MICROS 1000000

int hf_limit_check(const struct hf_limit_options *options, struct hf_error *error) {
    if (options == NULL || options->size < sizeof options->size)
        return hfi_fail(error, HF_EINVAL, "limit", "call hf_limit_options_init first", "its size is not set");
    struct hf_limit_options given;
    hf_limit_options_init(&given);
    memcpy(&given, options, options->size < sizeof given ? options->size : sizeof given);
    options = &given;
    double rate = given.rate_per_s;
    int code = hfi_name_check("limit", options->name, HFI_NAME_MAX, error);
    if (code != 0)
        return code;
    if (strchr(options->name, ':') != NULL)
        return hfi_fail(error, HF_EINVAL, options->name, "choose another name", "a colon ends the name of a limit");
    if (options->concurrency == 0 && !(rate > 0))
        return hfi_fail(error, HF_EINVAL, options->name, "give concurrency, a rate, or both", "it limits nothing");
    if (!isfinite(rate) || rate < 0 || rate > HFI_LIMIT_RATE_MAX ||
        (rate > 0 && rate < 1.0 / HFI_LIMIT_INTERVAL_MAX_S))
        return hfi_fail(error, HF_EINVAL, options->name, NULL, "a rate of %g/s: from one in 30 days up to %d/s", rate,
                        HFI_LIMIT_RATE_MAX);
    if (options->rate_burst > 0 && rate == 0)
        return hfi_fail(error, HF_EINVAL, options->name, "add a rate, or leave it out", "a burst without a rate");
    if (options->rate_burst > 0 && options->rate_burst / rate > HFI_RATE_FILL_MAX_S)
        return hfi_fail(error, HF_EINVAL, options->name, "lower the burst", "a burst of %u takes more than a year to come back",
                        options->rate_burst);
    return 0;
}

const struct hf_limit_options *hfi_limits_at(const struct hf_runner_options *options, size_t index) {
    const char *first = (const char *)options->limits;
    return (const struct hf_limit_options *)(const void *)(first + index * options->limits->size);
}

int hfi_limits_check(const struct hf_runner_options *options, struct hf_error *error) {
    for (size_t i = 0; i < options->limit_count; i++) {
        if (options->limits->size < sizeof(uint32_t))
            return hfi_fail(error, HF_EINVAL, "limit", "call hf_limit_options_init first", "its size is not set");
        const char *name = hfi_limits_at(options, i)->name;
        int code = hf_limit_check(hfi_limits_at(options, i), error);
        for (size_t j = 0; j < i && code == 0; j++)
            if (strcmp(hfi_limits_at(options, j)->name, name) == 0)
                code = hfi_fail(error, HF_EEXIST, "limit", "give each its own name", "`%s` is there twice", name);
        if (code != 0)
            return code;
    }
    return 0;
}

void hfi_limit_from(const struct hf_limit_options *options, struct hfi_limit *limit) {
    memset(limit, 0, sizeof *limit);
    limit->concurrency = options->concurrency;
    if (options->rate_per_s > 0) {
        limit->interval_us = (int64_t)ceil(MICROS / options->rate_per_s);
        limit->burst = options->rate_burst > 0 ? options->rate_burst : hfi_rate_burst(options->rate_per_s);
    }
}

/* How far ahead of now the bucket will be full. */
static int64_t ahead_of(const struct hfi_limit *limit, int64_t full_at_us, int64_t now_us) {
    int64_t ahead = hfi_sub(full_at_us, now_us), empty = limit->interval_us * limit->burst;
    return ahead < 0 ? 0 : ahead < empty ? ahead : empty;
}

uint32_t hfi_limit_tokens(const struct hfi_limit *limit, int64_t full_at_us, int64_t now_us, int64_t *ready_at_us) {
    int64_t slack = limit->interval_us * (limit->burst - 1);
    if (ready_at_us != NULL)
        *ready_at_us = now_us;
    if (limit->interval_us == 0)
        return UINT32_MAX;
    int64_t ahead = ahead_of(limit, full_at_us, now_us);
    if (ahead <= slack)
        return (uint32_t)((slack - ahead) / limit->interval_us + 1);
    if (ready_at_us != NULL)
        *ready_at_us = hfi_add(now_us, ahead - slack);
    return 0;
}

int64_t hfi_limit_take(const struct hfi_limit *limit, int64_t full_at_us, int64_t now_us, uint32_t count) {
    return hfi_add(now_us, ahead_of(limit, full_at_us, now_us) + limit->interval_us * count);
}

/* ------------------------------------------------------------------ aging */

int64_t hfi_aged_priority(int priority, int64_t run_at_us, int64_t now_us, int64_t aging_us) {
    int64_t waited = hfi_sub(now_us, run_at_us);
    return aging_us <= 0 || waited < 0 ? priority : priority + waited / aging_us;
}
