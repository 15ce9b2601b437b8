/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_MEASURED_H
#define HOLDFAST_MEASURED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "api.h"
#include "error.h"
#include "guard.h"
#include "policy.h"
#include "store.h"

/*
 * Phases of one attempt, each by itself but two: `setup` is the first three together, of a new connection, and what the
 * connect limit is for; `attempt` is the whole of it, and what the attempt limit is for. X(NAME, text).
 */
#define HF_PHASE_MAP(X)                                                                                        \
    X(RESOLVE, "resolve") X(CONNECT, "connect") X(TLS, "tls") X(SETUP, "setup") X(FIRST_BYTE, "first_byte")    \
        X(ATTEMPT, "attempt")
#define HF_PHASE_MEMBER(name, text) HF_PHASE_##name,
enum hf_phase { HF_PHASE_MAP(HF_PHASE_MEMBER) };
#undef HF_PHASE_MEMBER
#define HF_PHASES 6

/*
 * How a phase ended: by itself (of `attempt`: with an answer that is no failure of the peer), in a failure of its own
 * (`attempt` only), cut by one of the limits, or cut by something else: a hedge that was faster, a caller who gave up.
 */
#define HF_FATE_MAP(X)                                                                                         \
    X(ENDED, "ended") X(FAILED, "failed") X(CUT_CONNECT, "cut_connect") X(CUT_ATTEMPT, "cut_attempt")          \
        X(CUT_TOTAL, "cut_total") X(CANCELLED, "cancelled")
#define HF_FATE_MEMBER(name, text) HF_FATE_##name,
enum hf_fate { HF_FATE_MAP(HF_FATE_MEMBER) };
#undef HF_FATE_MEMBER
#define HF_FATES 6

HF_BEGIN

/*
 * How long the attempts of one downstream took, and what ended them: a snapshot, every attempt in it, short retries and
 * hedges too, over all hosts of a `per_host` downstream. Durations are known to 0.8 %, never below what was measured.
 * One thread at a time. Since 0.1.
 */
struct hf_measured;

/* What this process has measured and not yet given to a store; without a runner that is all of it. HF_EINVAL, HF_ENOMEM. Any
   thread. */
HF_API int hf_downstream_measured(struct hf_downstream *downstream, struct hf_measured **measured, struct hf_error *error);
/*
 * What a store keeps of it since `since_us` (µs UTC, by whole hours; a week at most), of all nodes; a node tells it once a
 * minute and when it drains. `key`: the downstream's name; of an unknown one all is empty. HF_EINVAL, HF_ENOMEM, errors of
 * the store. Not on the loop or writer thread.
 */
HF_API int hf_store_measured(struct hf_store *store, const char *key, int64_t since_us, struct hf_measured **measured,
                             struct hf_error *error);
HF_API uint64_t hf_measured_hours(const struct hf_measured *measured); /* in which something was measured; 0 not of a store */
HF_API void hf_measured_free(struct hf_measured *measured); /* NULL is fine */

/* How many ended so; saturating. */
HF_API uint64_t hf_measured_count(const struct hf_measured *measured, enum hf_phase phase, enum hf_fate fate);
/*
 * The share `share` (0 to 1) of the phase ends within so many µs, with what was cut taken into account (docs/ladder.md);
 * -1 when it is not known: nothing was measured, or too much was cut before.
 */
HF_API int64_t hf_measured_quantile(const struct hf_measured *measured, enum hf_phase phase, double share);
/* The next bucket of that fate that is not empty: `*from_us` to `*to_us`, both in it. `*cursor` begins at 0. False: no more. */
HF_API bool hf_measured_next(const struct hf_measured *measured, enum hf_phase phase, enum hf_fate fate, uint32_t *cursor,
                             int64_t *from_us, int64_t *to_us, uint64_t *count);

/* Constant texts; "unknown" for any other number. Any thread. Since 0.1. */
HF_API const char *hf_phase_name(enum hf_phase phase);
HF_API const char *hf_fate_name(enum hf_fate fate);

HF_END

#endif
