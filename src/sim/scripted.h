/* SPDX-License-Identifier: MIT */
#ifndef HFI_SIM_SCRIPTED_H
#define HFI_SIM_SCRIPTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scheduler.h"
#include "resilience/transport.h"

/*
 * The transport port without a network: every attempt is answered from a script, on any scheduler. For tests and the
 * simulator. All on the scheduler's thread.
 */

/* What happens to one attempt. Texts in `facts` stay the script's owner's and outlive the transport. */
struct hfi_script_step {
    int64_t delay_ms;               /* from its start to the answer; HFI_SCRIPT_NEVER: it hangs */
    int64_t connect_ms;             /* until then its stage is CONNECT and nothing was sent; ≤ delay_ms */
    int refuse;                     /* not 0: start returns this and nothing happens */
    struct hfi_attempt_facts facts; /* stage and sent are also what a cancel reports once it is connected */
};
#define HFI_SCRIPT_NEVER INT64_MAX

/* A step that answers with an HTTP status after `delay_ms`. */
struct hfi_script_step hfi_script_status(int64_t delay_ms, int status);
/* One that ends with a CURLcode; `sent` as proved. */
struct hfi_script_step hfi_script_code(int64_t delay_ms, int code, enum hf_sent sent);
/* One that never answers: connected and sent, or not even connected. */
struct hfi_script_step hfi_script_hang(bool connected);

/* What became of each attempt, in the order of their starts. */
enum hfi_script_end { HFI_SCRIPT_OPEN, HFI_SCRIPT_ANSWERED, HFI_SCRIPT_CANCELLED, HFI_SCRIPT_REFUSED };
struct hfi_script_record {
    struct hf_mono started, ended;
    enum hfi_script_end end;
    char method[16];
    char url[160]; /* cut */
    size_t body_length;
    int64_t connect_timeout_ms;
    bool fresh_connection, repeatable;
};

/* Decides instead of a list; `number` counts starts from 0. */
typedef struct hfi_script_step (*hfi_script_fn)(const struct hfi_attempt_spec *spec, uint64_t number, void *user);

struct hfi_scripted;
/* Plays `steps` one per start; the last one is repeated for ever. HF_EINVAL without any, HF_ENOMEM. */
int hfi_scripted_new(struct hfi_scheduler *scheduler, const struct hfi_script_step *steps, size_t count,
                     struct hfi_scripted **scripted);
int hfi_scripted_new_with(struct hfi_scheduler *scheduler, hfi_script_fn decide, void *user,
                          struct hfi_scripted **scripted);
struct hfi_transport *hfi_scripted_transport(struct hfi_scripted *scripted); /* its close frees `scripted` */
uint64_t hfi_scripted_started(const struct hfi_scripted *scripted);          /* refused ones included */
size_t hfi_scripted_open(const struct hfi_scripted *scripted); /* attempts neither answered nor cancelled */
/* The record of start `number`, NULL if there is none. The first HFI_SCRIPT_RECORDS are kept. */
#define HFI_SCRIPT_RECORDS 4096
const struct hfi_script_record *hfi_scripted_record(const struct hfi_scripted *scripted, uint64_t number);
/* The value of a request header of the newest start, NULL if it was not sent; valid until the next start. */
const char *hfi_scripted_header(const struct hfi_scripted *scripted, const char *name);

#endif
