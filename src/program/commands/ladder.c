/* SPDX-License-Identifier: MIT */
/*
 * `holdfast ladder show|suggest`: what the attempts of a downstream took, as the store keeps it, and limits proposed from
 * it. Must never write anything, and never give a number for which there are too few samples. The main thread's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/ladder.h"
#include "holdfast/units.h"
#include "program/commands/commands.h"
#include "program/commands/downstream_find.h"
#include "program/commands/ladder_plot.h"
#include "program/commands/ladder_print.h"
#include "program/output.h"
#include "program/session.h"

#define HOUR_US INT64_C(3600000000)

struct looked {
    struct hfi_session session;
    const struct hfi_downstream_setting *setting; /* NULL: not in the configuration */
    struct hf_measured *measured;
    const char *window;
};

static int nothing_measured(const char *name, const char *window) {
    struct hf_error error;
    hf_error_init(&error);
    error.code = HF_ENOENT;
    snprintf(error.what, sizeof error.what, "downstream %.120s", name);
    snprintf(error.why, sizeof error.why, "the store has no attempts of it within the last %s", window);
    snprintf(error.fix, sizeof error.fix,
             "let jobs call it: a node writes what their attempts took once a minute and when it drains");
    return hfi_complain(&error);
}

/* The names of the choice stand in the flag. */
static int64_t since(const struct hfi_options *options, const char **window) {
    static const struct {
        const char *name;
        int64_t hours;
    } windows[] = {{"hour", 1}, {"day", 24}, {"week", 168}};
    size_t index = (size_t)hfi_flag_number(options, "window", 2);
    *window = windows[index].name;
    return hf_time_now() - windows[index].hours * HOUR_US;
}

static int look(struct looked *looked, const struct hfi_options *options) {
    struct hf_error error;
    const char *name = options->arguments[0];
    hf_error_init(&error);
    memset(looked, 0, sizeof *looked);
    int64_t since_us = since(options, &looked->window);
    int code = hfi_session_open(&looked->session, options, HFI_SESSION_STORE);
    if (code == 0)
        code = hfi_downstream_find(&looked->session, name, &looked->setting);
    if (code == 0 && hf_store_measured(looked->session.store, name, since_us, &looked->measured, &error) != 0)
        code = hfi_complain(&error);
    if (code == 0 && hf_measured_hours(looked->measured) == 0)
        code = nothing_measured(name, looked->window);
    return code;
}

static void end(struct looked *looked) {
    hf_measured_free(looked->measured);
    hfi_session_close(&looked->session);
}

static int run_show(const struct hfi_options *options) {
    struct looked looked;
    int code = look(&looked, options);
    if (code == 0) {
        const struct hf_policy_options *policy = looked.setting ? &looked.setting->policy : NULL;
        if (hfi_manner()->json)
            hfi_ladder_json(looked.measured, policy, options->arguments[0], looked.window);
        else
            hfi_ladder_print(looked.measured, policy, options->arguments[0], looked.window);
    }
    end(&looked);
    return code;
}

/* "99.9", as a share; false: no percentage above 0 and below 100. */
static bool take_keep(const char *text, double *keep) {
    char *rest;
    double percent = strtod(text, &rest);
    if (rest == text || strspn(text, "0123456789.") != strlen(text) || *rest != '\0' || !(percent > 0 && percent < 100))
        return false;
    *keep = percent / 100;
    return true;
}

static void report(const struct hf_finding *finding, void *user) {
    hfi_problem_add(user, finding->is_error, finding->rule, 0, 0, finding->key, finding->fix, "%s", finding->why);
}

/* The whole configuration as if the proposal stood in it: job types have to fit too. */
static void prove(struct looked *looked, const struct hf_suggestion *suggestion, struct hfi_proof *proof) {
    struct hfi_config *config = &looked->session.config;
    struct hfi_downstream_setting *settings = config->settings.downstreams.items;
    struct hfi_check check = {0};
    const struct hfi_problem *before = config->problems.last;
    size_t errors = config->problems.errors;
    if (looked->setting) {
        settings[looked->setting - settings].policy = suggestion->policy;
        hfi_config_check(config, &check);
    } else {
        hf_policy_check(&suggestion->policy, report, &config->problems);
    }
    proof->first = before ? before->next : config->problems.first;
    proof->errors = config->problems.errors - errors;
}

static int run_suggest(const struct hfi_options *options) {
    struct looked looked;
    struct hf_suggestion suggestion;
    struct hfi_proof proof;
    double keep;
    const char *text = hfi_flag_text(options, "keep", "99.9");
    hf_suggestion_init(&suggestion);
    if (!take_keep(text, &keep))
        return hfi_usage("keep", "a percentage above 0 and below 100, as 99.9", "`%s` is none", text);
    int code = look(&looked, options);
    if (code == 0 && hf_ladder_suggest(looked.measured, looked.setting ? &looked.setting->policy : NULL, keep, &suggestion) != 0)
        code = hfi_usage("keep", NULL, "`%s` cannot be reckoned with", text);
    if (code == 0) {
        const struct hfi_proof *proven = hfi_flag(options, "check")->given ? &proof : NULL;
        if (proven)
            prove(&looked, &suggestion, &proof);
        if (hfi_manner()->json)
            hfi_suggestion_json(&suggestion, options->arguments[0], text, proven);
        else
            hfi_suggestion_print(&suggestion, options->arguments[0], text, proven);
        code = proven && proof.errors > 0 ? HFI_EXIT_FAILED : HFI_EXIT_OK;
    }
    end(&looked);
    return code;
}

#define WINDOW_FLAG                                                                                                    \
    { .name = "window", .kind = HFI_FLAG_CHOICE, .value = "hour|day|week", .help = "how far back (default: week)" }

static const struct hfi_flag show_flags[] = {WINDOW_FLAG, {0}};
static const struct hfi_flag suggest_flags[] = {
    {.name = "keep", .kind = HFI_FLAG_TEXT, .value = "PERCENT", .help = "of the attempts that would answer (default: 99.9)"},
    {.name = "check", .kind = HFI_FLAG_SWITCH, .help = "prove the proposal by the rules of `holdfast check`; exit 1 if it is none"},
    WINDOW_FLAG,
    {0},
};

const struct hfi_command hfi_command_ladder_show = {
    .name = "ladder show",
    .arguments = "DOWNSTREAM",
    .summary = "Shows what the attempts of a downstream took, and what its limits cut",
    .about = "Every attempt over HTTP that a node of this store made counts, short retries too. A bar has # for what ended, x for\n"
             "what failed by itself and : for what was cut. docs/ladder.md says how the estimates are made.",
    .example = "holdfast ladder show payments --window day",
    .flags = show_flags,
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_show,
};
const struct hfi_command hfi_command_ladder_suggest = {
    .name = "ladder suggest",
    .arguments = "DOWNSTREAM",
    .summary = "Proposes limits for a downstream from what its attempts took, as YAML to paste",
    .about = "Each of the connect and attempt limits keeps that share with 95 % confidence. Where there are too few samples\n"
             "today's value stays, and that is said. docs/ladder.md has the method.",
    .example = "holdfast ladder suggest payments --keep 99.9 --check",
    .flags = suggest_flags,
    .min_arguments = 1,
    .max_arguments = 1,
    .prints_json = true,
    .run = run_suggest,
};
