/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_DEAD_FILTER_H
#define HFI_PROGRAM_DEAD_FILTER_H

#include "holdfast/dead.h"
#include "program/options.h"
#include "program/session.h"

/* The filters that `dead list` and `dead redrive` share. */
#define HFI_DEAD_FILTER_FLAGS                                                                                                     \
    {.name = "type", .kind = HFI_FLAG_TEXT, .value = "T", .help = "only of this job type"},                                       \
        {.name = "queue", .kind = HFI_FLAG_TEXT, .value = "Q", .help = "only of this queue"},                                     \
        {.name = "class", .kind = HFI_FLAG_CHOICE, .value = "transient_exhausted|permanent|poison", .help = "only of this class"}, \
        {.name = "error-type", .kind = HFI_FLAG_TEXT, .value = "E", .help = "only with this error, by dotted prefix"},             \
        {.name = "fingerprint", .kind = HFI_FLAG_TEXT, .value = "F", .help = "only with this fingerprint"},                        \
        {.name = "since", .kind = HFI_FLAG_DURATION, .value = "D", .help = "only deaths of the last D"}

/* The filter of those flags, status dead. True if any of them is given. */
bool hfi_dead_filter_read(const struct hfi_options *options, struct hf_dead_filter *filter);

/* Prints how many dead letters each fingerprint has, the most frequent first; an exit code. */
int hfi_dead_groups(struct hfi_session *session, const struct hf_dead_filter *filter);

#endif
