/* SPDX-License-Identifier: MIT */
#ifndef HFI_CONFIG_BIND_H
#define HFI_CONFIG_BIND_H

#include "program/config/problems.h"
#include "program/config/schema.h"
#include "program/config/settings.h"
#include "program/config/tree.h"

/* From the tree to settings. Internal to config/. */
struct hfi_binding {
    struct hfi_arena *arena;
    struct hfi_problems *problems;
    bool secrets; /* replace ${ENV} and read file: of secrets; without it they are left as written */
    bool store;   /* the same for the store's URL */
    bool partial; /* in the map of a LIKE: nothing is required, and nothing may be an item's own */
    struct hfi_settings *settings;
};

/* Writes defaults and then what the tree says into `settings`. */
void hfi_bind(struct hfi_binding *binding, const struct hfi_node *root, struct hfi_settings *settings);

/* "downstreams.payments.url" of a node. */
const char *hfi_node_path(struct hfi_arena *arena, const struct hfi_node *node);

/* Adds an error about `node`. */
void hfi_bind_error(struct hfi_binding *binding, const char *rule, const struct hfi_node *node, const char *fix,
                    const char *why, ...) HF_PRINTF(5, 6);

/* Reads `text` as the scalar `key` wants it into `to`. False with `why` and `fix` filled (200 bytes each). */
struct hfi_refusal {
    const char *rule;
    char why[300], fix[200];
};
bool hfi_value_read(const struct hfi_key *key, const char *text, void *to, struct hfi_refusal *refusal);

/* A text with its ${ENV} replaced and, for secrets, file:PATH read. NULL with `refusal` filled. */
const char *hfi_secret_read(struct hfi_binding *binding, const char *text, bool files, struct hfi_refusal *refusal);
const char *hfi_beside(struct hfi_arena *arena, const char *file, const char *path); /* a relative path: beside `file` */
bool hfi_secret_is_reference(const char *text); /* holds ${…} or begins with file: */

/* Binds a map against the keys below `prefix`; `base` is what their offsets are in. */
void hfi_bind_map(struct hfi_binding *binding, const struct hfi_node *map, const char *prefix, void *base);
/* The keys `curve` (list or map) and `max_executions`/`retries`. */
void hfi_bind_curve(struct hfi_binding *binding, const struct hfi_node *node, struct hfi_curve_setting *setting);
void hfi_bind_executions(struct hfi_binding *binding, const struct hfi_node *level, struct hfi_curve_setting *setting);

/* A list of durations. */
void hfi_bind_waits(struct hfi_binding *binding, const struct hfi_key *key, const struct hfi_node *node, struct hfi_waits *waits);
void hfi_bind_presets(const char *prefix, void *base);

#endif
