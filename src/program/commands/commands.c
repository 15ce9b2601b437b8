/* SPDX-License-Identifier: MIT */
/* The list of commands, in the order in which help shows them. */
#include "program/commands/commands.h"

#include <stddef.h>

const struct hfi_command *const hfi_commands[] = {
    &hfi_command_run,
    &hfi_command_enqueue,
    &hfi_command_job_list,
    &hfi_command_job_show,
    &hfi_command_job_cancel,
    &hfi_command_job_requeue,
    &hfi_command_dead_list,
    &hfi_command_dead_show,
    &hfi_command_dead_redrive,
    &hfi_command_dead_resolve,
    &hfi_command_dead_discard,
    &hfi_command_dead_export,
    &hfi_command_dead_import,
    &hfi_command_dead_task_list,
    &hfi_command_dead_task_show,
    &hfi_command_dead_task_cancel,
    &hfi_command_alert_list,
    &hfi_command_alert_test,
    &hfi_command_queue_list,
    &hfi_command_queue_pause,
    &hfi_command_queue_resume,
    &hfi_command_outbox_list,
    &hfi_command_outbox_ddl,
    &hfi_command_downstream_list,
    &hfi_command_downstream_show,
    &hfi_command_downstream_isolate,
    &hfi_command_downstream_close,
    &hfi_command_check,
    &hfi_command_classify,
    &hfi_command_retry_after,
    &hfi_command_call,
    &hfi_command_doctor,
    &hfi_command_migrate,
    &hfi_command_demo,
    &hfi_command_help,
    NULL,
};
