/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_LANE_H
#define HFI_JOBS_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/rulebook.h"
#include "jobs/runner/alone.h"
#include "jobs/store.h"

/*
 * Which lanes may be claimed from now, and from how many slots. Knows lanes, queues, slots and what is in use; no clock,
 * no I/O. A round is admitted with the budgets that it may use up; only one is out at a time, and what it claimed is
 * booked when it comes back. Nothing else takes a slot meanwhile; what is freed is there for the next one.
 *
 * Slots. A queue with `concurrency` has that many of its own, for every kind of job. The others have `workers` together
 * for jobs that need a thread (exec, native), and a pool of their own for asynchronous ones (http, noop). The node's pool
 * is max(workers, sum of concurrency) threads: what the others may start is also bounded by what is left of it, so slots
 * that were lent while their queue had nothing go back as they are freed; their queue does not wait for that. In a pool
 * no queue may hold everything: of M slots it gets M − min(other known queues, M / 2), and a queue that has none in use
 * may always start one, up to M of these in all. So a queue full of hanging jobs never keeps another one from starting
 * [S3.3, S3.15].
 *
 * Probes. A site that is probing gives its places to lanes of repeatable types first, ahead of all other order: a probe
 * may fail, and a job that cannot be repeated would die of it. Without such a lane any other may have them.
 *
 * Limits. A limit key and a queue with `global_concurrency` have so many places in the whole store. What other nodes hold
 * is known from the last LANES answer, what is held here from these books, a rate from the last claim: a lane without
 * any of it left is not asked, so a key that has all it may have costs nothing and takes nobody's place. How many a claim
 * gets is the store's word; it measures within the claim.
 *
 * Order. It is the claim's (merge.h): queues by `order` and weight, then priority, due time and id over all lanes of a
 * queue. A round has HFI_ADMIT_MAX lanes. Of more that are due, half of the places go to those that promise most, by the
 * highest priority that may be pending and the time since which something is due, and half by turns. So the order is
 * exact as long as no more lanes are admissible at once. Beyond, it is as good as what the store knows without reading
 * jobs: a lane whose highest job is not due yet promises too much, and takes a place of the first half from one with
 * less to promise; the other half sees to it that each lane has its place in time.
 */
enum hfi_pool { HFI_POOL_WORKER, HFI_POOL_ASYNC, HFI_POOL_COUNT };

struct hfi_lane_queue {
    char name[HFI_NAME_MAX + 1];
    int32_t order;
    uint32_t weight, concurrency;
    bool wanted;                  /* passes the runner's filter */
    uint32_t global_concurrency;  /* 0 no bound */
    int64_t aging_us;             /* 0 off */
    uint32_t used[HFI_POOL_COUNT];
    uint32_t stored, others;      /* running rows: ours, as far as they were written; other nodes' */
    bool known[HFI_POOL_COUNT];   /* has had jobs of that pool */
    int64_t current;              /* smooth weighted round robin */
    struct hfi_lane **lanes;      /* its lanes */
    size_t count, room, turn;     /* whose turn it is */
    /* of the round: */
    struct hfi_lane **open;       /* lanes that may take part, from the one whose turn it is */
    size_t open_count, places;
    struct hfi_lane *best;        /* of hfi_lanes_rank */
    bool enters;                  /* a lane of it has a place */
    uint16_t index;               /* among its queues */
    uint16_t budgets[HFI_POOL_COUNT];
};

struct hfi_lane_limit; /* lane_limits.h */

/* A downstream as claims see it. `free` is set before each round. */
struct hfi_lane_site {
    uint32_t free;    /* attempts it would admit now, less what was claimed and has not begun */
    uint32_t used;    /* jobs claimed or running */
    uint32_t waiting; /* of these: not begun */
    uint32_t asked;   /* places that the round which is out may use */
    uint16_t budget;  /* in it */
    bool probing;     /* what it admits are probes; set with `free` */
    bool blocked;     /* out: a due lane was kept back by it */
    bool sound;       /* nothing is wrong with it; set with `free` */
};

struct hfi_lane {
    int64_t id;
    struct hfi_lane_queue *queue;
    const struct hfi_type *type;  /* NULL: this node does not know it */
    struct hfi_lane_site *site;   /* NULL: no downstream */
    struct hfi_lane_limit *limit; /* NULL: no limit key */
    enum hfi_pool pool;
    bool due, paused;
    bool runs_code;               /* its jobs do */
    bool alone;                   /* of suspects: see alone.h */
    int32_t top_priority;         /* of what is pending, at most */
    int64_t next_due_us;          /* wall; nothing of it is due before */
    uint64_t round;               /* the last one that it had a place in */
    uint32_t used;                /* jobs claimed or running */
    char *host;                   /* NULL, or the key of the host that its jobs call */
    uint32_t empty;               /* claims in a row that found nothing */
    int64_t hold_until_us;        /* monotonic; found nothing again and again */
    int64_t unknown_since_us;     /* monotonic; type unknown and due, 0 = not */
    uint32_t ahead;               /* jobs reserved and not started: no slots, but `stored` */
    uint32_t left;                /* abandoned runs of its type that still live: none is started beside them */
};

/* Lanes of one claim. With more of them due, half go by their top_priority, which counts jobs due later, too. */
#define HFI_ADMIT_MAX 256
#define HFI_BUDGETS_MAX (8 + 3 * HFI_ADMIT_MAX)

/* What a claim is made of. */
struct hfi_round {
    struct hfi_admitted admitted[HFI_ADMIT_MAX];
    struct hfi_lane *lanes[HFI_ADMIT_MAX];
    struct hfi_merge_queue queues[HFI_ADMIT_MAX];
    struct hfi_lane_queue *queue_of[HFI_ADMIT_MAX];
    struct hfi_merge_budget budgets[HFI_BUDGETS_MAX];
    size_t count, queue_count, budget_count;
    uint32_t ahead; /* jobs are reserved only, so many; 0 they are started */
    uint32_t firsts[HFI_POOL_COUNT]; /* queues that may still start their first one beyond the pool */
};

struct hfi_lanes {
    struct hfi_lane **lanes; /* by id */
    size_t count, room;
    struct hfi_lane_queue **queues; /* by order */
    size_t queue_count, queue_room;
    uint32_t pool_max[HFI_POOL_COUNT], pool_used[HFI_POOL_COUNT]; /* of queues without a concurrency of their own */
    uint32_t threads_max, threads_used; /* of all queues */
    struct hfi_round round;
    uint64_t round_number;
    size_t queue_turn;          /* when there are more queues than places */
    const char *const *filter; /* NULL = every queue */
    size_t filter_count;
    struct hfi_alone alone;
    const struct hf_runner_options *options; /* the limits by name */
    struct hfi_lane_limit *limits; /* by key */
    bool bounded;               /* something is bounded in the whole store: what runs there has to be known */
    int64_t ready_at_us;        /* out of a round: when the first rate that kept a lane back allows the next; wall */
};

/* `options` gives queues, workers and the filter, borrowed. 0 or HF_ENOMEM. */
int hfi_lanes_init(struct hfi_lanes *lanes, const struct hf_runner_options *options, uint32_t async_max);
/*
 * The queues and limits have these numbers from now on, or the defaults; jobs that run keep their slots. Between two
 * rounds. The options are borrowed as at the start.
 */
void hfi_lanes_tune(struct hfi_lanes *lanes, const struct hf_runner_options *options);
/* Of a lane, here: */
struct hfi_lane_held {
    uint32_t running, waiting; /* jobs that hold a slot; of these: not begun */
    uint32_t left;             /* abandoned runs of its type that live */
};
/* The lane's jobs are of this type from now on (NULL: none that this node knows); what it holds goes along. Between two rounds. */
void hfi_lanes_retype(struct hfi_lanes *lanes, struct hfi_lane *lane, const struct hfi_type *type,
                      struct hfi_lane_site *site, const struct hfi_lane_held *held);
/* What the options say of a queue of that name, or the defaults. */
void hfi_queue_options_of(const struct hf_runner_options *options, const char *name, struct hf_queue_options *found);
/* The queue of that name, made by the options if it is new. NULL: no memory. */
struct hfi_lane_queue *hfi_lanes_queue(struct hfi_lanes *lanes, const char *name);
enum hfi_pool hfi_lane_pool(const struct hfi_type *type); /* whose slots its jobs take */
void hfi_lanes_end(struct hfi_lanes *lanes);
/* The sizes of the pools, by `workers` and the queues as they are. */
void hfi_lanes_size(struct hfi_lanes *lanes, uint32_t workers);

/* The lane of that id, or NULL. */
struct hfi_lane *hfi_lanes_find(const struct hfi_lanes *lanes, int64_t id);
/* A new lane; HF_ENOMEM. A known id is found and returned as it is. */
int hfi_lanes_add(struct hfi_lanes *lanes, int64_t id, const char *queue, const struct hfi_type *type,
                  struct hfi_lane_site *site, struct hfi_lane **lane);
/* lane_forget.c: the index of the first lane with a higher id. */
size_t hfi_lanes_after(const struct hfi_lanes *lanes, int64_t id);
/* Frees it. Between two rounds, and of no execution. */
void hfi_lanes_remove(struct hfi_lanes *lanes, struct hfi_lane *lane);
/* It has something to claim as far as the lane itself goes. */
static inline bool hfi_lane_open(const struct hfi_lane *lane, int64_t now_us) {
    return lane->due && !lane->paused && lane->left == 0 && lane->type != NULL && lane->hold_until_us <= now_us;
}
/*
 * The limit key of a new lane. HF_ENOMEM. `unknown` is set at the first lane of a limit name that the configuration does
 * not have: its jobs are not limited.
 */
int hfi_lanes_limit(struct hfi_lanes *lanes, struct hfi_lane *lane, const char *limit_key, bool *unknown);
/* What runs of the lane's limit key and queue in the whole store, by a LANES answer. */
void hfi_lane_others(struct hfi_lane *lane, uint32_t limit_running, uint32_t queue_running);
/* Has its queue a slot for one more job of it? */
bool hfi_lane_has_slot(const struct hfi_lanes *lanes, const struct hfi_lane *lane);
/* Before the rows of a LANES operation are taken over: no lane is due. */
void hfi_lanes_forget_due(struct hfi_lanes *lanes);

/* Makes `round`: what may be claimed now, `max` jobs of each lane at most. The number of its lanes. */
size_t hfi_lanes_admit(struct hfi_lanes *lanes, int64_t now_us, struct hf_wall wall, uint32_t max);
/* What came of it is in `round`: books it. A lane that was asked in vain for a second time rests for `hold_us`. */
void hfi_lanes_claimed(struct hfi_lanes *lanes, int64_t now_us, int64_t hold_us);
/*
 * Jobs ahead, after an admission that found nothing: of open lanes that lack a slot and nothing else, `count` in all are
 * to be reserved. Not of those whose places other nodes share, where a job that waits here would hold one (limit keys,
 * bounded queues), whose order changes as time goes by (aging), or whose downstream is not well.
 */
size_t hfi_lanes_admit_ahead(struct hfi_lanes *lanes, int64_t now_us, struct hf_wall wall, uint32_t count);
/* lane_ahead.c: may jobs of it be reserved ahead, slots aside? */
bool hfi_lane_reservable(const struct hfi_lanes *lanes, const struct hfi_lane *lane);
/* May a job of it that was reserved be started now? */
bool hfi_lane_startable(const struct hfi_lanes *lanes, const struct hfi_lane *lane);
/* The best of what each queue could be claimed of now; then whether anything of it goes before a reserved job. */
void hfi_lanes_rank(struct hfi_lanes *lanes, int64_t now_us, struct hf_wall wall);
bool hfi_lanes_outrank(const struct hfi_lanes *lanes, const struct hfi_lane *lane, const struct hfi_job *job);

/* A job of it was claimed; its handler begins; ends. */
void hfi_lane_take(struct hfi_lanes *lanes, struct hfi_lane *lane);
void hfi_lane_begun(struct hfi_lane *lane);
void hfi_lane_release(struct hfi_lanes *lanes, struct hfi_lane *lane, bool begun);
/* The store has it as running no more, or it is not ours to know. After claimed jobs only. */
void hfi_lane_settled(struct hfi_lane *lane);

/* Abandoned runs of a type: `by` more live now; -1: one less. No lane of it is admitted while some do. */
void hfi_lanes_left(struct hfi_lanes *lanes, const struct hfi_type *type, int by);

/* Is there work that only waits for this node: due, wanted, known, not paused? */
bool hfi_lanes_any_due(const struct hfi_lanes *lanes);

#endif
