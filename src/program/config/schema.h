/* SPDX-License-Identifier: MIT */
#ifndef HFI_CONFIG_SCHEMA_H
#define HFI_CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Every key of the configuration in one table: it drives the binding, `holdfast check --explain`, holdfast.yaml(5)
 * and the tests. A key that is not here is unknown.
 *
 * A list of maps is two things: a row `x.*.rules` of type LIST whose `choices` is a section ("rule"), and the rows of
 * that section ("rule.name", "rule.status" …) with offsets in the item. The section stands once, for all keys that are
 * lists of it. Items have no name: `item.name` is NULL, `item.node` is where they stand; defaults that no text can write
 * are set in init_item of bind.c. Complaints come with file:line:column and `x.*.rules[0].status`.
 */
enum hfi_key_type {
    HFI_KEY_MAP,      /* a fixed set of keys below it */
    HFI_KEY_ITEMS,    /* names chosen by the user, each a map of the keys below `path.*` */
    HFI_KEY_TEXT,     /* const char *, literal: no ${ENV} */
    HFI_KEY_SECRET,   /* const char *; ${ENV} and file:PATH */
    HFI_KEY_URL,      /* const char *; ${ENV} */
    HFI_KEY_DURATION, /* int64_t ms, with a unit */
    HFI_KEY_SIZE,     /* int64_t bytes, with a unit */
    HFI_KEY_COUNT,    /* uint32_t */
    HFI_KEY_INTEGER,  /* int32_t */
    HFI_KEY_NUMBER,   /* double, plain decimal */
    HFI_KEY_RATE,     /* double a second: 10/s, 600/m */
    HFI_KEY_SWITCH,   /* bool: true or false */
    HFI_KEY_CHOICE,   /* int: index in `choices` */
    HFI_KEY_TEXTS,    /* struct hfi_texts */
    HFI_KEY_WAITS,    /* struct hfi_waits */
    HFI_KEY_HEADERS,  /* struct hfi_headers: name → secret */
    HFI_KEY_CURVE,    /* struct hfi_curve_setting: a list of waits, or the keys below `curve` */
    HFI_KEY_LIKE,     /* one item of the section that `choices` names, without what is an item's own: what its items start with */
    HFI_KEY_LIST,     /* struct hfi_items: a list of maps, each with the keys below the section that `choices` names */
    HFI_KEY_STATUSES, /* struct hfi_statuses: one HTTP status, or a range of them as 500-599 */
    HFI_KEY_SECRETS   /* struct hfi_texts; one text or a list of them, each as SECRET */
};

enum {
    HFI_KEY_REQUIRED = 1,
    HFI_KEY_NONE = 2,     /* a duration that takes `none`, stored as 0 */
    HFI_KEY_COMPUTED = 4, /* the default is told to people, not read: something else works it out */
    HFI_KEY_SHORT = 8,     /* a map that may be written as one text, which is its key `url` */
    HFI_KEY_OWN = 64      /* of one item alone: not for LIKE */
};

struct hfi_key {
    const char *path;    /* "downstreams.*.retry.max" */
    enum hfi_key_type type;
    unsigned traits;     /* HFI_KEY_REQUIRED … */
    size_t offset;       /* in the item, or in struct hfi_settings outside of items */
    size_t size;         /* ITEMS, LIST: of one item, a struct that begins with struct hfi_item */
    double min, max;     /* inclusive, of numbers; both 0 = what the type holds */
    const char *preset;  /* default as one would write it; NULL: none */
    const char *choices; /* "park|fail"; of a duration: words in its place, stored as -1, -2 …; LIST: the section of its items'
                            keys, "rule" for `rule.status` and so on */
    const char *doc;
};

extern const struct hfi_key hfi_keys[];
extern const size_t hfi_key_count;

/* The key `name` right below `prefix` ("" = top), NULL if there is none. */
const struct hfi_key *hfi_key_find(const char *prefix, const char *name);
bool hfi_key_is_below(const struct hfi_key *key, const char *prefix); /* right below it */
const char *hfi_key_name(const struct hfi_key *key); /* last part of the path */

/* For people: "duration, 1ms … 1h" and so on, into at least 160 bytes. */
char *hfi_key_describe(const struct hfi_key *key, char *text);
#define HFI_KEY_DOC 512
/* Its `doc`, and for a LIKE the keys that it does not take, into HFI_KEY_DOC bytes. */
char *hfi_key_doc(const struct hfi_key *key, char *text);

#endif
