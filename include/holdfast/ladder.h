/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_LADDER_H
#define HOLDFAST_LADDER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "measured.h"

/*
 * Where a proposed limit comes from. X(NAME, text). TOO_FEW: there are not enough samples to say anything, today's value
 * stays. CUT: today's limit cuts more than is asked to be kept, so the tail beyond it was never seen: a step up, to be
 * measured again. DERIVED: it follows from the other limits.
 */
#define HF_BASIS_MAP(X) X(TOO_FEW, "too_few") X(MEASURED, "measured") X(CUT, "cut") X(DERIVED, "derived")
#define HF_BASIS_MEMBER(name, text) HF_BASIS_##name,
enum hf_basis { HF_BASIS_MAP(HF_BASIS_MEMBER) };
#undef HF_BASIS_MEMBER

HF_BEGIN

struct hf_proposal {
    enum hf_basis basis;
    int64_t now_ms, value_ms;    /* today's limit, and the proposed one */
    uint64_t samples, needed;    /* that there are; the least that can say something about the share asked for */
    int64_t quantile_us;         /* the estimate itself; -1 not known */
    int64_t bound_us;            /* above it with 95 % confidence; -1 not known. What the value is made of */
    double kept_now;             /* the estimated share that today's limit keeps, 0 to 1; -1 not known */
};

struct hf_suggestion {
    uint32_t size;
    struct hf_proposal connect, attempt, total, window, slow_after;
    double slow_ratio;           /* with slow_after */
    double rate_per_s;           /* attempts, over the hours that have any; 0 unknown */
    struct hf_policy_options policy; /* the one given, with the proposed values in it */
};
static inline void hf_suggestion_init(struct hf_suggestion *suggestion) {
    memset(suggestion, 0, sizeof *suggestion);
    suggestion->size = (uint32_t)sizeof *suggestion;
}

/*
 * Limits under which each of connect and attempt keeps the share `keep` (above 0, below 1) of what would answer, with 95 %
 * confidence, and the rest of the ladder around them: docs/ladder.md has the method. It only proposes: hf_policy_check of
 * suggestion->policy says whether it is a ladder. Errors: HF_EINVAL. Pure. Since 0.1.
 */
HF_API int hf_ladder_suggest(const struct hf_measured *measured, const struct hf_policy_options *policy, double keep,
                             struct hf_suggestion *suggestion);

/* What one of the limits cut, and what of that would have come a little later. */
struct hf_cut {
    uint32_t size;
    uint64_t attempts, cut;      /* all there were; cut by this limit */
    uint64_t reached, ended;     /* what the estimate is made of: came to limit / 1.5, and ended before the limit */
    double later, low, high;     /* the share of the cut ones that had ended by 1.5 × the limit, and its 95 % interval; -1 unknown */
};
static inline void hf_cut_init(struct hf_cut *cut) {
    memset(cut, 0, sizeof *cut);
    cut->size = (uint32_t)sizeof *cut;
}
/* `fate`: CUT_CONNECT, CUT_ATTEMPT or CUT_TOTAL, by the limits of `policy` (NULL: `later` stays unknown). HF_EINVAL. Since 0.1. */
HF_API int hf_ladder_cut(const struct hf_measured *measured, const struct hf_policy_options *policy, enum hf_fate fate,
                         struct hf_cut *cut);

HF_API const char *hf_basis_name(enum hf_basis basis); /* "unknown" for any other number. Since 0.1. */

HF_END

#endif
