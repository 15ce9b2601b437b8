/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_STORE_SCHEMA_H
#define HFI_JOBS_STORE_SCHEMA_H

/*
 * The schema by versions. A program refuses a file only when its min_writer is above HFI_SCHEMA, so that programs of
 * neighbouring versions work on one file.
 */
#define HFI_SCHEMA 1
#define HFI_SCHEMA_MIN_READER 1
#define HFI_SCHEMA_MIN_WRITER 1
#define HFI_APPLICATION_ID 0x48465354 /* "HFST" */

/* SQL that brings version `to` − 1 to version `to`, in parts 0, 1 …; NULL after the last part. */
const char *hfi_schema_step(int to, int part);

#endif
