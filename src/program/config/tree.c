/* SPDX-License-Identifier: MIT */
/*
 * The only reader of YAML: events of libyaml become a tree of maps, lists and texts with their places. Must never give a
 * scalar a type of its own (no YAML 1.1 guessing), nor let one key win over another of the same name. Pure.
 */
#include "program/config/tree.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "program/config/problems.h"

#define DEPTH_MAX 16
#define NODES_MAX 20000

struct reading {
    struct hfi_arena *arena;
    struct hfi_problems *problems;
    yaml_parser_t parser;
    size_t nodes;
};

static void complain(struct reading *reading, const char *rule, yaml_mark_t at, const char *what, const char *fix,
                     const char *why) {
    hfi_problem_add(reading->problems, true, rule, (int)at.line + 1, (int)at.column + 1, what, fix, "%s", why);
}

/* libyaml's own complaint. A reader problem has a byte offset only, no line. */
static void complain_syntax(struct reading *reading) {
    const yaml_parser_t *parser = &reading->parser;
    yaml_mark_t at = parser->problem_mark;
    char why[200];
    if (parser->error == YAML_READER_ERROR) {
        at = parser->mark;
        snprintf(why, sizeof why, "%s at byte %zu", parser->problem ? parser->problem : "unreadable", parser->problem_offset);
        complain(reading, "config.text", at, "text", "save the file as UTF-8 without control characters", why);
        return;
    }
    snprintf(why, sizeof why, "%s%s%s", parser->context ? parser->context : "", parser->context ? ": " : "",
             parser->problem ? parser->problem : "not YAML");
    complain(reading, "config.syntax", at, "YAML", "indent with blanks, quote texts with : or #", why);
}

static bool next_event(struct reading *reading, yaml_event_t *event) {
    if (yaml_parser_parse(&reading->parser, event))
        return true;
    complain_syntax(reading);
    return false;
}

static struct hfi_node *add_node(struct reading *reading, struct hfi_node *parent, enum hfi_node_kind kind,
                                 yaml_mark_t at) {
    if (++reading->nodes > NODES_MAX) {
        complain(reading, "config.size", at, "file", "split it, or look for what was pasted", "more than 20000 values");
        return NULL;
    }
    struct hfi_node *node = hfi_arena_alloc(reading->arena, sizeof *node);
    node->kind = kind;
    node->line = (int)at.line + 1;
    node->column = (int)at.column + 1;
    node->parent = parent;
    return node;
}

static void attach(struct hfi_node *parent, struct hfi_node *node) {
    *(parent->last ? &parent->last->next : &parent->children) = node;
    parent->last = node;
}

/* Refuses what we never want of an event: anchors and tags. */
static bool plain(struct reading *reading, const yaml_event_t *event) {
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    } else if (event->type == YAML_ALIAS_EVENT) {
        complain(reading, "config.anchor", event->start_mark, "alias", "write the value out", "aliases are not allowed");
        return false;
    }
    if (anchor)
        complain(reading, "config.anchor", event->start_mark, "anchor", "write the value out", "anchors are not allowed");
    if (tag)
        complain(reading, "config.tag", event->start_mark, "tag", "leave it out: every key knows its type",
                 "tags are not allowed");
    return !anchor && !tag;
}

static struct hfi_node *read_node(struct reading *reading, const yaml_event_t *event, struct hfi_node *parent, int depth);

static struct hfi_node *read_scalar(struct reading *reading, const yaml_event_t *event, struct hfi_node *parent) {
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(text, 0, length)) {
        complain(reading, "config.text", event->start_mark, "text", "leave the NUL out", "a text holds a NUL");
        return NULL;
    }
    struct hfi_node *node = add_node(reading, parent, HFI_NODE_SCALAR, event->start_mark);
    if (node)
        node->text = hfi_arena_copy(reading->arena, text, length);
    return node;
}

static struct hfi_node *read_list(struct reading *reading, const yaml_event_t *start, struct hfi_node *parent, int depth) {
    struct hfi_node *list = add_node(reading, parent, HFI_NODE_LIST, start->start_mark);
    yaml_event_t event;
    while (list && next_event(reading, &event)) {
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            return list;
        }
        struct hfi_node *item = read_node(reading, &event, list, depth);
        yaml_event_delete(&event);
        if (!item)
            return NULL;
        attach(list, item);
    }
    return NULL;
}

/* The key an event gives, or NULL after a complaint. */
static const char *read_key(struct reading *reading, const yaml_event_t *event, const struct hfi_node *map) {
    const struct hfi_node *same = NULL;
    if (!plain(reading, event))
        return NULL;
    if (event->type != YAML_SCALAR_EVENT || memchr(event->data.scalar.value, 0, event->data.scalar.length)) {
        complain(reading, "config.key", event->start_mark, "key", "write `name: value`", "a key has to be a plain text");
        return NULL;
    }
    const char *key = hfi_arena_copy(reading->arena, (const char *)event->data.scalar.value, event->data.scalar.length);
    if ((same = hfi_tree_child(map, key)))
        hfi_problem_add(reading->problems, true, "config.duplicate_key", (int)event->start_mark.line + 1,
                        (int)event->start_mark.column + 1, *key ? key : "key", "keep one of them", "the key stands in line %d already",
                        same->key_line);
    return key;
}

static struct hfi_node *read_pair(struct reading *reading, const yaml_event_t *event, struct hfi_node *map, int depth) {
    yaml_event_t value;
    const char *key = read_key(reading, event, map);
    if (!key || !next_event(reading, &value))
        return NULL;
    struct hfi_node *node = read_node(reading, &value, map, depth);
    yaml_event_delete(&value);
    if (node) {
        node->key = key;
        node->key_line = (int)event->start_mark.line + 1;
        node->key_column = (int)event->start_mark.column + 1;
        if (!hfi_tree_child(map, key)) /* a second one is complained about and then left out */
            attach(map, node);
    }
    return node;
}

static struct hfi_node *read_map(struct reading *reading, const yaml_event_t *start, struct hfi_node *parent, int depth) {
    struct hfi_node *map = add_node(reading, parent, HFI_NODE_MAP, start->start_mark);
    yaml_event_t event;
    while (map && next_event(reading, &event)) {
        if (event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            return map;
        }
        struct hfi_node *node = read_pair(reading, &event, map, depth);
        yaml_event_delete(&event);
        if (!node)
            return NULL;
    }
    return NULL;
}

static struct hfi_node *read_node(struct reading *reading, const yaml_event_t *event, struct hfi_node *parent, int depth) {
    if (!plain(reading, event))
        return NULL;
    if (depth >= DEPTH_MAX) {
        complain(reading, "config.size", event->start_mark, "value", "write it flatter", "nested deeper than 16");
        return NULL;
    }
    if (event->type == YAML_SCALAR_EVENT)
        return read_scalar(reading, event, parent);
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return read_list(reading, event, parent, depth + 1);
    return read_map(reading, event, parent, depth + 1);
}

/* From the stream's start to the end of its only document. */
static struct hfi_node *read_stream(struct reading *reading) {
    struct hfi_node *root = NULL;
    yaml_event_t event;
    while (next_event(reading, &event)) {
        yaml_event_type_t type = event.type;
        bool node = type == YAML_SCALAR_EVENT || type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT ||
                    type == YAML_ALIAS_EVENT;
        if (node)
            root = read_node(reading, &event, NULL, 0);
        if (type == YAML_DOCUMENT_START_EVENT && root) {
            complain(reading, "config.documents", event.start_mark, "document", "keep one", "a second one begins here");
            root = NULL;
            type = YAML_STREAM_END_EVENT;
        }
        if (type == YAML_STREAM_END_EVENT && !root && reading->problems->errors == 0)
            root = add_node(reading, NULL, HFI_NODE_MAP, event.start_mark);
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT || (node && !root))
            return root;
    }
    return NULL;
}

struct hfi_node *hfi_tree_read(struct hfi_arena *arena, const char *text, size_t length, struct hfi_problems *problems) {
    struct reading reading = {.arena = arena, .problems = problems};
    if (!yaml_parser_initialize(&reading.parser))
        hfi_grow(NULL, (size_t)-1); /* out of memory: says so and ends */
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* libyaml would put the first line's keys one column off */
        text += 3;
        length -= 3;
    }
    yaml_parser_set_input_string(&reading.parser, (const unsigned char *)text, length);
    yaml_parser_set_encoding(&reading.parser, YAML_UTF8_ENCODING);
    struct hfi_node *root = read_stream(&reading);
    yaml_parser_delete(&reading.parser);
    /* A file of comments only, or the null that `---` alone gives, is an empty map too. */
    if (root && root->kind == HFI_NODE_SCALAR && !*root->text)
        root->kind = HFI_NODE_MAP;
    return root;
}

struct hfi_node *hfi_tree_child(const struct hfi_node *map, const char *key) {
    struct hfi_node *child = map && map->kind == HFI_NODE_MAP ? map->children : NULL;
    while (child && strcmp(child->key, key) != 0)
        child = child->next;
    return child;
}

const struct hfi_node *hfi_tree_nearest(const struct hfi_node *node, const char *path) {
    char key[128];
    while (node && *path) {
        size_t length = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        const struct hfi_node *child = hfi_tree_child(node, key);
        if (!child)
            break;
        node = child;
        path += length + (path[length] == '.');
    }
    return node;
}
