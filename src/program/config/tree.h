/* SPDX-License-Identifier: MIT */
#ifndef HFI_CONFIG_TREE_H
#define HFI_CONFIG_TREE_H

#include <stddef.h>

#include "program/memory.h"

struct hfi_problems;

enum hfi_node_kind { HFI_NODE_SCALAR, HFI_NODE_LIST, HFI_NODE_MAP };

/* One value of a YAML document, without types: the schema gives them. Lines and columns count from 1. */
struct hfi_node {
    enum hfi_node_kind kind;
    int line, column;
    const char *key;           /* of a map's child, else NULL */
    int key_line, key_column;
    const char *text;          /* scalar: valid UTF-8 without NUL */
    struct hfi_node *parent, *children, *last, *next;
};

/*
 * Reads one YAML document. Anchors, aliases, tags, duplicate keys, keys that are not plain text, more than one
 * document, NUL and invalid UTF-8 are problems; so is a document deeper than 16 or larger than 20,000 values. An empty document
 * is an empty map. NULL after a problem that ends the reading.
 */
struct hfi_node *hfi_tree_read(struct hfi_arena *arena, const char *text, size_t length, struct hfi_problems *problems);

struct hfi_node *hfi_tree_child(const struct hfi_node *map, const char *key); /* NULL: none */
/* The node at a dotted path below `node`, or the deepest one on the way that exists. */
const struct hfi_node *hfi_tree_nearest(const struct hfi_node *node, const char *path);

#endif
