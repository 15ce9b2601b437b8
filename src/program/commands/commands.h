/* SPDX-License-Identifier: MIT */
#ifndef HFI_PROGRAM_COMMANDS_H
#define HFI_PROGRAM_COMMANDS_H

#include "program/options.h"

/* Every command of the program, ends with NULL. A command's file defines its struct; the list stands in commands.c. */
extern const struct hfi_command *const hfi_commands[];

extern const struct hfi_command hfi_command_run;
extern const struct hfi_command hfi_command_enqueue;
extern const struct hfi_command hfi_command_job_list;
extern const struct hfi_command hfi_command_job_show;
extern const struct hfi_command hfi_command_job_cancel;
extern const struct hfi_command hfi_command_job_requeue;
extern const struct hfi_command hfi_command_dead_list;
extern const struct hfi_command hfi_command_dead_show;
extern const struct hfi_command hfi_command_dead_redrive;
extern const struct hfi_command hfi_command_dead_resolve;
extern const struct hfi_command hfi_command_dead_discard;
extern const struct hfi_command hfi_command_dead_export;
extern const struct hfi_command hfi_command_dead_import;
extern const struct hfi_command hfi_command_dead_task_list;
extern const struct hfi_command hfi_command_dead_task_show;
extern const struct hfi_command hfi_command_dead_task_cancel;
extern const struct hfi_command hfi_command_alert_list;
extern const struct hfi_command hfi_command_alert_test;
extern const struct hfi_command hfi_command_queue_list;
extern const struct hfi_command hfi_command_queue_pause;
extern const struct hfi_command hfi_command_queue_resume;
extern const struct hfi_command hfi_command_outbox_list;
extern const struct hfi_command hfi_command_outbox_ddl;
extern const struct hfi_command hfi_command_ladder_show;
extern const struct hfi_command hfi_command_ladder_suggest;
extern const struct hfi_command hfi_command_downstream_list;
extern const struct hfi_command hfi_command_downstream_show;
extern const struct hfi_command hfi_command_downstream_isolate;
extern const struct hfi_command hfi_command_downstream_close;
extern const struct hfi_command hfi_command_check;
extern const struct hfi_command hfi_command_classify;
extern const struct hfi_command hfi_command_retry_after;
extern const struct hfi_command hfi_command_call;
extern const struct hfi_command hfi_command_doctor;
extern const struct hfi_command hfi_command_migrate;
extern const struct hfi_command hfi_command_demo;
extern const struct hfi_command hfi_command_help;

#endif
