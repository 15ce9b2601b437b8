/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_OUTCOME_H
#define HOLDFAST_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"

/* X(NAME, text): the text is what logs, the store, metrics and the command line show. */
#define HF_OUTCOME_KIND_MAP(X) X(SUCCESS, "success") X(FAILURE, "failure") X(NEUTRAL, "neutral") X(REJECTED, "rejected")
#define HF_RETRY_MAP(X) X(NONE, "none") X(NOW, "now") X(FRESH, "fresh") X(LATER, "later")
#define HF_VERDICT_MAP(X) X(SUCCESS, "success") X(FAILURE, "failure") X(NEUTRAL, "neutral")
#define HF_CLASS_MAP(X) X(OK, "ok") X(TRANSIENT, "transient") X(PERMANENT, "permanent") X(POISON, "poison")
#define HF_STAGE_MAP(X)                                                                                       \
    X(LOCAL, "local") X(RESOLVE, "resolve") X(CONNECT, "connect") X(TLS, "tls") X(SEND, "send") X(WAIT, "wait") \
        X(RECEIVE, "receive") X(HANDLER, "handler")
#define HF_SENT_MAP(X) X(NO, "no") X(MAYBE, "maybe") X(YES, "yes")

#define HF_OUTCOME_MEMBER(name, text) HF_OUTCOME_##name,
#define HF_RETRY_MEMBER(name, text) HF_RETRY_##name,
#define HF_VERDICT_MEMBER(name, text) HF_VERDICT_##name,
#define HF_CLASS_MEMBER(name, text) HF_CLASS_##name,
#define HF_STAGE_MEMBER(name, text) HF_STAGE_##name,
#define HF_SENT_MEMBER(name, text) HF_SENT_##name,
enum hf_outcome_kind { HF_OUTCOME_KIND_MAP(HF_OUTCOME_MEMBER) };
/* The verdict for retries: not at all, now within the call, now but on a fresh connection, only later (not_before). */
enum hf_retry { HF_RETRY_MAP(HF_RETRY_MEMBER) };
/* The verdict for the breaker. */
enum hf_verdict { HF_VERDICT_MAP(HF_VERDICT_MEMBER) };
/* The verdict for the job: the class of a failure, or ok. */
enum hf_class { HF_CLASS_MAP(HF_CLASS_MEMBER) };
/* How far an attempt came. */
enum hf_stage { HF_STAGE_MAP(HF_STAGE_MEMBER) };
/* Did the peer get the request? NO is proof. */
enum hf_sent { HF_SENT_MAP(HF_SENT_MEMBER) };
#undef HF_OUTCOME_MEMBER
#undef HF_RETRY_MEMBER
#undef HF_VERDICT_MEMBER
#undef HF_CLASS_MEMBER
#undef HF_STAGE_MEMBER
#undef HF_SENT_MEMBER

HF_BEGIN

/*
 * How a call or an execution ended: four kinds and three separate verdicts, never one boolean. Made by the
 * library, read through these accessors. Texts belong to the outcome. A plain value: any thread, one at a time. Since 0.1.
 */
struct hf_outcome;

HF_API struct hf_outcome *hf_outcome_new(void);                               /* kind NEUTRAL; NULL when out of memory */
HF_API void hf_outcome_free(struct hf_outcome *outcome);                      /* NULL is fine */
HF_API void hf_outcome_copy(struct hf_outcome *to, const struct hf_outcome *from);
HF_API enum hf_outcome_kind hf_outcome_get_kind(const struct hf_outcome *outcome);
HF_API enum hf_retry hf_outcome_get_retry(const struct hf_outcome *outcome);
HF_API enum hf_verdict hf_outcome_get_verdict(const struct hf_outcome *outcome);
HF_API enum hf_class hf_outcome_get_class(const struct hf_outcome *outcome);
HF_API enum hf_stage hf_outcome_get_stage(const struct hf_outcome *outcome);
HF_API enum hf_sent hf_outcome_get_sent(const struct hf_outcome *outcome);
HF_API int hf_outcome_get_native(const struct hf_outcome *outcome);           /* HTTP status, CURLcode, errno … by error type */
HF_API const char *hf_outcome_get_error_type(const struct hf_outcome *outcome); /* `http.503`; "" on success */
HF_API const char *hf_outcome_get_message(const struct hf_outcome *outcome);
HF_API const char *hf_outcome_get_rule(const struct hf_outcome *outcome);     /* id of the rule that decided, `http.5xx` */
HF_API int64_t hf_outcome_get_retry_after_ms(const struct hf_outcome *outcome); /* wait asked for, uncut, or until the break ends; -1 none */
HF_API uint32_t hf_outcome_get_attempts(const struct hf_outcome *outcome);    /* that reached the transport in this call, hedges included */
HF_API uint32_t hf_outcome_get_hedges(const struct hf_outcome *outcome);      /* of the attempts: beside one that was slow or had failed */
HF_API uint32_t hf_outcome_get_retries(const struct hf_outcome *outcome);     /* short retries scheduled, each paid from the budget */
HF_API bool hf_outcome_get_retry_refused(const struct hf_outcome *outcome);   /* the budget refused a retry */
/* Phase times of the last attempt in µs from its start, -1 when it was not reached. */
HF_API int64_t hf_outcome_get_resolve_us(const struct hf_outcome *outcome);
HF_API int64_t hf_outcome_get_connect_us(const struct hf_outcome *outcome);
HF_API int64_t hf_outcome_get_tls_us(const struct hf_outcome *outcome);
HF_API int64_t hf_outcome_get_first_byte_us(const struct hf_outcome *outcome);
HF_API int64_t hf_outcome_get_total_us(const struct hf_outcome *outcome);

/* Constant texts of the enums; "unknown" for any other number. Any thread. Since 0.1. */
HF_API const char *hf_outcome_kind_name(enum hf_outcome_kind kind);
HF_API const char *hf_retry_name(enum hf_retry retry);
HF_API const char *hf_verdict_name(enum hf_verdict verdict);
HF_API const char *hf_class_name(enum hf_class klass);
HF_API const char *hf_stage_name(enum hf_stage stage);
HF_API const char *hf_sent_name(enum hf_sent sent);

/* One line for people into `text`; returns the length the whole line has. Since 0.1. */
HF_API size_t hf_outcome_print(const struct hf_outcome *outcome, char *text, size_t length);

HF_END

#endif
