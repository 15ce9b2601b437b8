/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_CLASSIFY_H
#define HOLDFAST_CLASSIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "outcome.h"

HF_BEGIN

/*
 * The classifiers: pure tables, first match wins; what no rule knows is transient [S0.3]. Each fills `outcome`
 * (from hf_outcome_new) and never fails. Sources: RFC 9110, libcurl-errors(3), errno(3), sqlite.org/rescode,
 * PostgreSQL appendix A, sysexits(3), signal(7). Thread-safe. Since 0.1.
 */

/* `retry_after` is the raw header value or NULL; `now_us` the wall clock it is measured against, µs UTC. */
HF_API void hf_classify_http(int status, const char *retry_after, int64_t now_us, struct hf_outcome *outcome);
/* A CURLcode by number. `sent` overrides what the table believes when it is not HF_SENT_MAYBE. */
HF_API void hf_classify_curl(int code, enum hf_sent sent, struct hf_outcome *outcome);
HF_API void hf_classify_errno(int number, struct hf_outcome *outcome);
HF_API void hf_classify_sqlite(int extended_code, struct hf_outcome *outcome);
/* `sqlstate` of five characters; NULL or "" with a lost connection is `sql.connection`. */
HF_API void hf_classify_sqlstate(const char *sqlstate, struct hf_outcome *outcome);
/* Every number of the chain is looked at: any transient match wins [S0.5]. */
HF_API void hf_classify_mssql(const int *numbers, size_t count, struct hf_outcome *outcome);
HF_API void hf_classify_mysql(int number, struct hf_outcome *outcome);
HF_API void hf_classify_exit(int status, struct hf_outcome *outcome);
HF_API void hf_classify_signal(int number, struct hf_outcome *outcome);

/*
 * May a failed attempt be repeated within the call? `method` as on the wire; `has_key` says an idempotency key
 * is sent. Safe and idempotent methods (RFC 9110 9.2) always may, others only with a key or with sent == NO.
 */
HF_API bool hf_may_repeat(const char *method, bool has_key, enum hf_sent sent);

/* Names to numbers for the command line: "ECONNREFUSED", "SIGKILL", "CURLE_OPERATION_TIMEDOUT" or "28". -1 unknown. */
HF_API int hf_errno_number(const char *name);
HF_API int hf_signal_number(const char *name);
HF_API int hf_curl_number(const char *name);

/*
 * Wait asked for by a raw Retry-After value: delta-seconds or any of the three HTTP date forms (RFC 9110 10.2.3,
 * 5.6.7). Milliseconds ≥ 0, saturating; a past date gives 0; -1 when it is none of them. Since 0.1.
 */
HF_API int64_t hf_retry_after_ms(const char *value, int64_t now_us);

HF_END

#endif
