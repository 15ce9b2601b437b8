/* SPDX-License-Identifier: MIT */
/*
 * The writer on a store that only takes notes: urgent first, bounded groups, one answer each, no blocking where it must
 * not, patience with a busy store. A gate in the store's commit makes every order certain.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "jobs/writer.h"
#include "sim/virtual.h"

#define NOTES 4096

struct notes {
    struct hfi_store store;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool gate_closed, inside;
    int busy; /* that many commits answer HF_EBUSY; -1 = all */
    int code; /* of every op, when not busy */
    struct hfi_scheduler *stalls; /* virtual time: a busy commit beyond `quick` takes as long as it may; NULL none */
    int quick;
    size_t sizes[NOTES], groups, ops;
    int64_t seen[NOTES * 4]; /* node of each op, in order */
    uint64_t kept;           /* calls of housekeep */
    int64_t wish;
    int answered, wrong;
    struct hfi_writer *writer;
};

static void note_commit(struct hfi_store *self, struct hfi_op **ops, size_t count) {
    struct notes *notes = (struct notes *)(void *)self;
    pthread_mutex_lock(&notes->lock);
    notes->inside = true;
    pthread_cond_broadcast(&notes->moved);
    while (notes->gate_closed)
        pthread_cond_wait(&notes->moved, &notes->lock);
    notes->inside = false;
    if (notes->stalls != NULL && notes->quick-- <= 0) /* a statement without an end, and the store's own limit on it */
        hfi_virtual_stand_still(notes->stalls, self->budget_us < 10000000 ? self->budget_us / 1000 : 10000);
    bool busy = notes->busy != 0;
    if (notes->busy > 0)
        notes->busy--;
    if (notes->groups < NOTES)
        notes->sizes[notes->groups] = count;
    notes->groups++;
    for (size_t i = 0; i < count; i++) {
        ops[i]->code = busy ? HF_EBUSY : notes->code;
        if (!busy && notes->ops < NOTES * 4)
            notes->seen[notes->ops++] = ops[i]->kind == HFI_OP_LEAVE ? ((struct hfi_op_leave *)(void *)ops[i])->node : -1;
    }
    pthread_mutex_unlock(&notes->lock);
}

static int64_t note_housekeep(struct hfi_store *self, bool idle) {
    struct notes *notes = (struct notes *)(void *)self;
    (void)idle;
    pthread_mutex_lock(&notes->lock);
    notes->kept++;
    int64_t wish = notes->wish;
    notes->wish = -1;
    pthread_cond_broadcast(&notes->moved);
    pthread_mutex_unlock(&notes->lock);
    return wish;
}

static const struct hfi_store_ops note_ops = {
    .version = HFI_STORE_VERSION, .kind = "notes", .commit = note_commit, .housekeep = note_housekeep};

static void begin(struct notes *notes) {
    memset(notes, 0, sizeof *notes);
    notes->store.ops = &note_ops;
    notes->wish = -1;
    pthread_mutex_init(&notes->lock, NULL);
    pthread_cond_init(&notes->moved, NULL);
}

static void set_gate(struct notes *notes, bool closed) {
    pthread_mutex_lock(&notes->lock);
    notes->gate_closed = closed;
    pthread_cond_broadcast(&notes->moved);
    pthread_mutex_unlock(&notes->lock);
}

static void wait_inside(struct notes *notes) {
    pthread_mutex_lock(&notes->lock);
    while (!notes->inside)
        pthread_cond_wait(&notes->moved, &notes->lock);
    pthread_mutex_unlock(&notes->lock);
}

static void count_answer(struct hfi_op *op, void *user) {
    struct notes *notes = user;
    pthread_mutex_lock(&notes->lock);
    notes->answered++;
    if (op->code != notes->code)
        notes->wrong++;
    pthread_mutex_unlock(&notes->lock);
}

static void prepare(struct hfi_op_leave *op, struct notes *notes, int64_t number, bool urgent) {
    memset(op, 0, sizeof *op);
    op->op.kind = HFI_OP_LEAVE;
    op->op.urgent = urgent;
    op->op.done = count_answer;
    op->op.user = notes;
    op->node = number;
}

static void urgent_operations_go_first_and_groups_are_bounded(void **state) {
    (void)state;
    static struct hfi_op_leave ops[2000];
    static struct notes notes;
    begin(&notes);
    assert_int_equal(hfi_writer_new(&notes.store, &notes.writer), 0);
    set_gate(&notes, true);
    prepare(&ops[0], &notes, 0, false);
    hfi_writer_submit(notes.writer, &ops[0].op);
    wait_inside(&notes); /* the first is in a commit: all others wait together */
    for (int i = 1; i < 2000; i++) {
        prepare(&ops[i], &notes, i, i >= 1990);
        hfi_writer_submit(notes.writer, &ops[i].op);
    }
    set_gate(&notes, false);
    hfi_writer_close(notes.writer); /* runs what waits */
    assert_int_equal(notes.answered, 2000);
    assert_int_equal(notes.wrong, 0);
    assert_int_equal(notes.sizes[0], 1);
    for (size_t i = 1; i < notes.groups; i++)
        assert_true(notes.sizes[i] <= HFI_WRITER_BATCH_OPS);
    assert_int_equal(notes.groups, 1 + (1999 + HFI_WRITER_BATCH_OPS - 1) / HFI_WRITER_BATCH_OPS);
    for (int i = 0; i < 10; i++)
        assert_int_equal(notes.seen[1 + i], 1990 + i);
    for (int i = 1; i < 1990; i++)
        assert_int_equal(notes.seen[10 + i], i);
}

static void a_heavy_operation_makes_the_group_small(void **state) {
    (void)state;
    static struct hfi_op_put puts[4];
    static struct notes notes;
    begin(&notes);
    assert_int_equal(hfi_writer_new(&notes.store, &notes.writer), 0);
    set_gate(&notes, true);
    for (int i = 0; i < 4; i++) {
        puts[i] = (struct hfi_op_put){.op = {.kind = HFI_OP_PUT, .done = count_answer, .user = &notes}, .count = 3000};
        hfi_writer_submit(notes.writer, &puts[i].op);
        if (i == 0)
            wait_inside(&notes);
    }
    set_gate(&notes, false);
    hfi_writer_close(notes.writer);
    assert_int_equal(notes.groups, 4); /* 3.5: none of more than 5,000 rows */
}

static void nobody_may_block_on_the_writer_or_loop_thread(void **state) {
    (void)state;
    static struct notes notes;
    struct hfi_op_leave op;
    begin(&notes);
    assert_int_equal(hfi_writer_new(&notes.store, &notes.writer), 0);
    prepare(&op, &notes, 1, false);
    assert_int_equal(hfi_writer_do(notes.writer, &op.op), 0);
    hfi_thread_must_not_block(true);
    assert_false(hfi_may_block());
    assert_int_equal(hfi_writer_do(notes.writer, &op.op), HF_EDEADLK);
    hfi_thread_must_not_block(false);
    notes.code = HF_ENOSPC; /* a failed commit answers every op with its code */
    assert_int_equal(hfi_writer_do(notes.writer, &op.op), HF_ENOSPC);
    hfi_writer_close(notes.writer);
    assert_int_equal(notes.groups, 2);
}

struct nested {
    struct hfi_op_leave op;
    struct notes *notes;
    int code;
};

static void block_inside(struct hfi_op *op, void *user) {
    struct nested *nested = user;
    struct hfi_op_leave inner;
    (void)op;
    prepare(&inner, nested->notes, 2, false);
    nested->code = hfi_writer_do(nested->notes->writer, &inner.op);
}

static void a_callback_on_the_writer_thread_gets_edeadlk(void **state) {
    (void)state;
    static struct notes notes;
    struct nested nested = {.notes = &notes};
    begin(&notes);
    assert_int_equal(hfi_writer_new(&notes.store, &notes.writer), 0);
    prepare(&nested.op, &notes, 1, false);
    nested.op.op.done = block_inside;
    nested.op.op.user = &nested;
    hfi_writer_submit(notes.writer, &nested.op.op);
    hfi_writer_close(notes.writer);
    assert_int_equal(nested.code, HF_EDEADLK);
}

static void a_busy_store_is_tried_again(void **state) {
    (void)state;
    static struct notes notes;
    struct hfi_op_leave op;
    begin(&notes);
    notes.busy = 3;
    assert_int_equal(hfi_writer_new(&notes.store, &notes.writer), 0);
    prepare(&op, &notes, 7, false);
    assert_int_equal(hfi_writer_do(notes.writer, &op.op), 0);
    hfi_writer_close(notes.writer);
    assert_int_equal(notes.groups, 4);
    assert_int_equal(notes.ops, 1);
}

static void an_idle_writer_wakes_only_when_the_store_wished_it(void **state) {
    (void)state;
    static struct notes notes;
    struct hfi_op_leave op;
    begin(&notes);
    notes.wish = 1; /* once, then never again */
    assert_int_equal(hfi_writer_new(&notes.store, &notes.writer), 0);
    prepare(&op, &notes, 7, false);
    assert_int_equal(hfi_writer_do(notes.writer, &op.op), 0);
    pthread_mutex_lock(&notes.lock);
    while (notes.kept < 2)
        pthread_cond_wait(&notes.moved, &notes.lock);
    pthread_mutex_unlock(&notes.lock);
    struct hfi_writer_counts counts;
    hfi_writer_look(notes.writer, &counts);
    assert_int_equal(counts.commits, 1); /* housekeeping is no commit */
    assert_int_equal(counts.ops, 1);
    hfi_writer_close(notes.writer);
    assert_int_equal(notes.groups, 1);
}

static void in_virtual_time_a_group_is_one_turn_later(void **state) {
    (void)state;
    static struct notes notes;
    struct hfi_op_leave ops[3];
    struct hfi_scheduler *scheduler = NULL;
    begin(&notes);
    assert_int_equal(hfi_virtual_new((struct hf_mono){1000}, (struct hf_wall){1000}, &scheduler), 0);
    assert_int_equal(hfi_writer_new_on(&notes.store, scheduler, &notes.writer), 0);
    for (int i = 0; i < 3; i++) {
        prepare(&ops[i], &notes, i, i == 2);
        ops[i].op.home = scheduler;
        hfi_writer_submit(notes.writer, &ops[i].op);
    }
    assert_int_equal(notes.groups, 0);
    hfi_virtual_advance(scheduler, 0);
    assert_int_equal(notes.groups, 1);
    assert_int_equal(notes.answered, 3);
    assert_int_equal(notes.seen[0], 2);
    struct hfi_op_leave direct;
    prepare(&direct, &notes, 9, false);
    assert_int_equal(hfi_writer_do(notes.writer, &direct.op), 0); /* at once, nothing has to run */
    assert_int_equal(notes.seen[3], 9);
    hfi_writer_close(notes.writer);
    scheduler->ops->close(scheduler);
}

static void patience_ends_after_its_bound(void **state) {
    (void)state;
    static struct notes notes;
    struct hfi_op_leave op, late;
    struct hfi_scheduler *scheduler = NULL;
    begin(&notes);
    notes.busy = -1;
    notes.code = HF_EBUSY; /* what count_answer expects */
    assert_int_equal(hfi_virtual_new((struct hf_mono){0}, (struct hf_wall){0}, &scheduler), 0);
    assert_int_equal(hfi_writer_new_on(&notes.store, scheduler, &notes.writer), 0);
    prepare(&op, &notes, 1, false);
    hfi_writer_submit(notes.writer, &op.op);
    hfi_virtual_advance(scheduler, HFI_WRITER_PATIENCE_MS - 600);
    assert_int_equal(notes.answered, 0);
    hfi_virtual_advance(scheduler, 1200);
    assert_int_equal(notes.answered, 1);
    assert_int_equal(notes.wrong, 0);
    assert_true(notes.groups < 60); /* pauses grow: no hot loop */
    prepare(&late, &notes, 2, false); /* the store is known to be bad: bad news soon */
    hfi_writer_submit(notes.writer, &late.op);
    hfi_virtual_advance(scheduler, 1000);
    assert_int_equal(notes.answered, 2);
    notes.busy = 0;
    notes.code = 0;
    prepare(&op, &notes, 3, false);
    assert_int_equal(hfi_writer_do(notes.writer, &op.op), 0);
    notes.busy = -1; /* well again in between: patient again */
    prepare(&op, &notes, 4, false);
    hfi_writer_submit(notes.writer, &op.op);
    hfi_virtual_advance(scheduler, 1000);
    assert_int_equal(notes.answered, 2);
    hfi_writer_close(notes.writer); /* still answers, with the bad news */
    assert_int_equal(notes.answered, 3);
    scheduler->ops->close(scheduler);
}

/* I10: a group whose statement stalls is answered 10 s after its first try began, in whichever try the stall comes. */
static void a_stall_is_given_up_after_ten_seconds_in_all_I10(void **state) {
    (void)state;
    for (int quick = 0; quick < 40; quick++) {
        static struct notes notes;
        struct hfi_op_leave op, late;
        struct hfi_scheduler *scheduler = NULL;
        begin(&notes);
        notes.busy = -1;
        notes.code = HF_EBUSY;
        notes.quick = quick;
        assert_int_equal(hfi_virtual_new((struct hf_mono){0}, (struct hf_wall){0}, &scheduler), 0);
        notes.stalls = scheduler;
        assert_int_equal(hfi_writer_new_on(&notes.store, scheduler, &notes.writer), 0);
        prepare(&op, &notes, 1, false);
        hfi_writer_submit(notes.writer, &op.op);
        while (notes.answered == 0)
            hfi_virtual_advance(scheduler, 1);
        assert_in_range(scheduler->ops->mono(scheduler).us, 9300000, 10001000);
        int64_t before_us = scheduler->ops->mono(scheduler).us;
        prepare(&late, &notes, 2, false); /* whoever comes then has a whole try of its own, and no second one */
        hfi_writer_submit(notes.writer, &late.op);
        while (notes.answered == 1)
            hfi_virtual_advance(scheduler, 1);
        assert_true(notes.quick >= 0 || notes.store.budget_us == 10000000);
        assert_in_range(scheduler->ops->mono(scheduler).us - before_us, 0, 10501000); /* the pause aside */
        hfi_writer_close(notes.writer);
        scheduler->ops->close(scheduler);
    }
}

static void hear(void *user) {
    ++*(int *)user;
}

/* I32: only news that was committed is heard, and nothing after the ear is gone. */
static void an_ear_hears_what_others_committed(void **state) {
    (void)state;
    struct notes notes;
    struct hfi_scheduler *scheduler;
    struct hfi_op_leave quiet;
    struct hfi_op_put put;
    int heard = 0;
    struct hfi_writer_ear ear = {.heard = hear, .user = &heard};
    begin(&notes);
    assert_int_equal(hfi_virtual_new((struct hf_mono){1000000}, (struct hf_wall){0}, &scheduler), 0);
    assert_int_equal(hfi_writer_new_on(&notes.store, scheduler, &notes.writer), 0);
    hfi_writer_listen(notes.writer, &ear);
    prepare(&quiet, &notes, 1, false);
    assert_int_equal(hfi_writer_do(notes.writer, &quiet.op), 0);
    assert_int_equal(heard, 0);
    memset(&put, 0, sizeof put);
    put.op.kind = HFI_OP_PUT;
    assert_int_equal(hfi_writer_do(notes.writer, &put.op), 0);
    assert_int_equal(heard, 1);
    notes.code = HF_EIO;
    assert_int_equal(hfi_writer_do(notes.writer, &put.op), HF_EIO);
    assert_int_equal(heard, 1);
    notes.code = 0;
    hfi_writer_unlisten(notes.writer, &ear);
    assert_int_equal(hfi_writer_do(notes.writer, &put.op), 0);
    assert_int_equal(heard, 1);
    hfi_writer_close(notes.writer);
    scheduler->ops->close(scheduler);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urgent_operations_go_first_and_groups_are_bounded),
        cmocka_unit_test(a_heavy_operation_makes_the_group_small),
        cmocka_unit_test(nobody_may_block_on_the_writer_or_loop_thread),
        cmocka_unit_test(a_callback_on_the_writer_thread_gets_edeadlk),
        cmocka_unit_test(a_busy_store_is_tried_again),
        cmocka_unit_test(an_idle_writer_wakes_only_when_the_store_wished_it),
        cmocka_unit_test(in_virtual_time_a_group_is_one_turn_later),
        cmocka_unit_test(patience_ends_after_its_bound),
        cmocka_unit_test(a_stall_is_given_up_after_ten_seconds_in_all_I10),
        cmocka_unit_test(an_ear_hears_what_others_committed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
