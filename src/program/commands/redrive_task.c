/* SPDX-License-Identifier: MIT */
/*
 * A redrive of many: begun as a task in the store, worked on here until it ends. Must never lose or double a letter when
 * it is interrupted: the task is the store's, and nodes go on with it. The main thread's.
 */
#include "program/commands/redrive_task.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/units.h"
#include "program/output.h"
#include "program/progress.h"
#include "program/words.h"

#define WAIT_MOST_MS 1000

static int read_share(const char *text, double *share) {
    char number[16];
    size_t length = strlen(text), digits = length > 0 && text[length - 1] == '%' ? length - 1 : length;
    if (digits < sizeof number) {
        memcpy(number, text, digits);
        number[digits] = '\0';
        if (hfi_word_real(number, share) && *share <= 100) {
            *share /= 100;
            return 0;
        }
    }
    return hfi_usage("stop-at", "write a percentage from 0 to 100, as 20%", "`%s` is none", text);
}

int hfi_redrive_flags(const struct hfi_options *options, struct hf_redrive_options *redrive) {
    const char *rate = hfi_flag_text(options, "rate", NULL), *share = hfi_flag_text(options, "stop-at", NULL);
    redrive->canary = (uint32_t)hfi_flag_number(options, "canary", 0);
    redrive->expect = hfi_flag_number(options, "expect", -1);
    if (rate && (!hfi_word_rate(rate, &redrive->rate_per_s) || !(redrive->rate_per_s > 0)))
        return hfi_usage("rate", "write 10/s, 600/m or 36000/h", "`%s` is not a rate", rate);
    return share ? read_share(share, &redrive->stop_at) : 0;
}

json_t *hfi_redrive_json(const struct hf_redrive_view *task) {
    json_t *object = json_object();
    hfi_json_number(object, "task", task->id);
    hfi_json_text(object, "state", hf_redrive_state_name(task->state));
    hfi_json_number(object, "total", (int64_t)task->total);
    hfi_json_number(object, "redriven", (int64_t)task->redriven);
    hfi_json_number(object, "refused", (int64_t)task->refused);
    hfi_json_number(object, "succeeded", (int64_t)task->succeeded);
    hfi_json_number(object, "failed", (int64_t)task->failed);
    hfi_json_number(object, "cancelled", (int64_t)task->cancelled);
    hfi_json_text(object, "note", task->note);
    hfi_json_text(object, "actor", task->actor);
    hfi_json_text(object, "reason", task->reason);
    hfi_json_text(object, "type", task->type);
    hfi_json_text(object, "queue", task->queue);
    hfi_json_text(object, "class", task->death_class < 0 ? "" : hf_death_class_name(task->death_class));
    hfi_json_text(object, "error_type", task->error_type);
    hfi_json_text(object, "fingerprint", task->fingerprint);
    hfi_json_time(object, "since", task->since_us);
    hfi_json_number(object, "canary", task->canary);
    hfi_json_flag(object, "waits_for_canary", task->waits_for_canary);
    json_object_set_new(object, "rate_per_second", task->rate_per_s > 0 ? json_real(task->rate_per_s) : json_null());
    json_object_set_new(object, "stop_at", task->stop_at >= 0 ? json_real(task->stop_at) : json_null());
    hfi_json_flag(object, "new_key", task->new_key);
    hfi_json_flag(object, "force", task->force);
    hfi_json_time(object, "created_at", task->created_at_us);
    hfi_json_time(object, "ended_at", task->ended_at_us);
    return object;
}

static void show_time(const char *label, int64_t at_us) {
    char text[HF_TIME_LENGTH];
    if (at_us > 0)
        hfi_field(label, "%s", hf_time_print(at_us, text));
}

void hfi_show_redrive(const struct hf_redrive_view *task) {
    hfi_field("task", "%lld", (long long)task->id);
    hfi_field("state", "%s%s", hf_redrive_state_name(task->state), task->waits_for_canary ? ", waits for its canary" : "");
    hfi_field("note", "%s", task->note);
    hfi_field("by", "%s", task->actor);
    hfi_field("reason", "%s", task->reason);
    hfi_field("type", "%s", task->type);
    hfi_field("queue", "%s", task->queue);
    hfi_field("class", "%s", task->death_class < 0 ? "" : hf_death_class_name(task->death_class));
    hfi_field("error", "%s", task->error_type);
    hfi_field("fingerprint", "%s", task->fingerprint);
    show_time("since", task->since_us);
    hfi_field("dead letters", "%llu: %llu redriven, %llu refused", (unsigned long long)task->total,
              (unsigned long long)task->redriven, (unsigned long long)task->refused);
    hfi_field("new jobs", "%llu succeeded, %llu failed, %llu cancelled", (unsigned long long)task->succeeded,
              (unsigned long long)task->failed, (unsigned long long)task->cancelled);
    if (task->canary > 0)
        hfi_field("canary", "%u", task->canary);
    if (task->rate_per_s > 0)
        hfi_field("rate", "%g/s", task->rate_per_s);
    if (task->stop_at >= 0)
        hfi_field("stops at", "%g%% failed", task->stop_at * 100);
    hfi_field("key", "%s", task->new_key ? "a new one for each" : "");
    show_time("created at", task->created_at_us);
    show_time("ended at", task->ended_at_us);
}

struct run {
    struct hfi_session *session;
    int64_t id;
    struct hf_redrive_list *list; /* of the one task */
    const struct hf_redrive_view *view;
};

static int look(struct run *run) {
    struct hf_redrive_filter filter;
    struct hf_error error;
    hf_error_init(&error);
    hf_redrive_filter_init(&filter);
    filter.id = run->id;
    hf_redrive_list_free(run->list);
    run->list = NULL;
    if (hf_redrive_list_open(run->session->store, &filter, &run->list, &error) != 0)
        return hfi_complain(&error);
    run->view = hf_redrive_list_at(run->list, 0);
    return 0;
}

/* Until it has ended, here or by a node's hand. */
static int work(struct run *run) {
    struct hfi_progress progress;
    struct hf_error error;
    int64_t wait_ms = 0;
    bool told = false;
    int code = 0;
    hfi_progress_start(&progress, "redriven", run->view->total);
    while (code == 0 && wait_ms >= 0) {
        hf_error_init(&error);
        if (hf_redrive_step(run->session->store, run->id, &wait_ms, &error) != 0)
            code = hfi_complain(&error);
        if (code == 0)
            code = look(run);
        if (code != 0)
            break;
        hfi_progress_move(&progress, run->view->redriven);
        if (run->view->waits_for_canary && !told)
            hfi_note("waiting until its canary has ended: `holdfast run` does that; without this command nodes go on alone");
        told |= run->view->waits_for_canary;
        if (wait_ms > 0)
            poll(NULL, 0, (int)(wait_ms < WAIT_MOST_MS ? wait_ms : WAIT_MOST_MS));
    }
    hfi_progress_end(&progress);
    return code;
}

static int print_end(const struct hf_redrive_view *view) {
    if (hfi_manner()->json) {
        hfi_print_json(hfi_redrive_json(view));
    } else if (view->state == HF_REDRIVE_RUNNING) {
        hfi_say("task %lld: %llu dead letters to redrive", (long long)view->id, (unsigned long long)view->total);
    } else {
        hfi_say("%llu redriven, %llu refused", (unsigned long long)view->redriven, (unsigned long long)view->refused);
        if (view->state != HF_REDRIVE_DONE || view->refused > 0)
            hfi_say("task %lld %s%s%s", (long long)view->id, hf_redrive_state_name(view->state), *view->note ? ": " : "", view->note);
    }
    if (view->state == HF_REDRIVE_RUNNING)
        return HFI_EXIT_OK;
    return view->state != HF_REDRIVE_DONE ? HFI_EXIT_FAILED : view->refused > 0 ? HFI_EXIT_REFUSED : HFI_EXIT_OK;
}

int hfi_redrive_many(struct hfi_session *session, const struct hf_redrive_options *redrive, bool detach) {
    struct run run = {.session = session};
    struct hf_error error;
    hf_error_init(&error);
    if (hf_redrive_start(session->store, redrive, &run.id, &error) != 0)
        return hfi_complain(&error);
    int code = look(&run);
    if (code == 0 && !detach) {
        if (redrive->expect < 0) /* nobody has said that they know it [I85] */
            fprintf(stderr, "holdfast: task %lld: %llu dead letters to redrive\n", (long long)run.id, (unsigned long long)run.view->total);
        code = work(&run);
    }
    if (code == 0)
        code = print_end(run.view);
    hf_redrive_list_free(run.list);
    return code;
}
