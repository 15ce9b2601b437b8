/* SPDX-License-Identifier: MIT */
/* Filters of dead letters, and their counts by fingerprint. Must never hold more than one page of rows. The main thread's. */
#include "program/commands/dead_filter.h"

#include <stdlib.h>
#include <string.h>

#include "holdfast/units.h"
#include "program/commands/views.h"
#include "program/output.h"

#define GROUPS_MAX 1000

bool hfi_dead_filter_read(const struct hfi_options *options, struct hf_dead_filter *filter) {
    static const char *const names[] = {"type", "queue", "class", "error-type", "fingerprint", "since"};
    bool given = false;
    hf_dead_filter_init(filter);
    filter->type = hfi_flag_text(options, "type", NULL);
    filter->queue = hfi_flag_text(options, "queue", NULL);
    filter->death_class = (int32_t)hfi_flag_number(options, "class", -1);
    filter->error_type = hfi_flag_text(options, "error-type", NULL);
    filter->fingerprint = hfi_flag_text(options, "fingerprint", NULL);
    if (hfi_flag(options, "since")->given)
        filter->since_us = hfi_ago_us(hfi_flag(options, "since")->number);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        given |= hfi_flag(options, names[i])->given;
    return given;
}

struct group {
    const char *fingerprint, *type, *downstream, *error_type;
    int32_t death_class;
    int64_t first_us, last_us, newest_id;
    uint64_t count;
};
struct groups {
    struct hfi_arena *arena;
    struct group items[GROUPS_MAX];
    size_t count;
    uint64_t others; /* beyond GROUPS_MAX groups */
};

static void add(struct groups *groups, const struct hf_dead_view *dead) {
    struct group *group = groups->items;
    while (group < groups->items + groups->count && strcmp(group->fingerprint, dead->fingerprint) != 0)
        group++;
    if (group == groups->items + GROUPS_MAX) {
        groups->others++;
        return;
    }
    if (group == groups->items + groups->count) {
        groups->count++;
        group->fingerprint = hfi_arena_text(groups->arena, dead->fingerprint);
        group->type = hfi_arena_text(groups->arena, dead->type);
        group->downstream = hfi_arena_text(groups->arena, dead->downstream);
        group->error_type = hfi_arena_text(groups->arena, dead->error_type);
        group->death_class = dead->death_class;
        group->last_us = dead->dead_at_us;
        group->newest_id = dead->id;
    }
    group->first_us = dead->dead_at_us;
    group->count++;
}

static int by_count(const void *left, const void *right) {
    const struct group *a = left, *b = right;
    return a->count != b->count ? (a->count < b->count ? 1 : -1) : a->newest_id < b->newest_id ? 1 : -1;
}

static void print_groups(const struct groups *groups) {
    char last[HF_TIME_LENGTH];
    struct hfi_table *table = hfi_table_new(">COUNT|TYPE|DOWNSTREAM|CLASS|ERROR|LAST|FINGERPRINT");
    for (size_t i = 0; i < groups->count; i++) {
        const struct group *group = &groups->items[i];
        hfi_table_cell(table, "%llu", (unsigned long long)group->count);
        hfi_table_cell(table, "%s", group->type);
        hfi_table_cell(table, "%s", group->downstream);
        hfi_table_cell(table, "%s", hf_death_class_name(group->death_class));
        hfi_table_cell(table, "%s", group->error_type);
        hfi_table_cell(table, "%s", hfi_show_time(group->last_us, last));
        hfi_table_cell(table, "%s", group->fingerprint);
    }
    hfi_table_print(table);
    if (groups->others > 0)
        hfi_say("and %llu more in other groups", (unsigned long long)groups->others);
}

static void print_json(const struct groups *groups) {
    json_t *items = json_array();
    for (size_t i = 0; i < groups->count; i++) {
        const struct group *group = &groups->items[i];
        json_t *item = json_object();
        hfi_json_text(item, "fingerprint", group->fingerprint);
        hfi_json_number(item, "count", (int64_t)group->count);
        hfi_json_text(item, "type", group->type);
        hfi_json_text(item, "downstream", group->downstream);
        hfi_json_text(item, "class", hf_death_class_name(group->death_class));
        hfi_json_text(item, "error_type", group->error_type);
        hfi_json_time(item, "first_dead_at", group->first_us);
        hfi_json_time(item, "last_dead_at", group->last_us);
        hfi_json_number(item, "newest_id", group->newest_id);
        json_array_append_new(items, item);
    }
    hfi_print_list(items, 0);
}

int hfi_dead_groups(struct hfi_session *session, const struct hf_dead_filter *wanted) {
    struct groups *groups = hfi_arena_alloc(&session->config.arena, sizeof *groups);
    struct hf_dead_filter filter = *wanted;
    struct hf_dead_list *list = NULL;
    struct hf_error error;
    hf_error_init(&error);
    groups->arena = &session->config.arena;
    filter.limit = 1000;
    do {
        if (hf_dead_list_open(session->store, &filter, &list, &error) != 0)
            return hfi_complain(&error);
        for (size_t i = 0; i < hf_dead_list_count(list); i++)
            add(groups, hf_dead_list_at(list, i));
        filter.after_id = hf_dead_list_next(list);
        hf_dead_list_free(list);
    } while (filter.after_id > 0);
    qsort(groups->items, groups->count, sizeof *groups->items, by_count);
    if (hfi_manner()->json)
        print_json(groups);
    else
        print_groups(groups);
    return HFI_EXIT_OK;
}
