/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_CALL_INTERNAL_H
#define HFI_RESILIENCE_CALL_INTERNAL_H

#include <pthread.h>

#include "resilience/again.h"
#include "resilience/call.h"
#include "resilience/target.h"

/* The inside of the call, for caller.c (who is called), call_new.c (the copy of a request), call_state.c (its states),
 * call_attempt.c (what it has on the wire), call_hedge.c (second attempts of a try) and call.c (its life). */

/*
 * READY: made, not begun. QUEUED: waits for a slot of the bulkhead. ATTEMPT: a try is on the wire, with as many attempts
 * as its hedges make. BACKOFF: waits for the next try. ENDING: over, `done` comes in the next turn. ENDED: `done` ran.
 */
#define HFI_CALL_STATE_MAP(X)                                                                                          \
    X(READY, "ready")                                                                                                  \
    X(QUEUED, "queued") X(ATTEMPT, "attempt") X(BACKOFF, "backoff") X(ENDING, "ending") X(ENDED, "ended")
#define HFI_CALL_STATE_MEMBER(name, text) HFI_CALL_##name,
enum hfi_call_state { HFI_CALL_STATE_MAP(HFI_CALL_STATE_MEMBER) HFI_CALL_STATES };
#undef HFI_CALL_STATE_MEMBER

/* One attempt on the wire, or room for one. */
struct hfi_call_attempt {
    struct hfi_call *call;
    struct hfi_attempt *wire; /* NULL: free */
    struct hf_permit permit;
    struct hf_mono deadline, connect_deadline;
    bool hedge, connected; /* connected: within its limit, so that limit is over */
};

struct hfi_call {
    struct hfi_caller *caller;
    struct hfi_target *target;
    const struct hf_policy *policy; /* the one it began with, for all its life; its downstream keeps it */
    TAILQ_ENTRY(hfi_call) entry;   /* of the caller's calls */
    TAILQ_ENTRY(hfi_call) waiting; /* of the target's queue */
    enum hfi_call_state state;
    hf_call_fn done;
    void *user;
    struct hf_response *response; /* made at the start, so that the end needs no memory */

    const char *method;
    const char *url;
    const char *message_id; /* of a signed one, for all its attempts: its key, or random */
    const void *body;
    size_t body_length;
    size_t header_count; /* of `headers`, behind the struct; those that differ from attempt to attempt come last */
    struct hfi_rules rules; /* of this call, behind the headers */
    bool has_key, no_retry, own_limit;
    int64_t total_ms, attempt_ms;

    struct hfi_timer timer; /* armed from begin to end: moving it cannot fail */
    struct hf_mono deadline, wakes;
    struct hfi_again again;
    bool counted;      /* as a call of the budget */
    uint32_t attempts; /* reached the transport */
    uint32_t hedges;   /* of them */
    enum hf_sent sent; /* the most that any attempt may have sent */

    /* the try on the wire */
    struct hfi_call_attempt *slots; /* one, and one for each hedge a try may have */
    uint32_t slot_count, live;
    uint32_t hedges_left;
    struct hf_mono hedge_at;   /* the next one; only with some left */
    struct hf_mono not_before; /* what failed attempts of this try were asked to wait for */

    char remaining[24], number[12]; /* of the newest attempt */
    struct hf_header headers[];
};

struct hfi_caller {
    struct hfi_scheduler *scheduler;
    struct hfi_transport *transport;
    struct hfi_random random;
    struct hfi_calls calls;
    pthread_mutex_t reloading; /* one reload after the other; taken before `lock` */
    pthread_mutex_t lock; /* of the roster and the registries of its targets */
    struct hfi_roster *roster;
};

/* Who can be called: a reference to each target. A reload puts another roster in its place. */
struct hfi_roster {
    size_t count;
    struct hfi_target **given;   /* in the order of the options */
    struct hfi_target **by_name; /* sorted */
};

/* caller.c */
struct hfi_target *hfi_roster_find(const struct hfi_roster *roster, const char *name); /* borrowed, NULL unknown */
/* Options of any age as a whole struct of today; `size` is that of the first of their array. */
void hfi_downstream_options_take(struct hf_downstream_options *to, const struct hf_downstream_options *from, uint32_t size);
/* A roster of these options. Downstreams that `old` (may be NULL) has by the same name go on in it. */
int hfi_roster_new(struct hfi_caller *caller, const struct hf_downstream_options *downstreams, size_t count,
                   const struct hfi_roster *old, struct hfi_roster **roster, struct hf_error *error);
void hfi_roster_free(struct hfi_roster *roster); /* NULL is fine */
/* Any thread; one reference for the caller. NULL: unknown. */
struct hfi_target *hfi_caller_target(struct hfi_caller *caller, const char *name);
/* The host of `key` at the per_host downstream of that name. HF_ENOENT when that is gone, HF_ENOMEM. */
int hfi_caller_host_target(struct hfi_caller *caller, const char *name, const char *key, struct hfi_target **target);
static inline struct hf_mono hfi_call_now(const struct hfi_call *call) {
    return hfi_now(call->caller->scheduler);
}
static inline struct hf_mono hfi_earlier(struct hf_mono a, struct hf_mono b) {
    return a.us < b.us ? a : b;
}

/* call_attempt.c */
/* Puts an attempt with `permit` on the wire. When that fails nothing started, and the permit is the caller's again. */
int hfi_call_send(struct hfi_call *call, const struct hf_permit *permit, bool hedge, struct hf_mono now);
/* Gives back what an ended attempt held; its slot is free then. */
void hfi_call_release(struct hfi_call_attempt *attempt, const struct hf_outcome *outcome, struct hf_mono now);
/* Takes it off the wire; its permit is still held. The stage it had come to. */
enum hf_stage hfi_call_cut(struct hfi_call_attempt *attempt, struct hfi_phases *phases, enum hf_sent *sent);
/* Takes all off the wire and releases them as `outcome`, which gets stage and phases of the first. */
void hfi_call_cut_all(struct hfi_call *call, struct hf_outcome *outcome, struct hf_mono now);
/* The limit that an attempt has reached, NULL: none. */
const char *hfi_call_limit(struct hfi_call_attempt *attempt, struct hf_mono now);
/* Takes it off the wire: `which` limit has passed. The call may be gone afterwards. */
void hfi_call_expire(struct hfi_call_attempt *attempt, const char *which);
/* When the try on the wire has to be looked at again. */
struct hf_mono hfi_call_next_look(const struct hfi_call *call);
void hfi_call_short(int rc, struct hf_outcome *outcome); /* our own shortage, not the peer's failure */

/* call_hedge.c */
uint32_t hfi_call_hedges(const struct hf_policy *policy, const struct hf_request *request, bool repeatable);
void hfi_call_hedge_plan(struct hfi_call *call, struct hf_mono now); /* a try begins */
/* One more attempt of this try, if it may have one: nothing that stands in its way is a failure (R18). */
void hfi_call_hedge(struct hfi_call *call, struct hf_mono now);

/* call_state.c */
#define HFI_SLOT_POLL_MS 10 /* looks for slots that come free elsewhere */
#define HFI_SLOT_ASK_MS 1000 /* asks the breaker even without one: it may have opened, and permits lapse when asked */
void hfi_call_move(struct hfi_call *call, enum hfi_call_state to, const char *why); /* the one state change */
void hfi_call_wake_at(struct hfi_call *call, struct hf_mono at);
void hfi_target_watch(struct hfi_target *target);

/* call.c */
void hfi_call_finish(struct hfi_call *call); /* tells `done` now; the call is gone */
void hfi_target_poll(struct hfi_timer *timer, void *user);
/* An attempt is over, by its facts or cut by a limit (`facts` NULL). The call may be gone afterwards. */
void hfi_call_over(struct hfi_call_attempt *attempt, struct hf_outcome *outcome, const struct hfi_attempt_facts *facts);
/* call_new.c */
void hfi_call_keep_answer(struct hfi_call *call, const struct hfi_attempt_facts *facts); /* in place of what it had */
void hfi_call_drop_answer(struct hfi_call *call);

#endif
