/* SPDX-License-Identifier: MIT */
/* Types, policies and rules of a node: S0.8, S0.10, S1.2, S2.11, S2.14, S2.16, S2.17, S3.4, S3.8, C14, C18. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "jobs/rulebook.h"

static struct hf_runner_options options;
static struct hf_error error;

static int fresh(void **state) {
    (void)state;
    hf_runner_options_init(&options);
    hf_error_init(&error);
    return 0;
}

static enum hf_result handler(struct hf_work *work, void *user) {
    (void)work;
    (void)user;
    return HF_RESULT_OK;
}

static struct hf_curve_options curve_of(uint32_t max, uint32_t length, int64_t first) {
    struct hf_curve_options curve;
    hf_curve_options_init(&curve);
    curve.max_executions = max;
    curve.curve_length = length;
    for (uint32_t i = 0; i < length && i < HF_CURVE_MAX; i++)
        curve.curve_ms[i] = first + i;
    return curve;
}

static struct hf_type_options noop(const char *name) {
    struct hf_type_options type;
    hf_type_options_init(&type);
    type.kind = HF_KIND_NOOP;
    type.name = name;
    return type;
}

static void defaults_are_the_seed_s(void **state) {
    (void)state;
    struct hfi_rulebook *book;
    struct hfi_rules rules;
    assert_true(options.workers >= 8);                       /* S3.8 */
    assert_int_equal(options.drain_timeout_ms, 25000);       /* S3.4 */
    assert_int_equal(options.execution_timeout_ms, 120000);  /* C18 */
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), 0);
    const struct hfi_curve *policy = hfi_rulebook_policy(book, "nobody", "nowhere");
    assert_int_equal(policy->max_executions, 6);
    assert_int_equal(hfi_curve_time_to_death_ms(policy, 6), 16560000);
    struct hfi_job job = {.type = "nobody", .queue = "nowhere", .downstream = ""};
    hfi_rulebook_for(book, &job, &rules);
    assert_ptr_equal(rules.policy, policy);
    assert_true(rules.repeatable);
    assert_int_equal(rules.max_crashes, 3);
    assert_int_equal(rules.max_give_backs, 20);
    assert_int_equal(rules.retry_after_cap_ms, 3600000);
    assert_int_equal(rules.give_up_after_ms, 86400000);
    assert_null(hfi_rulebook_type(book, "nobody"));
    const char *const *names;
    assert_int_equal(hfi_rulebook_sinks(book, &names), 0);
    hfi_rulebook_free(book);
    hfi_rulebook_free(NULL);
}

/* enqueue > type > queue > global; waits replace the whole policy [S0.10, S1.2], max_executions alone keeps it (C14). */
static void closest_policy_wins(void **state) {
    (void)state;
    struct hf_curve_options global = curve_of(9, 2, 1000), in_queue = curve_of(0, 3, 2000), few = curve_of(2, 0, 0),
                            whole = curve_of(0, 1, 3000);
    struct hf_queue_options queues[2];
    struct hf_type_options types[3] = {noop("plain"), noop("few"), noop("whole")};
    struct hfi_rulebook *book;
    hf_queue_options_init(&queues[0]);
    hf_queue_options_init(&queues[1]);
    queues[0].name = "slow";
    queues[0].curve = &in_queue;
    queues[1].name = "plain";
    types[1].curve = &few;
    types[1].queue = "slow";
    types[2].curve = &whole;
    options.curve = &global;
    options.queue_options = queues;
    options.queue_count = 2;
    options.types = types;
    options.type_count = 3;
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), 0);
    static const struct {
        const char *type, *queue;
        uint32_t max, length;
        int64_t first;
    } cases[] = {
        {"plain", "default", 9, 2, 1000}, {"plain", "plain", 9, 2, 1000}, {"plain", "slow", 4, 3, 2000},
        {"other", "slow", 4, 3, 2000},    {"few", "default", 2, 2, 1000}, {"few", "plain", 2, 2, 1000},
        {"few", "slow", 2, 3, 2000},      {"whole", "slow", 2, 1, 3000},  {"whole", "default", 2, 1, 3000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct hfi_curve *policy = hfi_rulebook_policy(book, cases[i].type, cases[i].queue);
        assert_int_equal(policy->max_executions, cases[i].max);
        assert_int_equal(policy->length, cases[i].length);
        assert_int_equal(policy->waits_ms[0], cases[i].first);
    }
    assert_int_equal(hfi_rulebook_type(book, "few")->policy.waits_ms[0], 2000); /* in its own queue */
    assert_int_equal(hfi_rulebook_type_count(book), 3);
    assert_string_equal(hfi_rulebook_type_at(book, 0)->options.name, "few");
    assert_null(hfi_rulebook_type_at(book, 3));
    hfi_rulebook_free(book);
}

/* S2.3, S2.13: a formula keeps the number of executions of the policy behind it, a list brings its own (C14). */
static void a_formula_keeps_the_number_of_executions_S2_3(void **state) {
    (void)state;
    struct hf_curve_options global = curve_of(0, 0, 0), of_type;
    struct hf_type_options type = noop("j");
    struct hfi_rulebook *book;
    hf_curve_options_init(&of_type);
    assert_int_equal(hf_curve_exponential(&of_type, 1000, 2, 0), 0);
    type.curve = &of_type;
    options.types = &type;
    options.type_count = 1;
    static const struct {
        uint32_t global, own, expected;
    } cases[] = {{0, 0, 6}, {10, 0, 10}, {10, 4, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        global.max_executions = cases[i].global;
        of_type.max_executions = cases[i].own;
        options.curve = &global;
        assert_int_equal(hfi_rulebook_new(&options, &book, &error), 0);
        const struct hfi_curve *policy = hfi_rulebook_policy(book, "j", "default");
        assert_int_equal(policy->max_executions, cases[i].expected);
        assert_int_equal(policy->waits_ms[0], 1000);
        assert_int_equal(policy->waits_ms[3], 8000);
        hfi_rulebook_free(book);
    }
}

/* S2.6: per type or global, the type wins, and `none` is a value of both. C18: 2 m unless somebody says otherwise. */
static void the_types_execution_timeout_wins_S2_6(void **state) {
    (void)state;
    static const struct {
        int64_t global, type, expected;
    } cases[] = {{120000, -1, 120000}, {5000, -1, 5000}, {5000, 7000, 7000}, {5000, 0, 0}, {0, -1, 0}, {0, 9, 9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hf_type_options type = noop("limited");
        struct hfi_rulebook *book;
        options.execution_timeout_ms = cases[i].global;
        type.execution_timeout_ms = cases[i].type;
        options.types = &type;
        options.type_count = 1;
        assert_int_equal(hfi_rulebook_new(&options, &book, &error), 0);
        assert_int_equal(hfi_rulebook_type(book, "limited")->execution_timeout_ms, cases[i].expected);
        hfi_rulebook_free(book);
    }
}

static void everything_is_copied(void **state) {
    (void)state;
    struct hfi_rulebook *book;
    char name[] = "run", program[] = "/bin/cat", argument[] = "-", variable[] = "A=b", never[] = "exit.3",
         sink[] = "ops", all[] = "validation";
    const char *command[] = {program, argument}, *environment[] = {variable}, *list[] = {never}, *global[] = {all};
    struct hf_curve_options curve = curve_of(3, 1, 5);
    struct hf_type_options type = noop(name);
    type.kind = HF_KIND_EXEC;
    type.command = command;
    type.command_length = 2;
    type.environment = environment;
    type.environment_length = 1;
    type.never_retry = list;
    type.never_retry_count = 1;
    type.curve = &curve;
    type.execution_timeout_ms = 0;
    struct hf_sink_options hook;
    hf_sink_options_init(&hook);
    hook.name = sink;
    hook.url = "http://localhost/";
    options.sinks = &hook;
    options.sink_count = 1;
    options.types = &type;
    options.type_count = 1;
    options.never_retry = global;
    options.never_retry_count = 1;
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), 0);
    name[0] = program[1] = argument[0] = variable[0] = never[0] = sink[0] = all[0] = '#';
    curve.curve_ms[0] = 77;
    memset(&type, 0x55, sizeof type);
    const struct hfi_type *known = hfi_rulebook_type(book, "run");
    assert_non_null(known);
    assert_string_equal(known->options.command[0], "/bin/cat");
    assert_string_equal(known->options.command[1], "-");
    assert_string_equal(known->options.environment[0], "A=b");
    assert_int_equal(known->policy.waits_ms[0], 5);
    assert_int_equal(known->execution_timeout_ms, 0); /* none, unlike the runner's */
    struct hfi_rules rules;
    struct hfi_job job = {.type = "run", .queue = "default"};
    hfi_rulebook_for(book, &job, &rules);
    assert_int_equal(rules.never_retry_count, 2); /* global ∪ the type's [S2.14] */
    assert_string_equal(rules.never_retry[0], "validation");
    assert_string_equal(rules.never_retry[1], "exit.3");
    const char *const *names;
    assert_int_equal(hfi_rulebook_sinks(book, &names), 1);
    assert_string_equal(names[0], "ops");
    hfi_rulebook_free(book);
}

static void second_registration_is_refused_S0_8(void **state) {
    (void)state;
    struct hfi_rulebook *book;
    struct hf_type_options types[2] = {noop("a"), noop("a")};
    options.types = types;
    options.type_count = 2;
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), HF_EEXIST);
    assert_null(book);
    assert_non_null(strstr(error.why, "`a`"));
    options.type_count = 1;
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), 0);
    struct hf_type_options native = hf_type_native("b");
    assert_int_equal(hfi_rulebook_add(book, &native, handler, &native, &error), 0);
    assert_int_equal(hfi_rulebook_add(book, &native, handler, NULL, &error), HF_EEXIST);
    assert_ptr_equal(hfi_rulebook_type(book, "b")->user, &native);
    assert_int_equal(hfi_rulebook_type(book, "b")->execution_timeout_ms, 120000);
    native.name = "a";
    assert_int_equal(hfi_rulebook_add(book, &native, handler, NULL, &error), HF_EEXIST);
    assert_int_equal(hfi_rulebook_type_count(book), 2);
    hfi_rulebook_free(book);
}

#define REFUSED(code_, change)                                                                                         \
    do {                                                                                                               \
        struct hf_type_options type = noop("x");                                                                       \
        change;                                                                                                        \
        options.types = &type;                                                                                         \
        options.type_count = 1;                                                                                        \
        assert_int_equal(hfi_rulebook_new(&options, &book, &error), code_);                                            \
        assert_null(book);                                                                                             \
        assert_true(error.what[0] && error.why[0]);                                                                    \
    } while (0)

static void wrong_types_are_refused_at_once(void **state) {
    (void)state;
    struct hfi_rulebook *book;
    static const char *const relative[] = {"cat"}, *const hole[] = {"/bin/cat", NULL}, *const nameless[] = {"=x"},
                             *const bad[] = {"a..b"};
    struct hf_curve_options curve = curve_of(1, 64, 0);
    curve.curve_length = 65;
    REFUSED(HF_EINVAL, type.size = 0);
    REFUSED(HF_EINVAL, type.name = NULL);
    REFUSED(HF_ETEXT, type.name = "\xff");
    REFUSED(HF_EINVAL, type.kind = (enum hf_kind)17);
    REFUSED(HF_EINVAL, type.kind = HF_KIND_NATIVE); /* without a handler */
    REFUSED(HF_EINVAL, type.kind = HF_KIND_HTTP);   /* without a downstream */
    REFUSED(HF_EINVAL, (type.kind = HF_KIND_HTTP, type.downstream = "d", type.path = "x"));
    REFUSED(HF_EINVAL, type.kind = HF_KIND_EXEC);
    REFUSED(HF_EINVAL, (type.kind = HF_KIND_EXEC, type.command = relative, type.command_length = 1));
    REFUSED(HF_EINVAL, (type.kind = HF_KIND_EXEC, type.command = hole, type.command_length = 2));
    REFUSED(HF_EINVAL, (type.kind = HF_KIND_EXEC, type.command = hole, type.command_length = 1,
                        type.environment = nameless, type.environment_length = 1));
    REFUSED(HF_EINVAL, type.execution_timeout_ms = -2);
    REFUSED(HF_EINVAL, type.payload = (enum hf_payload)3);
    REFUSED(HF_EINVAL, type.curve = &curve);
    curve.curve_length = 1;
    curve.curve_ms[0] = -1;
    REFUSED(HF_EINVAL, type.curve = &curve);
    REFUSED(HF_EINVAL, (type.never_retry = bad, type.never_retry_count = 1)); /* S2.16 */
    static const char *const never[] = {"", ".a", "a.", "a b", "a,b", NULL};
    for (size_t i = 0; i < 6; i++) {
        fresh(NULL);
        options.never_retry = &never[i];
        options.never_retry_count = 1;
        assert_int_equal(hfi_rulebook_new(&options, &book, &error), HF_EINVAL);
    }
    fresh(NULL);
    options.execution_timeout_ms = -1;
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), HF_EINVAL);
    options.size = 0;
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), HF_EINVAL);
}

static enum hf_result never_called(struct hf_work *work, void *user) {
    (void)user;
    return hf_work_ok(work, NULL, 0);
}

/* C10: silence that the timeout always ends first could never be told. */
static void silence_fits_into_the_timeout(void **state) {
    (void)state;
    struct hfi_rulebook *book;
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), 0);
    struct hf_type_options type = hf_type_native("n");
    type.heartbeat_timeout_ms = options.execution_timeout_ms; /* the runner's, as the type has none */
    assert_int_equal(hfi_rulebook_add(book, &type, never_called, NULL, &error), HF_EINVAL);
    assert_non_null(strstr(error.why, "heartbeat_timeout_ms"));
    type.heartbeat_timeout_ms--;
    assert_int_equal(hfi_rulebook_add(book, &type, never_called, NULL, &error), 0);
    type.name = "m";
    type.heartbeat_timeout_ms = type.execution_timeout_ms = 500;
    assert_int_equal(hfi_rulebook_add(book, &type, never_called, NULL, &error), HF_EINVAL);
    type.execution_timeout_ms = 0;
    assert_int_equal(hfi_rulebook_add(book, &type, never_called, NULL, &error), 0);
    hfi_rulebook_free(book);
}

static void names_are_there_once(void **state) {
    (void)state;
    struct hfi_rulebook *book;
    struct hf_queue_options queues[2];
    struct hf_sink_options hooks[2];
    for (int i = 0; i < 2; i++) {
        hf_queue_options_init(&queues[i]);
        hf_sink_options_init(&hooks[i]);
        queues[i].name = hooks[i].name = "same";
    }
    options.queue_options = queues;
    options.queue_count = 2;
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), HF_EEXIST);
    options.queue_count = 1;
    options.sinks = hooks;
    options.sink_count = 2;
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), HF_EEXIST);
    char longest[65];
    memset(longest, 'x', sizeof longest);
    longest[64] = '\0';
    hooks[1].name = longest;
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), HF_ETOOBIG);
    longest[63] = '\0';
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), 0);
    hfi_rulebook_free(book);
}

/* An array of a caller built against an older header: shorter items. */
static void arrays_step_by_their_own_size(void **state) {
    (void)state;
    struct hfi_rulebook *book;
    enum { OLD = offsetof(struct hf_type_options, kill_grace_ms) };
    static union {
        char bytes[2 * OLD];
        max_align_t align;
    } old;
    for (int i = 0; i < 2; i++) {
        struct hf_type_options type = noop(i ? "b" : "a");
        type.size = OLD;
        type.kill_grace_ms = -77; /* cut off */
        memcpy(old.bytes + i * OLD, &type, OLD);
    }
    options.types = (const struct hf_type_options *)(const void *)old.bytes;
    options.type_count = 2;
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), 0);
    assert_int_equal(hfi_rulebook_type_count(book), 2);
    assert_int_equal(hfi_rulebook_type(book, "b")->options.kill_grace_ms, 5000);
    hfi_rulebook_free(book);
}

static void downstream_says_how_long_to_wait(void **state) {
    (void)state;
    struct hfi_rulebook *book;
    struct hfi_rules rules;
    struct hf_policy_options policy;
    memset(&policy, 0, sizeof policy);
    policy.size = (uint32_t)sizeof policy;
    policy.retry_after_cap_ms = 7000;
    policy.give_up_after_ms = 9000;
    struct hf_downstream_options downstream;
    hf_downstream_options_init(&downstream);
    downstream.name = "pay";
    downstream.policy = &policy;
    struct hf_type_options type = noop("charge");
    type.kind = HF_KIND_HTTP;
    type.downstream = "pay";
    type.repeatable = false;
    options.downstreams = &downstream;
    options.downstream_count = 1;
    options.types = &type;
    options.type_count = 1;
    assert_int_equal(hfi_rulebook_new(&options, &book, &error), 0);
    struct hfi_job job = {.type = "charge", .queue = "default", .downstream = ""};
    hfi_rulebook_for(book, &job, &rules);
    assert_int_equal(rules.retry_after_cap_ms, 7000);
    assert_int_equal(rules.give_up_after_ms, 9000);
    assert_false(rules.repeatable);
    job.downstream = "elsewhere";
    hfi_rulebook_for(book, &job, &rules);
    assert_int_equal(rules.give_up_after_ms, 86400000);
    hfi_rulebook_free(book);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    static const char *const command[] = {"/bin/cat"}, *const never[] = {"a"};
    struct hf_curve_options curve = curve_of(3, 0, 5);
    struct hf_type_options type = noop("x");
    type.kind = HF_KIND_EXEC;
    type.command = command;
    type.command_length = 1;
    type.curve = &curve;
    type.never_retry = never;
    type.never_retry_count = 1;
    struct hf_queue_options queue;
    hf_queue_options_init(&queue);
    queue.name = "q";
    queue.curve = &curve;
    struct hf_sink_options hook;
    hf_sink_options_init(&hook);
    hook.name = "ops";
    struct hf_downstream_options downstream;
    hf_downstream_options_init(&downstream);
    downstream.name = "d";
    options.types = &type;
    options.queue_options = &queue;
    options.sinks = &hook;
    options.downstreams = &downstream;
    options.type_count = options.queue_count = options.sink_count = options.downstream_count = 1;
    options.never_retry = never;
    options.never_retry_count = 1;
    struct hfi_rulebook *book = NULL;
    long nth = 0;
    for (int code = HF_ENOMEM; code != 0;) {
        hfi_alloc_fail(++nth, 0);
        code = hfi_rulebook_new(&options, &book, &error);
        assert_true(code == 0 || (code == HF_ENOMEM && !book));
    }
    hfi_alloc_fail(0, 0);
    assert_true(nth > 15);
    hfi_rulebook_free(book);
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(defaults_are_the_seed_s),
        TEST(closest_policy_wins),
        TEST(a_formula_keeps_the_number_of_executions_S2_3),
        TEST(the_types_execution_timeout_wins_S2_6),
        TEST(everything_is_copied),
        TEST(second_registration_is_refused_S0_8),
        TEST(wrong_types_are_refused_at_once),
        TEST(silence_fits_into_the_timeout),
        TEST(names_are_there_once),
        TEST(arrays_step_by_their_own_size),
        TEST(downstream_says_how_long_to_wait),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
