/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_HANDS_H
#define HFI_JOBS_HANDS_H

#include "jobs/store.h"

/*
 * What other hands than the owner's do to jobs, worded once for all stores: the event and rules of an operation, the
 * job that a redrive makes, what a death leaves in alerts and notes. Pure but for one allocation: a store reads its row,
 * calls here, writes.
 */
struct hfi_hand {
    struct hfi_event event;
    struct hfi_rules rules;
    char text[96]; /* what event.message may point to: do not copy it by value */
};
void hfi_hand_claim(struct hfi_hand *hand, int64_t node, struct hf_wall now);
/* `lane`: what its claim says about the jobs; NULL = repeatable, no policy. */
void hfi_hand_start(struct hfi_hand *hand, int64_t node, struct hf_wall now, const struct hfi_admitted *lane);
/*
 * A probe may well fail: it goes to a job that loses nothing by it, repeatable and with an execution left after this
 * one. `rules`: of its start. Claims of a probing lane take such jobs among the first HFI_PROBE_LOOK due ones of each
 * priority, in order; when there is none, the first as ever.
 */
#define HFI_PROBE_LOOK 64
/* Jobs past their expires_at that a claim passes over, of each priority of a lane: EXPIRE ends them. */
#define HFI_EXPIRED_LOOK 64
bool hfi_probe_suits(const struct hfi_job *job, const struct hfi_rules *rules);
void hfi_hand_lapse(struct hfi_hand *hand, const struct hfi_op_sweep *op);
void hfi_hand_expire(struct hfi_hand *hand, const struct hfi_op_expire *op);
void hfi_hand_quarantine(struct hfi_hand *hand, const struct hfi_op_quarantine *op);
/* A running job is only asked: CANCEL_ASKED. */
void hfi_hand_cancel(struct hfi_hand *hand, const struct hfi_op_cancel *op, const struct hfi_job *job);
void hfi_hand_requeue(struct hfi_hand *hand, const struct hfi_op_requeue *op);

/* Is a write on top of what is stored? Version 0, no row, also stands for one that was pruned. */
bool hfi_downstream_is_current(const struct hfi_downstream_state *row, const struct hfi_downstream_state *wish);
/* Says the row what no row would say, and did so before that time? */
bool hfi_downstream_is_idle(const struct hfi_downstream_state *row, int64_t written_us, int64_t before_us);
/* What a write of one downstream makes of its row: control, phase, the reason of whichever is in force; a version that
 * neither the row nor who writes has seen. */
void hfi_downstream_merge(struct hfi_downstream_state *row, const struct hfi_downstream_state *wish, unsigned set);

/* What a node may have of something shared, when `nodes` want some of it, itself among them, and the others hold
 * `others`: at most its part of the maximum, at least what it uses. */
uint32_t hfi_share_of(const struct hfi_op_share *op, uint64_t others, uint32_t nodes);
/* Does it let no job through but probes: forced, its breaker open or half-open, or behind a gate? */
bool hfi_downstream_keeps(const struct hfi_downstream_state *row, struct hf_wall now);

/* Jitter without a generator: no two ownerships of a job share it, and a repeated transaction gives the same again. */
uint64_t hfi_hand_random(const struct hfi_job *job);
/* The book's rules for the job of this hand: lapse and quarantine need them, requeue, expire and cancel none. */
static inline void hfi_hand_rules(struct hfi_hand *hand, const struct hfi_rulebook *book, const struct hfi_job *job) {
    hfi_rulebook_for(book, job, &hand->rules);
    hand->rules.random = hfi_hand_random(job);
}

/* An idempotency key of its own, for `--new-key`: `<store uuid>-<id>.<epoch>`, into HFI_KEY_MAX + 1 bytes. */
char *hfi_fresh_key(char *key, const char *uuid, int64_t id, int64_t epoch);

/*
 * The job that a redrive makes of the dead letter's snapshot: due now, full budget, the snapshot's root, its id as
 * parent, no source; id and a fresh key are the store's to set. HF_EINVAL: another payload without new_key; HF_ETOOBIG;
 * HF_ESTATE: the snapshot's payload is `cut`, and there is no other.
 */
int hfi_redrive_job(const struct hfi_op_redrive *op, const struct hfi_job *snapshot, bool cut, uint32_t payload_max,
                    struct hfi_job *job);

/* What HF_UNIQUE_REPLACE does with the job that holds the key (I40). */
enum hfi_replace {
    HFI_REPLACE_KEEPS,   /* it has ended, and its period has not: it stays */
    HFI_REPLACE_BECOMES, /* pending, waiting: the new job under the old id */
    HFI_REPLACE_YIELDS   /* running: it goes on without the key, the new job succeeds it */
};
enum hfi_replace hfi_replace_how(const struct hfi_job *holder);
/*
 * The job that the holder becomes: everything of `wish` but id, state, epoch, root, parent, deaths and the time it was
 * created; full budget. Its idempotency key stays while it never ran, as that was never sent; else `key`
 * (HFI_KEY_MAX + 1 bytes) gets a fresh one, unless the wish brings its own.
 */
void hfi_replace_job(const struct hfi_job *holder, const struct hfi_job *wish, const char *uuid, char *key,
                     struct hfi_job *job);

/* A death's detail as it is kept: cleaned, cut, "" when `keep` is false or there is none. hfi_free; NULL: no memory. */
char *hfi_detail_copy(const char *detail, bool keep);

/* Jobs of that state that ended before this time are forgotten; 0: none are. */
int64_t hfi_kept_since(const struct hfi_op_prune *op, int state);
/* Is it another node's turn to prune? Also false when no clock of ours can have said so. */
bool hfi_prune_is_others(const struct hfi_prune_turn *turn, const struct hfi_op_prune *op);
struct hfi_prune_turn hfi_prune_turn_after(const struct hfi_op_prune *op); /* whose it is when that is done */

void hfi_dead_note_fill(struct hfi_dead_note *note, int64_t dead_id, const struct hfi_change *change);
/* Of a row that goes out: it leads a digest, a storm's summary, or nothing. */
enum hf_alert_kind hfi_alert_kind_of(int64_t id, int64_t lead, int64_t digest);
/* All but the ids, sink, epoch and tries. */
void hfi_alert_fill(struct hfi_alert *alert, const struct hfi_job *job, const struct hfi_death *death, struct hf_wall now);

#endif
