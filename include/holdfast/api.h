/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_API_H
#define HOLDFAST_API_H

/* Marks what libholdfast exports. Everything else is hidden and named hfi_. */
#if defined(__GNUC__)
#define HF_API __attribute__((visibility("default")))
#define HF_MUST_CHECK __attribute__((warn_unused_result))
#define HF_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define HF_API
#define HF_MUST_CHECK
#define HF_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
#define HF_BEGIN extern "C" {
#define HF_END }
#else
#define HF_BEGIN
#define HF_END
#endif

#endif
