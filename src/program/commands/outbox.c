/* SPDX-License-Identifier: MIT */
/* `holdfast outbox list|ddl`: what waits in the applications' outboxes [S0.34], and the statement that makes one. The main thread's. */
#include <string.h>

#include "holdfast/outbox.h"
#include "holdfast/units.h"
#include "program/commands/commands.h"
#include "program/output.h"
#include "program/session.h"

static json_t *outbox_json(const struct hf_outbox_options *outbox, int failed, const struct hf_outbox_view *view, const char *why) {
    json_t *object = json_object();
    hfi_json_text(object, "name", outbox->name);
    hfi_json_text(object, "file", outbox->file);
    if (failed != 0) {
        hfi_json_text(object, "error", why);
        return object;
    }
    hfi_json_number(object, "rows", (int64_t)view->rows);
    hfi_json_time(object, "oldest_at", view->oldest_at_us);
    int64_t age = view->oldest_at_us > 0 ? (hf_time_now() - view->oldest_at_us) / 1000 : 0;
    hfi_json_number(object, "oldest_age_ms", age > 0 ? age : 0);
    return object;
}

static void table_line(struct hfi_table *table, const struct hf_outbox_options *outbox, int failed, const struct hf_outbox_view *view,
                       const char *why) {
    char oldest[HF_TIME_LENGTH];
    hfi_table_cell(table, "%s", outbox->name);
    if (failed != 0) {
        hfi_table_cell(table, "-");
        hfi_table_cell(table, "%s", why);
    } else {
        hfi_table_cell(table, "%llu", (unsigned long long)view->rows);
        hfi_table_cell(table, "%s", hfi_show_time(view->oldest_at_us, oldest));
    }
    hfi_table_cell(table, "%s", outbox->file);
}

static int list(const struct hf_runner_options *runner) {
    json_t *items = json_array();
    struct hfi_table *table = hfi_table_new("OUTBOX|>ROWS|OLDEST|FILE");
    bool any_failed = false;
    for (size_t i = 0; i < runner->outbox_count; i++) {
        struct hf_outbox_view view;
        struct hf_error error;
        hf_outbox_view_init(&view);
        hf_error_init(&error);
        int failed = hf_outbox_look(runner->outboxes[i].file, &view, &error);
        any_failed = any_failed || failed != 0;
        table_line(table, &runner->outboxes[i], failed, &view, error.why);
        json_array_append_new(items, outbox_json(&runner->outboxes[i], failed, &view, error.why));
    }
    hfi_table_print(table);
    if (hfi_manner()->json)
        hfi_print_list(items, 0);
    else
        json_decref(items);
    return any_failed ? HFI_EXIT_FAILED : HFI_EXIT_OK;
}

static int run_list(const struct hfi_options *options) {
    struct hfi_session session;
    int code = hfi_session_open(&session, options, 0);
    if (code == 0)
        code = list(&session.config.runner);
    hfi_session_close(&session);
    return code;
}

static int run_ddl(const struct hfi_options *options) {
    (void)options;
    if (hfi_manner()->json) {
        json_t *object = json_object();
        hfi_json_text(object, "sql", hf_outbox_ddl());
        hfi_print_json(object);
        return HFI_EXIT_OK;
    }
    hfi_say("%.*s", (int)strcspn(hf_outbox_ddl(), ";") + 1, hf_outbox_ddl());
    return HFI_EXIT_OK;
}

const struct hfi_command hfi_command_outbox_list = {
    .name = "outbox list",
    .arguments = "",
    .summary = "Lists the outboxes of the configuration with what waits in them",
    .about = "Reads the applications' files themselves, so it tells the age of the oldest row whether a node relays them or not.\n"
             "Exit code 1 when one cannot be read.",
    .example = "holdfast outbox list",
    .prints_json = true,
    .run = run_list,
};
const struct hfi_command hfi_command_outbox_ddl = {
    .name = "outbox ddl",
    .arguments = "",
    .summary = "Prints the statement that makes an outbox in an application's SQLite file",
    .example = "holdfast outbox ddl | sqlite3 shop.db",
    .prints_json = true,
    .run = run_ddl,
};
