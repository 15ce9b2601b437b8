/* SPDX-License-Identifier: MIT */
/* The public store: URLs, enqueueing from many threads and from none that may block, and refusals that say what to do. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

#include "base/alloc.h"
#include "base/blocking.h"
#include "holdfast/dead.h"
#include "holdfast/queue.h"
#include "jobs/writer.h"

static struct hf_error error;

static struct hf_store *open_url(const char *url) {
    struct hf_store *store = NULL;
    hf_error_init(&error);
    if (hf_store_open(url, NULL, &store, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
    return store;
}

static char *url_of(const char *name) {
    static char url[512];
    snprintf(url, sizeof url, "sqlite:%s", hf_test_path(name));
    return url;
}

static struct hf_job_spec spec_of(const char *type) {
    struct hf_job_spec spec;
    hf_job_spec_init(&spec);
    spec.type = type;
    return spec;
}

/* Refused with a code, and with words about that thing. */
static void assert_refused(int code, int expected, const char *word) {
    char text[1024];
    assert_int_equal(code, expected);
    assert_int_equal(error.code, expected);
    hf_error_print(&error, text, sizeof text);
    if (!strstr(text, word))
        fail_msg("\"%s\" does not speak of %s", text, word);
    hf_error_init(&error);
}

static void a_store_is_never_chosen_for_you(void **state) { /* S3.22 */
    (void)state;
    struct hf_store *store = NULL;
    hf_error_init(&error);
    assert_refused(hf_store_open("", NULL, &store, &error), HF_EINVAL, "sqlite:PATH");
    assert_refused(hf_store_open(NULL, NULL, &store, &error), HF_EINVAL, "empty");
    assert_refused(hf_store_open("sqlite:", NULL, &store, &error), HF_EINVAL, "path");
    assert_refused(hf_store_open("jobs.db", NULL, &store, &error), HF_EINVAL, "\"jobs.db\"");
    assert_refused(hf_store_open("postgresql://x", NULL, &store, &error), HF_EINVAL, "postgresql://x");
    assert_refused(hf_store_open("memory:x", NULL, &store, &error), HF_EINVAL, "memory:x");
    assert_null(store);
    struct hf_store_options options;
    memset(&options, 0, sizeof options);
    assert_refused(hf_store_open("memory:", &options, &store, &error), HF_EINVAL, "init");
    hf_store_options_init(&options);
    options.payload_max = UINT32_MAX;
    assert_refused(hf_store_open("memory:", &options, &store, &error), HF_EINVAL, "payload_max");
    hf_store_options_init(&options);
    options.create = false;
    assert_int_equal(hf_store_open(url_of("missing.db"), &options, &store, &error), HF_ENOENT);
    assert_null(store);
    hf_store_close(NULL);
}

static void both_kinds_open_and_say_what_they_are(void **state) {
    (void)state;
    struct hf_store_info info;
    struct hf_store *store = open_url("memory:");
    hf_store_info_init(&info);
    assert_int_equal(hf_store_look(store, &info), 0);
    assert_string_equal(info.kind, "memory");
    hf_store_close(store);
    store = open_url(url_of("kinds.db"));
    assert_int_equal(hf_store_look(store, &info), 0);
    assert_string_equal(info.kind, "sqlite");
    assert_int_equal(strlen(info.uuid), 36);
    hf_store_close(store);
    info.size = 0;
    store = open_url("memory:");
    assert_int_equal(hf_store_look(store, &info), HF_EINVAL);
    struct { /* an older caller's: shorter */
        uint32_t size;
        uint64_t pending;
        uint64_t canary;
    } old = {.size = offsetof(struct hf_job_counts, waiting), .canary = 0xabcdef};
    assert_int_equal(hf_store_count_jobs(store, (struct hf_job_counts *)(void *)&old, NULL), 0);
    assert_int_equal(old.canary, 0xabcdef);
    hf_store_close(store);
}

static void an_enqueue_is_kept_over_a_reopening(void **state) { /* S3.23, I93 */
    (void)state;
    struct hf_store *store = open_url(url_of("reopen.db"));
    struct hf_job_spec spec = spec_of("mail");
    int64_t id = 0;
    bool existed = true;
    spec.payload = "x";
    spec.payload_length = 1;
    assert_int_equal(hf_enqueue(store, &spec, &id, &existed, &error), 0);
    assert_true(id > 0);
    assert_false(existed);
    hf_store_close(store);
    store = open_url(url_of("reopen.db"));
    struct hf_job *job = NULL;
    assert_int_equal(hf_store_get_job(store, id, &job, &error), 0);
    assert_string_equal(hf_job_look(job)->type, "mail");
    assert_memory_equal(hf_job_look(job)->payload, "x", 1);
    hf_job_free(job);
    assert_refused(hf_store_get_job(store, id + 1, &job, &error), HF_ENOENT, "does not exist");
    assert_null(job);
    hf_store_close(store);
}

static void what_cannot_be_a_job_is_refused_by_name(void **state) {
    (void)state;
    struct hf_store *store = open_url("memory:");
    struct hf_job_spec spec = spec_of(NULL);
    static char big[HF_PAYLOAD_MAX_DEFAULT + 1];
    int64_t id = 0;
    assert_refused(hf_enqueue(store, &spec, &id, NULL, &error), HF_EINVAL, "type");
    spec = spec_of("bad\xff");
    assert_refused(hf_enqueue(store, &spec, &id, NULL, &error), HF_ETEXT, "type");
    spec = spec_of("a");
    spec.payload = big;
    spec.payload_length = sizeof big;
    assert_refused(hf_enqueue(store, &spec, &id, NULL, &error), HF_ETOOBIG, "payload");
    memset(&spec, 0, sizeof spec);
    assert_refused(hf_enqueue(store, &spec, &id, NULL, &error), HF_EINVAL, "init");
    struct hf_job_spec many[3] = {spec_of("a"), spec_of("b"), spec_of("c")};
    int64_t ids[3];
    many[1].priority = 10;
    assert_int_equal(hf_enqueue_many(store, many, 3, ids, NULL, &error), HF_EINVAL);
    assert_int_equal(error.line, 2); /* which one */
    assert_refused(HF_EINVAL, HF_EINVAL, "priority");
    assert_refused(hf_enqueue_many(store, many, 10001, ids, NULL, &error), HF_ETOOBIG, "10000");
    struct hf_job_counts counts;
    hf_job_counts_init(&counts);
    assert_int_equal(hf_store_count_jobs(store, &counts, &error), 0);
    assert_int_equal(counts.pending, 0); /* all or none */
    many[1].priority = 9;
    assert_int_equal(hf_enqueue_many(store, many, 3, ids, NULL, &error), 0);
    assert_true(ids[0] < ids[1] && ids[1] < ids[2]);
    assert_int_equal(hf_enqueue_many(store, many, 0, ids, NULL, &error), 0);
    bool existed[3] = {true, true, true};
    many[0].unique_key = many[2].unique_key = "once"; /* of another type: another key */
    many[2].type = many[0].type;
    assert_int_equal(hf_enqueue_many(store, many, 3, ids, existed, &error), 0);
    assert_true(!existed[0] && !existed[1] && existed[2] && ids[2] == ids[0]);
    hf_store_close(store);
}

#define THREADS 4
#define EACH 150
struct enqueuer {
    struct hf_store *store;
    int number, failed;
    int64_t ids[EACH];
};

static void *enqueue_some(void *user) {
    struct enqueuer *enqueuer = user;
    for (int i = 0; i < EACH; i++) {
        struct hf_job_spec spec = spec_of("busy");
        char message[32];
        bool existed = false;
        snprintf(message, sizeof message, "m-%d", i);
        spec.source = "source";
        spec.source_message_id = message;
        enqueuer->failed += hf_enqueue(enqueuer->store, &spec, &enqueuer->ids[i], &existed, NULL) != 0;
    }
    return NULL;
}

static void many_threads_enqueue_the_same_messages_once(void **state) { /* S4.11 */
    (void)state;
    static struct enqueuer enqueuers[THREADS];
    struct hf_store *store = open_url(url_of("threads.db"));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        enqueuers[i] = (struct enqueuer){.store = store, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, enqueue_some, &enqueuers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(enqueuers[i].failed, 0);
        assert_memory_equal(enqueuers[i].ids, enqueuers[0].ids, sizeof enqueuers[0].ids);
    }
    struct hf_job_counts counts;
    hf_job_counts_init(&counts);
    assert_int_equal(hf_store_count_jobs(store, &counts, &error), 0);
    assert_int_equal(counts.pending, EACH);
    struct hfi_writer_counts work;
    hfi_writer_look(store->writer, &work);
    assert_int_equal(work.ops, THREADS * EACH);
    hf_store_close(store);
}

struct answers {
    atomic_int good, bad;
    _Atomic int64_t last;
    struct hf_store *store;
    atomic_int nested;
};

static void answered(int code, int64_t id, bool existed, void *user) {
    struct answers *answers = user;
    struct hf_job_spec spec = spec_of("nested");
    if (code == 0 && !existed)
        atomic_fetch_add(&answers->good, 1);
    else
        atomic_fetch_add(&answers->bad, 1);
    atomic_store(&answers->last, id);
    atomic_store(&answers->nested, hf_enqueue(answers->store, &spec, NULL, NULL, NULL));
}

static void starting_needs_no_waiting_and_copies_the_spec(void **state) {
    (void)state;
    static struct answers answers;
    struct hf_store *store = open_url("memory:");
    answers.store = store;
    hfi_thread_must_not_block(true); /* as on the loop's thread */
    for (int i = 0; i < 100; i++) {
        char type[16], payload[8];
        const int64_t waits[] = {1000};
        snprintf(type, sizeof type, "type-%d", i);
        memset(payload, i, sizeof payload);
        struct hf_job_spec spec = spec_of(type);
        spec.payload = payload;
        spec.payload_length = sizeof payload;
        spec.curve_ms = waits;
        spec.curve_length = 1;
        assert_int_equal(hf_enqueue_start(store, &spec, answered, &answers), 0);
        memset(type, 'x', sizeof type - 1);
        memset(payload, 0xee, sizeof payload);
    }
    struct hf_job_spec bad = spec_of("");
    assert_int_equal(hf_enqueue_start(store, &bad, answered, &answers), HF_EINVAL);
    int64_t id;
    struct hf_job_spec spec = spec_of("a");
    hf_error_init(&error);
    assert_refused(hf_enqueue(store, &spec, &id, NULL, &error), HF_EDEADLK, "thread");
    struct hf_job *job = NULL;
    assert_int_equal(hf_store_get_job(store, 1, &job, NULL), HF_EDEADLK);
    struct hf_store *second = NULL;
    assert_int_equal(hf_store_open("memory:", NULL, &second, NULL), HF_EDEADLK);
    hfi_thread_must_not_block(false);
    assert_int_equal(hf_enqueue(store, &spec, &id, NULL, &error), 0); /* after all that was started */
    assert_int_equal(atomic_load(&answers.good), 100);
    assert_int_equal(atomic_load(&answers.bad), 0);
    assert_int_equal(atomic_load(&answers.nested), HF_EDEADLK); /* on the writer's thread */
    assert_int_equal(hf_store_get_job(store, 42, &job, &error), 0);
    assert_string_equal(hf_job_look(job)->type, "type-41");
    assert_int_equal(((const char *)hf_job_look(job)->payload)[7], 41);
    assert_int_equal(hf_job_look(job)->max_executions, 2);
    hf_job_free(job);
    hf_store_close(store);
}

static void people_must_say_who_they_are(void **state) {
    (void)state;
    struct hf_store *store = open_url("memory:");
    struct hf_job_spec spec = spec_of("a");
    struct hf_dead_action action;
    int64_t id;
    assert_int_equal(hf_enqueue(store, &spec, &id, NULL, &error), 0);
    hf_error_init(&error);
    assert_refused(hf_store_cancel_job(store, id, NULL, NULL, &error), HF_EINVAL, "actor");
    assert_refused(hf_store_cancel_job(store, id, "a\xff", NULL, &error), HF_ETEXT, "actor");
    assert_refused(hf_store_requeue_job(store, id, "", NULL, false, &error), HF_EINVAL, "actor");
    hf_dead_action_init(&action);
    assert_refused(hf_dead_redrive(store, 1, &action, NULL, &error), HF_EINVAL, "actor");
    assert_refused(hf_dead_resolve(store, 1, &action, &error), HF_EINVAL, "actor");
    assert_refused(hf_store_isolate_downstream(store, "shop", 0, NULL, &error), HF_EINVAL, "reason");
    assert_refused(hf_store_pause_queue(store, "q", 1, "ann", &error), HF_EINVAL, "passed");
    assert_refused(hf_store_pause_queue(store, "", 0, "ann", &error), HF_EINVAL, "queue");
    action.actor = "ann";
    assert_refused(hf_dead_redrive(store, 7, &action, NULL, &error), HF_ENOENT, "7 does not exist");
    assert_refused(hf_dead_discard(store, 7, &action, &error), HF_ENOENT, "7 does not exist");
    assert_refused(hf_store_cancel_job(store, 99, "ann", NULL, &error), HF_ENOENT, "99 does not exist");
    assert_refused(hf_store_requeue_job(store, id, "ann", NULL, false, &error), HF_ESTATE, "pending");
    assert_int_equal(hf_store_cancel_job(store, id, "ann", "no need", &error), 0);
    assert_refused(hf_store_cancel_job(store, id, "ann", NULL, &error), HF_ESTATE, "cancelled");
    assert_refused(hf_store_resume_queue(store, "q", "ann", &error), HF_ENOENT, "not paused");
    hf_store_close(store);
}

/* Kills the first pending job of type a: what a runner does, in three operations. */
static void kill_job(struct hf_store *store, int64_t lane) {
    static struct hfi_op_apply apply;
    struct hfi_job *job = NULL;
    struct hfi_curve curve;
    struct hfi_op_join join = {.op = {.kind = HFI_OP_JOIN}, .name = "n", .host = "h", .boot = "b"};
    hfi_curve_default(&curve);
    assert_int_equal(hfi_writer_do(store->writer, &join.op), 0);
    struct hfi_admitted admitted = {.lane = lane, .max = 1, .policy = &curve};
    struct hfi_op_claim claim = {.op = {.kind = HFI_OP_CLAIM}, .node = join.node, .now = hfi_wall_now(), .start = false,
                                 .lanes = &admitted, .lane_count = 1, .max = 1, .jobs = &job};
    assert_int_equal(hfi_writer_do(store->writer, &claim.op), 0);
    assert_int_equal(claim.count, 1);
    memset(&apply, 0, sizeof apply);
    apply = (struct hfi_op_apply){.op = {.kind = HFI_OP_APPLY}, .job = job,
                                  .event = {.kind = HFI_EVENT_QUARANTINED, .now = hfi_wall_now(), .node = join.node,
                                            .error_type = "payload.undecodable", .message = "no"},
                                  .rules = {.policy = &curve}};
    assert_int_equal(hfi_writer_do(store->writer, &apply.op), 0);
    hfi_free(job);
}

static void a_second_redrive_names_the_first(void **state) { /* S0.22 */
    (void)state;
    const char *const urls[] = {"memory:", url_of("redrive.db")};
    for (int i = 0; i < 2; i++) {
        struct hf_store *store = open_url(urls[i]);
        struct hf_job_spec spec = spec_of("a");
        struct hf_dead_action action;
        int64_t id, new_job = 0;
        char named[64];
        assert_int_equal(hf_enqueue(store, &spec, &id, NULL, &error), 0);
        kill_job(store, 1);
        hf_dead_action_init(&action);
        action.actor = "ann";
        action.payload = "other";
        action.payload_length = 5;
        hf_error_init(&error);
        assert_refused(hf_dead_redrive(store, 1, &action, &new_job, &error), HF_EINVAL, "new key");
        action.new_key = true;
        assert_int_equal(hf_dead_redrive(store, 1, &action, &new_job, &error), 0);
        assert_true(new_job > id);
        snprintf(named, sizeof named, "already redriven as job %lld", (long long)new_job);
        assert_refused(hf_dead_redrive(store, 1, &action, &new_job, &error), HF_ESTATE, named);
        assert_refused(hf_dead_resolve(store, 1, &action, &error), HF_ESTATE, named);
        assert_refused(hf_store_requeue_job(store, id, "ann", NULL, false, &error), HF_ESTATE, named);
        struct hf_dead *dead = NULL;
        assert_int_equal(hf_dead_get(store, 1, &dead, &error), 0);
        assert_int_equal(hf_dead_look(dead)->status, HF_DEAD_REDRIVEN);
        assert_string_equal(hf_dead_look(dead)->settled_by, "ann");
        hf_dead_free(dead);
        hf_store_close(store);
    }
}

static void queues_and_downstreams_are_steered(void **state) {
    (void)state;
    struct hf_store *store = open_url(url_of("steer.db"));
    struct hf_queue_list *queues = NULL;
    struct hf_downstream_list *downstreams = NULL;
    assert_int_equal(hf_store_pause_queue(store, "slow", 0, "ann", &error), 0);
    assert_int_equal(hf_store_list_queues(store, &queues, &error), 0);
    assert_int_equal(hf_queue_list_count(queues), 1);
    assert_true(hf_queue_list_at(queues, 0)->paused);
    hf_queue_list_free(queues);
    assert_int_equal(hf_store_resume_queue(store, "slow", "ann", &error), 0);
    assert_int_equal(hf_store_isolate_downstream(store, "shop", 60000, "maintenance", &error), 0);
    assert_int_equal(hf_store_list_downstreams(store, &downstreams, &error), 0);
    assert_int_equal(hf_downstream_list_count(downstreams), 1);
    const struct hf_downstream_row *row = hf_downstream_list_at(downstreams, 0);
    assert_string_equal(row->key, "shop");
    assert_int_equal(row->forced, 1);
    assert_true(row->forced_until_us > 0);
    assert_string_equal(row->reason, "maintenance");
    hf_downstream_list_free(downstreams);
    assert_int_equal(hf_store_close_downstream(store, "shop", &error), 0);
    assert_int_equal(hf_store_list_downstreams(store, &downstreams, &error), 0);
    assert_int_equal(hf_downstream_list_at(downstreams, 0)->forced, 0);
    hf_downstream_list_free(downstreams);
    hf_store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_is_never_chosen_for_you),
        cmocka_unit_test(both_kinds_open_and_say_what_they_are),
        cmocka_unit_test(an_enqueue_is_kept_over_a_reopening),
        cmocka_unit_test(what_cannot_be_a_job_is_refused_by_name),
        cmocka_unit_test(many_threads_enqueue_the_same_messages_once),
        cmocka_unit_test(starting_needs_no_waiting_and_copies_the_spec),
        cmocka_unit_test(people_must_say_who_they_are),
        cmocka_unit_test(a_second_redrive_names_the_first),
        cmocka_unit_test(queues_and_downstreams_are_steered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
