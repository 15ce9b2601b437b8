/* SPDX-License-Identifier: MIT */
#ifndef HFI_CONFIG_PROBLEMS_H
#define HFI_CONFIG_PROBLEMS_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast/error.h"
#include "program/memory.h"

/* What is wrong with a configuration: every finding with its place, the numbers and a fix. */
struct hfi_problem {
    struct hfi_problem *next;
    bool is_error;    /* E: stops a start; else W */
    const char *rule; /* stable id: `config.unknown_key`, `ladder.order` … */
    int line, column;
    const char *what, *why, *fix; /* fix "" when there is none */
};
struct hfi_problems {
    struct hfi_arena *arena;
    const char *file;
    struct hfi_problem *first, *last;
    size_t errors, warnings;
};

void hfi_problem_add(struct hfi_problems *problems, bool is_error, const char *rule, int line, int column,
                     const char *what, const char *fix, const char *why, ...) HF_PRINTF(8, 9);

/* As an error to complain with. */
void hfi_problem_error(const struct hfi_problems *problems, const struct hfi_problem *problem, struct hf_error *error);

#endif
