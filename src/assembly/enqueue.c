/* SPDX-License-Identifier: MIT */
/*
 * Enqueueing: checks the spec, hands it to the writer and answers after the commit (I93). Must never store a part of
 * what was asked, nor answer before it is durable. hf_enqueue_start from any thread, the others but the loop's and the
 * writer's.
 */
#include "holdfast/queue.h"

#include "assembly/store_calls.h"
#include "base/alloc.h"
#include "base/text.h"

#define BULK_MAX 10000

/* What one spec becomes. The put borrows from the room. */
static int prepare(struct hf_store *store, const struct hf_job_spec *spec, struct hf_wall now, struct hfi_put *put,
                   struct hfi_spec_room *room, struct hf_error *error) {
    int code = hfi_spec_check(spec, now, store->port->options.payload_max, &put->job, room, error);
    if (code != 0)
        return code; /* the room is not filled then */
    put->curve = room->curve.max_executions > 0 ? &room->curve : NULL;
    put->replace = room->replace;
    put->after = room->after;
    put->after_count = room->after_count;
    put->after_on_end = room->after_on_end;
    return 0;
}

int hf_enqueue(struct hf_store *store, const struct hf_job_spec *spec, int64_t *id, bool *existed,
               struct hf_error *error) {
    struct hfi_put put = {.id = 0};
    struct hfi_spec_room room;
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = &put, .count = 1};
    int code = hfi_store_may_block(store, "hf_enqueue", error);
    if (code == 0)
        code = prepare(store, spec, hfi_store_now(store), &put, &room, error);
    if (code == 0)
        code = hfi_store_do(store, &op.op, "enqueue", error);
    if (code != 0)
        return code;
    if (id)
        *id = put.id;
    if (existed)
        *existed = put.existed;
    return 0;
}

static int put_all(struct hf_store *store, const struct hf_job_spec *specs, size_t count, struct hfi_put *puts,
                   struct hfi_spec_room *rooms, struct hf_error *error) {
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT}, .items = puts, .count = count};
    struct hf_wall now = hfi_store_now(store);
    for (size_t i = 0; i < count; i++) {
        /* An older caller's specs are shorter, so are the steps from one to the next. */
        const void *spec = (const char *)specs + i * specs->size;
        int code = prepare(store, spec, now, &puts[i], &rooms[i], error);
        if (code != 0) {
            if (error && error->size >= offsetof(struct hf_error, column))
                error->line = (int)i + 1;
            return code;
        }
    }
    return hfi_store_do(store, &op.op, "enqueue", error);
}

int hf_enqueue_many(struct hf_store *store, const struct hf_job_spec *specs, size_t count, int64_t *ids,
                    bool *existed, struct hf_error *error) {
    int code = hfi_store_may_block(store, "hf_enqueue_many", error);
    if (code != 0 || count == 0)
        return code;
    if (count > BULK_MAX)
        return hfi_fail(error, HF_ETOOBIG, "enqueue", "send them in parts", "%zu jobs at once, at most %d", count,
                        BULK_MAX);
    if (!specs || specs->size < sizeof specs->size)
        return hfi_fail(error, HF_EINVAL, "job spec", "call hf_job_spec_init first", "its size is not set");
    struct hfi_put *puts = hfi_alloc_array(count, sizeof *puts);
    struct hfi_spec_room *rooms = hfi_alloc_array(count, sizeof *rooms);
    code = puts && rooms ? put_all(store, specs, count, puts, rooms, error)
                         : hfi_fail(error, HF_ENOMEM, "enqueue", NULL, "no memory for %zu jobs", count);
    for (size_t i = 0; i < count && code == 0; i++) {
        if (ids)
            ids[i] = puts[i].id;
        if (existed)
            existed[i] = puts[i].existed;
    }
    hfi_free(puts);
    hfi_free(rooms);
    return code;
}

/* An enqueue that nobody waits for. */
struct started {
    struct hfi_op_put op;
    struct hfi_put put;
    struct hfi_curve curve;
    int64_t after[HF_AFTER_MAX];
    struct hfi_job *job; /* a copy: the spec is the caller's */
    hf_enqueue_fn done;
    void *user;
};

static void free_started(struct started *started) {
    if (!started)
        return;
    hfi_free(started->job);
    hfi_free(started);
}

static void answer(struct hfi_op *op, void *user) {
    struct started *started = user;
    started->done(op->code, started->put.id, started->put.existed, started->user);
    free_started(started);
}

int hf_enqueue_start(struct hf_store *store, const struct hf_job_spec *spec, hf_enqueue_fn done, void *user) {
    struct hfi_put put = {.id = 0};
    struct hfi_spec_room room;
    int code = done ? prepare(store, spec, hfi_store_now(store), &put, &room, NULL) : HF_EINVAL;
    if (code != 0)
        return code;
    struct started *started = hfi_alloc(sizeof *started);
    if (!started || !(started->job = hfi_job_copy(&put.job))) {
        free_started(started);
        return HF_ENOMEM;
    }
    started->curve = room.curve;
    memcpy(started->after, room.after, sizeof started->after);
    started->put = put;
    started->put.after = started->after;
    started->put.job = *started->job;
    started->put.curve = put.curve ? &started->curve : NULL;
    started->op = (struct hfi_op_put){
        .op = {.kind = HFI_OP_PUT, .done = answer, .user = started}, .items = &started->put, .count = 1};
    started->done = done;
    started->user = user;
    hfi_writer_submit(store->writer, &started->op.op);
    return 0;
}
