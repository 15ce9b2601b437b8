/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_RUNNER_STATE_H
#define HFI_JOBS_RUNNER_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/random.h"
#include "jobs/deaths/alerts.h"
#include "jobs/deps.h"
#include "jobs/lease.h"
#include "jobs/runner/lane.h"
#include "jobs/runner/runner.h"
#include "jobs/work.h"
#include "resilience/downstream.h"

/*
 * What the files of the runner share. Each part has one file that writes it: runner.c the life, claim.c the rounds,
 * execute.c the executions, beat.c the beats, reconcile.c the rows without an
 * execution, upkeep.c the watch over others, park.c the sites, renew.c the book, drain.c the end. Loop
 * thread only, but for `counts`.
 */
#define HFI_ASYNC_MAX 1024  /* asynchronous jobs in flight on a node, queues with a concurrency of their own aside */
#define HFI_CLAIM_MAX 1024  /* jobs of one claim */
#define HFI_FINISHED_KEPT 256
#define HFI_IDLE_LANES 256
#define HFI_REFUSED_MIN_MS 250 /* waits while the store refuses, doubling */
#define HFI_REFUSED_MAX_MS 5000

/* X(NAME, text): the life of a runner; hfi_runner_move is the one function that changes it. */
#define HFI_LIFE_MAP(X)                                                                     \
    X(NEW, "new") X(JOINING, "joining") X(RUNNING, "running")                               \
    X(DRAINING, "draining") /* no claims; running jobs get their time */                    \
    X(STOPPING, "stopping") /* the kinds were told to stop */                               \
    X(HURRYING, "hurrying") /* at once */                                                   \
    X(LEAVING, "leaving") X(ENDED, "ended")
enum hfi_life {
#define HFI_LIFE_MEMBER(name, text) HFI_LIFE_##name,
    HFI_LIFE_MAP(HFI_LIFE_MEMBER)
#undef HFI_LIFE_MEMBER
};

/* One execution, from its claim to its stored end. */
struct hfi_execution {
    struct hf_work work;
    struct hfi_rulebook *book; /* that of its beginning; one reference */
    struct hfi_runner *runner;
    struct hfi_lane *lane;
    struct hfi_op_apply apply;
    struct hfi_timer retry; /* of the write */
    uint32_t tries;         /* of the write that were refused for now */
    uint32_t dropped;       /* refused for good: 1 without detail, 2 as a lapse, then left to the reconciliation */
    bool timed_out;         /* told to stop at its limit */
    bool begun;             /* its kind has it */
    bool overdue;           /* the warning was given */
    bool abandoned;         /* its job was lapsed while its handler ran; the end is not the handler's */
    bool returned;          /* abandoned: the handler has ended after all */
    bool over;              /* its end is stored; what still needs it is the handler, or `notes_out` */
    bool ruled;             /* the retry hook was asked */
    struct hfi_ruling ruling;
    const char *lapse_type;    /* abandoned: what its failure is called, and why */
    char lapse_message[160];
    struct hfi_timer silence;  /* armed while the type has a heartbeat_timeout */
    struct hfi_timer note_timer; /* spaces writes of progress */
    uint32_t notes_out;     /* of them with the writer */
    bool note_waits;        /* for note_timer */
    int32_t breaker;        /* of its downstream when it began: enum hf_breaker_state + 1; 0 none */
    struct hfi_execution *free_next;
};

/* What of a downstream is shared by all nodes now. */
enum hfi_shared { HFI_SHARED_NOTHING, HFI_SHARED_PROBES, HFI_SHARED_RAMP };

/* A downstream as the runner sees it: breaker, what the store knows of it, slots. */
struct hfi_site {
    struct hfi_lane_site slots; /* first: lanes point to it */
    struct hfi_runner *runner;
    struct hf_downstream *downstream; /* one reference */
    bool parks;                    /* on_open: park */
    bool keeps;                    /* its breaker or gate keeps jobs back, all but probes and what the ramp lets through */
    bool forced;                   /* isolated by the store's word */
    enum hf_breaker_state state;   /* as of the last look */
    bool phase_pending;            /* the breaker changed; to be written */
    bool read_pending;
    bool busy;                     /* the operation is out */
    bool loaded;                   /* the first read came back */
    int64_t ready_at_us;           /* monotonic: when it may admit again; 0 = now */
    int64_t unhealthy_since_us;    /* wall; 0 = healthy */
    int64_t give_up_at_us;         /* monotonic: the next page of jobs that waited too long */
    char *probe_path;              /* NULL: jobs are the probes */
    struct hfi_call *probe;        /* out, or NULL */
    int64_t probe_at_us;           /* monotonic: not before that */
    bool probe_due;                /* as of the last look: the breaker would admit one */
    enum hfi_shared share_mode, share_as, share_asked; /* as of the last look; what is held; what was asked for */
    uint32_t share_max, share_used;    /* as of the last look */
    uint32_t share_held;           /* places of all nodes' that are this one's */
    int64_t share_at_us;           /* monotonic: not asked again before */
    bool share_busy;               /* the operation is out */
    char *key;                     /* of its row: the downstream's name, or that of its host (key.h) */
    struct hfi_site *parent;       /* of a host: that of its downstream; else NULL */
    bool wanted;                   /* scratch of park_hosts.c: a lane of it is due */
    bool break_waits;              /* the row's break, for the end of our own */
    struct hfi_op_share share_op;
    struct hfi_downstream_state stored; /* the row, as last seen */
    struct hfi_op_downstream op;
    _Atomic bool posted;           /* any thread: `task` is on its way */
    struct hfi_task task;
    struct hfi_watch watch;        /* of its breaker */
};

/* Another node, watched. */
struct hfi_peer {
    struct hfi_lease_watch watch;
    bool present; /* in the last NODES answer */
    bool gone;    /* to be swept, as of the last look */
    bool crashed; /* died on this host: proof that its process is gone */
    bool cleaned; /* of what its exec jobs left running here */
    uint32_t looks; /* for that */
    bool begun;     /* to be swept, from its first row */
    char name[64];
};

/* Jobs reserved ahead of their slots: ahead.c. */
struct hfi_reserved;
struct hfi_ahead {
    struct hfi_reserved *first, *last; /* kept, those that go first first */
    struct hfi_reserved *away;         /* being started or given back */
    size_t count;                      /* of all */
    size_t starting;                   /* with the writer; they hold their slots */
    struct hf_mono rest_until;         /* none is reserved before */
    struct hf_mono since;              /* since then `ended` executions have, and in the second before */
    uint32_t ended, ended_before;
    struct hfi_timer timer;            /* the first one has been held long enough */
};

struct hfi_runner {
    struct hfi_runner_parts parts;
    struct hfi_scheduler *scheduler;
    struct hfi_writer *writer;
    struct hfi_rulebook *book; /* one reference; executions and operations hold that of theirs */
    const struct hf_runner_options *options;
    struct hfi_kind *kinds[HF_KIND_NOOP + 1];
    struct hfi_random random;

    enum hfi_life life;
    bool stop_asked;
    bool stop_told;         /* to `phase` */
    bool abandoned;         /* a handler never returned: nothing can be freed */
    bool jobs_left;         /* some are left to their leases */
    bool ending;            /* as soon as no checkpoint waits for its answer */
    bool past_bound;        /* a drain waits no longer for handlers */
    int code;               /* what `ended` will say */
    int64_t node;           /* 0: not joined */
    char boot[40];
    struct hfi_op_join join;
    unsigned names_out;     /* operations that read the names of the book's types */
    bool names_untold;      /* the node's row does not have them yet */
    bool quiet_wanted;      /* renew.c: `quiet` is to be called */
    struct hfi_timer life_timer; /* joining again; the steps of a drain */
    struct hfi_op_leave leave;
    struct hfi_task last_task;
    size_t out;             /* operations that have not come back */
    struct hfi_op *unsent, *unsent_last; /* of this turn */
    struct hfi_task send_task;

    /* claiming */
    struct hfi_lanes lanes;
    int64_t lanes_known;    /* texts were seen up to this lane */
    bool retelling;         /* from the first one on, for the types of a new book */
    int64_t next_due_us;    /* wall */
    uint64_t unhealthy_version;
    bool fresh;             /* the last LANES answer is newer than the last wake-up */
    bool many_due;          /* lanes, in that answer */
    struct hf_mono lanes_at; /* when it was asked for */
    bool round_out;         /* a round is with the writer */
    unsigned round_parts;
    bool poked;             /* `poke_task` is on its way */
    bool again;             /* woken during a round */
    bool heed;              /* woken, perhaps by ourselves: to be looked at soon */
    struct hf_mono back_at; /* when the last round came back */
    struct hfi_task poke_task;
    struct hfi_timer poll_timer;
    int64_t store_refused_ms; /* 0: it takes orders; else the wait before the next round */
    struct hfi_op_lanes lanes_op;
    struct hfi_op_claim claim_op;
    bool claiming, looking;     /* parts of the round */
    struct hfi_ahead ahead;
    uint64_t claims_back;   /* how many came back */
    struct hfi_job *claimed[HFI_CLAIM_MAX];
    int64_t kept[HFI_ADMIT_MAX]; /* parked lanes whose jobs are counted */
    size_t kept_count;
    struct hf_mono kept_at;      /* when they were counted last */
    struct hfi_watch *wake_watch;
    struct hfi_writer_ear ear;
    _Atomic bool heard;          /* any thread: `heard_task` is on its way */
    struct hfi_task heard_task;

    /* executing */
    struct hf_work *first;     /* handlers that have not ended */
    struct hf_work *unwritten; /* ended, to be stored */
    struct hf_work *left;      /* abandoned ones: stored, but their handlers still live */
    size_t running, writing;
    uint32_t abandoned_live;   /* handlers */
    struct hfi_desk desk;
    struct hfi_execution *finished[HFI_FINISHED_KEPT]; /* asynchronous ones: a second finish has to find them */
    size_t finished_next;
    struct hfi_onlooker *onlookers;
    hf_retry_fn retry_hook;
    void *retry_user;
    struct hfi_execution *spare;
    size_t spare_count;

    /* beats */
    struct hfi_op_beat beat_op;
    bool beating, beat_out;
    bool lost;                /* stopped itself; no claims until a beat is stored */
    int64_t beat;
    struct hf_mono beat_sent, beat_stored;
    struct hfi_timer beat_timer, self_stop_timer;

    /* reconciling */
    struct hfi_owned *strays; /* rows of the last beat, by id, that no execution had */
    size_t stray_count;
    uint64_t strays_claims;   /* claims that had come back by then */
    struct hfi_op_sweep *lost_ops; /* lapses of strays, with the writer */
    size_t lost_out;

    /* upkeep */
    struct hfi_timer upkeep_timer;
    struct hfi_pulse sweep_pulse; /* a beat for each answer to a round */
    struct hfi_ward sweep_ward;
    struct hfi_task sweep_task;
    _Atomic bool sweep_posted; /* any thread: `sweep_task` is on its way */
    struct hfi_op_nodes nodes_op;
    struct hfi_op_sweep sweep_op;
    struct hfi_rulebook *sweep_book, *quarantine_book, *lost_book, *readmit_book; /* of these operations while they are out */
    struct hfi_op_expire expire_op;
    struct hfi_op_prune prune_op;
    struct hfi_op_unused unused_op;
    struct hfi_op_absent absent_op;
    int64_t idle_lanes[HFI_IDLE_LANES]; /* asked for with it */
    int64_t idle_after;                 /* keyset of those */
    struct hfi_op_release release_op;
    struct hfi_op_readmit readmit_op;
    bool readmit_wanted, readmit_out; /* quarantined jobs are to be looked at; a page is with the writer */
    struct hfi_timer expire_timer, prune_timer, unused_timer; /* the next page */
    struct hf_mono expire_at;
    uint32_t prune_page;
    bool release_out;
    bool release_wanted; /* children were left over, or may have been */
    struct hf_mono released_at; /* the last scan of all that wait began */
    struct hfi_op_redrive_step redrive_op;
    struct hfi_timer redrive_timer;
    struct hf_mono redrive_at;
    bool redrive_out;
    bool redrive_wanted; /* some task is due, or may be */
    bool redrive_open;   /* some task has not ended */
    uint64_t redrive_ends; /* jobs that had ended here when it was last asked */
    struct hfi_op_measure measure_op;
    struct hfi_packed measured;       /* on its way to the store */
    struct hf_downstream *measure_of; /* whose; a reference while the operation is out */
    size_t measure_site;              /* the next one to be looked at */
    struct hf_mono measured_at;       /* when the last turn began */
    bool measure_out, measure_ended;  /* ended: the last turn, of a drain, has begun */
    struct hfi_op_quarantine quarantine_op;
    bool nodes_out, sweep_out, expire_out, prune_out, unused_out, quarantine_out, absent_out;
    bool looked; /* a NODES answer came: it is known who lives */
    struct hf_mono pruned_at, unused_at, absent_at;
    struct hfi_peer *peers;
    size_t peer_count;

    struct hfi_site **sites; /* each stays where it is: lanes point to them */
    size_t site_count;

    struct hfi_alerts *alerts; /* NULL without sinks */

    pthread_mutex_t lock; /* of counts */
    struct hf_runner_counts counts;
};

/* runner.c */
void hfi_runner_move(struct hfi_runner *runner, enum hfi_life life);
struct hf_mono hfi_runner_mono(const struct hfi_runner *runner);
struct hf_wall hfi_runner_wall(const struct hfi_runner *runner);
void hfi_runner_arm(struct hfi_runner *runner, struct hfi_timer *timer, int64_t after_ms);
void hfi_runner_disarm(struct hfi_runner *runner, struct hfi_timer *timer);
/* Sends an operation with the others of this turn; `done` runs on the loop thread, with the runner as user unless `user` says otherwise. */
void hfi_runner_submit(struct hfi_runner *runner, struct hfi_op *op, enum hfi_op_kind kind,
                       void (*done)(struct hfi_op *op, void *user), void *user);
void hfi_runner_leave(struct hfi_runner *runner); /* everything has ended */
void hfi_runner_kept(struct hfi_runner *runner);  /* a checkpoint was answered: was all else over? */
void hfi_runner_join(struct hfi_runner *runner); /* also again, under a new node id */
bool hfi_refused_for_now(int code); /* the store may take it later */
int64_t hfi_refused_wait_ms(uint32_t tries);
#define HFI_COUNT(runner, field, n)                                                          \
    do {                                                                                     \
        pthread_mutex_lock(&(runner)->lock);                                                 \
        (runner)->counts.field += (n);                                                       \
        pthread_mutex_unlock(&(runner)->lock);                                               \
    } while (0)

/* claim.c */
void hfi_claim_init(struct hfi_runner *runner);
void hfi_claim_poke(struct hfi_runner *runner);  /* capacity was freed: look at once */
void hfi_claim_stale(struct hfi_runner *runner); /* and ask the store what is due */
void hfi_claim_begin(struct hfi_runner *runner); /* after the join: first round, and listens from now on */
void hfi_claim_stop(struct hfi_runner *runner);  /* no new rounds */

/* ahead.c */
void hfi_ahead_init(struct hfi_runner *runner);
void hfi_ahead_ended(struct hfi_runner *runner);       /* an execution did: as many may be reserved */
size_t hfi_ahead_admit(struct hfi_runner *runner); /* nothing can be started: a round that reserves; the number of its lanes */
void hfi_ahead_take(struct hfi_runner *runner, struct hfi_job **jobs, size_t count); /* they were */
void hfi_ahead_round(struct hfi_runner *runner);  /* before a round is admitted: starts those whose turn it is */
void hfi_ahead_return(struct hfi_runner *runner); /* gives all of them back */
void hfi_ahead_let_go(struct hfi_runner *runner); /* what the store did not take back is left to the lease */
/* Tells of all jobs whose rows are reserved or about to be started or given back. */
void hfi_ahead_mark(const struct hfi_runner *runner, void (*mark)(const struct hfi_job *job, void *user), void *user);

/* execute.c */
void hfi_execute(struct hfi_runner *runner, struct hfi_job *job);
void hfi_execute_stop(struct hf_work *work, enum hfi_stop why, bool hurry);
void hfi_execute_stop_all(struct hfi_runner *runner, enum hfi_stop why, bool hurry);
void hfi_execute_idle(struct hfi_runner *runner); /* nothing to claim: memory goes back */
void hfi_execute_let_go(struct hfi_runner *runner); /* what is not stored yet is left to the lease */
void hfi_execute_end(struct hfi_runner *runner); /* frees what is kept for reuse */

void hfi_execute_ended(struct hfi_execution *execution); /* frees its slots and has the end written */
void hfi_execute_unlink(struct hf_work **list, struct hf_work *work);
void hfi_execute_link(struct hf_work **list, struct hf_work *work);
void hfi_execute_over(struct hfi_execution *execution); /* frees it, once its end is stored and nobody needs it */

/* abandon.c: handlers that do not return, or say nothing for too long */
void hfi_abandon_watch(struct hfi_execution *execution); /* as it begins: its heartbeat */
/* False: its handler has ended, and its end is on its way. */
bool hfi_abandon(struct hfi_execution *execution, const char *type, const char *message);
void hfi_abandon_returned(struct hfi_execution *execution);

/* notes.c: progress on its way to the store */
void hfi_notes_init(struct hfi_execution *execution);
void hfi_notes_flush(struct hfi_execution *execution); /* it has ended: what was said last goes before its end */

/* observe.c */
struct hfi_onlooker {
    hf_transition_fn observer;
    void *user;
    struct hfi_onlooker *next;
};
void hfi_observe_end(const struct hfi_runner *runner, const struct hfi_execution *execution);
void hfi_observe_death(const struct hfi_runner *runner, const struct hfi_dead_note *note);
void hfi_onlookers_free(struct hfi_runner *runner);
/* Asks the retry hook, once, if `event` would be retried. */
void hfi_retry_ask(struct hfi_runner *runner, struct hfi_execution *execution);

/* ending.c: what is written about an ended execution */
void hfi_ending_event(const struct hfi_runner *runner, struct hfi_execution *execution, struct hfi_event *event);
void hfi_ending_told(struct hfi_runner *runner, struct hfi_execution *execution); /* counts and log lines, after the commit */
/* Deaths by other hands than an execution's: their Error lines, then the alerts; frees the notes. */
void hfi_deaths_told(struct hfi_runner *runner, struct hfi_dead_note *notes, size_t count);

/* beat.c */
void hfi_beat_begin(struct hfi_runner *runner); /* after a join */
void hfi_beat_stop(struct hfi_runner *runner);
bool hfi_beat_is_late(const struct hfi_runner *runner); /* the time has come to stop itself */

/* reconcile.c */
void hfi_reconcile(struct hfi_runner *runner, struct hfi_owned *owned, size_t count); /* after a beat; takes the rows over */

/* upkeep.c */
void hfi_upkeep_begin(struct hfi_runner *runner);
void hfi_upkeep_stop(struct hfi_runner *runner);
void hfi_upkeep_end(struct hfi_runner *runner); /* nobody looks after it any more */
bool hfi_upkeep_idle(struct hfi_runner *runner);
void hfi_upkeep_unknown(struct hfi_runner *runner); /* due lanes of unknown types, after a LANES answer */
bool hfi_upkeep_alone(const struct hfi_runner *runner);

/* tidy.c */
void hfi_tidy_begin(struct hfi_runner *runner);
void hfi_tidy_round(struct hfi_runner *runner);
void hfi_tidy_stop(struct hfi_runner *runner);
bool hfi_tidy_idle(const struct hfi_runner *runner); /* no child is left over that somebody freed */
void hfi_tidy_left(struct hfi_runner *runner, const struct hfi_op *op); /* what came back may have left children */
void hfi_tidy_released(struct hfi_runner *runner, uint32_t released_now); /* by the end of an execution */

/* readmit.c: quarantined jobs that can be run now */
void hfi_readmit_begin(struct hfi_runner *runner); /* all of them, from the first on: the types are known, or others */
void hfi_readmit_round(struct hfi_runner *runner);
bool hfi_readmit_idle(const struct hfi_runner *runner);

/* redriver.c */
void hfi_redriver_begin(struct hfi_runner *runner);
void hfi_redriver_round(struct hfi_runner *runner);
void hfi_redriver_stop(struct hfi_runner *runner);
bool hfi_redriver_idle(struct hfi_runner *runner); /* no task is due */

/* renew.c: other types, rules and numbers for a node that runs */
void hfi_renew_look(struct hfi_runner *runner); /* something came back: may it be renewed now, if that is wanted? */
/* The lane's type and site as the book and the sites are now; NULL type: unknown. Between two rounds. */
void hfi_renew_lane(struct hfi_runner *runner, struct hfi_lane *lane, const struct hfi_type *type, struct hfi_lane_site *site);

/* park.c */
int hfi_park_init(struct hfi_runner *runner);
void hfi_park_begin(struct hfi_runner *runner);  /* takes up what the store knows */
void hfi_park_look(struct hfi_runner *runner);   /* before a round: what each site admits now */
void hfi_park_read(struct hfi_site *site);       /* its row, again */
void hfi_park_reread(struct hfi_runner *runner); /* somebody wrote to the store's downstreams */
int32_t hfi_park_state(const struct hfi_lane *lane); /* its breaker's, as of the last look, + 1; 0: it has none */
int64_t hfi_park_ready_at_us(const struct hfi_runner *runner); /* the earliest site that keeps due lanes back; INT64_MAX */
struct hfi_site *hfi_park_site(struct hfi_runner *runner, const char *key);
/* Takes over the reference to the downstream, whatever comes of it. NULL: no memory. */
struct hfi_site *hfi_park_add(struct hfi_runner *runner, const char *key, struct hf_downstream *downstream);
void hfi_park_watch(struct hfi_site *site); /* from now on it hears of its breaker; and reads its row */
bool hfi_park_parks(const struct hfi_lane *lane);               /* is it kept back while its breaker is open? */
bool hfi_park_keeps(const struct hfi_lane *lane); /* as of the last look: its due jobs count as parked */
int64_t hfi_park_unhealthy_since(const struct hfi_lane *lane);  /* wall, µs; 0 = healthy */
void hfi_park_end(struct hfi_runner *runner);
void hfi_park_free(struct hfi_runner *runner);
/* The caller's downstreams are others now: takes up what is new and what has changed. */
void hfi_park_reload(struct hfi_runner *runner);
/* What the policy of the lane's downstream, as it is now, says about its jobs. */
void hfi_park_rules(const struct hfi_lane *lane, struct hfi_rules *rules);

/* park_hosts.c: hosts of per_host downstreams */
int hfi_park_host(struct hfi_runner *runner, struct hfi_lane *lane, const char *breaker_key); /* of a new lane. HF_ENOMEM */
void hfi_park_settle(struct hfi_runner *runner, struct hfi_lane *lane); /* a due lane of a host: under its own site */

/* adopt.c */
/* Takes over a row; `phase`: what it says about the break too. `untold`: this node's breaker has news that are not in it. */
void hfi_adopt(struct hfi_site *site, const struct hfi_downstream_state *row, bool phase, bool untold);
void hfi_adopt_late(struct hfi_site *site); /* the row's break, once ours is over */
int64_t hfi_adopt_wall(const struct hfi_runner *runner, int64_t mono_us);

/* share.c */
/* What of the allowance this node may use; remembers what to ask for. */
uint32_t hfi_share_limit(struct hfi_site *site, const struct hfi_breaker_look *look, uint32_t allowance);
int64_t hfi_share_ready_at_us(const struct hfi_site *site); /* monotonic: when to ask again; 0 it is not that, or asked */
void hfi_share_round(struct hfi_runner *runner); /* after a round was admitted: asks for what is missing, gives back */
void hfi_share_forget(struct hfi_runner *runner); /* under a new node id */
void hfi_share_stop(struct hfi_runner *runner);

/* measurer.c */
void hfi_measurer_round(struct hfi_runner *runner);
void hfi_measurer_last(struct hfi_runner *runner); /* all jobs are stored: what is not yet told of their attempts */

/* probe.c */
bool hfi_probe_asks(const struct hfi_site *site, enum hf_breaker_state state); /* are requests its probes, not jobs? */
void hfi_probe_look(struct hfi_runner *runner); /* after a round was admitted: asks where due jobs wait for an answer */
void hfi_probe_stop(struct hfi_runner *runner);

/* drain.c */
void hfi_drain_begin(struct hfi_runner *runner);
void hfi_drain_step(struct hfi_runner *runner);  /* its time is up: the next step */
void hfi_drain_check(struct hfi_runner *runner); /* something ended: is all of it over? */
void hfi_drain_idle(struct hfi_runner *runner);  /* nothing was found to claim: end if `until_idle` */

#endif
