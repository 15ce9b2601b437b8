/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_SPEC_H
#define HFI_PROGRAM_SPEC_H

#include <jansson.h>

#include "holdfast/queue.h"
#include "program/config/config.h"
#include "program/options.h"

/* A job to enqueue, from flags or from a line of NDJSON. */
struct hfi_spec {
    struct hf_job_spec spec;
    int64_t waits[HF_CURVE_MAX];
    int64_t after[HF_AFTER_MAX];
    char host[HF_HOST_LENGTH];
    bool due_in; /* said as a wait, not as a time */
};

/* The flags of `enqueue` that describe a job; texts stay the options'. 0, or an exit code after a complaint. */
#define HFI_SPEC_FLAGS                                                                                                           \
    {.name = "queue", .kind = HFI_FLAG_TEXT, .value = "Q", .help = "queue (default: the type's)"},                               \
        {.name = "priority", .kind = HFI_FLAG_NUMBER, .value = "N", .help = "0 to 9, higher first", .min = 0, .max = 9},         \
        {.name = "in", .kind = HFI_FLAG_DURATION, .value = "D", .help = "not before D from now"},                                \
        {.name = "at", .kind = HFI_FLAG_TIME, .value = "TIME", .help = "not before then"},                                       \
        {.name = "max-executions", .kind = HFI_FLAG_NUMBER, .value = "N", .help = "executions before it is dead", .min = 1, .max = 10000}, \
        {.name = "curve", .kind = HFI_FLAG_TEXT, .value = "\"60s,5m\"", .help = "waits between executions"},                     \
        {.name = "unique", .kind = HFI_FLAG_TEXT, .value = "KEY", .help = "at most one such job that has not ended"},            \
        {.name = "replace", .kind = HFI_FLAG_SWITCH, .help = "with --unique: such a job that waits becomes this one, one that runs is succeeded by it"}, \
        {.name = "unique-for", .kind = HFI_FLAG_DURATION, .min = 1, .value = "D", .help = "with --unique: one in each such period (from 1970 UTC), succeeded or not"}, \
        {.name = "limit", .kind = HFI_FLAG_TEXT, .value = "NAME:KEY", .help = "shares the places and the rate of this key: see limits in holdfast.yaml"}, \
        {.name = "expires-in", .kind = HFI_FLAG_DURATION, .min = 1, .value = "D", .help = "not started later than D from now"},            \
        {.name = "correlation", .kind = HFI_FLAG_TEXT, .value = "ID", .help = "id for logs and alerts, up to 64 bytes"},         \
        {.name = "downstream", .kind = HFI_FLAG_TEXT, .value = "D", .help = "downstream (default: the type's)"},                 \
        {.name = "content-type", .kind = HFI_FLAG_TEXT, .value = "T", .help = "media type of the payload"},                      \
        {.name = "idempotency-key", .kind = HFI_FLAG_TEXT, .value = "K", .help = "sent with every attempt (default: made up)"},  \
        {.name = "tags", .kind = HFI_FLAG_TEXT, .value = "A,B", .help = "words to find it by"},                                          \
        {.name = "after-jobs", .kind = HFI_FLAG_TEXT, .value = "ID,…", .help = "waits until these have succeeded, 16 at most"},   \
        {.name = "after-ended", .kind = HFI_FLAG_SWITCH, .help = "with --after-jobs: until they have ended, whichever way"}

int hfi_spec_from_flags(struct hfi_spec *to, const struct hfi_options *options, int64_t now_us);

/*
 * Lays the fields of one NDJSON object over `to`, which holds the flags' defaults. `text` is what `object` was read from.
 * Texts and payload live in `arena` or in `object`. HF_EINVAL with `error` filled.
 */
int hfi_spec_from_json(struct hfi_spec *to, const json_t *object, const char *text, size_t length, struct hfi_arena *arena,
                       struct hf_error *error);

/* Fixes what the configuration knows about the type and the job does not say: queue, downstream, curve, executions. */
void hfi_spec_complete(struct hfi_spec *to, const struct hfi_config *config);

/* A limit name that the configuration file does not have is a slip: it would not limit. HF_EINVAL with `error` filled. */
int hfi_spec_check_limit(const struct hf_job_spec *spec, const struct hfi_config *config, struct hf_error *error);

/* An error of the library about `spec`, in the words of the line or of the flags that it came from. */
void hfi_spec_words(const struct hfi_spec *spec, bool flags, struct hf_error *error);

/* "60s,5m" into waits: 0, HF_EINVAL, HF_ETOOBIG. */
int hfi_waits_parse(const char *text, int64_t *waits, uint32_t *count);

#endif
