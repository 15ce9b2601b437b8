/* SPDX-License-Identifier: MIT */
/*
 * The simulated downstream. Each request draws what becomes of it when it arrives, waits for a place, is worked on, and is
 * answered if anybody still listens. Must obey the transport port to the letter: `done` never inside start, once, never
 * after a cancel. On the scheduler's thread.
 */
#include "sim/server.h"

#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "sim/draw.h"

/* Results of libcurl, by number: this folder knows no libcurl. */
#define CODE_COULDNT_CONNECT 7
#define CODE_GOT_NOTHING 52
#define CODE_RECV_ERROR 56
#define KEPT_MAX 4096 /* free requests that are kept for the next ones */

/*
 * CONNECTING: on its way, or never through. WAITING: in the queue. WORKED: has a place. GONE: not at the server, its answer
 * is under way. Nobody listens once `done` is NULL.
 */
enum place { CONNECTING, WAITING, WORKED, GONE };

struct hfi_attempt {
    struct hfi_server *server;
    TAILQ_ENTRY(hfi_attempt) entry; /* of the queue, of those in work, or of the free ones */
    struct hfi_timer timer;
    enum place place;
    int failing; /* enum hf_failing; -1: none */
    const struct hf_script_phase *phase;
    struct hf_mono started, worked;
    int64_t connect_us;
    hfi_attempt_fn done;
    void *user;
};
TAILQ_HEAD(attempts, hfi_attempt);

struct hfi_server {
    struct hfi_transport transport; /* first: the port */
    struct hfi_scheduler *scheduler;
    const struct hf_scenario *scenario;
    struct hfi_server_ear ear;
    struct hfi_server_counts counts;
    struct hfi_random random;
    struct hf_mono began;
    struct hf_mono down_until;   /* after a collapse */
    struct hfi_timer phase_timer, collapse_timer;
    struct hfi_delay *delays;    /* of the phases */
    struct attempts queue, work, others, kept;
    size_t kept_count;
};

static int64_t now_us(const struct hfi_server *server) {
    return hfi_now(server->scheduler).us - server->began.us;
}

static uint32_t places(const struct hfi_server *server) {
    const struct hf_script_phase *phase = &server->scenario->phases[hfi_phase_in_force(server->scenario, now_us(server))];
    return phase->capacity > 0 ? phase->capacity : server->scenario->capacity;
}

static struct attempts *list_of(struct hfi_server *server, enum place place) {
    return place == WAITING ? &server->queue : place == WORKED ? &server->work : &server->others;
}

static void move(struct hfi_attempt *attempt, enum place to) {
    struct hfi_server *server = attempt->server;
    struct hfi_server_counts *counts = &server->counts;
    TAILQ_REMOVE(list_of(server, attempt->place), attempt, entry);
    counts->waiting -= attempt->place == WAITING;
    counts->in_work -= attempt->place == WORKED;
    attempt->place = to;
    TAILQ_INSERT_TAIL(list_of(server, to), attempt, entry);
    counts->waiting += to == WAITING;
    counts->in_work += to == WORKED;
    if (counts->waiting > counts->peak_waiting)
        counts->peak_waiting = counts->waiting;
    if (counts->waiting + counts->in_work > counts->peak_in_flight)
        counts->peak_in_flight = counts->waiting + counts->in_work;
}

static void drop(struct hfi_attempt *attempt) {
    struct hfi_server *server = attempt->server;
    server->scheduler->ops->disarm(server->scheduler, &attempt->timer);
    move(attempt, GONE);
    TAILQ_REMOVE(&server->others, attempt, entry);
    if (server->kept_count == KEPT_MAX) {
        hfi_free(attempt);
        return;
    }
    TAILQ_INSERT_HEAD(&server->kept, attempt, entry);
    server->kept_count++;
}

/* Moving an armed timer needs no memory, and a request's timer is armed from its start on: at forever when it waits. */
static void wake_at(struct hfi_attempt *attempt, int64_t at_us) {
    attempt->server->scheduler->ops->arm(attempt->server->scheduler, &attempt->timer, (struct hf_mono){at_us});
}

static int64_t work_of(struct hfi_server *server, const struct hfi_attempt *attempt) {
    size_t phase = hfi_phase_in_force(server->scenario, now_us(server)); /* of now, not of its arrival */
    double us = (double)hfi_delay_draw(&server->delays[phase], &server->random);
    us *= hfi_phase_growth(server->scenario, phase, now_us(server));
    if (attempt->failing == HF_FAILING_HANG || attempt->failing == HF_FAILING_DRIP)
        return us < (double)attempt->phase->hang_us ? attempt->phase->hang_us : (int64_t)us;
    return us < (double)HFI_DELAY_MAX_US ? (int64_t)us : HFI_DELAY_MAX_US;
}

static void work_on(struct hfi_attempt *attempt) {
    struct hfi_server *server = attempt->server;
    int64_t connected = hfi_add(attempt->started.us, attempt->connect_us);
    move(attempt, WORKED);
    attempt->worked = hfi_now(server->scheduler);
    if (attempt->worked.us < connected)
        attempt->worked.us = connected;
    wake_at(attempt, hfi_add(attempt->worked.us, work_of(server, attempt)));
}

static void fill_places(struct hfi_server *server) {
    uint32_t limit = places(server);
    while (!TAILQ_EMPTY(&server->queue) && (limit == 0 || server->counts.in_work < limit))
        work_on(TAILQ_FIRST(&server->queue));
}

/* ------------------------------------------------------------------ the end of a request */

static void tell(struct hfi_attempt *attempt, struct hfi_attempt_facts *facts, bool well) {
    struct hfi_server *server = attempt->server;
    hfi_attempt_fn done = attempt->done;
    void *user = attempt->user;
    int64_t took_us = hfi_now(server->scheduler).us - attempt->started.us;
    facts->now = hfi_now(server->scheduler);
    facts->phases = (struct hfi_phases){-1, -1, -1, -1, took_us};
    if (facts->sent != HF_SENT_NO)
        facts->phases.connect_us = attempt->connect_us;
    if (facts->status > 0)
        facts->phases.first_byte_us = took_us;
    drop(attempt);
    server->ear.ended(well ? HFI_SERVED_WELL : HFI_SERVED_FAILED, took_us, server->ear.user);
    done(facts, user);
}

static void tell_status(struct hfi_attempt *attempt, int status, int64_t retry_after_s) {
    struct hfi_attempt_facts facts = {.status = status, .stage = HF_STAGE_RECEIVE, .sent = HF_SENT_YES};
    char wait[24];
    if (retry_after_s >= 0) {
        snprintf(wait, sizeof wait, "%lld", (long long)retry_after_s);
        facts.retry_after = wait;
    }
    tell(attempt, &facts, status < 400);
}

static void tell_code(struct hfi_attempt *attempt, int code) {
    bool sent = code != CODE_COULDNT_CONNECT;
    struct hfi_attempt_facts facts = {.native = code, .stage = sent ? HF_STAGE_WAIT : HF_STAGE_CONNECT,
                                      .sent = sent ? HF_SENT_YES : HF_SENT_NO};
    tell(attempt, &facts, false);
}

static void answer(struct hfi_attempt *attempt) {
    switch (attempt->failing) {
    case HF_FAILING_STATUS:
        tell_status(attempt, attempt->phase->status, attempt->phase->retry_after_s);
        return;
    case HF_FAILING_RESET:
        tell_code(attempt, CODE_RECV_ERROR);
        return;
    case HF_FAILING_REFUSED:
        tell_code(attempt, CODE_COULDNT_CONNECT);
        return;
    case HF_FAILING_HANG:
        tell_code(attempt, CODE_GOT_NOTHING);
        return;
    default:
        tell_status(attempt, 200, -1);
    }
}

/* Its work is done, or what needed none is told. */
static void fired(struct hfi_timer *timer, void *user) {
    struct hfi_attempt *attempt = user;
    struct hfi_server *server = attempt->server;
    bool worked = attempt->place == WORKED;
    (void)timer;
    if (worked) {
        server->counts.busy_us += (uint64_t)(hfi_now(server->scheduler).us - attempt->worked.us);
        move(attempt, GONE);
        fill_places(server);
    }
    if (attempt->done != NULL) {
        answer(attempt);
        return;
    }
    server->counts.wasted += worked;
    drop(attempt);
}

/* ------------------------------------------------------------------ its beginning */

static void collapse(struct hfi_timer *timer, void *user) {
    struct hfi_server *server = user;
    struct attempts *lists[] = {&server->work, &server->queue};
    (void)timer;
    server->counts.collapses++;
    server->down_until = hfi_mono_after_ms(hfi_now(server->scheduler), server->scenario->collapse_for_ms);
    for (int i = 0; i < 2; i++)
        while (!TAILQ_EMPTY(lists[i])) {
            struct hfi_attempt *attempt = TAILQ_FIRST(lists[i]);
            move(attempt, GONE); /* told in their own turns: what they set off finds it down */
            attempt->failing = HF_FAILING_RESET;
            wake_at(attempt, hfi_now(server->scheduler).us);
        }
}

static int draw_failing(struct hfi_server *server, const struct hf_script_phase *phase) {
    double at = hfi_draw_share(&server->random);
    for (int i = 0; i < HF_FAILINGS; i++) {
        if (at < phase->share[i])
            return i;
        at -= phase->share[i];
    }
    return -1;
}

/* Finds a place for a request that has come through. */
static void arrive(struct hfi_attempt *attempt) {
    struct hfi_server *server = attempt->server;
    const struct hf_scenario *scenario = server->scenario;
    uint32_t limit = places(server), inside = server->counts.in_work + server->counts.waiting;
    if (scenario->collapse_above > 0 && inside >= scenario->collapse_above && !hfi_timer_armed(&server->collapse_timer))
        server->scheduler->ops->arm(server->scheduler, &server->collapse_timer, hfi_now(server->scheduler));
    if (limit == 0 || server->counts.in_work < limit) {
        work_on(attempt);
    } else if (server->counts.waiting < scenario->queue) {
        move(attempt, WAITING);
    } else {
        server->counts.turned_away++;
        attempt->failing = HF_FAILING_STATUS;
        wake_at(attempt, attempt->started.us + attempt->connect_us);
    }
}

static struct hfi_attempt *take(struct hfi_server *server) {
    struct hfi_attempt *attempt = TAILQ_FIRST(&server->kept);
    if (attempt == NULL)
        return hfi_alloc(sizeof *attempt);
    TAILQ_REMOVE(&server->kept, attempt, entry);
    server->kept_count--;
    return attempt;
}

static int start(struct hfi_transport *self, const struct hfi_attempt_spec *spec, hfi_attempt_fn done, void *user,
                 struct hfi_attempt **out) {
    struct hfi_server *server = (struct hfi_server *)(void *)self;
    struct hfi_attempt *attempt = take(server);
    (void)spec;
    if (attempt == NULL)
        return HF_ENOMEM;
    struct hf_mono now = hfi_now(server->scheduler);
    const struct hf_script_phase *phase = &server->scenario->phases[hfi_phase_in_force(server->scenario, now_us(server))];
    *attempt = (struct hfi_attempt){.server = server, .place = CONNECTING, .phase = phase, .started = now,
                                    .connect_us = phase->connect_us, .done = done, .user = user};
    TAILQ_INSERT_TAIL(&server->others, attempt, entry);
    hfi_timer_init(&attempt->timer, fired, attempt);
    if (server->scheduler->ops->arm(server->scheduler, &attempt->timer, (struct hf_mono){HFI_FOREVER_US}) != 0) {
        drop(attempt);
        return HF_ENOMEM;
    }
    server->ear.began(server->ear.user);
    attempt->failing = now.us < server->down_until.us ? HF_FAILING_REFUSED : draw_failing(server, phase);
    if (attempt->failing == HF_FAILING_UNREACHABLE)
        attempt->connect_us = HFI_FOREVER_US;
    else if (attempt->failing == HF_FAILING_REFUSED)
        wake_at(attempt, now.us + attempt->connect_us);
    else
        arrive(attempt);
    *out = attempt;
    return 0;
}

/* ------------------------------------------------------------------ the rest of the port */

static bool connected(const struct hfi_attempt *attempt) {
    return attempt->failing != HF_FAILING_REFUSED && attempt->connect_us != HFI_FOREVER_US &&
           hfi_now(attempt->server->scheduler).us - attempt->started.us >= attempt->connect_us;
}

static enum hf_stage stage(struct hfi_transport *self, struct hfi_attempt *attempt) {
    (void)self;
    return !connected(attempt)                       ? HF_STAGE_CONNECT
           : attempt->failing == HF_FAILING_DRIP     ? HF_STAGE_RECEIVE
                                                     : HF_STAGE_WAIT;
}

static uint32_t hops(struct hfi_transport *self, struct hfi_attempt *attempt) {
    (void)self;
    (void)attempt;
    return 0;
}

static enum hf_sent cancel(struct hfi_transport *self, struct hfi_attempt *attempt, enum hf_stage *reached,
                           struct hfi_phases *phases) {
    struct hfi_server *server = attempt->server;
    int64_t took_us = hfi_now(server->scheduler).us - attempt->started.us;
    bool through = connected(attempt);
    *reached = stage(self, attempt);
    *phases = (struct hfi_phases){-1, through ? attempt->connect_us : -1, -1, -1, took_us};
    server->ear.ended(HFI_SERVED_ABANDONED, took_us, server->ear.user);
    attempt->done = NULL;
    if (attempt->place != WAITING && attempt->place != WORKED)
        drop(attempt);
    return through ? HF_SENT_YES : HF_SENT_NO;
}

static void free_all(struct attempts *list) {
    struct hfi_attempt *attempt;
    while ((attempt = TAILQ_FIRST(list)) != NULL) {
        TAILQ_REMOVE(list, attempt, entry);
        hfi_free(attempt);
    }
}

static void close_server(struct hfi_transport *self) {
    struct hfi_server *server = (struct hfi_server *)(void *)self;
    struct attempts *lists[] = {&server->work, &server->queue, &server->others};
    struct hfi_attempt *attempt;
    for (int i = 0; i < 3; i++)
        while ((attempt = TAILQ_FIRST(lists[i])) != NULL)
            drop(attempt);
    server->scheduler->ops->disarm(server->scheduler, &server->phase_timer);
    server->scheduler->ops->disarm(server->scheduler, &server->collapse_timer);
    free_all(&server->kept);
    for (size_t i = 0; server->delays != NULL && i < server->scenario->phase_count; i++)
        hfi_delay_end(&server->delays[i]);
    hfi_free(server->delays);
    hfi_free(server);
}

/* Places may have come with another phase. */
static void phase_changed(struct hfi_timer *timer, void *user) {
    struct hfi_server *server = user;
    const struct hf_scenario *scenario = server->scenario;
    size_t at = hfi_phase_at(scenario, now_us(server));
    const struct hf_script_phase *phase = &scenario->phases[at];
    int64_t next = at + 1 < scenario->phase_count ? hfi_ms_to_us(phase[1].at_ms) : HFI_FOREVER_US;
    if (phase->flap_ms > 0) {
        int64_t from = hfi_ms_to_us(phase->at_ms), flap = hfi_ms_to_us(phase->flap_ms);
        int64_t turn = from + ((now_us(server) - from) / flap + 1) * flap;
        next = turn < next ? turn : next;
    }
    if (next != HFI_FOREVER_US)
        server->scheduler->ops->arm(server->scheduler, timer, (struct hf_mono){server->began.us + next});
    fill_places(server);
}

static const struct hfi_transport_ops ops = {.version = HFI_TRANSPORT_VERSION, .start = start, .cancel = cancel, .stage = stage,
                                             .hops = hops, .close = close_server};

int hfi_server_new(const struct hf_scenario *scenario, struct hfi_scheduler *scheduler, const struct hfi_server_ear *ear,
                   struct hfi_server **out) {
    struct hfi_server *server = hfi_alloc(sizeof *server);
    if (server == NULL)
        return HF_ENOMEM;
    server->transport.ops = &ops;
    server->scheduler = scheduler;
    server->scenario = scenario;
    server->ear = *ear;
    server->began = hfi_now(scheduler);
    TAILQ_INIT(&server->queue);
    TAILQ_INIT(&server->work);
    TAILQ_INIT(&server->others);
    TAILQ_INIT(&server->kept);
    hfi_random_seed(&server->random, scenario->seed);
    hfi_timer_init(&server->phase_timer, phase_changed, server);
    hfi_timer_init(&server->collapse_timer, collapse, server);
    int code = HF_ENOMEM;
    server->delays = hfi_alloc_array(scenario->phase_count, sizeof *server->delays);
    if (server->delays != NULL)
        code = scheduler->ops->arm(scheduler, &server->phase_timer, server->began);
    for (size_t i = 0; i < scenario->phase_count && code == 0; i++)
        code = hfi_delay_init(&server->delays[i], &scenario->phases[i].latency);
    if (code != 0)
        close_server(&server->transport);
    else
        *out = server;
    return code;
}

struct hfi_transport *hfi_server_transport(struct hfi_server *server) {
    return &server->transport;
}

struct hfi_server_counts *hfi_server_counts(struct hfi_server *server) {
    return &server->counts;
}

size_t hfi_server_phase(const struct hfi_server *server) {
    return hfi_phase_at(server->scenario, now_us(server));
}
