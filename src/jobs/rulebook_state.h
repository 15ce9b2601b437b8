/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_RULEBOOK_STATE_H
#define HFI_JOBS_RULEBOOK_STATE_H

#include <stdatomic.h>
#include <string.h>

#include "base/text.h"
#include "jobs/forward.h"
#include "jobs/rulebook.h"
#include "jobs/type_options.h"

/* What the files of a rulebook share while it is filled; later nobody writes it. */
struct hfi_entry {
    struct hfi_type type;
    struct hfi_curve own;           /* the type on the global level: for queues without options */
    const struct hfi_curve *queues; /* one per queue, where only the type's max_executions differs; else NULL */
    const char *const *never_retry; /* global ∪ the type's [S2.14] */
    size_t never_retry_count;
};

struct hfi_book_queue {
    const char *name;
    struct hfi_curve policy;
};

struct hfi_target_rules { /* what a job's downstream says about jobs */
    const char *name;
    int64_t retry_after_cap_ms, give_up_after_ms;
};

struct hfi_rulebook {
    _Atomic unsigned users;
    const struct hfi_rulebook *before; /* while it is filled; NULL none */
    struct hfi_keep keep;
    struct hfi_curve global;
    struct hfi_entry **types; /* by name */
    const char **names;   /* theirs */
    size_t type_count, type_room;
    struct hfi_book_queue *queues;
    size_t queue_count;
    struct hfi_target_rules *targets;
    size_t target_count;
    const char **sinks;
    struct hfi_sink_rule *sink_rules;
    size_t sink_count;
    struct hfi_forward *forwards; /* death handlers before the forwarders [S2.28] */
    size_t handler_count;
    struct hfi_forwards told;     /* the same, for those who read */
    const char *const *never_retry;
    size_t never_retry_count;
    int64_t execution_timeout_ms;
    int64_t abandon_after_ms;
    uint32_t max_crashes, max_give_backs;
};

/* An array of options of any size: it steps by the size of its first item. NULL: that size is not set. */
static inline const void *hfi_option_of(const void *array, size_t index) {
    uint32_t step;
    memcpy(&step, array, sizeof step);
    return step < sizeof step ? NULL : (const char *)array + index * step;
}

static inline int hfi_refuse_size(const char *what, struct hf_error *error) {
    return hfi_fail(error, HF_EINVAL, what, "call its init function first", "its size is not set");
}

static inline int hfi_refuse_twice(const char *what, const char *name, struct hf_error *error) {
    return hfi_fail(error, HF_EEXIST, what, "give each its own name", "`%s` is there twice", name);
}

/* rulebook.c: a type with its handlers, under any name. */
int hfi_rulebook_insert(struct hfi_rulebook *book, const struct hf_type_options *type, const struct hfi_type *handlers,
                        struct hf_error *error);

/* rulebook_forward.c */
int hfi_rulebook_add_forwards(struct hfi_rulebook *book, const struct hf_runner_options *options, struct hf_error *error);
/* What stays as it is on a node that gets other options. */
int hfi_rulebook_carry_over(struct hfi_rulebook *book, const struct hfi_rulebook *before, struct hf_error *error);

#endif
