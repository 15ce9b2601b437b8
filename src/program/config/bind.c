/* SPDX-License-Identifier: MIT */
/*
 * Walks the tree along the schema and writes what it says into the settings. Must never skip a key in silence: each one
 * is known and read, or a problem with its place. Pure but for secrets.
 */
#include "program/config/bind.h"

#include <stdio.h>
#include <string.h>

#include "holdfast/units.h"
#include "program/nearest.h"

static void bind_value(struct hfi_binding *binding, const struct hfi_key *key, const struct hfi_node *node, void *base);

/* Place of a list's item among its kin, from 0. */
static size_t place_of(const struct hfi_node *item) {
    size_t place = 0;
    for (const struct hfi_node *at = item->parent->children; at && at != item; at = at->next)
        place++;
    return place;
}

const char *hfi_node_path(struct hfi_arena *arena, const struct hfi_node *node) {
    const char *path = "";
    for (; node; node = node->parent) {
        const char *dot = *path && *path != '[' ? "." : "";
        if (node->key)
            path = hfi_arena_print(arena, "%s%s%s", node->key, dot, path);
        else if (node->parent)
            path = hfi_arena_print(arena, "[%zu]%s%s", place_of(node), dot, path);
    }
    return *path ? path : "configuration";
}

void hfi_bind_error(struct hfi_binding *binding, const char *rule, const struct hfi_node *node, const char *fix,
                    const char *why, ...) {
    va_list arguments;
    va_start(arguments, why);
    const char *text = hfi_arena_vprint(binding->arena, why, arguments);
    va_end(arguments);
    hfi_problem_add(binding->problems, true, rule, node->line, node->column, hfi_node_path(binding->arena, node), fix, "%s",
                    text);
}

static void refuse(struct hfi_binding *binding, const struct hfi_node *node, const struct hfi_refusal *refusal) {
    hfi_bind_error(binding, refusal->rule, node, refusal->fix, "%s", refusal->why);
}

/* Where the schema knows a key of that name, to tell people who put it elsewhere. */
static const char *known_elsewhere(const char *name) {
    for (size_t i = 0; i < hfi_key_count; i++)
        if (strcmp(hfi_key_name(&hfi_keys[i]), name) == 0)
            return hfi_keys[i].path;
    return NULL;
}

static void unknown_key(struct hfi_binding *binding, const struct hfi_node *node, const char *prefix) {
    struct hfi_nearest nearest;
    hfi_nearest_init(&nearest, node->key);
    for (size_t i = 0; i < hfi_key_count; i++)
        if (hfi_key_is_below(&hfi_keys[i], prefix))
            hfi_nearest_offer(&nearest, hfi_key_name(&hfi_keys[i]));
    const char *elsewhere = known_elsewhere(node->key), *fix = "see holdfast check --explain";
    if (nearest.best && (nearest.distance < 2 || !elsewhere))
        fix = hfi_arena_print(binding->arena, "did you mean `%s`?", nearest.best);
    else if (elsewhere)
        fix = hfi_arena_print(binding->arena, "it belongs there: %s", elsewhere);
    hfi_problem_add(binding->problems, true, "config.unknown_key", node->key_line, node->key_column,
                    hfi_node_path(binding->arena, node), fix, "unknown key");
}

static const char *kind_name(enum hfi_node_kind kind) {
    return kind == HFI_NODE_MAP ? "a map" : kind == HFI_NODE_LIST ? "a list" : "a single value";
}

/* Is the node what the key needs? An empty map may be written as nothing. */
static bool has_kind(struct hfi_binding *binding, const struct hfi_node *node, enum hfi_node_kind wanted) {
    if (node->kind == wanted || (wanted == HFI_NODE_MAP && node->kind == HFI_NODE_SCALAR && !*node->text))
        return true;
    const char *fix = wanted == HFI_NODE_MAP    ? "write keys and values: {key: value}"
                      : wanted == HFI_NODE_LIST ? "put it in brackets: [first, second]"
                                                : "write one value, without brackets or keys";
    hfi_bind_error(binding, "config.type", node, fix, "it has to be %s, not %s", kind_name(wanted), kind_name(node->kind));
    return false;
}

void hfi_bind_map(struct hfi_binding *binding, const struct hfi_node *map, const char *prefix, void *base) {
    if (!has_kind(binding, map, HFI_NODE_MAP))
        return;
    for (const struct hfi_node *child = map->children; child; child = child->next) {
        const struct hfi_key *key = hfi_key_find(prefix, child->key);
        if (key && binding->partial && key->traits & HFI_KEY_OWN)
            hfi_bind_error(binding, "config.own_key", child, "write it there", "each downstream has its own");
        else if (key)
            bind_value(binding, key, child, base);
        else
            unknown_key(binding, child, prefix);
    }
    for (size_t i = 0; i < hfi_key_count && !binding->partial; i++)
        if (hfi_keys[i].traits & HFI_KEY_REQUIRED && hfi_key_is_below(&hfi_keys[i], prefix) &&
            !hfi_tree_child(map, hfi_key_name(&hfi_keys[i])))
            hfi_bind_error(binding, "config.missing_key", map, hfi_keys[i].doc, "the key `%s` is missing",
                           hfi_key_name(&hfi_keys[i]));
}

static void bind_secret(struct hfi_binding *binding, const struct hfi_key *key, const struct hfi_node *node, const char **to) {
    struct hfi_refusal refusal;
    bool url = key->type == HFI_KEY_URL;
    *to = node->text;
    if (!(url ? binding->store : binding->secrets))
        return;
    const char *text = hfi_secret_read(binding, node->text, !url, &refusal);
    if (text && *text)
        *to = text;
    else if (text)
        hfi_bind_error(binding, "config.secret", node, "write it, or set the variable", "it is empty");
    else
        refuse(binding, node, &refusal);
}

static void bind_headers(struct hfi_binding *binding, const struct hfi_node *node, struct hfi_headers *headers) {
    static const struct hfi_key value = {.type = HFI_KEY_SECRET};
    size_t count = 0;
    if (!has_kind(binding, node, HFI_NODE_MAP))
        return;
    for (const struct hfi_node *child = node->children; child; child = child->next)
        count++;
    struct hf_header *items = hfi_arena_array(binding->arena, count + 1, sizeof *items);
    count = 0;
    for (const struct hfi_node *child = node->children; child; child = child->next) {
        if (!*child->key || child->key[strspn(child->key, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ")])
            hfi_bind_error(binding, "config.header", child, "write letters, digits and dashes", "it is no name of a header");
        if (!has_kind(binding, child, HFI_NODE_SCALAR))
            continue;
        items[count].name = child->key;
        bind_secret(binding, &value, child, &items[count++].value);
    }
    headers->items = items;
    headers->count = count;
}

static size_t count_of(const struct hfi_node *node) {
    size_t count = 0;
    for (const struct hfi_node *child = node->children; child; child = child->next)
        count++;
    return count;
}

static void bind_texts(struct hfi_binding *binding, const struct hfi_node *node, struct hfi_texts *texts) {
    if (!has_kind(binding, node, HFI_NODE_LIST))
        return;
    texts->count = 0;
    const char **items = hfi_arena_array(binding->arena, count_of(node) + 1, sizeof *items);
    for (const struct hfi_node *child = node->children; child; child = child->next)
        if (has_kind(binding, child, HFI_NODE_SCALAR))
            items[texts->count++] = child->text;
    texts->items = items;
}

/* One secret, or a list of them. */
static void bind_secrets(struct hfi_binding *binding, const struct hfi_node *node, struct hfi_texts *texts) {
    static const struct hfi_key value = {.type = HFI_KEY_SECRET};
    const struct hfi_node *item = node->kind == HFI_NODE_LIST ? node->children : node;
    const char **items = hfi_arena_array(binding->arena, count_of(node) + 1, sizeof *items);
    for (; item; item = node->kind == HFI_NODE_LIST ? item->next : NULL)
        if (has_kind(binding, item, HFI_NODE_SCALAR))
            bind_secret(binding, &value, item, &items[texts->count++]);
    if (node->kind == HFI_NODE_LIST && texts->count == 0)
        hfi_bind_error(binding, "config.secret", node, "write a secret, or leave it out", "the list is empty");
    texts->items = items;
}

void hfi_bind_waits(struct hfi_binding *binding, const struct hfi_key *key, const struct hfi_node *node,
                    struct hfi_waits *waits) {
    struct hfi_key wait = {.type = HFI_KEY_DURATION, .min = key->min, .max = key->max};
    struct hfi_refusal refusal;
    if (!has_kind(binding, node, HFI_NODE_LIST))
        return;
    waits->count = 0;
    int64_t *items = hfi_arena_array(binding->arena, count_of(node) + 1, sizeof *items);
    for (const struct hfi_node *child = node->children; child; child = child->next) {
        if (!has_kind(binding, child, HFI_NODE_SCALAR))
            continue;
        if (hfi_value_read(&wait, child->text, &items[waits->count], &refusal))
            waits->count++;
        else
            refuse(binding, child, &refusal);
    }
    waits->items = items;
}

/* Names are shown, stored and typed: plain text that a shell and a log line can carry. */
static void check_name(struct hfi_binding *binding, const struct hfi_key *key, const struct hfi_node *node) {
    size_t length = strlen(node->key), longest = strcmp(key->path, "jobs") == 0 ? 300 : strcmp(key->path, "alerts") == 0 ? 63 : 120;
    if (length == 0 || length > longest)
        hfi_bind_error(binding, "config.name", node, "choose another one", "a name has 1 to %zu bytes, this one has %zu", longest,
                       length);
    for (const char *at = node->key; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f) {
            hfi_bind_error(binding, "config.name", node, "choose another one", "a name holds no control characters");
            return;
        }
}

/* What a new item holds where no key says otherwise and no text of the schema can: `section` is what its keys are below. */
static void init_item(const char *section, void *item) {
    if (strcmp(section, "downstreams") == 0)
        hf_policy_options_init(&((struct hfi_downstream_setting *)item)->policy);
    if (strcmp(section, "queues") == 0)
        ((struct hfi_queue_setting *)item)->curve.retries = -1;
    if (strcmp(section, "rule") == 0) {
        struct hfi_rule_setting *rule = item;
        rule->klass = rule->retry = rule->breaker = -1;
    }
    if (strcmp(section, "forwarder") == 0) {
        struct hfi_forward_setting *forward = item;
        forward->death_class = -1;
        forward->curve.retries = -1;
    }
    if (strcmp(section, "jobs") == 0) {
        struct hfi_job_setting *job = item;
        job->curve.retries = -1;
        job->execution_timeout_ms = job->abandon_after_ms = -1;
    }
}

/* The item that those of `section` start with, NULL: there is none. */
static const void *start_of(const struct hfi_binding *binding, const char *section) {
    for (size_t i = 0; i < hfi_key_count; i++)
        if (hfi_keys[i].type == HFI_KEY_LIKE && strcmp(hfi_keys[i].choices, section) == 0)
            return (const char *)binding->settings + hfi_keys[i].offset;
    return NULL;
}

/* Made first of all: the file may have it behind the items. */
static void bind_like(struct hfi_binding *binding, const struct hfi_key *key, const struct hfi_node *root) {
    const struct hfi_node *node = hfi_tree_nearest(root, key->path);
    const char *prefix = hfi_arena_print(binding->arena, "%s.*", key->choices);
    struct hfi_item *item = (void *)((char *)binding->settings + key->offset);
    init_item(key->choices, item);
    hfi_bind_presets(prefix, item);
    if (!node || !node->key || strcmp(node->key, hfi_key_name(key)) != 0)
        return;
    item->node = node;
    binding->partial = true;
    hfi_bind_map(binding, node, prefix, item);
    binding->partial = false;
}

/* A way of waiting that an item chooses puts away the table that it would have started with. */
static void settle_table(struct hfi_downstream_setting *downstream) {
    const struct hfi_node *retry = hfi_tree_child(downstream->item.node, "retry");
    if (retry && hfi_tree_child(retry, "backoff") && !hfi_tree_child(retry, "table"))
        downstream->retry_table.count = 0;
}

static void bind_items(struct hfi_binding *binding, const struct hfi_key *key, const struct hfi_node *node,
                       struct hfi_items *items) {
    const char *prefix = hfi_arena_print(binding->arena, "%s.*", key->path);
    if (!has_kind(binding, node, HFI_NODE_MAP))
        return;
    char *array = hfi_arena_array(binding->arena, count_of(node) + 1, key->size);
    for (const struct hfi_node *child = node->children; child; child = child->next) {
        struct hfi_item *item = (void *)(array + items->count++ * key->size);
        const void *start = start_of(binding, key->path);
        if (start) {
            memcpy(item, start, key->size);
        } else {
            init_item(key->path, item);
            hfi_bind_presets(prefix, item);
        }
        item->name = child->key;
        item->node = child;
        check_name(binding, key, child);
        hfi_bind_map(binding, child, prefix, item);
    }
    items->items = array;
}

static void bind_list(struct hfi_binding *binding, const struct hfi_key *key, const struct hfi_node *node,
                      struct hfi_items *items) {
    if (!has_kind(binding, node, HFI_NODE_LIST))
        return;
    items->count = 0; /* it replaces what the item started with */
    char *array = hfi_arena_array(binding->arena, count_of(node) + 1, key->size);
    for (const struct hfi_node *child = node->children; child; child = child->next) {
        struct hfi_item *item = (void *)(array + items->count++ * key->size);
        item->node = child;
        init_item(key->choices, item);
        hfi_bind_presets(key->choices, item);
        hfi_bind_map(binding, child, key->choices, item);
    }
    items->items = array;
}

/* A map that is written as one text: that text is its `url`. */
static void bind_short(struct hfi_binding *binding, const struct hfi_key *key, const struct hfi_node *node, void *base) {
    if (key->traits & HFI_KEY_SHORT && node->kind == HFI_NODE_SCALAR)
        bind_value(binding, hfi_key_find(key->path, "url"), node, base);
    else
        hfi_bind_map(binding, node, key->path, base);
}

static void bind_value(struct hfi_binding *binding, const struct hfi_key *key, const struct hfi_node *node, void *base) {
    void *to = (char *)base + key->offset;
    struct hfi_refusal refusal;
    switch (key->type) {
    case HFI_KEY_MAP:
        bind_short(binding, key, node, base);
        return;
    case HFI_KEY_ITEMS:
        bind_items(binding, key, node, to);
        return;
    case HFI_KEY_LIKE: /* it came first */
        return;
    case HFI_KEY_LIST:
        bind_list(binding, key, node, to);
        return;
    case HFI_KEY_TEXTS:
        bind_texts(binding, node, to);
        return;
    case HFI_KEY_SECRETS:
        bind_secrets(binding, node, to);
        return;
    case HFI_KEY_WAITS:
        hfi_bind_waits(binding, key, node, to);
        return;
    case HFI_KEY_HEADERS:
        bind_headers(binding, node, to);
        return;
    case HFI_KEY_CURVE:
        hfi_bind_curve(binding, node, to);
        return;
    default:
        break;
    }
    if (!has_kind(binding, node, HFI_NODE_SCALAR))
        return;
    if (key->type == HFI_KEY_SECRET || key->type == HFI_KEY_URL)
        bind_secret(binding, key, node, to);
    else if (!hfi_value_read(key, node->text, to, &refusal))
        refuse(binding, node, &refusal);
}

void hfi_bind_presets(const char *prefix, void *base) {
    struct hfi_refusal refusal;
    for (size_t i = 0; i < hfi_key_count; i++) {
        const struct hfi_key *key = &hfi_keys[i];
        if (!hfi_key_is_below(key, prefix))
            continue;
        if (key->type == HFI_KEY_MAP)
            hfi_bind_presets(key->path, base);
        else if (key->preset && !(key->traits & HFI_KEY_COMPUTED) && key->type != HFI_KEY_TEXTS &&
                 key->type != HFI_KEY_LIST)
            hfi_value_read(key, key->preset, (char *)base + key->offset, &refusal);
    }
}

void hfi_bind(struct hfi_binding *binding, const struct hfi_node *root, struct hfi_settings *settings) {
    memset(settings, 0, sizeof *settings);
    settings->curve.retries = -1;
    binding->settings = settings;
    hfi_bind_presets("", settings);
    for (size_t i = 0; i < hfi_key_count; i++)
        if (hfi_keys[i].type == HFI_KEY_LIKE)
            bind_like(binding, &hfi_keys[i], root);
    hfi_bind_map(binding, root, "", settings);
    hfi_bind_executions(binding, hfi_tree_child(root, "defaults"), &settings->curve);
    struct hfi_downstream_setting *downstreams = settings->downstreams.items;
    for (size_t i = 0; i < settings->downstreams.count; i++)
        settle_table(&downstreams[i]);
    struct hfi_queue_setting *queues = settings->queues.items;
    for (size_t i = 0; i < settings->queues.count; i++)
        hfi_bind_executions(binding, queues[i].item.node, &queues[i].curve);
    struct hfi_job_setting *jobs = settings->jobs.items;
    for (size_t i = 0; i < settings->jobs.count; i++)
        hfi_bind_executions(binding, jobs[i].item.node, &jobs[i].curve);
    struct hfi_forward_setting *forwards = settings->forwards.items;
    for (size_t i = 0; i < settings->forwards.count; i++)
        hfi_bind_executions(binding, forwards[i].item.node, &forwards[i].curve);
}
