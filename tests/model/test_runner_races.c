/* SPDX-License-Identifier: MIT */
/*
 * What meets in one turn of the loop: a handler's word and the timer that takes it, its end and the timer that gives it
 * up, a lapse and the stop that tells of it; and works that wait for a thread. In virtual time.
 */
#include "handler_stage.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "base/alloc.h"

/* ------------------------------------------------------------------ threads, or none */

static _Atomic bool no_threads;

int pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*run)(void *), void *user) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (no_threads)
        return 11; /* EAGAIN */
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(id, attributes, run, user);
}

/* ------------------------------------------------------------------ timers of the test */

static int finish_code;
static struct hfi_timer timers[2];

static void at(size_t timer, hfi_timer_fn fire, struct hf_work *work, int64_t after_ms) {
    hfi_timer_init(&timers[timer], fire, work);
    struct hf_mono when = hfi_mono_after_ms(hfi_now(stage.scheduler), after_ms);
    assert_int_equal(stage.scheduler->ops->arm(stage.scheduler, &timers[timer], when), 0);
}

static void say(struct hfi_timer *timer, void *user) {
    hf_work_progress(user, timer == &timers[0] ? 2 : 3, "said by a timer");
}

static void finish(struct hfi_timer *timer, void *user) {
    (void)timer;
    finish_code = hf_work_finish(user, hf_work_ok(user, NULL, 0));
}

/* The task of the second word is on its way when the timer takes it; the third must not queue it again. */
static void progress_that_a_timer_took_is_not_queued_twice(void **state) {
    (void)state;
    int64_t id = begin_one();
    struct hf_work *work = held(0);
    at(0, say, work, 200);
    assert_int_equal(hf_work_progress(work, 1, "first"), 0);
    stage_advance(&stage, 0); /* written; the next one 200 ms later */
    at(1, say, work, 200);
    stage_advance(&stage, 1000);
    assert_int_equal(look(id)->progress, 3);
    assert_int_equal(hf_work_progress(work, 4, "fourth"), 0);
    stage_advance(&stage, 1000);
    assert_int_equal(look(id)->progress, 4);
    assert_int_equal(hf_work_finish(work, hf_work_ok(work, NULL, 0)), 0);
    stage_advance(&stage, 100);
    assert_int_equal(look(id)->state, HF_JOB_SUCCEEDED);
}

static void progress_without_memory_is_written_later(void **state) {
    (void)state;
    int64_t id = begin_one();
    assert_int_equal(hf_work_progress(held(0), 1, "first"), 0);
    hfi_alloc_fail(1, 0);
    stage_advance(&stage, 0);
    hfi_alloc_fail(0, 0);
    assert_int_equal(stage_logged(&stage, "runner.no_memory"), 1);
    assert_int_equal(look(id)->progress, 0);
    stage_advance(&stage, 300);
    assert_int_equal(look(id)->progress, 1);
    assert_int_equal(hf_work_progress(held(0), 2, "second"), 0);
    stage_advance(&stage, 300);
    assert_int_equal(look(id)->progress, 2);
    hf_work_finish(held(0), hf_work_ok(held(0), NULL, 0));
}

/* ------------------------------------------------------------------ its end, and its being given up */

static int64_t finish_after_ms;

static void finishes_later(struct hf_work *work) {
    at(0, finish, work, finish_after_ms); /* armed before those that give it up */
}

static void check_not_lapsed(int64_t id) {
    assert_int_equal(finish_code, 0);
    assert_int_equal(look(id)->state, HF_JOB_SUCCEEDED);
    assert_int_equal(stage_counts(&stage, 0).abandoned, 0);
    assert_int_equal(stage_counts(&stage, 0).silent, 0);
    assert_int_equal(stage_counts(&stage, 0).succeeded, 1);
    assert_int_equal(play.starts, 1);
}

static void an_end_on_its_way_is_no_silence(void **state) {
    (void)state;
    play.act = finishes_later;
    play.options.heartbeat_timeout_ms = finish_after_ms = 3000;
    int64_t id = begin_one();
    stage_advance(&stage, 120000);
    check_not_lapsed(id);
}

/* S2.8: late, and an ok. */
static void an_end_on_its_way_is_not_given_up(void **state) {
    (void)state;
    play.act = finishes_later;
    play.options.execution_timeout_ms = 5000;
    play.options.abandon_after_ms = 2000;
    finish_after_ms = 7000;
    int64_t id = begin_one();
    stage_advance(&stage, 120000);
    check_not_lapsed(id);
    assert_int_equal(stage_counts(&stage, 0).late, 1);
}

static void stopped(struct hf_work *work, enum hf_stop why, void *user) {
    (void)user;
    play.stops++;
    play.why = why;
    finish_code = hf_work_finish(work, hf_work_failed(work, "stopped", "told to stop"));
}

/* The example of docs/handlers.md: it is told that its word comes too late, and the node has nothing left over. */
static void who_ends_as_the_lapse_is_told_is_too_late(void **state) {
    (void)state;
    play.options.heartbeat_timeout_ms = 3000;
    options.max_abandoned = 1;
    int64_t id = begin_one();
    hf_work_on_stop(held(0), stopped, NULL);
    stage_advance(&stage, 4000);
    assert_int_equal(play.stops, 1);
    assert_int_equal(play.why, HF_STOP_LOST);
    assert_int_equal(finish_code, HF_ESTALE);
    assert_string_equal(look(id)->error_type, "heartbeat.lapsed");
    assert_int_equal(stage_counts(&stage, 0).abandoned, 1);
    assert_int_equal(stage_counts(&stage, 0).abandoned_live, 0);
    assert_int_equal(stage_logged(&stage, "node.abandoned"), 0);
    stage_advance(&stage, 61000);
    assert_int_equal(play.starts, 2);
    assert_int_equal(hf_work_finish(held(1), hf_work_ok(held(1), NULL, 0)), 0);
    stage_advance(&stage, 100);
    assert_int_equal(look(id)->state, HF_JOB_SUCCEEDED);
}

static void a_stop_that_found_no_callback_is_told_to_the_next(void **state) {
    (void)state;
    play.options.execution_timeout_ms = 5000;
    int64_t id = begin_one();
    stage_advance(&stage, 5000);
    hf_work_on_stop(held(0), stopped, NULL);
    hf_work_on_stop(held(0), NULL, NULL);
    stage_advance(&stage, 10);
    assert_int_equal(play.stops, 0);
    hf_work_on_stop(held(0), stopped, NULL);
    stage_advance(&stage, 100);
    assert_int_equal(play.stops, 1);
    assert_int_equal(finish_code, 0);
    assert_string_equal(look(id)->error_type, "timeout.execution");
}

/* ------------------------------------------------------------------ waiting for a thread */

static sem_t begun, go[2];

static enum hf_result blocks(struct hf_work *work, void *user) {
    sem_post(&begun);
    while (sem_wait(user) != 0)
        continue;
    return hf_work_ok(work, NULL, 0);
}

static void prepare_threads(struct stage_node *node) {
    struct hf_type_options other = hf_type_native("other");
    struct hf_error error;
    hf_error_init(&error);
    assert_int_equal(hfi_rulebook_add(node->book, &other, blocks, &go[0], &error), 0);
    assert_int_equal(hfi_rulebook_add(node->book, &play.options, blocks, &go[1], &error), 0);
}

static void await_begun(void) {
    while (sem_wait(&begun) != 0)
        continue;
}

/* What no handler has yet cannot be silent; from when a thread has it, it can. */
static void a_work_that_waits_for_a_thread_is_not_silent(void **state) {
    (void)state;
    sem_init(&begun, 0, 0);
    sem_init(&go[0], 0, 0);
    sem_init(&go[1], 0, 0);
    play.options.heartbeat_timeout_ms = 3000;
    stage.prepare = prepare_threads;
    stage_begin(&stage, 0, &options);
    stage_advance(&stage, 1000);
    int64_t other = stage_enqueue(&stage, "other", NULL);
    stage_advance(&stage, 300);
    await_begun();
    no_threads = true;
    int64_t id = stage_enqueue(&stage, "mail", NULL);
    stage_advance(&stage, 20000);
    no_threads = false;
    assert_int_equal(stage_logged(&stage, "native.no_thread"), 1);
    assert_int_equal(look(id)->state, HF_JOB_RUNNING);
    assert_int_equal(stage_counts(&stage, 0).silent, 0);
    sem_post(&go[0]);
    await_begun(); /* the thread of the other one has it */
    stage_advance(&stage, 7000);
    assert_int_equal(stage_counts(&stage, 0).silent, 1);
    assert_string_equal(look(id)->error_type, "heartbeat.lapsed");
    sem_post(&go[1]);
    while (stage_counts(&stage, 0).abandoned_live > 0 || look(other)->state != HF_JOB_SUCCEEDED) {
        stage_advance(&stage, 0);
        sched_yield();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(progress_that_a_timer_took_is_not_queued_twice),
        TEST(progress_without_memory_is_written_later),
        TEST(an_end_on_its_way_is_no_silence),
        TEST(an_end_on_its_way_is_not_given_up),
        TEST(who_ends_as_the_lapse_is_told_is_too_late),
        TEST(a_stop_that_found_no_callback_is_told_to_the_next),
        TEST(a_work_that_waits_for_a_thread_is_not_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
