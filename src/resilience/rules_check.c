/* SPDX-License-Identifier: MIT */
/*
 * Are own rules sound, and their deep copy. Must let nothing through that could never match, says nothing, or
 * contradicts itself. Pure but for the copy's target; any thread.
 */
#include "resilience/rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "resilience/target.h"

#define TEXT_MAX 255 /* of a header's value or an error type */

struct check {
    size_t index;
    struct hf_error *error;
};

/* "rules[2].status: why (fix)" */
static int refuse(const struct check *check, int code, const char *field, const char *fix, const char *format, ...)
    HF_PRINTF(5, 6);
static int refuse(const struct check *check, int code, const char *field, const char *fix, const char *format, ...) {
    char what[64], why[300];
    va_list arguments;
    snprintf(what, sizeof what, "rules[%zu]%s%s", check->index, field[0] != '\0' ? "." : "", field);
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return hfi_fail(check->error, code, what, fix, "%s", why);
}

static int check_name(const struct check *check, const struct hf_rule *rule) {
    if (rule->name == NULL || !hfi_text_dotted(rule->name) || strchr(rule->name, '.') != NULL ||
        strlen(rule->name) > HF_RULE_NAME_MAX)
        return refuse(check, HF_EINVAL, "name", "use letters, digits, - and _",
                      "it has not 1 to %d of these characters", HF_RULE_NAME_MAX);
    return 0;
}

static int check_status(const struct check *check, const struct hf_rule *rule) {
    if (rule->status_min == 0 && rule->status_max == 0)
        return 0;
    if (rule->status_min < 100 || rule->status_max < 100 || rule->status_min > 999 || rule->status_max > 999)
        return refuse(check, HF_EINVAL, "status", "stay within 100 and 999", "%d to %d is no range of HTTP statuses",
                      rule->status_min, rule->status_max);
    if (rule->status_min > rule->status_max)
        return refuse(check, HF_EINVAL, "status", "give the lower one first", "the range %d to %d is upside down",
                      rule->status_min, rule->status_max);
    return 0;
}

static int check_texts(const struct check *check, const struct hf_rule *rule) {
    if (rule->method != NULL && !hfi_is_token(rule->method))
        return refuse(check, HF_EINVAL, "method", NULL, "it is not a token (RFC 9110 9.1)");
    if (rule->error_type != NULL && (!hfi_text_dotted(rule->error_type) || strlen(rule->error_type) > TEXT_MAX))
        return refuse(check, HF_EINVAL, "error_type", "write a prefix such as http.503, curl or timeout",
                      "it is not a dotted error type");
    if (rule->header != NULL && !hfi_is_token(rule->header))
        return refuse(check, HF_EINVAL, "header", NULL, "its name is not a token (RFC 9110 5.6.2)");
    if (rule->header == NULL && rule->header_value != NULL)
        return refuse(check, HF_EINVAL, "header", NULL, "it has a value and no name");
    if (rule->header_value != NULL && !hfi_is_field_value(rule->header_value))
        return refuse(check, HF_ETEXT, "header", NULL, "its value holds a CR, LF or another control character");
    if (rule->header_value != NULL && strlen(rule->header_value) > TEXT_MAX)
        return refuse(check, HF_ETOOBIG, "header", "match a beginning: `text*`", "its value has more than %d bytes",
                      TEXT_MAX);
    return 0;
}

static int check_body(const struct check *check, const struct hf_rule *rule) {
    if (rule->body == NULL)
        return 0;
    size_t length = strlen(rule->body);
    if (length == 0)
        return refuse(check, HF_EINVAL, "body", "leave it out", "it is empty and would match every answer");
    if (length > HF_RULE_BODY_MAX)
        return refuse(check, HF_ETOOBIG, "body", NULL, "%zu bytes, %d at most are looked at", length, HF_RULE_BODY_MAX);
    if (rule->body_within > HF_RULE_BODY_MAX || rule->body_within < length)
        return refuse(check, HF_EINVAL, "body_within", NULL, "%u is not within the text's %zu bytes and %d",
                      rule->body_within, length, HF_RULE_BODY_MAX);
    return 0;
}

static int check_verdicts(const struct check *check, const struct hf_rule *rule) {
    bool klass = rule->decides & HF_RULE_CLASS, retry = rule->decides & HF_RULE_RETRY;
    if (rule->method == NULL && rule->status_max == 0 && rule->error_type == NULL && rule->header == NULL &&
        rule->body == NULL)
        return refuse(check, HF_EINVAL, "", "name a status, error type, header, body or method",
                      "it would match everything");
    if (rule->decides == 0 || rule->decides > (HF_RULE_CLASS | HF_RULE_RETRY | HF_RULE_BREAKER))
        return refuse(check, HF_EINVAL, "", "give it a class, a retry or a breaker verdict", "it decides nothing");
    if ((unsigned)rule->klass > HF_CLASS_POISON || (unsigned)rule->retry > HF_RETRY_LATER ||
        (unsigned)rule->verdict > HF_VERDICT_NEUTRAL)
        return refuse(check, HF_EINVAL, "", NULL, "a verdict is none of its enum");
    if (retry && rule->retry != HF_RETRY_NONE && (!klass || rule->klass != HF_CLASS_TRANSIENT))
        return refuse(check, HF_EINVAL, "retry", "add class transient", "only what is transient is tried again: %s",
                      klass ? hf_class_name(rule->klass) : "the rule names no class");
    return 0;
}

/* Names tell rules apart in outcomes and logs. */
static int check_double(const struct check *check, const struct hf_rule *rules, const struct hf_rule *rule) {
    for (size_t i = 0; i < check->index; i++) {
        struct hf_rule other;
        hfi_rule_take(rules, i, &other);
        if (strcmp(other.name, rule->name) == 0)
            return refuse(check, HF_EINVAL, "name", "give each its own", "rules[%zu] is called `%s` too", i,
                          rule->name);
    }
    return 0;
}

int hf_rules_check(const struct hf_rule *rules, size_t count, struct hf_error *error) {
    struct check check = {0, error};
    if (count == 0)
        return 0;
    if (rules == NULL || rules->size < sizeof rules->size)
        return hfi_fail(error, HF_EINVAL, "rules", "use hf_rule_init", "not initialised");
    if (count > HF_RULES_MAX)
        return hfi_fail(error, HF_ETOOBIG, "rules", NULL, "%zu rules, %d at most", count, HF_RULES_MAX);
    for (; check.index < count; check.index++) {
        struct hf_rule rule;
        hfi_rule_take(rules, check.index, &rule);
        int code = check_name(&check, &rule);
        code = code != 0 ? code : check_double(&check, rules, &rule);
        code = code != 0 ? code : check_status(&check, &rule);
        code = code != 0 ? code : check_texts(&check, &rule);
        code = code != 0 ? code : check_body(&check, &rule);
        code = code != 0 ? code : check_verdicts(&check, &rule);
        if (code != 0)
            return code;
    }
    return 0;
}

/* The texts of a rule, so that room and copy cannot disagree. */
#define RULE_TEXTS(X) X(name) X(method) X(error_type) X(header) X(header_value) X(body)

size_t hfi_rules_room(const struct hf_rule *given, size_t count) {
    size_t room = count * sizeof(struct hf_rule);
    for (size_t i = 0; i < count; i++) {
        struct hf_rule rule;
        hfi_rule_take(given, i, &rule);
#define ROOM(field) room += rule.field != NULL ? strlen(rule.field) + 1 : 0;
        RULE_TEXTS(ROOM)
#undef ROOM
    }
    return (room + _Alignof(struct hf_rule) - 1) / _Alignof(struct hf_rule) * _Alignof(struct hf_rule);
}

char *hfi_rules_put(struct hfi_rules *rules, const struct hf_rule *given, size_t count, char *at) {
    struct hf_rule *copy = (void *)at;
    char *text = at + count * sizeof *copy, *end = at + hfi_rules_room(given, count);
    rules->items = count > 0 ? copy : NULL;
    rules->count = count;
    for (size_t i = 0; i < count; i++) {
        hfi_rule_take(given, i, &copy[i]);
        copy[i].size = (uint32_t)sizeof *copy;
#define PUT(field)                                                                                                     \
    if (copy[i].field != NULL) {                                                                                       \
        char *start = text;                                                                                            \
        text = stpcpy(text, copy[i].field) + 1;                                                                        \
        copy[i].field = start;                                                                                         \
    }
        RULE_TEXTS(PUT)
#undef PUT
    }
    return end;
}
