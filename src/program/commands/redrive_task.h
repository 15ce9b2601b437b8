/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_REDRIVE_TASK_H
#define HFI_PROGRAM_REDRIVE_TASK_H

#include <jansson.h>

#include "holdfast/dead.h"
#include "program/options.h"
#include "program/session.h"

/* How a redrive of many goes. */
#define HFI_REDRIVE_TASK_FLAGS                                                                                           \
    {.name = "rate", .kind = HFI_FLAG_TEXT, .value = "R", .help = "no faster than R, as 10/s or 600/m"},                 \
        {.name = "canary", .kind = HFI_FLAG_NUMBER, .value = "N", .help = "N first, the others when these have ended", .min = 1, .max = 1000000}, \
        {.name = "stop-at", .kind = HFI_FLAG_TEXT, .value = "PCT", .help = "stop when more of the new jobs have failed, as 20%; 0% = at the first one"}, \
        {.name = "expect", .kind = HFI_FLAG_NUMBER, .value = "N", .help = "refuse it unless there are N of them", .min = 0, .max = 1000000000}, \
        {.name = "detach", .kind = HFI_FLAG_SWITCH, .help = "print the task's id and leave the work to the nodes"}

/* Reads those flags into `options`. 0, or an exit code after a complaint. */
int hfi_redrive_flags(const struct hfi_options *options, struct hf_redrive_options *redrive);
/* A task as JSON, and as lines for people. */
json_t *hfi_redrive_json(const struct hf_redrive_view *task);
void hfi_show_redrive(const struct hf_redrive_view *task);

/* Begins the task, works on it until it ends, and prints how; an exit code. */
int hfi_redrive_many(struct hfi_session *session, const struct hf_redrive_options *redrive, bool detach);

#endif
