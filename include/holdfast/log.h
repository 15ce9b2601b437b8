/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_LOG_H
#define HOLDFAST_LOG_H

#include "api.h"

enum hf_log_level { HF_LOG_DEBUG = 0, HF_LOG_INFO = 1, HF_LOG_WARNING = 2, HF_LOG_ERROR = 3 };

HF_BEGIN

/*
 * One line of the log. `event` is a stable dotted name (`job.dead`), `fields` is one JSON object without line
 * breaks, e.g. {"job":17,"error_type":"http.404"}; both live only during the call. Runs on any thread of the
 * library, never while one of its locks is held; it must not call blocking functions of holdfast.
 */
typedef void (*hf_log_fn)(enum hf_log_level level, const char *event, const char *fields, void *user);

/*
 * Replaces the process-wide log sink; NULL restores the default, JSON lines on stderr. Lines below `level` are
 * not made at all. A failing sink never changes what holdfast does. Thread-safe; a line that another thread is
 * writing may still reach the old sink. Since 0.1.
 */
HF_API void hf_log_set(enum hf_log_level level, hf_log_fn sink, void *user);

/*
 * A line of the host's own among the library's, to the same sink: `event` and `fields` as above. HF_EINVAL: `fields` is not
 * one object without line breaks. Any thread. Since 0.1.
 */
HF_API int hf_log_write(enum hf_log_level level, const char *event, const char *fields);

HF_END

#endif
