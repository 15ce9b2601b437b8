/* SPDX-License-Identifier: MIT */
#ifndef HFI_CONFIG_CONFIG_H
#define HFI_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdio.h>

#include "holdfast/policy.h"
#include "holdfast/runner.h"
#include "holdfast/store.h"
#include "program/config/problems.h"
#include "program/config/settings.h"

enum {
    HFI_CONFIG_SECRETS = 1, /* replace ${ENV} and file: of headers and webhook urls */
    HFI_CONFIG_STORE = 2    /* and of the store's URL */
};

/* A configuration and the library's options made of it, which point into it. */
struct hfi_config {
    struct hfi_arena arena;
    struct hfi_problems problems;
    const char *file; /* NULL: there is none, all is default */
    struct hfi_node *root;
    struct hfi_settings settings;
    const char *store; /* URL, NULL: not given */
    struct hf_store_options store_options;
    struct hf_runner_options runner;
};

/*
 * Reads `path` (NULL: holdfast.yaml here, else $HOLDFAST_CONFIG, else none). 0, or HF_ECONFIG with `problems` filled; a
 * file that cannot be read is a problem too. hfi_config_free in any case.
 */
int hfi_config_load(struct hfi_config *config, const char *path, unsigned flags);
/* The same from memory; `file` is the name for messages. */
int hfi_config_read(struct hfi_config *config, const char *file, const char *text, size_t length, unsigned flags);
void hfi_config_free(struct hfi_config *config);

/* Complains about every error on stderr and returns the exit code; warnings are for `check` and `run`. */
int hfi_config_complain(const struct hfi_config *config);

/* One job type with the numbers the ladder check worked out. */
struct hfi_type_worst {
    const char *name, *queue, *downstream; /* downstream NULL: none */
    uint32_t executions, attempts;         /* attempts of one execution; 0: it calls nobody */
    uint64_t calls;
    int64_t to_death_ms;
};
/* One downstream with what its policy amounts to. */
struct hfi_downstream_worst {
    const char *name;
    const struct hf_policy_options *policy;
    struct hf_policy_figures figures; /* attempts is 0 when the policy has errors */
};
struct hfi_check {
    struct hfi_type_worst *types; /* as the configuration's jobs, in its arena */
    size_t count;
    struct hfi_downstream_worst *downstreams; /* as the configuration's, in its arena */
    size_t downstream_count;
};
/* The proof of the ladder (2.7): adds findings to the problems, fills `check`. Returns the number of errors. */
size_t hfi_config_check(struct hfi_config *config, struct hfi_check *check);

/*
 * Settings by name, NULL if there are none. hfi_items_find takes structs of `size` that begin with struct hfi_item, and
 * when none has the name fills `nearest` (NULL: nobody asks) with what may have been meant.
 */
struct hfi_nearest;
const void *hfi_items_find(const struct hfi_items *items, size_t size, const char *name, struct hfi_nearest *nearest);
const struct hfi_downstream_setting *hfi_config_downstream(const struct hfi_config *config, const char *name);
const struct hfi_queue_setting *hfi_config_queue(const struct hfi_config *config, const char *name);
const struct hfi_job_setting *hfi_config_job(const struct hfi_config *config, const char *name);
const struct hfi_limit_setting *hfi_config_limit(const struct hfi_config *config, const char *name);

/*
 * The policy of a job of this type in this queue by the configuration alone: type, then queue, then defaults; the
 * closest `curve` replaces all, max_executions alone keeps it, a formula keeps max_executions. Those and `curve_length`
 * stay 0 when no level says anything, but for a formula's max_executions.
 */
#define HFI_DEFAULT_EXECUTIONS 6
void hfi_config_policy(const struct hfi_config *config, const struct hfi_job_setting *job, const char *queue,
                       struct hf_curve_options *policy);

/* Every key with type, range, default and meaning: for people, and as holdfast.yaml(5). */
void hfi_config_explain(FILE *to);
void hfi_config_man(FILE *to);

/* Internal to config/. */
struct hfi_binding;
void hfi_config_verify(struct hfi_config *config, struct hfi_binding *binding); /* what single keys cannot know */
void hfi_config_build(struct hfi_config *config);
/* forward.c */
void hfi_config_verify_forwards(struct hfi_config *config, struct hfi_binding *binding);
void hfi_config_build_forwards(struct hfi_config *config);

struct hfi_alert_setting;
struct hf_sink_options;
/* The library's options of one sink; its texts are the setting's. */
void hfi_config_sink(const struct hfi_alert_setting *from, struct hf_sink_options *to);

#endif
