/* SPDX-License-Identifier: MIT */
/*
 * Decides from which lanes to claim and how many jobs of each, and keeps the books of slots in use. Must never grant a
 * slot twice: every grant is reserved before it is handed out. No clock, no I/O; the runner's loop thread.
 */
#include "jobs/lane.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "jobs/forward.h"
#include "jobs/lane_limits.h"

static bool in_filter(const struct hfi_lanes *lanes, const char *queue) {
    if (lanes->filter == NULL || strcmp(queue, HFI_FORWARD_QUEUE) == 0) /* whoever ends a job tells of its death, too */
        return true;
    for (size_t i = 0; i < lanes->filter_count; i++) {
        if (strcmp(lanes->filter[i], queue) == 0)
            return true;
    }
    return false;
}

static struct hfi_lane_queue *find_queue(const struct hfi_lanes *lanes, const char *name) {
    for (size_t i = 0; i < lanes->queue_count; i++) {
        if (strcmp(lanes->queues[i]->name, name) == 0)
            return lanes->queues[i];
    }
    return NULL;
}

static struct hfi_lane_queue *add_queue(struct hfi_lanes *lanes, const struct hf_queue_options *options) {
    if (lanes->queue_count == lanes->queue_room) {
        size_t room = lanes->queue_room == 0 ? 8 : lanes->queue_room * 2;
        void *grown = hfi_realloc(lanes->queues, room * sizeof *lanes->queues);
        if (grown == NULL)
            return NULL;
        lanes->queues = grown;
        lanes->queue_room = room;
    }
    struct hfi_lane_queue *queue = hfi_alloc(sizeof *queue);
    if (queue == NULL)
        return NULL;
    hfi_text_copy(queue->name, sizeof queue->name, options->name);
    queue->order = options->order;
    queue->weight = options->weight == 0 ? 1 : options->weight;
    queue->concurrency = options->concurrency;
    queue->global_concurrency = options->global_concurrency;
    queue->aging_us = hfi_ms_to_us(options->aging_ms);
    lanes->bounded = lanes->bounded || queue->global_concurrency > 0;
    queue->wanted = in_filter(lanes, queue->name);
    size_t at = lanes->queue_count;
    for (; at > 0 && lanes->queues[at - 1]->order > queue->order; at--)
        lanes->queues[at] = lanes->queues[at - 1];
    lanes->queues[at] = queue;
    lanes->queue_count++;
    return queue;
}

int hfi_lanes_init(struct hfi_lanes *lanes, const struct hf_runner_options *options, uint32_t async_max) {
    memset(lanes, 0, sizeof *lanes);
    lanes->pool_max[HFI_POOL_WORKER] = options->workers == 0 ? 1 : options->workers;
    lanes->pool_max[HFI_POOL_ASYNC] = async_max;
    lanes->filter = options->queues;
    lanes->filter_count = options->queue_filter_count;
    lanes->options = options;
    lanes->ready_at_us = INT64_MAX;
    const char *at = (const char *)options->queue_options;
    for (size_t i = 0; i < options->queue_count; i++, at += options->queue_options->size) {
        struct hf_queue_options queue;
        hf_queue_options_init(&queue);
        uint32_t size = options->queue_options->size;
        memcpy(&queue, at, size < sizeof queue ? size : sizeof queue);
        if (add_queue(lanes, &queue) == NULL) {
            hfi_lanes_end(lanes);
            return HF_ENOMEM;
        }
    }
    return 0;
}

static void free_lane(struct hfi_lane *lane) {
    hfi_free(lane->host);
    hfi_free(lane);
}

void hfi_lanes_end(struct hfi_lanes *lanes) {
    for (size_t i = 0; i < lanes->count; i++)
        free_lane(lanes->lanes[i]);
    for (size_t i = 0; i < lanes->queue_count; i++) {
        hfi_free(lanes->queues[i]->lanes);
        hfi_free(lanes->queues[i]->open);
        hfi_free(lanes->queues[i]);
    }
    hfi_lane_limits_end(lanes);
    hfi_free(lanes->lanes);
    hfi_free(lanes->queues);
    memset(lanes, 0, sizeof *lanes);
}

/* Index of the first lane whose id is not below. */
static size_t lower_bound(const struct hfi_lanes *lanes, int64_t id) {
    size_t low = 0, high = lanes->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lanes->lanes[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct hfi_lane *hfi_lanes_find(const struct hfi_lanes *lanes, int64_t id) {
    size_t at = lower_bound(lanes, id);
    return at < lanes->count && lanes->lanes[at]->id == id ? lanes->lanes[at] : NULL;
}

static enum hfi_pool pool_of(const struct hfi_type *type) {
    if (type == NULL)
        return HFI_POOL_WORKER;
    if (type->async_handler)
        return HFI_POOL_ASYNC;
    return hfi_runs_code(type) ? HFI_POOL_WORKER : HFI_POOL_ASYNC;
}

static struct hfi_lane_queue *queue_of(struct hfi_lanes *lanes, const char *name) {
    struct hfi_lane_queue *queue = find_queue(lanes, name);
    if (queue != NULL)
        return queue;
    struct hf_queue_options options;
    hf_queue_options_init(&options);
    options.name = name;
    return add_queue(lanes, &options);
}

static uint32_t left_of(const struct hfi_lanes *lanes, const struct hfi_type *type) {
    for (size_t i = 0; type != NULL && i < lanes->count; i++)
        if (lanes->lanes[i]->type == type)
            return lanes->lanes[i]->left; /* all lanes of a type have the same */
    return 0;
}

void hfi_lanes_left(struct hfi_lanes *lanes, const struct hfi_type *type, int by) {
    for (size_t i = 0; i < lanes->count; i++)
        if (lanes->lanes[i]->type == type)
            lanes->lanes[i]->left += (uint32_t)by;
}

/* Room for one lane more; a lane that is not added after all leaves it for the next. */
static int reserve(struct hfi_lane_queue *queue) {
    if (queue->count < queue->room)
        return 0;
    size_t room = queue->room == 0 ? 8 : queue->room * 2;
    void *lanes = hfi_realloc(queue->lanes, room * sizeof *queue->lanes);
    if (lanes == NULL)
        return HF_ENOMEM;
    queue->lanes = lanes;
    void *open = hfi_realloc(queue->open, room * sizeof *queue->open);
    if (open == NULL)
        return HF_ENOMEM;
    queue->open = open;
    queue->room = room;
    return 0;
}

int hfi_lanes_add(struct hfi_lanes *lanes, int64_t id, const char *queue_name, const struct hfi_type *type,
                  struct hfi_lane_site *site, struct hfi_lane **out) {
    size_t at = lower_bound(lanes, id);
    if (at < lanes->count && lanes->lanes[at]->id == id) {
        *out = lanes->lanes[at];
        return 0;
    }
    if (lanes->count == lanes->room) {
        size_t room = lanes->room == 0 ? 16 : lanes->room * 2;
        void *grown = hfi_realloc(lanes->lanes, room * sizeof *lanes->lanes);
        if (grown == NULL)
            return HF_ENOMEM;
        lanes->lanes = grown;
        lanes->room = room;
    }
    struct hfi_lane_queue *queue = queue_of(lanes, queue_name);
    struct hfi_lane *lane = queue == NULL || reserve(queue) != 0 ? NULL : hfi_alloc(sizeof *lane);
    if (lane == NULL)
        return HF_ENOMEM;
    lane->id = id;
    lane->queue = queue;
    lane->type = type;
    lane->site = site;
    lane->pool = pool_of(type);
    lane->runs_code = type != NULL && hfi_runs_code(type);
    lane->left = left_of(lanes, type);
    lane->quota = HFI_LANE_QUOTA_FIRST;
    queue->known[lane->pool] = true;
    queue->lanes[queue->count++] = lane;
    memmove(lanes->lanes + at + 1, lanes->lanes + at, (lanes->count - at) * sizeof *lanes->lanes);
    lanes->lanes[at] = lane;
    lanes->count++;
    *out = lane;
    return 0;
}

void hfi_lanes_forget_due(struct hfi_lanes *lanes) {
    for (size_t i = 0; i < lanes->count; i++)
        lanes->lanes[i]->due = false;
}

/* Slots of a pool that one queue may hold. */
static uint32_t share(const struct hfi_lanes *lanes, const struct hfi_lane_queue *queue, enum hfi_pool pool) {
    uint32_t max = lanes->pool_max[pool], others = 0;
    for (size_t i = 0; i < lanes->queue_count; i++) {
        const struct hfi_lane_queue *other = lanes->queues[i];
        if (other != queue && other->concurrency == 0 && other->wanted && other->known[pool])
            others++;
    }
    uint32_t kept = others < max / 2 ? others : max / 2;
    return max - kept;
}

bool hfi_lane_has_slot(const struct hfi_lanes *lanes, const struct hfi_lane *lane) {
    const struct hfi_lane_queue *queue = lane->queue;
    enum hfi_pool pool = lane->pool;
    if (queue->concurrency > 0)
        return queue->used[HFI_POOL_WORKER] + queue->used[HFI_POOL_ASYNC] < queue->concurrency;
    if (queue->used[pool] == 0)
        return lanes->pool_used[pool] < 2 * lanes->pool_max[pool];
    return lanes->pool_used[pool] < lanes->pool_max[pool] && queue->used[pool] < share(lanes, queue, pool);
}

static bool may_take(struct hfi_lanes *lanes, struct hfi_lane *lane, struct hf_wall wall) {
    if (lane->grant >= lane->quota || !hfi_alone_lets(&lanes->alone, lane) || !hfi_lane_has_place(lanes, lane, wall))
        return false;
    if (lane->site != NULL && lane->site->free == 0) {
        lane->site->blocked = true;
        return false;
    }
    return hfi_lane_has_slot(lanes, lane);
}

static void take(struct hfi_lanes *lanes, struct hfi_lane *lane) {
    lane->grant++;
    lane->used++;
    hfi_alone_take(&lanes->alone, lane);
    lane->queue->used[lane->pool]++;
    if (lane->queue->concurrency == 0)
        lanes->pool_used[lane->pool]++;
    if (lane->limit != NULL) {
        lane->limit->used++;
        lane->limit->granted++;
    }
    if (lane->site != NULL) {
        lane->site->free--;
        lane->site->used++;
        lane->site->waiting++;
    }
}

static void give_back(struct hfi_lanes *lanes, struct hfi_lane *lane) {
    hfi_alone_give(&lanes->alone, lane);
    lane->used--;
    lane->queue->used[lane->pool]--;
    if (lane->queue->concurrency == 0)
        lanes->pool_used[lane->pool]--;
    if (lane->limit != NULL)
        lane->limit->used--;
    if (lane->site != NULL)
        lane->site->used--;
}

/* Are its jobs probes that one may choose among? */
static bool is_probe(const struct hfi_lane *lane) {
    return lane->site != NULL && lane->site->probing && lane->type->options.repeatable;
}

/* The next lane of the queue that may take one; NULL if none may in this round any more. */
static struct hfi_lane *next_lane(struct hfi_lanes *lanes, struct hfi_lane_queue *queue, struct hf_wall wall) {
    while (queue->at < queue->open_count || queue->kept > 0) {
        if (queue->at == queue->open_count) {
            queue->open_count = queue->kept;
            queue->at = queue->kept = 0;
        }
        size_t place = queue->open[queue->at++];
        if (!may_take(lanes, queue->lanes[place], wall))
            continue;
        queue->open[queue->kept++] = place;
        return queue->lanes[place];
    }
    return NULL;
}

/* Of the lanes whose jobs are probes. */
static struct hfi_lane *next_probe(struct hfi_lanes *lanes, struct hfi_lane_queue *queue, struct hf_wall wall) {
    for (size_t i = 0; i < queue->open_count; i++) {
        struct hfi_lane *lane = queue->lanes[queue->open[i]];
        if (is_probe(lane) && may_take(lanes, lane, wall))
            return lane;
    }
    return NULL;
}

/* Which lanes of the queue may take part in the round, from the one whose turn it is. */
static void open_lanes(struct hfi_lane_queue *queue, int64_t now_us) {
    queue->open_count = queue->at = queue->kept = 0;
    for (size_t i = 0; i < queue->count; i++) {
        size_t place = queue->turn + i < queue->count ? queue->turn + i : queue->turn + i - queue->count;
        if (queue->wanted && hfi_lane_open(queue->lanes[place], now_us))
            queue->open[queue->open_count++] = place;
    }
}

static void begin_round(struct hfi_lanes *lanes, int64_t now_us, struct hf_wall wall) {
    lanes->ready_at_us = INT64_MAX;
    for (size_t i = 0; i < lanes->count; i++) {
        struct hfi_lane *lane = lanes->lanes[i];
        lane->grant = 0;
        if (lane->limit != NULL)
            lane->limit->granted = 0;
        if (lane->site != NULL)
            lane->site->blocked = false;
    }
    hfi_alone_round(lanes, now_us, wall);
    for (size_t i = 0; i < lanes->queue_count; i++) {
        struct hfi_lane_queue *queue = lanes->queues[i];
        if (queue->turn >= queue->count)
            queue->turn = 0;
        open_lanes(queue, now_us);
    }
}

struct round {
    struct hfi_admitted *admitted;
    size_t count, room;
    uint32_t total, max;
};

static bool is_full(const struct round *round) {
    return round->total >= round->max;
}

/* One job more of the lane. A lane too many for `admitted` gets nothing and ends the round: false. */
static bool grant(struct hfi_lanes *lanes, struct round *round, struct hfi_lane *lane) {
    if (lane->grant == 0) {
        if (round->count == round->room) {
            round->max = round->total;
            return false;
        }
        round->admitted[round->count++] = (struct hfi_admitted){.lane = lane->id, .probe = is_probe(lane),
                                                                  .runs_code = lane->runs_code,
                                                                  .alone = hfi_alone_is(&lanes->alone, lane)};
    }
    take(lanes, lane);
    round->total++;
    return true;
}

/* One slot for the queue whose turn it is among queues [from, to) of one order. False: none of them may take one, or the
 * round is over. Only what was granted was a turn: a lane that came too late is the first of the next round. */
static bool give_turn(struct hfi_lanes *lanes, struct round *round, size_t from, size_t to, bool *spent,
                      struct hf_wall wall) {
    struct hfi_lane_queue *best;
    struct hfi_lane *lane = NULL;
    int64_t sum;
    do {
        size_t best_at = 0;
        best = NULL;
        sum = 0;
        for (size_t i = from; i < to; i++) {
            struct hfi_lane_queue *queue = lanes->queues[i];
            if (spent[i])
                continue;
            sum += queue->weight;
            if (best == NULL || queue->current + queue->weight > best->current + best->weight) {
                best = queue;
                best_at = i;
            }
        }
        if (best == NULL)
            return false;
        lane = next_lane(lanes, best, wall);
        spent[best_at] = lane == NULL;
    } while (lane == NULL);
    if (!grant(lanes, round, lane))
        return false;
    for (size_t i = from; i < to; i++) {
        if (!spent[i])
            lanes->queues[i]->current += lanes->queues[i]->weight;
    }
    best->current -= sum;
    best->turn = best->open[best->kept - 1] + 1; /* everything up to it has had its turn */
    return true;
}

static void grant_probes(struct hfi_lanes *lanes, struct round *round, struct hf_wall wall) {
    struct hfi_lane *lane;
    for (size_t i = 0; i < lanes->queue_count; i++)
        while (!is_full(round) && (lane = next_probe(lanes, lanes->queues[i], wall)) != NULL)
            grant(lanes, round, lane);
}

size_t hfi_lanes_admit(struct hfi_lanes *lanes, int64_t now_us, struct hf_wall wall, uint32_t max,
                       struct hfi_admitted *admitted, size_t room, uint32_t *total) {
    struct round round = {.admitted = admitted, .room = room, .max = max};
    *total = 0;
    begin_round(lanes, now_us, wall);
    bool *spent = hfi_alloc(lanes->queue_count == 0 ? 1 : lanes->queue_count);
    if (spent == NULL)
        return 0; /* nothing is claimed in this round; the next poll tries again */
    grant_probes(lanes, &round, wall);
    for (size_t i = 0; i < lanes->queue_count; i++)
        spent[i] = !lanes->queues[i]->wanted;
    for (size_t from = 0, to; from < lanes->queue_count; from = to) {
        for (to = from + 1; to < lanes->queue_count && lanes->queues[to]->order == lanes->queues[from]->order;)
            to++;
        while (!is_full(&round) && give_turn(lanes, &round, from, to, spent, wall))
            continue;
    }
    for (size_t i = 0; i < round.count; i++)
        admitted[i].max = hfi_lanes_find(lanes, admitted[i].lane)->grant;
    hfi_free(spent);
    *total = round.total;
    return round.count;
}

void hfi_lanes_claimed(struct hfi_lanes *lanes, const struct hfi_admitted *admitted, int64_t now_us, int64_t hold_us) {
    struct hfi_lane *lane = hfi_lanes_find(lanes, admitted->lane);
    if (lane == NULL)
        return;
    for (uint32_t i = admitted->claimed; i < admitted->max; i++)
        hfi_lane_release(lanes, lane, false);
    lane->due = admitted->more;
    hfi_lane_claimed(lane, admitted);
    if (admitted->claimed > 0) {
        lane->empty = 0;
        if (admitted->claimed == lane->quota && admitted->more && lane->quota < UINT32_MAX / 2)
            lane->quota *= 2;
        else if (admitted->claimed < admitted->max)
            lane->quota = admitted->claimed < 16 ? HFI_LANE_QUOTA_FIRST : admitted->claimed * 2;
        return;
    }
    lane->quota = 1;
    if (++lane->empty >= 2)
        lane->hold_until_us = hfi_add(now_us, hold_us);
}

void hfi_lane_begun(struct hfi_lane *lane) {
    if (lane->site != NULL)
        lane->site->waiting--;
}

void hfi_lane_release(struct hfi_lanes *lanes, struct hfi_lane *lane, bool begun) {
    give_back(lanes, lane);
    if (lane->site != NULL && !begun)
        lane->site->waiting--;
}

bool hfi_lanes_any_due(const struct hfi_lanes *lanes) {
    for (size_t i = 0; i < lanes->count; i++) {
        const struct hfi_lane *lane = lanes->lanes[i];
        if (lane->due && !lane->paused && lane->left == 0 && lane->type != NULL && lane->queue->wanted)
            return true;
    }
    return false;
}
