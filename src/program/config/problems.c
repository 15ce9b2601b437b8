/* SPDX-License-Identifier: MIT */
/* Collects what is wrong with a configuration, so that one reading names all of it. Must never stop at the first. */
#include "program/config/problems.h"

#include <stdio.h>

#define SHOWN_MAX 200 /* of a file that is something else altogether */

void hfi_problem_add(struct hfi_problems *problems, bool is_error, const char *rule, int line, int column,
                     const char *what, const char *fix, const char *why, ...) {
    va_list arguments;
    problems->errors += is_error;
    problems->warnings += !is_error;
    if (problems->errors + problems->warnings > SHOWN_MAX)
        return;
    struct hfi_problem *problem = hfi_arena_alloc(problems->arena, sizeof *problem);
    problem->is_error = is_error;
    problem->rule = rule;
    problem->line = line;
    problem->column = column;
    problem->what = hfi_arena_text(problems->arena, what);
    problem->fix = hfi_arena_text(problems->arena, fix ? fix : "");
    va_start(arguments, why);
    problem->why = hfi_arena_vprint(problems->arena, why, arguments);
    va_end(arguments);
    *(problems->last ? &problems->last->next : &problems->first) = problem;
    problems->last = problem;
}

void hfi_problem_error(const struct hfi_problems *problems, const struct hfi_problem *problem, struct hf_error *error) {
    hf_error_init(error);
    error->code = HF_ECONFIG;
    error->line = problem->line;
    error->column = problem->column;
    snprintf(error->file, sizeof error->file, "%s", problems->file);
    snprintf(error->what, sizeof error->what, "%s", problem->what);
    snprintf(error->why, sizeof error->why, "%s", problem->why);
    snprintf(error->fix, sizeof error->fix, "%s", problem->fix);
}
