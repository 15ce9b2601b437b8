/* SPDX-License-Identifier: MIT */
/*
 * Says what the library refused in the words of the person who asked for it. Must never lose a reason. The main thread's.
 */
#include <stdio.h>
#include <string.h>

#include "program/commands/spec.h"

static const struct {
    const char *field; /* of struct hf_job_spec */
    const char *key, *flag;
    const char *fix; /* NULL: the library's */
} words[] = {
    {"run_at_us", "at", "at", "give an earlier time"},
    {"expires_at_us", "expires_in", "expires-in", NULL},
    {"unique_key", "unique", "unique", NULL},
    {"unique_window_ms", "unique_for", "unique-for", "write 250ms, 5s, 2m, 1h or 7d, at most ten years"},
    {"on_conflict", "replace", "replace", NULL},
    {"correlation_id", "correlation", "correlation", NULL},
    {"limit_name", "limit", "limit", NULL},
    {"limit_key", "limit", "limit", NULL},
    {"curve_ms", "curve", "curve", "a wait is at most ten years"},
    {"curve_length", "curve", "curve", NULL},
    {"content_type", "content_type", "content-type", NULL},
    {"idempotency_key", "idempotency_key", "idempotency-key", NULL},
    {"after_jobs", "after_jobs", "after-jobs", NULL},
};

void hfi_spec_words(const struct hfi_spec *spec, bool flags, struct hf_error *error) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(error->what, words[i].field) != 0)
            continue;
        bool due = strcmp(words[i].field, "run_at_us") == 0, expiry = strcmp(words[i].field, "expires_at_us") == 0;
        const char *word = due && spec->due_in ? "in" : flags ? words[i].flag : words[i].key;
        snprintf(error->what, sizeof error->what, "%s", word);
        if (due && spec->due_in)
            snprintf(error->fix, sizeof error->fix, "give a shorter wait");
        else if (expiry)
            snprintf(error->fix, sizeof error->fix, "%s", strstr(error->why, "due") ? "let it expire after it is due" : "give a shorter time");
        else if (words[i].fix)
            snprintf(error->fix, sizeof error->fix, "%s", words[i].fix);
        return;
    }
}
