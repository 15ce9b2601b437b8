/* SPDX-License-Identifier: MIT */
/*
 * Handlers on threads and how they may end: S0.1, S1.7, S1.8, S1.17, S2.8, S2.11, S3.8. The loop is virtual, the threads
 * are real: the test waits for them at a semaphore.
 */
#include "support.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "jobs/wards.h"
#include "jobs/work.h"
#include "sim/virtual.h"

static struct hfi_scheduler *loop;
static struct hfi_kind *kind;
static struct hfi_wards *wards; /* NULL but in the tests of the watchdog */
static struct hfi_type type;
static struct hfi_job job;
static struct hf_work works[64];
static int ends;
static sem_t began, go_on, posted;

/* Handlers hand their work over from their threads; the wrapper lets the test wait for that. */
static struct hfi_scheduler_ops watched_ops;
static const struct hfi_scheduler_ops *real_ops;

static _Atomic bool post_waits; /* for go_on */

static void post(struct hfi_scheduler *self, struct hfi_task *task) {
    if (atomic_load(&post_waits)) {
        sem_post(&began);
        while (sem_wait(&go_on) != 0)
            continue;
    }
    real_ops->post(self, task);
    sem_post(&posted);
}

static void ended(struct hf_work *done, void *user) {
    (void)done;
    (void)user;
    ends++;
}

static struct hf_work *prepare(int index) {
    struct hf_work *work = &works[index];
    memset(work, 0, sizeof *work);
    work->job = &job;
    work->type = &type;
    work->scheduler = loop;
    work->deadline.us = HFI_FOREVER_US;
    work->max_executions = 6;
    work->ended = ended;
    snprintf(work->key, sizeof work->key, "store-17");
    hfi_outcome_init(&work->ending.outcome);
    return work;
}

static void make(uint32_t threads) {
    assert_int_equal(hfi_kind_native_new(loop, threads, wards, &kind), 0);
}

static int set_up(void **state) {
    (void)state;
    assert_int_equal(hfi_virtual_new((struct hf_mono){1000}, (struct hf_wall){1000}, &loop), 0);
    real_ops = loop->ops;
    watched_ops = *real_ops;
    watched_ops.post = post;
    loop->ops = &watched_ops;
    memset(&type, 0, sizeof type);
    hf_type_options_init(&type.options);
    type.options.kind = HF_KIND_NATIVE;
    job = (struct hfi_job){.id = 17, .executions = 2, .type = "mail", .payload = "abc", .payload_length = 3};
    ends = 0;
    sem_init(&began, 0, 0);
    sem_init(&go_on, 0, 0);
    sem_init(&posted, 0, 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    for (int i = 0; i < 64; i++)
        hfi_ending_free(&works[i].ending);
    if (kind)
        kind->ops->close(kind);
    kind = NULL;
    real_ops->close(loop);
    return 0;
}

/* Waits until `count` works came back, and lets the loop take them. */
static void take(int count) {
    for (int i = 0; i < count; i++)
        while (sem_wait(&posted) != 0)
            continue;
    hfi_virtual_advance(loop, 0);
}

static struct hf_work *run(hf_handler_fn handler) {
    static int index;
    struct hf_work *work = prepare(index++ % 64);
    type.handler = handler;
    assert_int_equal(kind->ops->start(kind, work), 0);
    int before = ends;
    take(1);
    assert_int_equal(ends, before + 1);
    return work;
}

/* ------------------------------------------------------------------ endings */

static enum hf_result says_ok(struct hf_work *work, void *user) {
    (void)user;
    return hf_work_ok(work, "fine", 4);
}
static enum hf_result returns_0(struct hf_work *work, void *user) {
    (void)work;
    (void)user;
    return (enum hf_result)0;
}
static enum hf_result returns_ok_unsaid(struct hf_work *work, void *user) {
    (void)work;
    (void)user;
    return HF_RESULT_OK;
}
static enum hf_result swallows_its_failure(struct hf_work *work, void *user) {
    (void)user;
    hf_work_failed(work, "sql.40P01", "deadlock");
    return HF_RESULT_OK;
}
static enum hf_result drops_its_success(struct hf_work *work, void *user) {
    (void)user;
    hf_work_ok(work, "fine", 4);
    return (enum hf_result)77;
}
static enum hf_result makes_a_result_up(struct hf_work *work, void *user) {
    (void)work;
    (void)user;
    return (enum hf_result)(HF_RESULT_CANCEL + 1);
}
static enum hf_result leaves_its_thread(struct hf_work *work, void *user) {
    (void)user;
    hf_work_ok(work, NULL, 0);
    pthread_exit(NULL);
}
static enum hf_result leaves_when_told(struct hf_work *work, void *user) {
    (void)user;
    hf_work_ok(work, NULL, 0);
    sem_post(&began);
    while (sem_wait(&go_on) != 0)
        continue;
    pthread_exit(NULL);
}
static enum hf_result ends_as_untouched(struct hf_work *work, void *user) {
    (void)user;
    struct hf_outcome *outcome = hf_outcome_new();
    enum hf_result result = hf_work_end_as(work, outcome);
    hf_outcome_free(outcome);
    return result;
}
static enum hf_result ends_as_nothing(struct hf_work *work, void *user) {
    (void)user;
    return hf_work_end_as(work, NULL);
}

/* S4.7: a worker that is gone is begun again: the work that waited for it does not wait for ever. */
static void who_waits_for_a_thread_that_leaves_gets_another_S4_7(void **state) {
    (void)state;
    make(1);
    type.handler = leaves_when_told;
    for (int i = 0; i < 3; i++)
        assert_int_equal(kind->ops->start(kind, prepare(i)), 0);
    for (int i = 0; i < 3; i++) {
        while (sem_wait(&began) != 0)
            continue;
        sem_post(&go_on);
        take(1);
        assert_string_equal(works[i].ending.outcome.error_type, "handler.thread_exit");
    }
    assert_int_equal(ends, 3);
}

static void no_way_around_a_failure_S0_1(void **state) {
    (void)state;
    static const hf_handler_fn bad[] = {returns_0, returns_ok_unsaid, swallows_its_failure, drops_its_success,
                                        makes_a_result_up, ends_as_nothing};
    make(2);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_work *work = run(bad[i]);
        assert_int_equal(work->ending.result, HF_RESULT_FAILED);
        assert_string_equal(work->ending.outcome.error_type, "handler.unknown_result");
        assert_null(work->ending.data);
        assert_int_equal(work->ending.outcome.sent, HF_SENT_MAYBE);
    }
    assert_int_equal(run(ends_as_untouched)->ending.result, HF_RESULT_FAILED);
    struct hf_work *work = run(leaves_its_thread);
    assert_int_equal(work->ending.result, HF_RESULT_FAILED);
    assert_string_equal(work->ending.outcome.error_type, "handler.thread_exit");
    assert_int_equal(run(says_ok)->ending.result, HF_RESULT_OK); /* another thread took its place */
}

static enum hf_result says_all(struct hf_work *work, void *user) {
    (void)user;
    hf_work_cancel(work, "a reason");
    hf_work_snooze(work, 77);
    hf_work_failed(work, "x", "y");
    return hf_work_ok(work, "last", 5);
}
static enum hf_result says_snooze(struct hf_work *work, void *user) {
    (void)user;
    return hf_work_snooze(work, -1);
}
static enum hf_result says_cancel(struct hf_work *work, void *user) {
    (void)user;
    hf_work_ok(work, "dropped", 7);
    return hf_work_cancel(work, "caf\xe9");
}
static enum hf_result says_permanent(struct hf_work *work, void *user) {
    (void)user;
    return hf_work_permanent(work, "mail.no_such_user", "gone");
}
static enum hf_result says_too_much(struct hf_work *work, void *user) {
    (void)user;
    static const char much[HFI_RESULT_MAX + 1];
    return hf_work_ok(work, much, sizeof much);
}
static enum hf_result says_a_lot_about_it(struct hf_work *work, void *user) {
    (void)user;
    char text[3001];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    return hf_work_failed(work, "", text);
}
static enum hf_result ends_as_rejected(struct hf_work *work, void *user) {
    (void)user;
    struct hf_outcome outcome;
    hfi_outcome_init(&outcome);
    hfi_outcome_rejected(&outcome, "breaker.open", 5000);
    return hf_work_end_as(work, &outcome);
}

static void the_last_word_counts(void **state) {
    (void)state;
    make(1);
    struct hf_work *work = run(says_all);
    assert_int_equal(work->ending.result, HF_RESULT_OK);
    assert_string_equal((const char *)work->ending.data, "last");
    work = run(says_snooze);
    assert_int_equal(work->ending.result, HF_RESULT_SNOOZE);
    assert_int_equal(work->ending.delay_ms, 0);
    work = run(says_cancel);
    assert_int_equal(work->ending.result, HF_RESULT_CANCEL);
    assert_string_equal(work->ending.text, "caf\xef\xbf\xbd");
    assert_null(work->ending.data);
    work = run(says_permanent);
    assert_int_equal(work->ending.result, HF_RESULT_PERMANENT);
    assert_int_equal(work->ending.outcome.klass, HF_CLASS_PERMANENT);
    assert_string_equal(work->ending.outcome.error_type, "mail.no_such_user");
    work = run(says_too_much);
    assert_string_equal(work->ending.outcome.error_type, "result.too_big");
    work = run(says_a_lot_about_it);
    assert_string_equal(work->ending.outcome.error_type, "handler.failed");
    assert_int_equal(strlen(work->ending.detail), 3000); /* the whole text [S1.8] */
    work = run(ends_as_rejected);
    assert_int_equal(work->ending.result, HF_RESULT_FAILED);
    assert_int_equal(work->ending.outcome.kind, HF_OUTCOME_REJECTED); /* for the runner to judge */
}

static enum hf_result no_memory(struct hf_work *work, void *user) {
    (void)user;
    hfi_alloc_fail(1, 0);
    enum hf_result result = hf_work_ok(work, "x", 1);
    hfi_alloc_fail(0, 0);
    return result;
}

static void a_result_that_is_lost_is_no_success(void **state) {
    (void)state;
    make(1);
    struct hf_work *work = run(no_memory);
    assert_int_equal(work->ending.result, HF_RESULT_FAILED);
    assert_string_equal(work->ending.outcome.error_type, "local.memory");
}

/* ------------------------------------------------------------------ what it sees */

static bool seen_all;
static enum hf_result looks(struct hf_work *work, void *user) {
    size_t length;
    const char *payload = hf_work_payload(work, &length);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    seen_all = user == &seen_all && hf_work_job(work) == 17 && strcmp(hf_work_type(work), "mail") == 0 &&
               strcmp(hf_work_key(work), "store-17") == 0 && hf_work_execution(work) == 2 &&
               hf_work_max_executions(work) == 6 && length == 3 && memcmp(payload, "abc", 3) == 0 &&
               hf_work_remaining_ms(work) == INT64_MAX && !hf_work_is_cancelled(work) && !hf_work_client(work) &&
               sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGUSR1);
    return hf_work_ok(work, NULL, 0);
}

static void handler_sees_its_execution_S1_7(void **state) {
    (void)state;
    make(1);
    type.user = &seen_all;
    seen_all = false;
    run(looks);
    assert_true(seen_all);
    struct hf_work *work = prepare(0);
    work->deadline = (struct hf_mono){1000 + 2500};
    assert_int_equal(hf_work_remaining_ms(work), 2);
    work->deadline = (struct hf_mono){1};
    assert_int_equal(hf_work_remaining_ms(work), 0);
    struct hf_error error;
    hf_error_init(&error);
    assert_int_equal(hf_work_call(work, NULL, NULL, &error), HF_ENOENT);
}

/* ------------------------------------------------------------------ the pool */

static enum hf_result waits(struct hf_work *work, void *user) {
    (void)user;
    sem_post(&began);
    while (sem_wait(&go_on) != 0)
        continue;
    return hf_work_is_cancelled(work) ? hf_work_cancel(work, "told to") : hf_work_ok(work, NULL, 0);
}

static void wait_for(sem_t *what, int count) {
    for (int i = 0; i < count; i++)
        while (sem_wait(what) != 0)
            continue;
}

static void never_more_threads_than_allowed(void **state) {
    (void)state;
    make(3);
    type.handler = waits;
    for (int i = 0; i < 20; i++)
        assert_int_equal(kind->ops->start(kind, prepare(i)), 0);
    wait_for(&began, 3);
    int more;
    assert_int_equal(sem_getvalue(&began, &more), 0);
    assert_int_equal(more, 0);
    for (int i = 0; i < 20; i++)
        sem_post(&go_on);
    take(20);
    assert_int_equal(ends, 20);
    wait_for(&began, 17);
}

static void stop_reaches_those_that_run_and_those_that_wait(void **state) {
    (void)state;
    make(1);
    type.handler = waits;
    for (int i = 0; i < 3; i++)
        assert_int_equal(kind->ops->start(kind, prepare(i)), 0);
    wait_for(&began, 1);
    for (int i = 0; i < 2; i++) {
        atomic_store(&works[i].stop, HFI_STOP_DRAIN);
        kind->ops->stop(kind, &works[i], false);
        assert_int_equal(ends, 0); /* never inside stop */
    }
    take(1); /* the one that waited: it never began */
    assert_int_equal(ends, 1);
    assert_string_equal(works[1].ending.outcome.error_type, "local.stopped");
    assert_int_equal(works[1].ending.outcome.sent, HF_SENT_NO);
    sem_post(&go_on);
    sem_post(&go_on);
    take(2);
    assert_int_equal(works[0].ending.result, HF_RESULT_CANCEL);
    assert_int_equal(works[2].ending.result, HF_RESULT_OK);
    wait_for(&began, 1);
}

static pthread_t stuck_thread;
static sem_t stuck_ended;
static void tell(void *unused) {
    (void)unused;
    sem_post(&stuck_ended);
}
static enum hf_result stuck(struct hf_work *work, void *user) {
    static pthread_key_t at_exit;
    (void)user;
    pthread_key_create(&at_exit, tell);
    pthread_setspecific(at_exit, &stuck_thread);
    sem_post(&began);
    while (sem_wait(&go_on) != 0)
        continue;
    return hf_work_ok(work, NULL, 0);
}

static void close_does_not_wait_for_a_stuck_handler(void **state) {
    (void)state;
    make(2);
    sem_init(&stuck_ended, 0, 0);
    type.handler = stuck;
    assert_int_equal(kind->ops->start(kind, prepare(0)), 0);
    wait_for(&began, 1);
    kind->ops->close(kind);
    kind = NULL;
    sem_post(&go_on); /* it returns after all: nobody hears of it, nothing breaks */
    wait_for(&stuck_ended, 1);
    hfi_virtual_advance(loop, 0);
    assert_int_equal(ends, 0);
}

static void no_thread_is_no_failure_of_the_job(void **state) {
    (void)state;
    make(1);
    type.handler = says_ok;
    struct hf_work *work = prepare(0);
    hfi_alloc_fail(1, 0);
    assert_int_equal(kind->ops->start(kind, work), HF_ENOMEM);
    hfi_alloc_fail(0, 0);
    assert_int_equal(work->ending.outcome.kind, HF_OUTCOME_REJECTED);
    assert_int_equal(run(says_ok)->ending.result, HF_RESULT_OK);
    assert_int_equal(ends, 1);
}

/* ------------------------------------------------------------------ the watchdog, in made-up time */

static const struct hfi_watchdog_limits limits = {.deadline_ms = 60000, .grace_ms = 300000};
static int64_t now_ms;

/* A round; how often `word` was said. */
static int look(enum hfi_watchdog_word word) {
    struct hfi_ward_word words[HFI_WARD_WORDS];
    int said = 0;
    now_ms += hfi_watchdog_round_ms(&limits);
    size_t count = hfi_wards_look(wards, &limits, (struct hf_mono){now_ms * 1000}, words);
    for (size_t i = 0; i < count; i++) {
        said += words[i].word == word;
        assert_true(word == HFI_WATCHDOG_HUNG || words[i].word != HFI_WATCHDOG_HUNG);
    }
    return said;
}

static enum hf_result waits_its_time(struct hf_work *work, void *user) {
    (void)user;
    sem_post(&began);
    while (sem_wait(&go_on) != 0)
        continue;
    return hf_work_ok(work, NULL, 0);
}

/* S4.7, S4.8: a worker in its handler for a day is left alone; one that hangs behind it is replaced by a fresh thread, its
 * job is not lost, and when the hang ends it goes. One thread is all that is allowed. */
static void a_worker_that_hangs_outside_of_its_handler_is_replaced_S4_7(void **state) {
    (void)state;
    struct hfi_desk desk;
    now_ms = 1000;
    assert_int_equal(hfi_wards_new(&wards), 0);
    assert_int_equal(hfi_desk_init(&desk, loop, NULL), 0);
    make(1);
    type.handler = waits_its_time;
    struct hf_work *stuck = prepare(0), *next = prepare(1);
    stuck->desk = &desk;
    assert_int_equal(kind->ops->start(kind, stuck), 0);
    while (sem_wait(&began) != 0)
        continue;
    for (int round = 0; round < 24 * 60 * 4; round++)
        assert_int_equal(look(HFI_WATCHDOG_LATE), 0);
    pthread_mutex_lock(&desk.lock); /* its last word has to wait for this */
    sem_post(&go_on);
    while (look(HFI_WATCHDOG_RESTARTED) == 0)
        continue;
    struct hfi_wards_counts counts;
    hfi_wards_count(wards, &counts);
    assert_int_equal(counts.missed, 1);
    assert_int_equal(counts.late, 0);
    type.handler = says_ok;
    assert_int_equal(kind->ops->start(kind, next), 0);
    take(1);
    assert_int_equal(ends, 1);
    assert_int_equal(next->ending.result, HF_RESULT_OK);
    type.handler = waits_its_time;
    assert_int_equal(kind->ops->start(kind, prepare(2)), 0);
    while (sem_wait(&began) != 0)
        continue;
    for (int round = 0; round < 100; round++) /* the fresh one is in a handler, the other is off the roll */
        assert_int_equal(look(HFI_WATCHDOG_LATE) + look(HFI_WATCHDOG_HUNG), 0);
    sem_post(&go_on);
    pthread_mutex_unlock(&desk.lock);
    take(2);
    assert_int_equal(ends, 3);
    assert_int_equal(stuck->ending.result, HF_RESULT_OK);
    kind->ops->close(kind);
    kind = NULL;
    hfi_desk_end(&desk);
    hfi_wards_free(wards);
    wards = NULL;
}

/* One that hangs with the lock of all workers cannot be replaced: the process has to end. */
static void a_worker_that_hangs_with_the_lock_is_not_S4_7(void **state) {
    (void)state;
    now_ms = 1000;
    assert_int_equal(hfi_wards_new(&wards), 0);
    make(2);
    atomic_store(&post_waits, true);
    type.handler = says_ok;
    assert_int_equal(kind->ops->start(kind, prepare(0)), 0);
    while (sem_wait(&began) != 0) /* it is there, with the lock */
        continue;
    struct hfi_wards_counts counts;
    int hung;
    do {
        hung = look(HFI_WATCHDOG_HUNG);
        hfi_wards_count(wards, &counts);
    } while (hung == 0 && counts.restarted == 0);
    assert_int_equal(counts.restarted, 0);
    assert_int_equal(counts.late, 1);
    atomic_store(&post_waits, false);
    sem_post(&go_on);
    take(1);
    assert_int_equal(ends, 1);
    kind->ops->close(kind);
    kind = NULL;
    hfi_wards_free(wards);
    wards = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(no_way_around_a_failure_S0_1),
        TEST(who_waits_for_a_thread_that_leaves_gets_another_S4_7),
        TEST(the_last_word_counts),
        TEST(a_result_that_is_lost_is_no_success),
        TEST(handler_sees_its_execution_S1_7),
        TEST(never_more_threads_than_allowed),
        TEST(stop_reaches_those_that_run_and_those_that_wait),
        TEST(close_does_not_wait_for_a_stuck_handler),
        TEST(no_thread_is_no_failure_of_the_job),
        TEST(a_worker_that_hangs_outside_of_its_handler_is_replaced_S4_7),
        TEST(a_worker_that_hangs_with_the_lock_is_not_S4_7),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
