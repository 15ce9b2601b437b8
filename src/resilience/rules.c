/* SPDX-License-Identifier: MIT */
/*
 * Own rules in front of the built-in tables: does one match, and what becomes of the verdicts then. Must never change
 * what was sent or how far an attempt came, and never make a success of a failure unless the rule says class ok. Pure,
 * any thread; cannot fail, so no permit can be lost on it (B5).
 */
#include "resilience/rules.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

bool hfi_rule_take(const struct hf_rule *rules, size_t index, struct hf_rule *rule) {
    uint32_t size = rules->size;
    if (size < sizeof rules->size)
        return false;
    hf_rule_init(rule);
    memcpy(rule, (const char *)rules + index * size, size < sizeof *rule ? size : sizeof *rule);
    return true;
}

/* "quota*" is a beginning, all else the whole value. */
static bool value_matches(const char *wanted, const char *value) {
    size_t length = strlen(wanted);
    if (length > 0 && wanted[length - 1] == '*')
        return strncmp(wanted, value, length - 1) == 0;
    return strcmp(wanted, value) == 0;
}

static bool header_matches(const struct hf_rule *rule, const struct hf_rule_facts *facts) {
    for (size_t i = 0; i < facts->header_count; i++) {
        const struct hf_header *header = &facts->headers[i];
        if (hfi_text_equal_nocase(header->name, rule->header) &&
            (rule->header_value == NULL || value_matches(rule->header_value, header->value)))
            return true;
    }
    return false;
}

static bool body_matches(const struct hf_rule *rule, const struct hf_rule_facts *facts) {
    size_t within = rule->body_within < HF_RULE_BODY_MAX ? rule->body_within : HF_RULE_BODY_MAX;
    size_t length = facts->body_length < within ? facts->body_length : within;
    return facts->body != NULL && memmem(facts->body, length, rule->body, strlen(rule->body)) != NULL;
}

static bool matches(const struct hf_rule *rule, const struct hf_rule_facts *facts, const struct hf_outcome *outcome) {
    if (rule->method != NULL && (facts->method == NULL || strcmp(rule->method, facts->method) != 0))
        return false;
    if (rule->status_max != 0 && (facts->status < rule->status_min || facts->status > rule->status_max))
        return false;
    if (rule->error_type != NULL && !hfi_dotted_prefix(rule->error_type, outcome->error_type))
        return false;
    if (rule->header != NULL && !header_matches(rule, facts))
        return false;
    return rule->body == NULL || body_matches(rule, facts);
}

/* The breaker verdict that a class means when the outcome was of the other kind before. */
static enum hf_verdict verdict_of(enum hf_class klass, const struct hf_outcome *before) {
    bool was_ok = before->kind == HF_OUTCOME_SUCCESS;
    if (klass == HF_CLASS_OK)
        return was_ok ? before->verdict : HF_VERDICT_SUCCESS;
    if (!was_ok)
        return before->verdict;
    return klass == HF_CLASS_TRANSIENT ? HF_VERDICT_FAILURE : HF_VERDICT_NEUTRAL;
}

static enum hf_retry retry_of(enum hf_class klass, const struct hf_outcome *before) {
    if (klass != HF_CLASS_TRANSIENT)
        return HF_RETRY_NONE;
    return before->klass == HF_CLASS_TRANSIENT ? before->retry : HF_RETRY_NOW;
}

/* Of a rule that names a class, or refines what the table said. */
static void overrule(const struct hf_rule *rule, const struct hf_rule_facts *facts, struct hf_outcome *outcome) {
    const struct hf_outcome before = *outcome;
    if (rule->decides & HF_RULE_CLASS) {
        outcome->klass = rule->klass;
        outcome->kind = rule->klass == HF_CLASS_OK ? HF_OUTCOME_SUCCESS : HF_OUTCOME_FAILURE;
        outcome->verdict = verdict_of(rule->klass, &before);
        outcome->retry = retry_of(rule->klass, &before);
    }
    if (rule->decides & HF_RULE_RETRY && outcome->kind == HF_OUTCOME_FAILURE)
        outcome->retry = rule->retry;
    if (rule->decides & HF_RULE_BREAKER)
        outcome->verdict = rule->verdict;
    if (outcome->stage == HF_STAGE_LOCAL && outcome->sent == HF_SENT_NO)
        outcome->verdict = before.verdict; /* the peer had no part in it (B19) */
    if (outcome->kind == HF_OUTCOME_SUCCESS) {
        outcome->error_type[0] = outcome->message[0] = '\0';
        outcome->gate_downstream = outcome->gate_limit = false;
        outcome->retry_after_ms = -1;
    } else if (before.kind == HF_OUTCOME_SUCCESS) {
        if (facts->status > 0)
            snprintf(outcome->error_type, sizeof outcome->error_type, "http.%d", facts->status);
        else
            hfi_text_copy(outcome->error_type, sizeof outcome->error_type, "rule");
        hfi_outcome_message(outcome, "rule %s does not take this answer for a success", rule->name);
    }
    outcome->life = outcome->verdict == HF_VERDICT_NEUTRAL && (before.life || before.kind == HF_OUTCOME_SUCCESS);
    snprintf(outcome->rule, sizeof outcome->rule, "rule.%.40s", rule->name);
}

static bool sane(const struct hf_rule *rule) {
    return rule->name != NULL && rule->decides != 0 && (unsigned)rule->klass <= HF_CLASS_POISON &&
           (unsigned)rule->retry <= HF_RETRY_LATER && (unsigned)rule->verdict <= HF_VERDICT_NEUTRAL;
}

int hf_rules_apply(const struct hf_rule *rules, size_t count, const struct hf_rule_facts *given,
                   struct hf_outcome *outcome) {
    struct hf_rule_facts facts;
    struct hf_rule rule;
    if (rules == NULL || outcome == NULL ||
        (outcome->kind != HF_OUTCOME_SUCCESS && outcome->kind != HF_OUTCOME_FAILURE))
        return -1;
    hf_rule_facts_init(&facts);
    if (given != NULL)
        memcpy(&facts, given, given->size < sizeof facts ? given->size : sizeof facts);
    for (size_t i = 0; i < count && i < HF_RULES_MAX && hfi_rule_take(rules, i, &rule); i++) {
        if (!sane(&rule) || !matches(&rule, &facts, outcome))
            continue;
        overrule(&rule, &facts, outcome);
        return (int)i;
    }
    return -1;
}

void hfi_rules_judge(const struct hfi_rules *call, const struct hfi_rules *downstream, const char *method,
                     const struct hfi_attempt_facts *facts, struct hf_outcome *outcome) {
    struct hf_rule_facts known;
    if (call->count + downstream->count == 0)
        return;
    hf_rule_facts_init(&known);
    known.method = method;
    if (facts != NULL) {
        known.status = facts->status;
        known.headers = facts->headers;
        known.header_count = facts->header_count;
        known.body = facts->body;
        known.body_length = facts->body_length;
    }
    if (hf_rules_apply(call->items, call->count, &known, outcome) < 0)
        hf_rules_apply(downstream->items, downstream->count, &known, outcome);
}
