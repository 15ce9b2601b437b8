/* SPDX-License-Identifier: MIT */
#include "runner_stage.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "holdfast/log.h"
#include "jobs/store/sqlite.h"

#define WRITER_STEP_MS 5
#define START_MONO 1000000
#define START_WALL INT64_C(1780000000000000)

static struct stage *current; /* of the log */

static void note(enum hf_log_level level, const char *event, const char *fields, void *user) {
    struct stage *stage = user;
    size_t at = 0;
    if (stage != current)
        return;
    while (at < stage->logged_count && strcmp(stage->logged[at].event, event) != 0)
        at++;
    if (at == STAGE_EVENTS)
        return;
    if (at == stage->logged_count) {
        stage->logged_count++;
        snprintf(stage->logged[at].event, sizeof stage->logged[at].event, "%s", event);
    }
    stage->logged[at].level = (int)level;
    stage->logged[at].count++;
    snprintf(stage->logged[at].last, sizeof stage->logged[at].last, "%s", fields);
}

int stage_logged(const struct stage *stage, const char *event) {
    for (size_t i = 0; i < stage->logged_count; i++)
        if (strcmp(stage->logged[i].event, event) == 0)
            return stage->logged[i].count;
    return 0;
}

const char *stage_last(const struct stage *stage, const char *event) {
    for (size_t i = 0; i < stage->logged_count; i++)
        if (strcmp(stage->logged[i].event, event) == 0)
            return stage->logged[i].last;
    return "";
}

/* ------------------------------------------------------------------ the door */

static void door_commit(struct hfi_store *self, struct hfi_op **ops, size_t count) {
    struct stage_door *door = (struct stage_door *)(void *)self;
    struct hfi_op *passed[2048];
    size_t through = 0;
    bool works = false;
    for (size_t i = 0; i < count; i++) {
        works = works || ops[i]->kind == HFI_OP_CLAIM || ops[i]->kind == HFI_OP_APPLY;
        uint64_t bit = UINT64_C(1) << ops[i]->kind;
        door->seen[ops[i]->kind]++;
        if (door->hook != NULL)
            door->hook(ops[i], door->hook_user);
        if (door->refuse != 0 && (door->refuse_kinds == 0 || (door->refuse_kinds & bit)))
            ops[i]->code = door->refuse;
        else
            passed[through++] = ops[i];
    }
    door->worked += works;
    if (through > 0)
        door->inner->ops->commit(door->inner, passed, through);
}

static int door_no_fd(struct hfi_store *self) {
    (void)self;
    return -1;
}

static const struct hfi_store_ops door_ops = {
    .version = HFI_STORE_VERSION, .kind = "door", .commit = door_commit, .wake_fd = door_no_fd};

/* ------------------------------------------------------------------ the stage */

static struct hfi_script_step all_well(const struct hfi_attempt_spec *spec, uint64_t number, void *user) {
    (void)spec;
    (void)number;
    (void)user;
    return hfi_script_status(10, 200);
}

static void open_memory(struct stage *stage) {
    struct hf_store_options options;
    hf_store_options_init(&options);
    assert_int_equal(hfi_memory_store_new(&options, &stage->port), 0);
    hfi_memory_store_clock(stage->port, stage->scheduler);
}

static void open_sqlite(struct stage *stage) {
    struct hf_store_options options;
    struct hf_error error;
    char folder[] = "/dev/shm/holdfast-stage-XXXXXX";
    static int number;
    hf_store_options_init(&options);
    hf_error_init(&error);
    if (mkdtemp(folder) != NULL) {
        snprintf(stage->path, sizeof stage->path, "%s/jobs.db", folder);
    } else {
        char name[32];
        snprintf(name, sizeof name, "stage-%d.db", number++);
        snprintf(stage->path, sizeof stage->path, "%s", hf_test_path(name));
    }
    if (hfi_sqlite_store_open(stage->path, &options, &stage->port, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
}

static void open_with(struct stage *stage, void (*open_store)(struct stage *stage), hfi_script_fn decide, void *user) {
    struct hf_mono mono = {START_MONO};
    struct hf_wall wall = {START_WALL};
    memset(stage, 0, sizeof *stage);
    assert_int_equal(hfi_virtual_new(mono, wall, &stage->scheduler), 0);
    open_store(stage);
    assert_int_equal(hfi_writer_new_on(stage->port, stage->scheduler, &stage->writer), 0);
    assert_int_equal(
        hfi_scripted_new_with(stage->scheduler, decide == NULL ? all_well : decide, user, &stage->scripted), 0);
    current = stage;
    hf_log_set(HF_LOG_INFO, note, stage);
}

void stage_open(struct stage *stage, hfi_script_fn decide, void *user) {
    open_with(stage, open_memory, decide, user);
}

void stage_open_sqlite(struct stage *stage, hfi_script_fn decide, void *user) {
    open_with(stage, open_sqlite, decide, user);
}

/* The folder in memory, with whatever the store has put there. */
static void remove_folder(const struct stage *stage) {
    char folder[600], whole[1200];
    snprintf(folder, sizeof folder, "%s", stage->path);
    char *end = strrchr(folder, '/');
    if (end == NULL || strncmp(folder, "/dev/shm/holdfast-stage-", strlen("/dev/shm/holdfast-stage-")) != 0)
        return;
    *end = '\0';
    DIR *all = opendir(folder);
    for (const struct dirent *item; all != NULL && (item = readdir(all)) != NULL;) {
        snprintf(whole, sizeof whole, "%s/%s", folder, item->d_name);
        if (item->d_name[0] != '.')
            unlink(whole);
    }
    if (all != NULL)
        closedir(all);
    rmdir(folder);
}

void stage_options(struct hf_runner_options *options) {
    hf_runner_options_init(options);
    options->node = "test";
    options->workers = 8;
}

struct hf_type_options stage_http(const char *name, const char *downstream) {
    struct hf_type_options type;
    hf_type_options_init(&type);
    type.kind = HF_KIND_HTTP;
    type.name = name;
    type.downstream = downstream;
    type.path = "/hook";
    return type;
}

struct hf_type_options stage_noop(const char *name) {
    struct hf_type_options type;
    hf_type_options_init(&type);
    type.kind = HF_KIND_NOOP;
    type.name = name;
    return type;
}

static void ended(int code, void *user) {
    struct stage_node *node = user;
    node->ended++;
    node->code = code;
}

static void quiet(void *user) {
    struct stage_node *node = user;
    struct hfi_rulebook *book;
    struct hf_error error = hf_error_none();
    if (hfi_rulebook_next(node->next, node->book, &book, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
    hfi_rulebook_free(node->book);
    node->book = hfi_rulebook_hold(book);
    hfi_runner_renew(node->runner, node->next, book);
    node->next = NULL;
}

void stage_renew(struct stage *stage, size_t at, const struct hf_runner_options *options) {
    struct stage_node *node = &stage->nodes[at];
    struct hf_error error = hf_error_none();
    assert_int_equal(hfi_caller_reload(node->caller, options->downstreams, options->downstream_count, &error), 0);
    node->next = options;
    hfi_runner_quiet(node->runner);
}

void stage_begin(struct stage *stage, size_t at, const struct hf_runner_options *options) {
    struct stage_node *node = &stage->nodes[at];
    struct hf_error error;
    struct hfi_caller_options caller = {.scheduler = stage->scheduler,
                                        .transport = hfi_scripted_transport(stage->scripted), .seed = 7};
    hf_error_init(&error);
    memset(node, 0, sizeof *node);
    node->door.store = *stage->port; /* options, uuid */
    node->door.store.ops = &door_ops;
    node->door.inner = stage->port;
    node->store.port = &node->door.store;
    struct hfi_scheduler *clock = stage->scheduler;
    if (stage->own_writers) {
        assert_int_equal(hfi_virtual_new(clock->ops->mono(clock), clock->ops->wall(clock), &node->writer_clock), 0);
        clock = node->writer_clock;
    }
    assert_int_equal(hfi_writer_new_on(&node->door.store, clock, &node->store.writer), 0);
    if (hfi_rulebook_new(options, &node->book, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
    if (hfi_caller_new(&caller, options->downstreams, options->downstream_count, &node->caller, &error) != 0)
        fail_msg("%s: %s", error.what, error.why);
    struct hfi_runner_parts parts = {.scheduler = stage->scheduler, .new_sink = stage->new_sink, .store = &node->store, .options = options,
                                     .book = node->book, .caller = node->caller,
                                     .transport = hfi_scripted_transport(stage->scripted), .quiet = quiet,
                                     .wards = stage->wards, .ended = ended, .user = node};
    assert_int_equal(hfi_runner_new(&parts, &node->runner, &error), 0);
    if (stage->prepare != NULL)
        stage->prepare(node);
    hfi_runner_begin(node->runner);
}

void stage_drain(struct stage *stage, size_t node) {
    hfi_runner_drain(stage->nodes[node].runner);
}

bool stage_over(const struct stage *stage, size_t node) {
    return stage->nodes[node].ended > 0;
}

void stage_end(struct stage *stage, size_t at) {
    struct stage_node *node = &stage->nodes[at];
    if (node->runner == NULL)
        return;
    if (!stage_over(stage, at)) {
        stage_drain(stage, at);
        stage_drain(stage, at);
        stage_advance(stage, 60000);
    }
    assert_int_equal(node->ended, 1);
    stage_counts(stage, at);
    hfi_runner_free(node->runner);
    hfi_caller_free(node->caller);
    hfi_rulebook_free(node->book);
    hfi_writer_close(node->store.writer);
    if (node->writer_clock != NULL)
        node->writer_clock->ops->close(node->writer_clock);
    node->writer_clock = NULL; /* those that end later still advance the others */
    node->runner = NULL;
}

void stage_close(struct stage *stage) {
    for (size_t i = 0; i < STAGE_NODES; i++)
        stage_end(stage, i);
    assert_int_equal(hfi_scripted_open(stage->scripted), 0);
    hfi_writer_close(stage->writer);
    stage->port->ops->close(stage->port);
    remove_folder(stage);
    hfi_scripted_transport(stage->scripted)->ops->close(hfi_scripted_transport(stage->scripted));
    stage->scheduler->ops->close(stage->scheduler);
    hf_log_set(HF_LOG_INFO, NULL, NULL);
    current = NULL;
}

struct hf_runner_counts stage_counts(struct stage *stage, size_t node) {
    struct hf_runner_counts counts;
    hf_runner_counts_init(&counts);
    hfi_runner_counts(stage->nodes[node].runner, &counts);
    assert_int_equal(counts.started, counts.claimed);
    assert_int_equal(counts.started, counts.succeeded + counts.retried + counts.died + counts.snoozed +
                                         counts.cancelled + counts.given_back + counts.rejected + counts.lost + counts.unreadable +
                                         counts.running);
    return counts;
}

struct hf_downstream *stage_downstream(struct stage *stage, size_t node, const char *name) {
    struct hf_downstream *downstream = hfi_caller_downstream(stage->nodes[node].caller, name);
    hf_downstream_unref(downstream); /* the caller keeps it as long as the stage lives */
    return downstream;
}

int stage_do(struct stage *stage, struct hfi_op *op, enum hfi_op_kind kind) {
    op->kind = kind;
    return hfi_writer_do(stage->writer, op);
}

int64_t stage_put(struct stage *stage, const struct hf_job_spec *spec) {
    struct hfi_put item;
    struct hfi_spec_room room;
    struct hfi_op_put op;
    struct hf_error error;
    hf_error_init(&error);
    memset(&item, 0, sizeof item);
    memset(&op, 0, sizeof op);
    assert_int_equal(hfi_spec_check(spec, stage->scheduler->ops->wall(stage->scheduler), HF_PAYLOAD_MAX_DEFAULT,
                                    &item.job, &room, &error),
                     0);
    item.curve = spec->curve_length > 0 ? &room.curve : NULL;
    item.after = room.after;
    item.after_count = room.after_count;
    item.after_on_end = room.after_on_end;
    op.items = &item;
    op.count = 1;
    assert_int_equal(stage_do(stage, &op.op, HFI_OP_PUT), 0);
    return item.id;
}

int64_t stage_enqueue(struct stage *stage, const char *type, const char *queue) {
    struct hf_job_spec spec = hf_job_of(type, "payload");
    spec.queue = queue;
    return stage_put(stage, &spec);
}

void stage_enqueue_many(struct stage *stage, const char *type, const char *queue, size_t count) {
    for (size_t i = 0; i < count; i++)
        stage_enqueue(stage, type, queue);
}

/* Writers that have clocks of their own come along in small steps, unless they hang. */
static void advance_writers(struct stage *stage) {
    struct hf_mono now = stage->scheduler->ops->mono(stage->scheduler);
    for (size_t i = 0; i < STAGE_NODES; i++)
        if (stage->nodes[i].writer_clock != NULL && !stage->nodes[i].writer_hangs)
            hfi_virtual_run_until(stage->nodes[i].writer_clock, now);
}

void stage_advance(struct stage *stage, int64_t ms) {
    for (; stage->own_writers && ms > WRITER_STEP_MS; ms -= WRITER_STEP_MS) {
        hfi_virtual_advance(stage->scheduler, WRITER_STEP_MS);
        advance_writers(stage);
    }
    hfi_virtual_advance(stage->scheduler, ms);
    advance_writers(stage);
}

struct hf_job_counts stage_jobs(struct stage *stage) {
    struct hf_job_counts counts = {.size = sizeof counts};
    assert_int_equal(stage->port->ops->count_jobs(stage->port, &counts, NULL), 0);
    return counts;
}

struct hf_job *stage_job(struct stage *stage, int64_t id) {
    struct hf_job *job = NULL;
    assert_int_equal(stage->port->ops->get_job(stage->port, id, &job, NULL), 0);
    return job;
}

int32_t stage_state(struct stage *stage, int64_t id) {
    struct hf_job *job = stage_job(stage, id);
    int32_t state = hf_job_look(job)->state;
    hf_job_free(job);
    return state;
}
