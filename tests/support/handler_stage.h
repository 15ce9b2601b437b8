/* SPDX-License-Identifier: MIT */
#ifndef HF_TEST_HANDLER_STAGE_H
#define HF_TEST_HANDLER_STAGE_H

/* One asynchronous handler of type `mail` on a stage in virtual time; the test ends its works when it likes. */
#include "runner_stage.h"

#include <string.h>

#include "jobs/work.h"

#define SECOND INT64_C(1000000)
#define HELD 64

/* What the handler does with each work; NULL: it holds it. */
static struct {
    void (*act)(struct hf_work *work);
    struct hf_work *held[HELD];
    size_t held_count;
    int starts, stops;
    enum hf_stop why;
    const char *type;
    struct hf_type_options options;
    hf_transition_fn observer;
    hf_retry_fn hook;
} play;

static struct stage stage;
static struct hf_runner_options options;

static void handle(struct hf_work *work, void *user) {
    (void)user;
    play.starts++;
    if (play.act != NULL)
        play.act(work);
    else
        play.held[play.held_count++ % HELD] = work;
}

static void prepare(struct stage_node *node) {
    struct hf_error error;
    hf_error_init(&error);
    if (hfi_rulebook_add_async(node->book, &play.options, handle, NULL, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
    if (play.observer != NULL)
        assert_int_equal(hfi_runner_observe(node->runner, play.observer, NULL), 0);
    if (play.hook != NULL) {
        assert_int_equal(hfi_runner_on_retry(node->runner, play.hook, NULL), 0);
        assert_int_equal(hfi_runner_on_retry(node->runner, play.hook, NULL), HF_EEXIST);
    }
}

static int set_up(void **state) {
    (void)state;
    memset(&play, 0, sizeof play);
    play.options = hf_type_native("mail");
    stage_open(&stage, NULL, NULL);
    stage.prepare = prepare;
    stage_options(&options);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    stage_close(&stage);
    return 0;
}

static inline int64_t begin_one(void) {
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 1000);
    int64_t id = stage_enqueue(&stage, "mail", NULL);
    stage_advance(&stage, 300);
    return id;
}

static inline struct hf_work *held(size_t index) {
    assert_true(index < play.held_count);
    return play.held[index];
}

static const struct hf_job_view *look(int64_t id) {
    static struct hf_job *job;
    hf_job_free(job);
    job = NULL;
    if (id == 0)
        return NULL;
    job = stage_job(&stage, id);
    return hf_job_look(job);
}

static inline const struct hf_history_view *past(int64_t id, size_t index) {
    static struct hf_job *job;
    hf_job_free(job);
    job = NULL;
    if (id == 0)
        return NULL;
    job = stage_job(&stage, id);
    assert_true(index < hf_job_history_count(job));
    return hf_job_history_at(job, index);
}

static int forget(void **state) {
    look(0);
    past(0, 0);
    return tear_down(state);
}

static inline int64_t wall_us(void) {
    return stage.scheduler->ops->wall(stage.scheduler).us;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, forget)

#endif
