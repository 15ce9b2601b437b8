/* SPDX-License-Identifier: MIT */
/*
 * One attempt's facts to one outcome: the transport's own reasons first, then the CURLcode, then the HTTP status. What
 * was sent and how far it came are taken from the facts, never guessed from a code. Decides nothing about retries
 * beyond the verdict. Pure, any thread.
 */
#include "resilience/classify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "resilience/table.h"

#define LOOKUPS_FULL_WAIT_MS 1000 /* unresolved names end in seconds; ask again then */

/* Reasons a transport gives by itself; first match by dotted prefix. What is not listed is the peer's failure [S0.3].
 */
static const struct {
    const char *type;
    enum hfi_effect effect;
    const char *note;
} reasons[] = {
    {"http.body_too_large", HFI_EFFECT_REFUSED, "larger than response_limit"},
    {"http.headers_too_large", HFI_EFFECT_REFUSED, "larger than what is taken"},
    {"http.truncated_headers", HFI_EFFECT_DOWN, "the answer ended in its headers"},
    {"http.connection_lost", HFI_EFFECT_DOWN, "a reused connection died; libcurl would have sent it twice"}, /* L1 */
    {"proxy.refused", HFI_EFFECT_REFUSED, "a proxy answered CONNECT with its own 3xx or 4xx"},
    {"proxy.failed", HFI_EFFECT_DOWN, "a proxy answered CONNECT with 429 or 5xx"},
    {"local.private_network", HFI_EFFECT_REFUSED, "the name leads into a network that is not allowed"},
    {"local.url", HFI_EFFECT_REFUSED, "libcurl cannot read the URL"},
    {"local", HFI_EFFECT_BUSY, "descriptors, memory …: never the peer's fault"},
};
#define REASONS (sizeof reasons / sizeof *reasons)

static void own_reason(const struct hfi_attempt_facts *facts, struct hf_outcome *outcome) {
    char rule[sizeof outcome->rule];
    enum hfi_effect effect = HFI_EFFECT_DOWN;
    if (hfi_dotted_prefix("local.lookups", facts->error_type)) {
        hfi_outcome_init(outcome);
        hfi_outcome_rejected(outcome, facts->error_type, LOOKUPS_FULL_WAIT_MS);
        return;
    }
    for (size_t i = 0; i < REASONS; i++) {
        if (hfi_dotted_prefix(reasons[i].type, facts->error_type)) {
            effect = reasons[i].effect;
            break;
        }
    }
    snprintf(rule, sizeof rule, "transport.%s", facts->error_type);
    hfi_effect_apply(outcome, effect, facts->stage, facts->sent, facts->native, facts->error_type, rule);
}

static bool says(const struct hfi_attempt_facts *facts, const char *text) {
    return facts->message != NULL && strcasestr(facts->message, text) != NULL;
}

static bool own_resources(int number) {
    return number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM || number == EADDRNOTAVAIL ||
           number == EADDRINUSE;
}

/* Where the code alone says too little: the errno, the text and the stage behind it decide. The first row that holds.
 */
enum condition { PERHAPS_SENT, OWN_SHORTAGE, NEVER_STARTED, CUT_OFF, TEXT };
static const struct finer {
    int code;
    enum condition when;
    const char *text; /* TEXT: what the message holds */
    enum hfi_effect effect;
    const char *rule, *note;
} finer[] = {
    {1, PERHAPS_SENT, NULL, HFI_EFFECT_DOWN_FRESH, "curl.1.reply", "a reply that is no HTTP at all, not a bad scheme"},
    {7, OWN_SHORTAGE, NULL, HFI_EFFECT_BUSY, "curl.7.local",
     "a socket that could not be made looks like a refused connection"},
    {45, OWN_SHORTAGE, NULL, HFI_EFFECT_BUSY, "curl.45.local", "the local end"},
    {28, NEVER_STARTED, NULL, HFI_EFFECT_BUSY, "curl.28.queue", "died in a queue of ours"}, /* L3 */
    {35, CUT_OFF, NULL, HFI_EFFECT_DOWN, "curl.35.cut", "cut or reset in the handshake, not refused by it"},
    {56, TEXT, "Too large response headers", HFI_EFFECT_REFUSED, "curl.56.headers", ""},
    {56, TEXT, "alert", HFI_EFFECT_BROKEN, "curl.56.alert",
     "TLS 1.3 refuses our certificate after the request went out"},
};
#define FINER (sizeof finer / sizeof *finer)
static const char *const condition_texts[] = {"and something may have been sent",
                                              "and the errno is a shortage of our own", "in stage local, nothing sent",
                                              "with an errno or SSL_ERROR_SYSCALL", "with text"};

static bool holds(const struct finer *row, const struct hfi_attempt_facts *facts) {
    if (row->code != facts->native)
        return false;
    switch (row->when) {
    case PERHAPS_SENT:
        return facts->sent != HF_SENT_NO;
    case OWN_SHORTAGE:
        return own_resources(facts->native_errno);
    case NEVER_STARTED:
        return facts->stage == HF_STAGE_LOCAL && facts->sent == HF_SENT_NO;
    case CUT_OFF:
        return facts->native_errno != 0 || says(facts, "SSL_ERROR_SYSCALL");
    case TEXT:
        break;
    }
    return says(facts, row->text);
}

static void by_code(const struct hfi_attempt_facts *facts, struct hf_outcome *outcome) {
    const struct finer *row = finer;
    hf_classify_curl(facts->native, facts->sent, outcome);
    while (row < finer + FINER && !holds(row, facts))
        row++;
    if (row < finer + FINER) {
        char type[HFI_ERROR_TYPE_MAX];
        hfi_text_copy(type, sizeof type, outcome->error_type);
        hfi_effect_apply(outcome, row->effect, facts->stage, facts->sent, facts->native, type, row->rule);
    }
    outcome->stage = facts->stage;
    outcome->sent = facts->sent;
    /* A proxy that refused the tunnel: the request itself never left. */
    if (facts->native == 56 && says(facts, "CONNECT tunnel failed"))
        outcome->sent = HF_SENT_NO;
}

static void by_status(const struct hfi_attempt_facts *facts, struct hf_wall wall, bool policy_429,
                      struct hf_outcome *outcome) {
    hf_classify_http(facts->status, facts->retry_after, wall.us, outcome);
    outcome->stage = facts->stage;
    if (facts->status != 408) /* "I got no request in time": perhaps the last one's answer on this connection */
        outcome->sent = facts->sent;
    if (facts->status == 429 && policy_429)
        outcome->verdict = HF_VERDICT_FAILURE;
}

void hfi_classify_attempt(const struct hfi_attempt_facts *facts, struct hf_wall wall, bool policy_429,
                          struct hf_outcome *outcome) {
    if (facts->error_type != NULL)
        own_reason(facts, outcome);
    else if (facts->native != 0 && !(facts->native == 22 && facts->status != 0))
        by_code(facts, outcome);
    else
        by_status(facts, wall, policy_429, outcome);
    if (facts->message != NULL && facts->message[0] != '\0')
        hfi_outcome_say(outcome, facts->message);
    outcome->phases = facts->phases;
}

/* Only a limit of the attempt itself says that the peer is slow; the others may cut an attempt short. */
static const struct {
    const char *type;
    enum hfi_effect effect;
    const char *note;
} limits[] = {
    {"timeout.connect", HFI_EFFECT_DOWN, "resolving, connecting and TLS took too long"},
    {"timeout.attempt", HFI_EFFECT_DOWN, "the whole attempt took too long"},
    {"timeout.total", HFI_EFFECT_BUSY_LATER, "the call ran out of time, wherever it was"},
    {"timeout", HFI_EFFECT_BUSY_LATER, "a limit around the call, such as timeout.execution of its job"},
};
#define LIMITS (sizeof limits / sizeof *limits)

void hfi_classify_timeout(const char *which, enum hf_sent sent, enum hf_stage stage, struct hf_outcome *outcome) {
    size_t row = 0;
    while (row < LIMITS - 1 && !hfi_dotted_prefix(limits[row].type, which))
        row++;
    hfi_effect_apply(outcome, limits[row].effect, stage, sent, 0, which, which);
    hfi_outcome_message(outcome, "the %s limit passed in stage %s", strchr(which, '.') ? strchr(which, '.') + 1 : which,
                        hf_stage_name(stage));
}

void hfi_classify_cancelled(enum hf_sent sent, enum hf_stage stage, struct hf_outcome *outcome) {
    hfi_outcome_init(outcome);
    hfi_outcome_set(outcome, HF_OUTCOME_NEUTRAL, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, HF_CLASS_TRANSIENT,
                    "call.cancelled", "call.cancelled");
    outcome->sent = sent;
    outcome->stage = stage;
    hfi_outcome_message(outcome, "cancelled by the caller in stage %s", hf_stage_name(stage));
}

static void show_finer(size_t index, struct hf_rule_row *row) {
    const struct finer *from = &finer[index];
    struct hf_rule_row of_code = {.size = sizeof of_code};
    hf_rule_row("curl", (size_t)from->code, &of_code);
    bool unsent = from->when == NEVER_STARTED || from->when == OWN_SHORTAGE;
    hfi_row_fill(row, from->effect, from->when == NEVER_STARTED ? HF_STAGE_LOCAL : of_code.stage,
                 unsent ? HF_SENT_NO : HF_SENT_MAYBE, from->rule, from->note, "%s %s%s%s%s", of_code.match,
                 condition_texts[from->when], from->text != NULL ? " \"" : "", from->text != NULL ? from->text : "",
                 from->text != NULL ? "\"" : "");
}

const struct hfi_table hfi_table_attempt = {"attempt",
                                            "What an attempt knows beyond its CURLcode, asked before that table. Stage "
                                            "and `sent` are always those of the attempt.",
                                            "libcurl's errno, error text and stage",
                                            true,
                                            FINER,
                                            show_finer};

static void show_reason(size_t index, struct hf_rule_row *row) {
    char rule[HFI_ERROR_TYPE_MAX];
    if (index == REASONS) {
        hfi_row_rest(row, "transport.*");
        return;
    }
    snprintf(rule, sizeof rule, "transport.%s", reasons[index].type);
    bool local = strncmp(reasons[index].type, "local", 5) == 0;
    bool proxy = strncmp(reasons[index].type, "proxy", 5) == 0;
    hfi_row_fill(row, reasons[index].effect, local ? HF_STAGE_LOCAL : proxy ? HF_STAGE_CONNECT : HF_STAGE_RECEIVE,
                 local || proxy ? HF_SENT_NO : HF_SENT_YES, rule, reasons[index].note, "%s", reasons[index].type);
}

const struct hfi_table hfi_table_transport = {"transport",
                                              "Reasons the transport gives by itself, by dotted prefix. Stage and "
                                              "`sent` are always those of the attempt; the rule's id has the "
                                              "whole type.",
                                              "src/resilience/transport.h",
                                              true,
                                              REASONS + 1,
                                              show_reason};

static void show_limit(size_t index, struct hf_rule_row *row) {
    hfi_row_fill(row, limits[index].effect, HF_STAGE_WAIT, HF_SENT_MAYBE, limits[index].type, limits[index].note, "%s",
                 limits[index].type);
}

const struct hfi_table hfi_table_limit = {"limit",
                                          "Our own time limits, by dotted prefix. Stage and `sent` are always those of "
                                          "the attempt. What is refused before it leaves "
                                          "(`breaker.open`, `bulkhead.full`, `downstream.gate` …) is no failure but "
                                          "kind rejected: transient, retry later, breaker neutral, sent no.",
                                          "the policy of the downstream",
                                          true,
                                          LIMITS,
                                          show_limit};
