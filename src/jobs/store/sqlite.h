/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_STORE_SQLITE_H
#define HFI_JOBS_STORE_SQLITE_H

#include "jobs/store.h"

/*
 * The store port on one SQLite file. Errors: HF_ENOENT (missing and not to be created, or no such folder), HF_EIO,
 * HF_EFOREIGN, HF_EVERSION, HF_ENOTSUP (network file system), HF_ECORRUPT, HF_EBUSY, HF_ENOSPC, HF_ENOMEM. A refused
 * file is left as it was.
 */
int hfi_sqlite_store_open(const char *path, const struct hf_store_options *options, struct hfi_store **store,
                          struct hf_error *error);

#endif
