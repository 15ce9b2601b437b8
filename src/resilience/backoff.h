/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_BACKOFF_H
#define HFI_RESILIENCE_BACKOFF_H

#include <stdint.h>

#include "holdfast/policy.h"

/* Waits between short retries. Saturating; clamped last: the result is in [0, cap] for any try (R1, R2, R4). */
struct hfi_backoff_rules {
    enum hf_backoff backoff;
    enum hf_jitter jitter;
    uint32_t factor_permille, jitter_permille;
    int64_t base_ms, cap_ms;
    uint32_t table_length;
    int64_t table_ms[HF_BACKOFF_TABLE_MAX];
};
/* `retry` counts from 0; `last_ms` the wait before it (decorrelated only); `random` uniform in 64 bits. */
int64_t hfi_backoff_ms(const struct hfi_backoff_rules *rules, uint64_t retry, int64_t last_ms, uint64_t random);
/* The longest wait it can give for that retry, for the ladder check. */
int64_t hfi_backoff_max_ms(const struct hfi_backoff_rules *rules, uint64_t retry);

#endif
