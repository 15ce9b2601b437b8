/* SPDX-License-Identifier: MIT */
/* Filters of dead letters, and their counts by fingerprint. The main thread's. */
#include "program/commands/dead_filter.h"

#include "holdfast/units.h"
#include "program/commands/views.h"
#include "program/output.h"

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

static void print_groups(const struct hf_dead_group_list *list) {
    char first[HF_TIME_LENGTH], last[HF_TIME_LENGTH];
    uint64_t shown = 0;
    struct hfi_table *table = hfi_table_new(">COUNT|TYPE|DOWNSTREAM|CLASS|ERROR|FIRST|LAST|>EXAMPLE|FINGERPRINT");
    for (size_t i = 0; i < hf_dead_group_list_count(list); i++) {
        const struct hf_dead_group_view *group = hf_dead_group_list_at(list, i);
        shown += group->count;
        hfi_table_cell(table, "%llu", (unsigned long long)group->count);
        hfi_table_cell(table, "%s", group->type);
        hfi_table_cell(table, "%s", *group->downstream ? group->downstream : "-");
        hfi_table_cell(table, "%s", hf_death_class_name(group->death_class));
        hfi_table_cell(table, "%s", group->error_type);
        hfi_table_cell(table, "%s", hfi_show_time(group->first_dead_at_us, first));
        hfi_table_cell(table, "%s", hfi_show_time(group->last_dead_at_us, last));
        hfi_table_cell(table, "%lld", (long long)group->example_id);
        hfi_table_cell(table, "%s", group->fingerprint);
    }
    hfi_table_print(table);
    if (hf_dead_group_list_total(list) > shown)
        hfi_say("and %llu more in other groups", (unsigned long long)(hf_dead_group_list_total(list) - shown));
}

static void print_json(const struct hf_dead_group_list *list) {
    json_t *items = json_array();
    for (size_t i = 0; i < hf_dead_group_list_count(list); i++) {
        const struct hf_dead_group_view *group = hf_dead_group_list_at(list, i);
        json_t *item = json_object();
        hfi_json_text(item, "fingerprint", group->fingerprint);
        hfi_json_number(item, "count", (int64_t)group->count);
        hfi_json_text(item, "type", group->type);
        hfi_json_text(item, "downstream", group->downstream);
        hfi_json_text(item, "class", hf_death_class_name(group->death_class));
        hfi_json_text(item, "error_type", group->error_type);
        hfi_json_text(item, "error_message", group->error_message);
        hfi_json_text(item, "rule", group->rule);
        hfi_json_time(item, "first_dead_at", group->first_dead_at_us);
        hfi_json_time(item, "last_dead_at", group->last_dead_at_us);
        hfi_json_number(item, "newest_id", group->example_id);
        json_array_append_new(items, item);
    }
    hfi_print_list(items, 0);
}

int hfi_dead_groups(struct hfi_session *session, const struct hf_dead_filter *filter) {
    struct hf_dead_group_list *list = NULL;
    struct hf_error error;
    hf_error_init(&error);
    if (hf_dead_group_list_open(session->store, filter, &list, &error) != 0)
        return hfi_complain(&error);
    if (hfi_manner()->json)
        print_json(list);
    else
        print_groups(list);
    hf_dead_group_list_free(list);
    return HFI_EXIT_OK;
}
