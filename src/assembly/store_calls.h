/* SPDX-License-Identifier: MIT */
#ifndef HFI_ASSEMBLY_STORE_CALLS_H
#define HFI_ASSEMBLY_STORE_CALLS_H

#include "base/blocking.h"
#include "jobs/writer.h"

/* What all blocking calls on a store share. */

/* 0, or HF_EDEADLK on the loop or writer thread. `what`: the thing asked for. */
int hfi_store_may_block(struct hf_store *store, const char *what, struct hf_error *error);
/* Runs the operation; details of a failure go to `error`, worded from the code when the store gave none. */
int hfi_store_do(struct hf_store *store, struct hfi_op *op, const char *what, struct hf_error *error);
struct hf_wall hfi_store_now(const struct hf_store *store);
/* A text a person gives: required or not, clean, at most `max` bytes. NULL becomes "". */
int hfi_given_text(const char *what, const char **text, size_t max, bool required, struct hf_error *error);
/* What a caller gave in a struct that begins with its size, over the defaults in `whole`. HF_EINVAL: its size is not set. */
int hfi_given_options(const char *what, void *whole, uint32_t whole_size, const void *given, struct hf_error *error);

#define HFI_ACTOR_MAX HFI_NAME_MAX
#define HFI_REASON_MAX 1000

#endif
