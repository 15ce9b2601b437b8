/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_STORE_CODES_H
#define HFI_JOBS_STORE_CODES_H

/* The HF_E… for a (extended) result code of SQLite; 0 for OK, ROW and DONE. */
int hfi_sqlite_code(int native);

#endif
