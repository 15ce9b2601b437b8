/* SPDX-License-Identifier: MIT */
/*
 * `holdfast downstream list|show|isolate|close`: what the nodes wrote about their breakers, and control over all of them
 * through the store. The main thread's.
 */
#include <stdio.h>
#include <string.h>

#include "holdfast/guard.h"
#include "holdfast/http.h"
#include "holdfast/units.h"
#include "program/commands/commands.h"
#include "program/commands/downstream_find.h"
#include "program/commands/downstream_limits.h"
#include "program/nearest.h"
#include "program/output.h"
#include "program/session.h"

/* A downstream as known: its row, or only its name from the configuration. */
struct known {
    const char *name;
    const struct hf_downstream_row *row; /* NULL: no node has written anything */
    const struct hfi_downstream_setting *setting; /* NULL: not in the configuration */
};
struct all {
    struct hf_downstream_list *list;
    struct known *items;
    size_t count;
};

static struct known *find(const struct all *all, const char *name) {
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->items[i].name, name) == 0)
            return &all->items[i];
    return NULL;
}

static int load(struct hfi_session *session, struct all *all) {
    struct hf_error error;
    const struct hfi_items *settings = &session->config.settings.downstreams;
    const struct hfi_downstream_setting *configured = settings->items;
    hf_error_init(&error);
    memset(all, 0, sizeof *all);
    if (hf_store_list_downstreams(session->store, &all->list, &error) != 0)
        return hfi_complain(&error);
    all->items = hfi_arena_array(&session->config.arena, settings->count + hf_downstream_list_count(all->list) + 1,
                                 sizeof *all->items);
    for (size_t i = 0; i < settings->count; i++)
        all->items[all->count++] = (struct known){configured[i].item.name, NULL, &configured[i]};
    for (size_t i = 0; i < hf_downstream_list_count(all->list); i++) {
        const struct hf_downstream_row *row = hf_downstream_list_at(all->list, i);
        struct known *known = find(all, row->key);
        if (known)
            known->row = row;
        else
            all->items[all->count++] = (struct known){row->key, row, NULL};
    }
    return 0;
}

/* The state that is in force: what was forced is over when its time is. */
static enum hf_breaker_state state_of(const struct hf_downstream_row *row) {
    bool forced = row && row->forced != 0 && (row->forced_until_us == 0 || row->forced_until_us > hf_time_now());
    if (forced)
        return HF_BREAKER_ISOLATED;
    if (!row || row->phase == HF_BREAKER_ISOLATED)
        return HF_BREAKER_CLOSED;
    return (enum hf_breaker_state)row->phase;
}

/* Why it is in that state, for people; from the stored row alone. */
static void explain(const struct known *known, char *text, size_t room) {
    char until[HF_TIME_LENGTH], since[HF_TIME_LENGTH];
    const struct hf_downstream_row *row = known->row;
    if (!row) {
        snprintf(text, room, "no node has written anything about it: calls pass");
        return;
    }
    hf_time_print(row->unhealthy_since_us, since);
    switch (state_of(row)) {
    case HF_BREAKER_ISOLATED:
        snprintf(text, room, "isolated by hand until %s: nothing is called",
                 row->forced_until_us > 0 ? hf_time_print(row->forced_until_us, until) : "it is closed");
        break;
    case HF_BREAKER_OPEN:
        snprintf(text, room, "the breaker opened (trip %u%s%s): nothing is called until %s, %s", row->trips,
                 *since ? ", unhealthy since " : "", since, hfi_show_time(row->open_until_us, until),
                 row->open_until_us > hf_time_now() ? "then probes test it" : "which is over: the next call is a probe");
        break;
    case HF_BREAKER_HALF_OPEN:
        snprintf(text, room, "the break is over: a few probes decide whether it closes");
        break;
    case HF_BREAKER_RAMP:
        snprintf(text, room, "it has recovered: calls come back step by step");
        break;
    default:
        if (row->gate_until_us > hf_time_now())
            snprintf(text, room, "healthy, but it asked to be left alone until %s", hf_time_print(row->gate_until_us, until));
        else
            snprintf(text, room, "healthy: calls pass");
    }
}

/* When it is next tested, and by what. */
static void next_probe(const struct known *known, char *text, size_t room) {
    char until[HF_TIME_LENGTH], left[HFI_SPAN_LENGTH];
    const struct hf_downstream_row *row = known->row;
    int64_t left_us = row ? row->open_until_us - hf_time_now() : 0;
    char by[160];
    snprintf(by, sizeof by, known->setting && known->setting->probe_path ? "by a GET of %.120s" : "by the next call or job",
             known->setting && known->setting->probe_path ? known->setting->probe_path : "");
    switch (state_of(row)) {
    case HF_BREAKER_ISOLATED:
        snprintf(text, room, "none while it is isolated");
        break;
    case HF_BREAKER_OPEN:
        if (left_us > 0)
            snprintf(text, room, "%s, in %s, %s", hf_time_print(row->open_until_us, until),
                     hfi_show_span((left_us + 999) / 1000, left), by);
        else
            snprintf(text, room, "now, %s", by);
        break;
    case HF_BREAKER_HALF_OPEN:
        snprintf(text, room, "under way");
        break;
    default:
        text[0] = '\0';
    }
}

/* As it may be shown. */
static const char *url_of(const struct known *known, char *text, size_t room) {
    hf_url_redact(known->setting ? known->setting->url : "", text, room);
    return text;
}

static json_t *known_json(const struct known *known) {
    const struct hf_downstream_row *row = known->row;
    char url[300];
    json_t *object = json_object();
    char text[300];
    explain(known, text, sizeof text);
    hfi_json_text(object, "name", known->name);
    hfi_json_text(object, "state", hf_breaker_state_name(state_of(row)));
    hfi_json_text(object, "explanation", text);
    hfi_json_text(object, "reason", row ? row->reason : "");
    hfi_json_flag(object, "configured", known->setting != NULL);
    hfi_json_text(object, "url", url_of(known, url, sizeof url));
    hfi_json_flag(object, "isolated", row && state_of(row) == HF_BREAKER_ISOLATED);
    hfi_json_time(object, "isolated_until", row ? row->forced_until_us : 0);
    hfi_json_time(object, "open_until", row ? row->open_until_us : 0);
    hfi_json_time(object, "gate_until", row ? row->gate_until_us : 0);
    hfi_json_time(object, "next_probe_at", state_of(row) == HF_BREAKER_OPEN ? row->open_until_us : 0);
    hfi_json_time(object, "unhealthy_since", row ? row->unhealthy_since_us : 0);
    hfi_json_number(object, "trips", row ? row->trips : 0);
    hfi_json_number(object, "parked", row ? (int64_t)row->parked : 0);
    hfi_json_number(object, "version", row ? row->version : 0);
    return object;
}

static void print_known(const struct all *all) {
    char until[HF_TIME_LENGTH];
    struct hfi_table *table = hfi_table_new("DOWNSTREAM|STATE|>PARKED|>TRIPS|OPEN UNTIL|REASON");
    for (size_t i = 0; i < all->count; i++) {
        const struct known *known = &all->items[i];
        const struct hf_downstream_row *row = known->row;
        bool isolated = state_of(row) == HF_BREAKER_ISOLATED;
        hfi_table_cell(table, "%s", known->name);
        hfi_table_cell(table, "%s", hf_breaker_state_name(state_of(row)));
        hfi_table_cell(table, "%llu", (unsigned long long)(row ? row->parked : 0));
        hfi_table_cell(table, "%u", row ? row->trips : 0);
        hfi_table_cell(table, "%s", hfi_show_time(!row ? 0 : isolated ? row->forced_until_us : row->open_until_us, until));
        hfi_table_cell(table, "%s", row ? row->reason : "");
    }
    hfi_table_print(table);
}

static int run_list(const struct hfi_options *options) {
    struct hfi_session session;
    struct all all = {0};
    int code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0)
        code = load(&session, &all);
    if (code == 0 && hfi_manner()->json) {
        json_t *items = json_array();
        for (size_t i = 0; i < all.count; i++)
            json_array_append_new(items, known_json(&all.items[i]));
        hfi_print_list(items, 0);
    } else if (code == 0) {
        print_known(&all);
    }
    hf_downstream_list_free(all.list);
    hfi_session_close(&session);
    return code;
}

static int not_found(const struct all *all, const char *name) {
    struct hfi_nearest nearest;
    struct hf_error error;
    hf_error_init(&error);
    hfi_nearest_init(&nearest, name);
    for (size_t i = 0; i < all->count; i++)
        hfi_nearest_offer(&nearest, all->items[i].name);
    error.code = HF_ENOENT;
    snprintf(error.what, sizeof error.what, "downstream %.120s", name);
    snprintf(error.why, sizeof error.why, "neither the configuration nor the store knows it");
    if (nearest.best)
        snprintf(error.fix, sizeof error.fix, "did you mean `%.100s`?", nearest.best);
    return hfi_complain(&error);
}

int hfi_downstream_find(struct hfi_session *session, const char *name, const struct hfi_downstream_setting **setting) {
    struct all all;
    int code = load(session, &all);
    if (code != 0)
        return code;
    const struct known *known = find(&all, name);
    if (known)
        *setting = known->setting;
    else
        code = not_found(&all, name);
    hf_downstream_list_free(all.list);
    return code;
}

static void print_phase(const char *label, const struct hf_latency_view *phase) {
    if (phase->count > 0)
        hfi_field(label, "p50 %.1f ms, p95 %.1f ms, p99 %.1f ms of %llu", (double)phase->p50_us / 1000,
                  (double)phase->p95_us / 1000, (double)phase->p99_us / 1000, (unsigned long long)phase->count);
}

static json_t *phase_json(const struct hf_latency_view *phase) {
    json_t *object = json_object();
    hfi_json_number(object, "count", (int64_t)phase->count);
    hfi_json_number(object, "p50_us", phase->p50_us);
    hfi_json_number(object, "p95_us", phase->p95_us);
    hfi_json_number(object, "p99_us", phase->p99_us);
    return phase->count > 0 ? object : (json_decref(object), json_null());
}

static json_t *phases_json(const struct hf_phases_view *phases) {
    json_t *object = json_object();
    json_object_set_new(object, "resolve", phase_json(&phases->resolve));
    json_object_set_new(object, "connect", phase_json(&phases->connect));
    json_object_set_new(object, "tls", phase_json(&phases->tls));
    json_object_set_new(object, "first_byte", phase_json(&phases->first_byte));
    json_object_set_new(object, "total", phase_json(&phases->total));
    return object;
}

static void print_one(const struct known *known, const struct hf_phases_view *phases) {
    const struct hf_downstream_row *row = known->row;
    char url[300];
    char text[300];
    explain(known, text, sizeof text);
    hfi_field("downstream", "%s", known->name);
    hfi_field("url", "%s", url_of(known, url, sizeof url));
    hfi_field("state", "%s: %s", hf_breaker_state_name(state_of(row)), text);
    hfi_field("reason", "%s", row ? row->reason : "");
    next_probe(known, text, sizeof text);
    hfi_field("next probe", "%s", text);
    hfi_field("parked", "%llu jobs", (unsigned long long)(row ? row->parked : 0));
    hfi_field("trips", "%u", row ? row->trips : 0);
    print_phase("resolve", &phases->resolve);
    print_phase("connect", &phases->connect);
    print_phase("tls", &phases->tls);
    print_phase("first byte", &phases->first_byte);
    print_phase("whole attempt", &phases->total);
    if (known->setting)
        hfi_limits_print(&known->setting->policy);
}

static json_t *whole_json(const struct known *known, const struct hf_phases_view *phases) {
    json_t *object = known_json(known);
    char text[300];
    next_probe(known, text, sizeof text);
    hfi_json_text(object, "next_probe", text);
    json_object_set_new(object, "phases", phases_json(phases));
    json_object_set_new(object, "limits", known->setting ? hfi_limits_json(&known->setting->policy) : json_null());
    return object;
}

static int run_show(const struct hfi_options *options) {
    struct hfi_session session;
    struct all all = {0};
    const struct known *known = NULL;
    struct hf_phases_view phases;
    struct hf_error error;
    hf_phases_view_init(&phases);
    hf_error_init(&error);
    int code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0)
        code = load(&session, &all);
    if (code == 0 && !(known = find(&all, options->arguments[0])))
        code = not_found(&all, options->arguments[0]);
    if (code == 0 && hf_store_look_phases(session.store, known->name, &phases, &error) != 0)
        code = hfi_complain(&error);
    if (code == 0 && hfi_manner()->json)
        hfi_print_json(whole_json(known, &phases));
    else if (code == 0)
        print_one(known, &phases);
    hf_downstream_list_free(all.list);
    hfi_session_close(&session);
    return code;
}

static void print_changed(const char *name, bool isolated) {
    if (!hfi_manner()->json) {
        hfi_say("downstream %s %s", name, isolated ? "isolated: every node keeps away within a poll" : "closed: calls pass again");
        return;
    }
    json_t *object = json_object();
    hfi_json_text(object, "name", name);
    hfi_json_flag(object, "isolated", isolated);
    hfi_print_json(object);
}

static const struct hfi_flag isolate_flags[] = {
    {.name = "for", .kind = HFI_FLAG_DURATION, .min = 1, .value = "D", .help = "end by itself after D (default: until closed)"},
    {.name = "reason", .kind = HFI_FLAG_TEXT, .value = "R", .help = "why, shown to everybody", .required = true},
    {0},
};

/* Isolating a name that nobody knows would do nothing, in silence: known ones only. */
static int change(const struct hfi_options *options, bool isolate) {
    struct hfi_session session;
    struct all all = {0};
    struct hf_error error;
    const char *name = options->arguments[0];
    hf_error_init(&error);
    int code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (code == 0)
        code = load(&session, &all);
    if (code == 0 && !find(&all, name))
        code = not_found(&all, name);
    if (code == 0) {
        int result = isolate ? hf_store_isolate_downstream(session.store, name, hfi_flag_number(options, "for", 0),
                                                           hfi_flag_text(options, "reason", NULL), &error)
                             : hf_store_close_downstream(session.store, name, &error);
        code = result != 0 ? hfi_complain(&error) : 0;
    }
    if (code == 0)
        print_changed(name, isolate);
    hf_downstream_list_free(all.list);
    hfi_session_close(&session);
    return code;
}

static int run_isolate(const struct hfi_options *options) {
    if (!*hfi_flag_text(options, "reason", ""))
        return hfi_usage("reason", NULL, "it is empty");
    return change(options, true);
}

static int run_close(const struct hfi_options *options) {
    return change(options, false);
}

const struct hfi_command hfi_command_downstream_list = {
    .name = "downstream list",
    .arguments = "",
    .summary = "Lists the downstreams with their breakers",
    .example = "holdfast downstream list",
    .prints_json = true,
    .run = run_list,
};
const struct hfi_command hfi_command_downstream_show = {
    .name = "downstream show",
    .arguments = "DOWNSTREAM",
    .summary = "Shows a downstream: its state, why, when it is next tested, what it keeps back, how long its phases took, and its limits",
    .example = "holdfast downstream show payments",
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_show,
};
const struct hfi_command hfi_command_downstream_isolate = {
    .name = "downstream isolate",
    .arguments = "DOWNSTREAM",
    .summary = "Keeps every node away from a downstream; its jobs are parked",
    .example = "holdfast downstream isolate payments --for 2h --reason 'maintenance, ticket 4711'",
    .flags = isolate_flags,
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_isolate,
};
const struct hfi_command hfi_command_downstream_close = {
    .name = "downstream close",
    .arguments = "DOWNSTREAM",
    .summary = "Lets every node call a downstream again",
    .example = "holdfast downstream close payments",
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_close,
};
