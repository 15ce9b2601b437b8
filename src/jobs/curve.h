/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_CURVE_H
#define HFI_JOBS_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "holdfast/job.h"

/*
 * The long retry curve: the waits between executions. Every kind (table, exponential, polynomial, callback) is worked
 * out into a table once; one function gives the wait for every failure route (I34). Pure.
 */
struct hfi_curve {
    int64_t id;              /* in the store's `policies`, 0 = not stored */
    uint32_t max_executions; /* ≥ 1 */
    uint32_t length;         /* 0 = no waits: a second execution is due at once */
    uint32_t jitter_permille; /* each wait ± that share of it [C5] */
    int64_t cap_ms;           /* no wait is longer, jitter included [S2.3]; 0 = none */
    int64_t waits_ms[HF_CURVE_MAX];
};

/* 6 executions; 60, 300, 1800, 7200 s [S0.6]. */
void hfi_curve_default(struct hfi_curve *curve);
/* base·factor^(n−1) up to `cap_ms`, tabled until the cap or the table is reached [S1.5]. */
void hfi_curve_exponential(struct hfi_curve *curve, uint32_t max_executions, int64_t base_ms, uint32_t factor_permille, int64_t cap_ms);
/* n^power s + plus [S2.2]. */
void hfi_curve_polynomial(struct hfi_curve *curve, uint32_t max_executions, uint32_t power, int64_t plus_ms);

/* The wait after `failures` failures (1 first), last one reused; jitter with `random`. Saturating over any n (I68). */
int64_t hfi_curve_wait_ms(const struct hfi_curve *curve, uint64_t failures, uint64_t random);
/* The longest one that stays: the last of the table, within the cap and without jitter; -1 when there is none. */
int64_t hfi_curve_last_ms(const struct hfi_curve *curve);
/* What of it says something: a copy may be that short. */
size_t hfi_curve_size(const struct hfi_curve *curve);
void hfi_curve_copy(struct hfi_curve *copy, const struct hfi_curve *curve); /* of one that may be short */
bool hfi_curve_equal(const struct hfi_curve *a, const struct hfi_curve *b); /* but for id */
/* Σ waits over max_executions: from the first failure to death, saturating. */
int64_t hfi_curve_time_to_death_ms(const struct hfi_curve *curve, uint32_t max_executions);
/* Its waits as stores keep them, "60000,300000", into HFI_CURVE_WAITS_ROOM bytes; and back: false: that is none. */
#define HFI_CURVE_WAITS_ROOM (HF_CURVE_MAX * 21 + 1)
char *hfi_curve_waits_print(const struct hfi_curve *curve, char *text);
bool hfi_curve_waits_parse(struct hfi_curve *curve, const char *text);
/* Parses "60s,5m,30m"; max_executions = waits + 1. 0, HF_EINVAL, HF_ETOOBIG. */
int hfi_curve_parse(const char *text, struct hfi_curve *curve);

#endif
