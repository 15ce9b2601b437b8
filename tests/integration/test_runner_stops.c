/* SPDX-License-Identifier: MIT */
/* Stopping a runner in the midst of its work, again and again. Under sanitizers nothing of it may be used afterwards. */
#include "support.h"

#include <sched.h>

#include "holdfast/holdfast.h"

#define ROUNDS 30
#define JOBS 400

static void begin(struct hf_store **store, struct hf_runner **runner) {
    struct hf_store_options store_options;
    struct hf_runner_options options;
    struct hf_type_options type;
    struct hf_job_spec spec = hf_job_of("tick", "");
    hf_store_options_init(&store_options);
    assert_int_equal(hf_store_open("memory:", &store_options, store, NULL), 0);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(hf_enqueue(*store, &spec, NULL, NULL, NULL), 0);
    hf_type_options_init(&type);
    type.kind = HF_KIND_NOOP;
    type.name = "tick";
    hf_runner_options_init(&options);
    options.types = &type;
    options.type_count = 1;
    assert_int_equal(hf_runner_new(*store, &options, runner, NULL), 0);
    assert_int_equal(hf_runner_start(*runner, NULL), 0);
}

/* I91: a stop ends every loop before the store is closed, at whatever moment it comes; nothing is left running. */
static void a_stop_under_load_leaves_nothing_running_I91(void **state) {
    (void)state;
    hf_log_set(HF_LOG_ERROR + 1, NULL, NULL);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct hf_store *store = NULL;
        struct hf_runner *runner = NULL;
        struct hf_runner_counts counts;
        struct hf_job_counts jobs = {.size = sizeof jobs};
        begin(&store, &runner);
        do {
            sched_yield();
            hf_runner_counts_init(&counts);
            hf_runner_look(runner, &counts);
        } while (counts.succeeded < round * 10); /* from before its first job to near the last */
        assert_int_equal(hf_runner_drain(runner), 0);
        hf_runner_look(runner, &counts);
        assert_int_equal(counts.running, 0);
        assert_int_equal(counts.started, counts.succeeded + counts.given_back);
        assert_int_equal(hf_store_count_jobs(store, &jobs, NULL), 0);
        assert_int_equal(jobs.running, 0);
        assert_int_equal(jobs.succeeded, counts.succeeded);
        assert_int_equal(jobs.succeeded + jobs.pending, JOBS);
        hf_runner_free(runner);
        hf_store_close(store);
    }
    hf_log_set(HF_LOG_INFO, NULL, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_under_load_leaves_nothing_running_I91),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
