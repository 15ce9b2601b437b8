/* SPDX-License-Identifier: MIT */
/* `holdfast doctor` and `holdfast migrate`: the health and the schema of a store. The main thread's. */
#include <stdio.h>

#include "holdfast/units.h"
#include "program/commands/commands.h"
#include "program/output.h"
#include "program/session.h"

#define OUTBOX_LATE_MS 60000

struct findings {
    json_t *items; /* NULL unless --json */
    int errors, warnings;
};

static void add(struct findings *findings, bool is_error, const char *check, const char *text, const char *fix) {
    char clean[2000];
    findings->errors += is_error;
    findings->warnings += !is_error;
    if (findings->items) {
        json_t *item = json_object();
        hfi_json_text(item, "severity", is_error ? "error" : "warning");
        hfi_json_text(item, "check", check);
        hfi_json_text(item, "text", text);
        hfi_json_text(item, "fix", fix);
        json_array_append_new(findings->items, item);
        return;
    }
    hfi_say("%s%s%s %s: %s%s%s%s", hfi_paint(is_error ? "31" : "33"), is_error ? "E" : "W", hfi_unpaint(), check,
            hfi_printable(clean, sizeof clean, text), fix && *fix ? " (" : "", fix ? fix : "", fix && *fix ? ")" : "");
}

static void found(bool is_error, const char *check, const char *text, const char *fix, void *user) {
    add(user, is_error, check, text, fix);
}

/* Rows that nobody relays are jobs that nobody runs [S0.34]. */
static void check_outboxes(const struct hf_runner_options *runner, struct findings *findings) {
    for (size_t i = 0; i < runner->outbox_count; i++) {
        const struct hf_outbox_options *outbox = &runner->outboxes[i];
        struct hf_outbox_view view;
        struct hf_error error;
        char text[900], age[HFI_SPAN_LENGTH];
        hf_outbox_view_init(&view);
        hf_error_init(&error);
        int64_t now = hf_time_now();
        if (hf_outbox_look(outbox->file, &view, &error) != 0) {
            snprintf(text, sizeof text, "%s: %s: %s", outbox->name, error.what, error.why);
            add(findings, false, "outbox.unreadable", text, "its rows become no jobs; see docs/outbox.md");
        } else if (view.oldest_at_us > 0 && (now - view.oldest_at_us) / 1000 > OUTBOX_LATE_MS) {
            snprintf(text, sizeof text, "%s: %llu rows wait in %s, the oldest for %s", outbox->name, (unsigned long long)view.rows,
                     outbox->file, hfi_show_span((now - view.oldest_at_us) / 1000, age));
            add(findings, false, "outbox.late", text, "run a node with this outbox in its configuration");
        }
    }
}

/* The ladder of the configuration belongs to the health of what runs on the store (R16). */
static void check_config(struct hfi_session *session, struct findings *findings) {
    struct hfi_check check = {0};
    struct hf_error error;
    char text[1600];
    check_outboxes(&session->config.runner, findings);
    hfi_config_check(&session->config, &check);
    for (const struct hfi_problem *problem = session->config.problems.first; problem; problem = problem->next) {
        hfi_problem_error(&session->config.problems, problem, &error);
        error.fix[0] = '\0';
        hf_error_print(&error, text, sizeof text);
        add(findings, problem->is_error, problem->rule, text, problem->fix);
    }
}

/* Jobs of a limit name that is in no configuration here run without a limit: a slip, or another node's business. */
static int check_limits(struct hfi_session *session, struct findings *findings) {
    struct hf_limit_list *list = NULL;
    struct hf_error error;
    char text[300];
    hf_error_init(&error);
    if (hf_store_list_limits(session->store, &list, &error) != 0)
        return hfi_complain(&error);
    for (size_t i = 0; i < hf_limit_list_count(list); i++) {
        const struct hf_limit_view *limit = hf_limit_list_at(list, i);
        if (hfi_config_limit(&session->config, limit->name))
            continue;
        snprintf(text, sizeof text, "%llu jobs have the limit `%s`, which is not in this configuration: it does not limit",
                 (unsigned long long)(limit->pending + limit->running), limit->name);
        add(findings, false, "limit", text, "add it to limits, on every node");
    }
    hf_limit_list_free(list);
    return 0;
}

static int print_info(struct hfi_session *session) {
    struct hf_store_info info = {.size = sizeof info};
    int code = hf_store_look(session->store, &info);
    if (code != 0)
        return hfi_usage("store", NULL, "%s", hf_strerror(code));
    hfi_say("store %s %s, schema %u", info.kind, info.path, info.schema);
    return 0;
}

static int run_doctor(const struct hfi_options *options) {
    struct hfi_session session;
    struct findings findings = {0};
    struct hf_error error;
    hf_error_init(&error);
    int code = hfi_session_open(&session, options, HFI_SESSION_STORE);
    if (hfi_manner()->json)
        findings.items = json_array();
    if (code == 0)
        code = print_info(&session);
    if (code == 0 && hf_store_doctor(session.store, found, &findings, &error) < 0)
        code = hfi_complain(&error);
    if (code == 0)
        check_config(&session, &findings);
    if (code == 0)
        code = check_limits(&session, &findings);
    if (code == 0 && findings.items) {
        hfi_print_list(findings.items, 0);
        findings.items = NULL;
    } else if (code == 0) {
        hfi_say("%d error%s, %d warning%s", findings.errors, findings.errors == 1 ? "" : "s", findings.warnings,
                findings.warnings == 1 ? "" : "s");
    }
    json_decref(findings.items);
    hfi_session_close(&session);
    return code != 0 ? code : findings.errors > 0 ? HFI_EXIT_FAILED : HFI_EXIT_OK;
}

static int run_migrate(const struct hfi_options *options) {
    struct hfi_session session;
    struct hf_store_info info = {.size = sizeof info};
    int code = hfi_session_open(&session, options, HFI_SESSION_CREATE);
    int result = code == 0 ? hf_store_look(session.store, &info) : 0;
    if (result != 0)
        code = hfi_usage("store", NULL, "%s", hf_strerror(result));
    if (code == 0 && hfi_manner()->json) {
        json_t *object = json_object();
        hfi_json_text(object, "kind", info.kind);
        hfi_json_text(object, "path", info.path);
        hfi_json_text(object, "uuid", info.uuid);
        hfi_json_number(object, "schema", info.schema);
        hfi_json_number(object, "min_reader", info.min_reader);
        hfi_json_number(object, "min_writer", info.min_writer);
        hfi_json_flag(object, "migrated", info.migrated);
        hfi_print_json(object);
    } else if (code == 0) {
        hfi_say("store %s %s: schema %u, %s", info.kind, info.path, info.schema, info.migrated ? "brought up to date" : "up to date");
    }
    hfi_session_close(&session);
    return code;
}

const struct hfi_command hfi_command_doctor = {
    .name = "doctor",
    .arguments = "",
    .summary = "Looks for what should not be, in the store and the configuration",
    .about = "Rows that no scan would find, owners without a node, the integrity of the file, a full disk, undelivered alerts, the ladder, outboxes that nobody relays.\n"
             "Changes nothing. Exit code 1 when there are errors.",
    .example = "holdfast doctor",
    .prints_json = true,
    .run = run_doctor,
};
const struct hfi_command hfi_command_migrate = {
    .name = "migrate",
    .arguments = "",
    .summary = "Brings the store's schema up to date, or makes a new store",
    .about = "Every command does so when it opens the store; this one does nothing else. Each version is one transaction.",
    .example = "holdfast migrate --store sqlite:/var/lib/holdfast/jobs.db",
    .prints_json = true,
    .run = run_migrate,
};
