/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_CLASSIFY_H
#define HOLDFAST_CLASSIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "error.h"
#include "outcome.h"

HF_BEGIN

struct hf_header; /* http.h */

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
/*
 * A statement that was cancelled (SQLITE_INTERRUPT, SQLSTATE 57014, MySQL 1317) is transient and neutral for the breaker:
 * nobody can tell from the code who cancelled it. One that you cancelled because its deadline was over is the server's
 * slowness: report hf_classify_errno(ETIMEDOUT) instead. One that you do not want any more: fire the guard's cancel, or
 * leave with HF_VERDICT_NEUTRAL.
 */
HF_API void hf_classify_sqlite(int extended_code, struct hf_outcome *outcome);
/* `sqlstate` of five characters; NULL or "" with a lost connection is `sql.connection`. */
HF_API void hf_classify_sqlstate(const char *sqlstate, struct hf_outcome *outcome);
/*
 * The same where the code says too little: 0A000 is permanent, but "cached plan must not change result type" only means
 * that the statement has to be prepared again. `text` is the primary message, or, whatever the server's language, its
 * PG_DIAG_SOURCE_FUNCTION ("RevalidateCachedQuery"); NULL is fine.
 */
HF_API void hf_classify_sqlstate_text(const char *sqlstate, const char *text, struct hf_outcome *outcome);
/* Every number or code of the chain is looked at, outermost first: see hf_classify_join. None at all is transient. */
HF_API void hf_classify_sqlstates(const char *const *sqlstates, size_t count, struct hf_outcome *outcome);
HF_API void hf_classify_mssql(const int *numbers, size_t count, struct hf_outcome *outcome);
HF_API void hf_classify_mysql(const int *numbers, size_t count, struct hf_outcome *outcome);
/* The reply that ended an SMTP transaction: 4yz transient, 5yz permanent, 421 counts against the server. */
HF_API void hf_classify_smtp(int code, struct hf_outcome *outcome);
HF_API void hf_classify_exit(int status, struct hf_outcome *outcome);
HF_API void hf_classify_signal(int number, struct hf_outcome *outcome);

/*
 * One error of a chain more: `outcome` (from hf_outcome_new, or joined before) takes over the verdicts of `cause` when
 * they say more. Any transient match wins, then any permanent one, then what no rule knows, then a success; of two
 * equals the first stays [S0.5]. `sent` becomes the most that any match says. A failure never becomes a success.
 */
HF_API void hf_classify_join(struct hf_outcome *outcome, const struct hf_outcome *cause);

/*
 * May a failed attempt be repeated within the call? `method` as on the wire; `has_key` says an idempotency key
 * is sent. Safe and idempotent methods (RFC 9110 9.2) always may, others only with a key or with sent == NO.
 */
HF_API bool hf_may_repeat(const char *method, bool has_key, enum hf_sent sent);

/* Names to numbers for the command line: "ECONNREFUSED", "SIGKILL", "CURLE_OPERATION_TIMEDOUT" or "28". -1 unknown. Since 0.1. */
HF_API int hf_errno_number(const char *name);
HF_API int hf_signal_number(const char *name);
HF_API int hf_curl_number(const char *name);

/*
 * Wait asked for by a raw Retry-After value: delta-seconds or any of the three HTTP date forms (RFC 9110 10.2.3,
 * 5.6.7). Milliseconds ≥ 0, saturating; a past date gives 0; -1 when it is none of them. Since 0.1.
 */
HF_API int64_t hf_retry_after_ms(const char *value, int64_t now_us);

/*
 * The built-in tables as data, for documentation and tools: `holdfast classify --table` prints them. Texts are the
 * library's and live for ever. Both fill as much as `size`, which the caller sets, has room for. HF_ENOENT behind the
 * last one, HF_EINVAL. Pure, any thread. Since 0.1.
 */
struct hf_rule_table {
    uint32_t size;
    bool ordered; /* the first row that matches decides; else every input has one row of its own */
    const char *name; /* "http" */
    const char *about;
    const char *source; /* where it comes from */
    size_t rows;
};
struct hf_rule_row {
    uint32_t size;
    enum hf_outcome_kind kind;
    enum hf_class klass;
    enum hf_retry retry;
    enum hf_verdict verdict;
    enum hf_stage stage; /* what the table believes; the facts of an attempt overrule it */
    enum hf_sent sent;
    const char *table;
    const char *note; /* "" or why */
    char rule[48];    /* the id that outcomes show; one row of a table has it */
    char match[1024]; /* "500-599", "ECONNREFUSED" */
};
HF_API int hf_rule_table(size_t index, struct hf_rule_table *table);
HF_API int hf_rule_row(const char *table, size_t index, struct hf_rule_row *row);

/*
 * A rule of one's own, in front of the built-in tables [S4.5]: data only. It matches when all that it names matches,
 * and overrules the verdicts that it names. What was sent and how far an attempt came are facts and never change.
 */
#define HF_RULE_NAME_MAX 40
#define HF_RULE_BODY_MAX 4096 /* bytes of an answer that a rule may look at */
#define HF_RULES_MAX 64       /* of one list */
enum hf_rule_decides { HF_RULE_CLASS = 1, HF_RULE_RETRY = 2, HF_RULE_BREAKER = 4 };

struct hf_rule {
    uint32_t size;
    const char *name; /* required: 1…40 letters, digits, - and _; the outcome's rule is `rule.NAME` */
    /* what it matches; at least one */
    const char *method;       /* NULL: any; the request's method as on the wire */
    int status_min, status_max; /* 0, 0: any, answer or not; else within 100…999; one status: both the same */
    const char *error_type;   /* NULL: any; dotted prefix of the error type: `http`, `curl.recv_error`, `timeout` */
    const char *header;       /* NULL: any; the answer has this header … */
    const char *header_value; /* … NULL: with any value; else exactly this one, or one that begins with it if it ends in * */
    const char *body;         /* NULL: any; this text stands in the first `body_within` bytes of the answer's body */
    uint32_t body_within;     /* 4096 at most; the length of `body` itself: the answer begins with it */
    /* what it decides: the fields that `decides` names, at least one */
    uint32_t decides; /* HF_RULE_CLASS | HF_RULE_RETRY | HF_RULE_BREAKER */
    enum hf_class klass;
    enum hf_retry retry;
    enum hf_verdict verdict;
};
static inline void hf_rule_init(struct hf_rule *rule) {
    memset(rule, 0, sizeof *rule);
    rule->size = (uint32_t)sizeof *rule;
    rule->body_within = HF_RULE_BODY_MAX;
}

/* The same in one line: one status (or a range of two) that is of this class. */
static inline struct hf_rule hf_rule_status(const char *name, int status_min, int status_max, enum hf_class klass) {
    struct hf_rule rule;
    hf_rule_init(&rule);
    rule.name = name;
    rule.status_min = status_min;
    rule.status_max = status_max;
    rule.decides = HF_RULE_CLASS;
    rule.klass = klass;
    return rule;
}

/*
 * Are these rules sound? HF_EINVAL, HF_ETEXT or HF_ETOOBIG with `error.what` as "rules[0].status". Two of one name, a rule
 * that matches everything or decides nothing, and verdicts that contradict each other are refused. Pure, any thread.
 * Since 0.1.
 */
HF_API int hf_rules_check(const struct hf_rule *rules, size_t count, struct hf_error *error);

/* What a rule may look at besides the outcome. All of it may be absent: then only rules that do not ask for it match. */
struct hf_rule_facts {
    uint32_t size;
    const char *method;
    int status; /* 0: no answer */
    const struct hf_header *headers; /* of the answer */
    size_t header_count;
    const void *body;
    size_t body_length;
};
static inline void hf_rule_facts_init(struct hf_rule_facts *facts) {
    memset(facts, 0, sizeof *facts);
    facts->size = (uint32_t)sizeof *facts;
}

/*
 * Lets the first rule that matches overrule `outcome`, which a classifier made from the same facts. Verdicts that the
 * rule leaves open stay, but for what would contradict the class it gives: `ok` and `permanent` are not retried, `ok`
 * counts as a success, and a success that becomes transient is retried and counts as a failure of the downstream.
 * Never touched: outcomes that are neither success nor failure (rejected, cancelled), `sent`, `stage`, and the breaker
 * verdict on what never left this process. Returns the rule's index, or -1. Rules that hf_rules_check would refuse
 * give no promise but this one: no crash, and -1 or a valid outcome. Pure, any thread. Since 0.1.
 */
HF_API int hf_rules_apply(const struct hf_rule *rules, size_t count, const struct hf_rule_facts *facts,
                          struct hf_outcome *outcome);

HF_END

#endif
