/* SPDX-License-Identifier: MIT */
/* Own rules: what they match, what becomes of the verdicts, and that a call uses them once (S0.2, S4.5, S4.15, B5, F8).
 */
#include "support/support.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "resilience/rules.h"
#include "support/call_world.h"

/* One rule with all the ways to match left open. */
static struct hf_rule rule_named(const char *name) {
    struct hf_rule rule;
    hf_rule_init(&rule);
    rule.name = name;
    return rule;
}

static struct hf_rule_facts answer(int status, const char *body) {
    struct hf_rule_facts facts;
    hf_rule_facts_init(&facts);
    facts.method = "GET";
    facts.status = status;
    facts.body = body;
    facts.body_length = body ? strlen(body) : 0;
    return facts;
}

static bool applies(const struct hf_rule *rule, const struct hf_rule_facts *facts) {
    struct hf_outcome o;
    hf_classify_http(facts->status, NULL, 0, &o);
    struct hf_outcome before = o;
    int index = hf_rules_apply(rule, 1, facts, &o);
    if (index < 0)
        assert_memory_equal(&o, &before, sizeof o);
    else
        assert_true(strncmp(o.rule, "rule.", 5) == 0);
    return index == 0;
}

static void status_and_method(void **state) {
    (void)state;
    struct hf_rule rule = hf_rule_status("a", 500, 503, HF_CLASS_PERMANENT);
    struct hf_rule_facts facts = answer(500, NULL);
    assert_int_equal(hf_rules_check(&rule, 1, NULL), 0);
    for (int status = 100; status < 1000; status++) {
        facts.status = status;
        assert_int_equal(applies(&rule, &facts), status >= 500 && status <= 503);
    }
    facts.status = 502;
    rule.method = "POST";
    assert_false(applies(&rule, &facts));
    facts.method = "POST";
    assert_true(applies(&rule, &facts));
    facts.method = NULL;
    assert_false(applies(&rule, &facts));
}

static void header(void **state) {
    static const struct hf_header headers[] = {{"X-Error", "one"}, {"x-error", "quota exceeded"}};
    static const struct {
        const char *name, *value;
        bool match;
    } rows[] = {{"x-ERROR", NULL, true},     {"X-Error", "one", true},   {"X-Error", "on", false},
                {"X-Error", "quota*", true}, {"X-Error", "*", true},     {"X-Error", "Quota*", false},
                {"X-Errors", NULL, false},   {"X-Error", "quota", false}};
    (void)state;
    struct hf_rule_facts facts = answer(200, NULL);
    facts.headers = headers;
    facts.header_count = 2;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hf_rule rule = hf_rule_status("h", 200, 299, HF_CLASS_TRANSIENT);
        rule.header = rows[i].name;
        rule.header_value = rows[i].value;
        assert_int_equal(hf_rules_check(&rule, 1, NULL), 0);
        assert_int_equal(applies(&rule, &facts), rows[i].match);
    }
}

/* F8: the first bytes, never one more than the rule says, at most 4096. */
static void f8_first_bytes_of_the_body(void **state) {
    (void)state;
    char body[8192];
    struct hf_rule rule = rule_named("b");
    rule.body = "ERROR";
    rule.decides = HF_RULE_CLASS;
    rule.klass = HF_CLASS_TRANSIENT;
    assert_int_equal(hf_rules_check(&rule, 1, NULL), 0);
    struct hf_rule_facts facts = answer(200, NULL);
    assert_false(applies(&rule, &facts)); /* no body at all */
    facts.body = body;
    facts.body_length = sizeof body;
    for (size_t at = 4080; at < 4100; at++) {
        memset(body, 0, sizeof body);
        memcpy(body + at, "ERROR", 5);
        assert_int_equal(applies(&rule, &facts), at + 5 <= HF_RULE_BODY_MAX);
    }
    rule.body_within = 5; /* a beginning */
    memset(body, 'x', sizeof body);
    memcpy(body + 1, "ERROR", 5);
    assert_false(applies(&rule, &facts));
    memcpy(body, "ERROR", 5);
    assert_true(applies(&rule, &facts));
    facts.body_length = 4;
    assert_false(applies(&rule, &facts));
}

static void error_type_by_dotted_prefix(void **state) {
    (void)state;
    struct hf_outcome o;
    struct hf_rule rule = rule_named("t");
    rule.error_type = "curl";
    rule.decides = HF_RULE_RETRY;
    rule.retry = HF_RETRY_NONE;
    hf_classify_curl(CURLE_RECV_ERROR, HF_SENT_MAYBE, &o);
    assert_int_equal(hf_rules_apply(&rule, 1, NULL, &o), 0);
    assert_int_equal(o.retry, HF_RETRY_NONE);
    assert_int_equal(o.klass, HF_CLASS_TRANSIENT); /* what the rule leaves open stays */
    assert_int_equal(o.verdict, HF_VERDICT_FAILURE);
    assert_string_equal(o.error_type, "curl.recv_error");
    assert_string_equal(o.rule, "rule.t"); /* S4.15 */
    rule.error_type = "cur";
    hf_classify_curl(CURLE_RECV_ERROR, HF_SENT_MAYBE, &o);
    assert_int_equal(hf_rules_apply(&rule, 1, NULL, &o), -1);
}

/* What each class makes of an outcome whose other verdicts the rule leaves open. */
static void verdicts_follow_the_class(void **state) {
    (void)state;
    static const struct {
        int status;
        enum hf_class klass;
        enum hf_outcome_kind kind;
        enum hf_retry retry;
        enum hf_verdict verdict;
        const char *type;
    } rows[] = {
        {404, HF_CLASS_TRANSIENT, HF_OUTCOME_FAILURE, HF_RETRY_NOW, HF_VERDICT_NEUTRAL, "http.404"}, /* S4.5 */
        {404, HF_CLASS_OK, HF_OUTCOME_SUCCESS, HF_RETRY_NONE, HF_VERDICT_SUCCESS, ""},
        {503, HF_CLASS_PERMANENT, HF_OUTCOME_FAILURE, HF_RETRY_NONE, HF_VERDICT_FAILURE, "http.503"},
        {503, HF_CLASS_OK, HF_OUTCOME_SUCCESS, HF_RETRY_NONE, HF_VERDICT_SUCCESS, ""},
        {503, HF_CLASS_TRANSIENT, HF_OUTCOME_FAILURE, HF_RETRY_NOW, HF_VERDICT_FAILURE, "http.503"},
        {421, HF_CLASS_TRANSIENT, HF_OUTCOME_FAILURE, HF_RETRY_FRESH, HF_VERDICT_NEUTRAL, "http.421"},
        {200, HF_CLASS_TRANSIENT, HF_OUTCOME_FAILURE, HF_RETRY_NOW, HF_VERDICT_FAILURE, "http.200"}, /* F8 */
        {200, HF_CLASS_PERMANENT, HF_OUTCOME_FAILURE, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, "http.200"},
        {200, HF_CLASS_POISON, HF_OUTCOME_FAILURE, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, "http.200"},
        {200, HF_CLASS_OK, HF_OUTCOME_SUCCESS, HF_RETRY_NONE, HF_VERDICT_SUCCESS, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hf_outcome o;
        struct hf_rule rule = hf_rule_status("c", rows[i].status, rows[i].status, rows[i].klass);
        struct hf_rule_facts facts = answer(rows[i].status, NULL);
        hf_classify_http(rows[i].status, NULL, 0, &o);
        assert_int_equal(hf_rules_apply(&rule, 1, &facts, &o), 0);
        assert_int_equal(o.klass, rows[i].klass);
        assert_int_equal(o.kind, rows[i].kind);
        assert_int_equal(o.retry, rows[i].retry);
        assert_int_equal(o.verdict, rows[i].verdict);
        assert_string_equal(o.error_type, rows[i].type);
        assert_int_equal(o.sent, HF_SENT_YES);
        assert_int_equal(o.stage, HF_STAGE_RECEIVE);
    }
}

/* The first that matches decides, and only that one. */
static void order(void **state) {
    (void)state;
    struct hf_outcome o;
    struct hf_rule rules[] = {hf_rule_status("first", 404, 404, HF_CLASS_TRANSIENT),
                              hf_rule_status("second", 400, 499, HF_CLASS_OK)};
    struct hf_rule_facts facts = answer(404, NULL);
    hf_classify_http(404, NULL, 0, &o);
    assert_int_equal(hf_rules_apply(rules, 2, &facts, &o), 0);
    assert_string_equal(o.rule, "rule.first");
    facts.status = 400;
    hf_classify_http(400, NULL, 0, &o);
    assert_int_equal(hf_rules_apply(rules, 2, &facts, &o), 1);
    assert_string_equal(o.rule, "rule.second");
}

/* Rejected and cancelled calls are no answers; what never left has no part in the breaker (B19). */
static void what_no_rule_may_touch(void **state) {
    (void)state;
    struct hf_outcome o;
    struct hf_rule rule = rule_named("all");
    rule.error_type = "breaker";
    rule.decides = HF_RULE_CLASS;
    rule.klass = HF_CLASS_OK;
    hfi_outcome_init(&o);
    hfi_outcome_rejected(&o, "breaker.open", 5);
    assert_int_equal(hf_rules_apply(&rule, 1, NULL, &o), -1);
    rule.error_type = "call";
    hfi_outcome_init(&o);
    hfi_outcome_set(&o, HF_OUTCOME_NEUTRAL, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, HF_CLASS_TRANSIENT, "call.cancelled",
                    "call.cancelled");
    assert_int_equal(hf_rules_apply(&rule, 1, NULL, &o), -1);
    rule.error_type = "curl";
    rule.decides = HF_RULE_BREAKER;
    rule.verdict = HF_VERDICT_FAILURE;
    hf_classify_curl(CURLE_URL_MALFORMAT, HF_SENT_NO, &o);
    assert_int_equal(hf_rules_apply(&rule, 1, NULL, &o), 0);
    assert_int_equal(o.verdict, HF_VERDICT_NEUTRAL);
}

static void refused(const struct hf_rule *rule, int code, const char *what) {
    struct hf_error error;
    hf_error_init(&error);
    assert_int_equal(hf_rules_check(rule, 1, &error), code);
    assert_string_equal(error.what, what);
    assert_true(error.why[0] != '\0');
}

static void unsound_rules_are_refused(void **state) {
    (void)state;
    const struct hf_rule good = hf_rule_status("good", 404, 404, HF_CLASS_TRANSIENT);
    char text[5000];
#define BAD(code, what, ...)                                                                                           \
    do {                                                                                                               \
        struct hf_rule rule = good;                                                                                    \
        __VA_ARGS__;                                                                                                   \
        refused(&rule, code, what);                                                                                    \
    } while (0)
    BAD(HF_EINVAL, "rules[0].name", rule.name = NULL);
    BAD(HF_EINVAL, "rules[0].name", rule.name = "");
    BAD(HF_EINVAL, "rules[0].name", rule.name = "a b");
    BAD(HF_EINVAL, "rules[0].name", rule.name = "a.b");
    BAD(HF_EINVAL, "rules[0].name", rule.name = "a23456789 123456789 123456789 123456789 1");
    BAD(HF_EINVAL, "rules[0].status", rule.status_min = 0);
    BAD(HF_EINVAL, "rules[0].status", rule.status_min = -1);
    BAD(HF_EINVAL, "rules[0].status", rule.status_max = 1000);
    BAD(HF_EINVAL, "rules[0].status", rule.status_min = rule.status_max = 99);
    BAD(HF_EINVAL, "rules[0].status", rule.status_min = 500);
    BAD(HF_EINVAL, "rules[0].method", rule.method = "");
    BAD(HF_EINVAL, "rules[0].method", rule.method = "GET\r\n");
    BAD(HF_EINVAL, "rules[0].error_type", rule.error_type = "");
    BAD(HF_EINVAL, "rules[0].error_type", rule.error_type = "a..b");
    BAD(HF_EINVAL, "rules[0].header", rule.header = "X Y");
    BAD(HF_EINVAL, "rules[0].header", rule.header_value = "x");
    BAD(HF_ETEXT, "rules[0].header", rule.header = "X"; rule.header_value = "a\r\nb");
    BAD(HF_EINVAL, "rules[0].body", rule.body = "");
    BAD(HF_EINVAL, "rules[0].body_within", rule.body = "abc"; rule.body_within = 2);
    BAD(HF_EINVAL, "rules[0].body_within", rule.body = "abc"; rule.body_within = 4097);
    BAD(HF_ETOOBIG, "rules[0].body", rule.body = memset(text, 'x', 4097); text[4097] = '\0');
    BAD(HF_ETOOBIG, "rules[0].header", rule.header = "X"; rule.header_value = memset(text, 'x', 256); text[256] = '\0');
    BAD(HF_EINVAL, "rules[0]", rule.status_min = rule.status_max = 0);
    BAD(HF_EINVAL, "rules[0]", rule.decides = 0);
    BAD(HF_EINVAL, "rules[0]", rule.decides = 8);
    BAD(HF_EINVAL, "rules[0]", rule.klass = (enum hf_class)9);
    BAD(HF_EINVAL, "rules[0].retry", rule.klass = HF_CLASS_OK; rule.decides = 3; rule.retry = HF_RETRY_NOW);
    BAD(HF_EINVAL, "rules[0].retry", rule.klass = HF_CLASS_PERMANENT; rule.decides = 3; rule.retry = HF_RETRY_LATER);
    BAD(HF_EINVAL, "rules[0].retry", rule.decides = HF_RULE_RETRY; rule.retry = HF_RETRY_NOW);
    BAD(HF_EINVAL, "rules", rule.size = 0);
    struct hf_rule twice[] = {good, good}, many[HF_RULES_MAX + 1];
    struct hf_error error;
    hf_error_init(&error);
    assert_int_equal(hf_rules_check(twice, 2, &error), HF_EINVAL);
    assert_string_equal(error.what, "rules[1].name");
    for (size_t i = 0; i < sizeof many / sizeof *many; i++)
        many[i] = good;
    assert_int_equal(hf_rules_check(many, HF_RULES_MAX + 1, &error), HF_ETOOBIG);
    assert_int_equal(hf_rules_check(NULL, 1, &error), HF_EINVAL);
    assert_int_equal(hf_rules_check(NULL, 0, &error), 0);
}

/* A copy owns its texts, and an array of a caller that knows fewer fields is read along its own steps. */
static void copies_are_deep(void **state) {
    (void)state;
    char name[] = "first", body[] = "text";
    struct hf_rule rules[] = {hf_rule_status(name, 404, 404, HF_CLASS_TRANSIENT),
                              hf_rule_status("x", 405, 405, HF_CLASS_OK)};
    rules[0].body = body;
    size_t room = hfi_rules_room(rules, 2);
    char *block = malloc(room);
    struct hfi_rules copy;
    assert_ptr_equal(hfi_rules_put(&copy, rules, 2, block), block + room);
    name[0] = body[0] = '!';
    memset(rules, 0, sizeof rules);
    assert_int_equal(copy.count, 2);
    assert_string_equal(copy.items[0].name, "first");
    assert_string_equal(copy.items[0].body, "text");
    assert_string_equal(copy.items[1].name, "x");
    assert_int_equal(hf_rules_check(copy.items, 2, NULL), 0);
    free(block);
    assert_int_equal(hfi_rules_room(NULL, 0), 0);
}

/* S4.5: 404 is transient for one call only. The next one is what the table says. */
static void s4_5_for_one_call_only(void **state) {
    (void)state;
    static const struct hf_rule rules[] = {{.size = sizeof(struct hf_rule),
                                            .name = "not-yet",
                                            .status_min = 404,
                                            .status_max = 404,
                                            .decides = HF_RULE_CLASS,
                                            .klass = HF_CLASS_TRANSIENT}};
    CALL_WORLD_OPEN(hfi_script_status(1, 404), hfi_script_status(1, 404), hfi_script_status(1, 200),
                    hfi_script_status(1, 404));
    struct hf_request request = call_get();
    request.rules = rules;
    request.rule_count = 1;
    struct call_end end = call_once(&request);
    assert_int_equal(end.outcome.kind, HF_OUTCOME_SUCCESS);
    assert_int_equal(end.outcome.attempts, 3);
    request = call_get();
    end = call_once(&request);
    assert_int_equal(end.outcome.attempts, 1);
    assert_int_equal(end.outcome.klass, HF_CLASS_PERMANENT);
    assert_string_equal(end.outcome.rule, "http.4xx");
}

/* The rules of the call come first, then those of the downstream, then the tables. */
static void call_before_downstream_before_tables(void **state) {
    (void)state;
    struct hf_rule always[] = {hf_rule_status("downstream", 404, 405, HF_CLASS_OK)};
    struct hf_rule once[] = {hf_rule_status("call", 404, 404, HF_CLASS_PERMANENT)};
    world->options.rules = always;
    world->options.rule_count = 1;
    CALL_WORLD_OPEN(hfi_script_status(1, 404), hfi_script_status(1, 405), hfi_script_status(1, 406));
    memset(always, 0, sizeof always); /* they were copied */
    struct hf_request request = call_get();
    request.rules = once;
    request.rule_count = 1;
    struct call_end end = call_once(&request);
    assert_string_equal(end.outcome.rule, "rule.call");
    end = call_once(&request);
    assert_string_equal(end.outcome.rule, "rule.downstream");
    assert_int_equal(end.outcome.kind, HF_OUTCOME_SUCCESS);
    assert_int_equal(end.status, 405);
    end = call_once(&request);
    assert_string_equal(end.outcome.rule, "http.4xx");
}

/* F8: the breaker is told once, after status, headers and body were seen; B5: every permit came back. */
static void f8_b5_the_verdict_is_recorded_once(void **state) {
    (void)state;
    struct hf_rule soft = hf_rule_status("soft", 200, 299, HF_CLASS_TRANSIENT);
    soft.body = "\"error\":\"overloaded\"";
    world->options.rules = &soft;
    world->options.rule_count = 1;
    world->policy.retry_max = 0;
    struct hfi_script_step bad = hfi_script_status(1, 200), good = hfi_script_status(1, 200);
    bad.facts.body = "{\"error\":\"overloaded\"}";
    bad.facts.body_length = strlen(bad.facts.body);
    CALL_WORLD_OPEN(bad, bad, good);
    struct hf_request request = call_get();
    for (int i = 0; i < 3; i++) {
        struct call_end end = call_once(&request);
        assert_int_equal(end.outcome.kind, i < 2 ? HF_OUTCOME_FAILURE : HF_OUTCOME_SUCCESS);
        assert_string_equal(end.outcome.error_type, i < 2 ? "http.200" : "");
    }
    struct hf_downstream_view view = {.size = sizeof view};
    hfi_downstream_view(world->d, world->s->ops->mono(world->s), &view);
    assert_int_equal(view.window_calls, 3);
    assert_int_equal(view.window_failures, 2);
    assert_int_equal(view.in_flight, 0);
}

/* A limit that cut the attempt is a failure like others; nothing but the class ok makes a success of it. */
static void limits_can_be_judged(void **state) {
    (void)state;
    struct hf_rule rule = rule_named("slow");
    rule.error_type = "timeout.attempt";
    rule.decides = HF_RULE_CLASS;
    rule.klass = HF_CLASS_PERMANENT;
    CALL_WORLD_OPEN(hfi_script_hang(true));
    struct hf_request request = call_get();
    request.rules = &rule;
    request.rule_count = 1;
    struct call_end end = call_once(&request);
    assert_int_equal(end.outcome.attempts, 1);
    assert_int_equal(end.outcome.klass, HF_CLASS_PERMANENT);
    assert_int_equal(end.outcome.verdict, HF_VERDICT_FAILURE);
    assert_string_equal(end.outcome.error_type, "timeout.attempt");
    assert_string_equal(end.outcome.rule, "rule.slow");
}

static void bad_rules_stop_a_call(void **state) {
    (void)state;
    struct hf_rule rule = rule_named("nothing");
    CALL_WORLD_OPEN(hfi_script_status(1, 200));
    struct hf_request request = call_get();
    request.rules = &rule;
    request.rule_count = 1;
    struct call_end end;
    assert_int_equal(call_start(&end, &request), HF_EINVAL);
    assert_int_equal(hfi_scripted_started(world->script), 0);
    struct hf_downstream_options options = hf_downstream_at("d", "http://d");
    options.rules = &rule;
    options.rule_count = 1;
    struct hf_error error;
    hf_error_init(&error);
    assert_int_equal(hf_downstream_check(&options, &error), HF_EINVAL);
    assert_string_equal(error.what, "rules[0]");
}

/* Any rules, checked or not, on any facts: an outcome with valid verdicts, and the facts as they were. */
static void property_any_rule_on_any_facts(void **state) {
    (void)state;
    static const char *const texts[] = {NULL, "", "a", "http", "GET", "X-A", "*", "curl.7", "\xff\xfe", "ok*"};
    struct hfi_random random;
    hfi_random_seed(&random, hf_test_seed());
#define PICK(n) ((size_t)(hfi_random_next(&random) % (n)))
#define TEXT() texts[PICK(sizeof texts / sizeof *texts)]
    for (int round = 0; round < 20000; round++) {
        struct hf_rule rules[3];
        struct hf_header headers[2] = {{"X-A", "ok"}, {"http", ""}};
        struct hf_outcome o;
        struct hf_rule_facts facts = answer((int)PICK(1100), NULL);
        for (size_t i = 0; i < 3; i++) {
            rules[i] = (struct hf_rule){(uint32_t)sizeof *rules,
                                        TEXT(),
                                        TEXT(),
                                        (int)PICK(1200) - 100,
                                        (int)PICK(1200) - 100,
                                        TEXT(),
                                        TEXT(),
                                        TEXT(),
                                        TEXT(),
                                        (uint32_t)PICK(6000),
                                        (uint32_t)PICK(9),
                                        (enum hf_class)PICK(6),
                                        (enum hf_retry)PICK(6),
                                        (enum hf_verdict)PICK(5)};
        }
        facts.headers = headers;
        facts.header_count = PICK(3);
        facts.body = TEXT();
        facts.body_length = facts.body ? PICK(strlen(facts.body) + 1) : 0;
        hf_classify_http(facts.status, NULL, 0, &o);
        struct hf_outcome before = o;
        int index = hf_rules_apply(rules, 3, PICK(8) ? &facts : NULL, &o);
        assert_in_range(index + 1, 0, 3);
        assert_int_equal(o.sent, before.sent);
        assert_int_equal(o.stage, before.stage);
        assert_string_not_equal(hf_class_name(o.klass), "unknown");
        assert_string_not_equal(hf_retry_name(o.retry), "unknown");
        assert_string_not_equal(hf_verdict_name(o.verdict), "unknown");
        assert_true(o.rule[0] != '\0');
        assert_true((o.kind == HF_OUTCOME_SUCCESS) == (o.klass == HF_CLASS_OK));
        if (o.kind == HF_OUTCOME_SUCCESS && before.kind != HF_OUTCOME_SUCCESS)
            assert_true(rules[index].decides & HF_RULE_CLASS && rules[index].klass == HF_CLASS_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_and_method),
        cmocka_unit_test(header),
        cmocka_unit_test(f8_first_bytes_of_the_body),
        cmocka_unit_test(error_type_by_dotted_prefix),
        cmocka_unit_test(verdicts_follow_the_class),
        cmocka_unit_test(order),
        cmocka_unit_test(what_no_rule_may_touch),
        cmocka_unit_test(unsound_rules_are_refused),
        cmocka_unit_test(copies_are_deep),
        cmocka_unit_test_setup_teardown(s4_5_for_one_call_only, call_world_set_up, call_world_tear_down),
        cmocka_unit_test_setup_teardown(call_before_downstream_before_tables, call_world_set_up, call_world_tear_down),
        cmocka_unit_test_setup_teardown(f8_b5_the_verdict_is_recorded_once, call_world_set_up, call_world_tear_down),
        cmocka_unit_test_setup_teardown(limits_can_be_judged, call_world_set_up, call_world_tear_down),
        cmocka_unit_test_setup_teardown(bad_rules_stop_a_call, call_world_set_up, call_world_tear_down),
        cmocka_unit_test(property_any_rule_on_any_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
