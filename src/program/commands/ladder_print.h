/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_LADDER_PRINT_H
#define HFI_PROGRAM_LADDER_PRINT_H

#include "holdfast/ladder.h"
#include "program/config/problems.h"

/* What was measured, for people and as JSON. `policy` NULL: the downstream is not in the configuration. */
void hfi_ladder_print(const struct hf_measured *measured, const struct hf_policy_options *policy, const char *name,
                      const char *window);
void hfi_ladder_json(const struct hf_measured *measured, const struct hf_policy_options *policy, const char *name,
                     const char *window);
/* What the rules of the ladder say about the configuration with the proposal in it. */
struct hfi_proof {
    const struct hfi_problem *first; /* NULL: nothing */
    size_t errors;
};
/* The proposal and its proof (NULL: not asked for). */
void hfi_suggestion_print(const struct hf_suggestion *suggestion, const char *name, const char *keep,
                          const struct hfi_proof *proof);
void hfi_suggestion_json(const struct hf_suggestion *suggestion, const char *name, const char *keep,
                         const struct hfi_proof *proof);

#endif
