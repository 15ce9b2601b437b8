/* SPDX-License-Identifier: MIT */
#ifndef HF_TESTS_STORE_WORLD_H
#define HF_TESTS_STORE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "jobs/store.h"
#include "jobs/views.h"
#include "resilience/outcome.h"

/*
 * A store of the kind named on the command line, and short words for its operations: one commit each, at `world.now`.
 * Every suite of the store's contract runs on each kind.
 */
#define T0 INT64_C(1780000000000000)
#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

struct world {
    const char *kind;
    struct hfi_store *store;
    struct hfi_rulebook *book; /* two sinks: ops, pager */
    struct hfi_curve curve;    /* 6 executions; 60, 300, 1800, 7200 s */
    struct hf_wall now;
    int64_t node;              /* one that joined */
    struct hfi_job *owned[4096]; /* what claims gave, freed at the end */
    size_t owned_count;
    const struct hfi_forwards *forwards; /* of world_rules; NULL none */
};
extern struct world world;

/* Runs the group on the kind that argv names; use as main's return value. */
int world_run(int argc, char **argv, const struct CMUnitTest *tests, size_t count);
#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)
#define WORLD_MAIN(...)                                                                                                \
    int main(int argc, char **argv) {                                                                                  \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                                               \
        return world_run(argc, argv, tests, sizeof tests / sizeof *tests);                                             \
    }
int world_open(void **state);
int world_close(void **state);
/* Another store of any kind, beside the world's. */
struct hfi_store *world_new_store(const char *kind, const struct hf_store_options *options);

int world_do(struct hfi_op *op); /* its code */

/* Enqueue. */
struct hf_job_spec world_spec(const char *type, const char *queue);
int64_t world_put(const struct hf_job_spec *spec);                /* must succeed and be new */
int64_t world_put_type(const char *type);                         /* queue default */
int world_put_existing(const struct hf_job_spec *spec, int64_t *id, bool *existed);

/* Claim. */
int64_t world_lane(const char *queue, const char *type);
/* As LANES tells it, what runs included; by its type and its key of the limit `tenant` (NULL: none). Its texts are gone. */
struct hfi_lane_row world_lane_row(const char *type, const char *key);
size_t world_claim(int64_t lane, uint32_t max, bool start, struct hfi_job **jobs); /* the world's to free */
struct hfi_job *world_start(int64_t lane);                                          /* one, started; NULL none */
struct hfi_job *world_start_type(const char *type);                                 /* of queue default */

/* Owner writes: the code; on 0 the record is taken over. */
struct hfi_rules world_rules(void);
int world_apply(struct hfi_job **job, struct hfi_event event);
int world_apply_full(struct hfi_job **job, struct hfi_event event, struct hfi_op_apply *op);
#define APPLY(job, kind_, ...) world_apply(job, (struct hfi_event){.kind = HFI_EVENT_##kind_, __VA_ARGS__})
/* A failure: transient http.503, or permanent http.404. */
int world_fail(struct hfi_job **job, bool permanent);
/* Puts, starts and fails one for good; the dead letter's id. */
int64_t world_die(const char *type, int64_t *job_id);

/* Looks: copies of views, freed at the end of the world. */
const struct hf_job_view *world_job(int64_t id); /* NULL: none */
size_t world_history(int64_t id);
const struct hf_history_view *world_past(int64_t id, size_t index);
const struct hf_dead_view *world_dead(int64_t id);
size_t world_dead_count(int32_t status); /* -1 any */
struct hf_job_counts world_counts(void);
struct hf_dead_action world_action(const char *actor);

#endif
