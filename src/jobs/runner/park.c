/* SPDX-License-Identifier: MIT */
/*
 * Downstreams as the runner's claims see them: how many jobs each admits now, and what the store is told and tells about
 * them. Lanes of a downstream that admits nobody stay parked: not claimed, nothing counted; its probes and its ramp are
 * simply what it admits. Must never let a claim take more than the breaker would. Loop thread, but for the observer.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "jobs/runner/runner_state.h"

#define GIVE_UP_PAGE 16
#define GIVE_UP_EVERY_US 1000000

static struct hfi_site *site_of(const struct hfi_lane *lane) {
    return (struct hfi_site *)(void *)lane->site;
}

bool hfi_park_parks(const struct hfi_lane *lane) {
    return lane->site != NULL && site_of(lane)->parks;
}

int32_t hfi_park_state(const struct hfi_lane *lane) {
    return lane->site != NULL ? (int32_t)site_of(lane)->state + 1 : 0;
}

bool hfi_park_keeps(const struct hfi_lane *lane) {
    return lane->site != NULL && site_of(lane)->keeps;
}

int64_t hfi_park_unhealthy_since(const struct hfi_lane *lane) {
    return lane->site == NULL ? 0 : site_of(lane)->unhealthy_since_us;
}

struct hfi_site *hfi_park_site(struct hfi_runner *runner, const char *key) {
    for (size_t i = 0; i < runner->site_count; i++) {
        if (strcmp(runner->sites[i]->key, key) == 0)
            return runner->sites[i];
    }
    return NULL;
}

/* ------------------------------------------------------------------ what it admits */

static uint32_t less(uint32_t a, uint32_t b) {
    return a > b ? a - b : 0;
}

static bool gives_up(const struct hfi_site *site, int64_t wall_us) {
    int64_t after = hfi_ms_to_us(hfi_downstream_policy(site->downstream)->options.give_up_after_ms);
    return after > 0 && site->unhealthy_since_us != 0 && hfi_sub(wall_us, site->unhealthy_since_us) >= after;
}

static void look_at(struct hfi_runner *runner, struct hfi_site *site, struct hf_mono now) {
    struct hfi_lane_site *slots = &site->slots;
    int64_t retry_after_ms = 0;
    hfi_adopt_late(site);
    uint32_t allowance = hfi_downstream_allowance(site->downstream, now, &retry_after_ms);
    uint32_t room = less(site->downstream->bulkhead.max, slots->used);
    struct hfi_breaker_look look;
    hfi_breaker_look(&site->downstream->breaker, now, &look);
    site->state = look.state;
    if (site->parent != NULL && site->parent->state == HF_BREAKER_ISOLATED) {
        site->state = look.state = HF_BREAKER_ISOLATED; /* all of its hosts are */
        allowance = hfi_downstream_allowance(site->parent->downstream, now, &retry_after_ms);
    }
    allowance = hfi_share_limit(site, &look, allowance);
    site->ready_at_us = 0;
    slots->probing = site->parks && look.probe_ready;
    site->keeps = site->parks && (look.state != HF_BREAKER_CLOSED || look.gate_us > now.us);
    slots->sound = look.state == HF_BREAKER_CLOSED && look.gate_us <= now.us && site->share_mode == HFI_SHARED_NOTHING;
    if (!site->parks && look.state != HF_BREAKER_RAMP)
        allowance = room; /* an open breaker fails them at once, as asked for [S0.30] */
    site->probe_due = allowance > 0 && hfi_probe_asks(site, look.state);
    if (site->probe_due) {
        slots->free = 0;
        site->ready_at_us = site->probe == NULL && site->probe_at_us > now.us ? site->probe_at_us : 0;
        return;
    }
    if (allowance > 0) {
        allowance = less(allowance, slots->waiting);
        slots->free = allowance < room ? allowance : room;
        return;
    }
    slots->free = 0;
    site->ready_at_us = hfi_add(now.us, hfi_ms_to_us(retry_after_ms < 1 ? 1 : retry_after_ms));
    if (site->share_mode != HFI_SHARED_NOTHING)
        site->ready_at_us = hfi_share_ready_at_us(site);
    if (site->parks && gives_up(site, hfi_runner_wall(runner).us)) {
        /* They are refused at once; the transition lets those die that have waited long enough. */
        if (now.us >= site->give_up_at_us && slots->waiting == 0) {
            slots->free = GIVE_UP_PAGE;
            site->give_up_at_us = hfi_add(now.us, GIVE_UP_EVERY_US);
        }
        if (site->give_up_at_us < site->ready_at_us)
            site->ready_at_us = site->give_up_at_us;
    }
}

void hfi_park_look(struct hfi_runner *runner) {
    struct hf_mono now = hfi_runner_mono(runner);
    for (size_t i = 0; i < runner->site_count; i++)
        look_at(runner, runner->sites[i], now);
}

int64_t hfi_park_ready_at_us(const struct hfi_runner *runner) {
    int64_t at = INT64_MAX;
    for (size_t i = 0; i < runner->site_count; i++) {
        const struct hfi_site *site = runner->sites[i];
        if (site->slots.blocked && site->ready_at_us != 0 && site->ready_at_us < at)
            at = site->ready_at_us;
    }
    return at;
}

/* ------------------------------------------------------------------ what the store is told and tells */

static void next_step(struct hfi_site *site);

static void downstream_done(struct hfi_op *op, void *user) {
    struct hfi_site *site = user;
    struct hfi_runner *runner = site->runner;
    const struct hfi_downstream_state *row = &site->op.state;
    bool wrote = site->op.set == HFI_DOWNSTREAM_PHASE;
    runner->out--;
    site->busy = false;
    if (op->code == 0 || op->code == HF_ESTALE || op->code == HF_ESTATE) {
        hfi_adopt(site, row, !wrote || op->code != 0, wrote || site->phase_pending);
        site->loaded = true;
        site->stored = *row;
        if (wrote && op->code != 0)
            site->phase_pending = true; /* somebody was faster: again, on top of theirs */
        next_step(site);
        hfi_claim_poke(runner);
    } else if (runner->life == HFI_LIFE_RUNNING) {
        hfi_log(HF_LOG_WARNING, "downstream.unwritten", HFI_S("downstream", site->key),
                HFI_S("why", hf_strerror(op->code)), NULL);
        site->phase_pending = site->phase_pending || wrote; /* with the next change or the next read */
    }
    if (runner->life != HFI_LIFE_RUNNING)
        hfi_drain_check(runner);
}

static void submit(struct hfi_site *site, unsigned set) {
    site->op.key = site->key;
    site->op.set = set;
    site->op.now = hfi_runner_wall(site->runner);
    site->busy = true;
    hfi_runner_submit(site->runner, &site->op.op, HFI_OP_DOWNSTREAM, downstream_done, site);
}

/* Does the row say it already? A break and a ramp that were taken over from it do. */
static bool is_told(const struct hfi_site *site, const struct hfi_breaker_look *look) {
    const struct hfi_downstream_state *row = &site->stored;
    int64_t until_us = hfi_adopt_wall(site->runner, look->until_us);
    if ((int32_t)look->state != row->phase)
        return false;
    switch (look->state) {
    case HF_BREAKER_CLOSED:
        return row->unhealthy_since_us == 0;
    case HF_BREAKER_RAMP:
        return row->ramp_from_us != 0;
    case HF_BREAKER_OPEN:
        return until_us <= row->open_until_us + 1000 && look->trips == row->trips && site->unhealthy_since_us == row->unhealthy_since_us;
    default:
        return false;
    }
}

static void write_phase(struct hfi_site *site) {
    struct hfi_runner *runner = site->runner;
    struct hfi_breaker_look look;
    hfi_breaker_look(&site->downstream->breaker, hfi_runner_mono(runner), &look);
    site->phase_pending = false;
    if (is_told(site, &look))
        return;
    struct hfi_downstream_state *state = &site->op.state;
    *state = site->stored;
    state->phase = (int32_t)look.state;
    state->open_until_us = look.state == HF_BREAKER_OPEN ? hfi_adopt_wall(runner, look.until_us) : 0;
    state->gate_until_us = look.gate_us > hfi_runner_mono(runner).us ? hfi_adopt_wall(runner, look.gate_us) : 0;
    state->trips = look.trips;
    state->ramp_from_us = look.state == HF_BREAKER_RAMP ? hfi_adopt_wall(runner, look.ramp_from_us) : 0;
    state->unhealthy_since_us = site->unhealthy_since_us;
    if (!site->forced)
        hfi_text_copy(state->reason, sizeof state->reason, look.reason);
    submit(site, HFI_DOWNSTREAM_PHASE);
}

static void next_step(struct hfi_site *site) {
    enum hfi_life life = site->runner->life;
    if (site->busy || life < HFI_LIFE_RUNNING || life > HFI_LIFE_HURRYING) /* a drain still tells what it saw */
        return;
    if (site->read_pending || !site->loaded) {
        site->read_pending = false;
        memset(&site->op.state, 0, sizeof site->op.state);
        submit(site, HFI_DOWNSTREAM_READ);
    } else if (site->phase_pending) {
        write_phase(site);
    }
}

void hfi_park_read(struct hfi_site *site) {
    site->read_pending = true;
    next_step(site);
}

void hfi_park_reread(struct hfi_runner *runner) {
    for (size_t i = 0; i < runner->site_count; i++)
        hfi_park_read(runner->sites[i]);
}

/* ------------------------------------------------------------------ the observer */

static void changed_here(struct hfi_task *task, void *user) {
    (void)task;
    struct hfi_site *site = user;
    struct hfi_runner *runner = site->runner;
    struct hfi_breaker_look look;
    atomic_store(&site->posted, false);
    hfi_breaker_look(&site->downstream->breaker, hfi_runner_mono(runner), &look);
    if (look.state == HF_BREAKER_CLOSED)
        site->unhealthy_since_us = 0;
    else if (site->unhealthy_since_us == 0)
        site->unhealthy_since_us = hfi_runner_wall(runner).us;
    site->phase_pending = true;
    next_step(site);
    hfi_claim_poke(runner);
}

/* Any thread: the one that moved the breaker. */
static void changed(const struct hfi_breaker_event *event, void *user) {
    (void)event;
    struct hfi_site *site = user;
    if (!atomic_exchange(&site->posted, true))
        site->runner->scheduler->ops->post(site->runner->scheduler, &site->task);
}

void hfi_park_watch(struct hfi_site *site) {
    site->watch = (struct hfi_watch){changed, site};
    atomic_store(&site->downstream->watch, &site->watch);
    next_step(site);
}

struct hfi_site *hfi_park_add(struct hfi_runner *runner, const char *key, struct hf_downstream *downstream) {
    struct hfi_site *site = hfi_alloc(sizeof *site);
    char *text = hfi_strdup(key);
    struct hfi_site **sites = site == NULL || text == NULL
                                  ? NULL
                                  : hfi_realloc(runner->sites, (runner->site_count + 1) * sizeof *sites);
    if (sites == NULL) {
        hfi_free(site);
        hfi_free(text);
        hf_downstream_unref(downstream);
        return NULL;
    }
    site->runner = runner;
    site->key = text;
    site->downstream = downstream;
    site->task.run = changed_here;
    site->task.user = site;
    sites[runner->site_count++] = site;
    runner->sites = sites;
    return site;
}

/* The same name, and another one if it was gone for a while. Takes over the reference. */
static void move_site(struct hfi_site *site, struct hf_downstream *downstream) {
    struct hf_downstream *before = site->downstream;
    site->downstream = downstream;
    if (before != downstream) {
        atomic_store(&before->watch, NULL);
        site->loaded = false;
        if (site->runner->life == HFI_LIFE_RUNNING)
            hfi_park_watch(site);
    }
    hf_downstream_unref(before);
}

static bool parks(const struct hfi_site *site) {
    return hfi_downstream_policy(site->downstream)->options.on_open == HF_ON_OPEN_PARK;
}

static int set_site(struct hfi_site *site, const struct hfi_listed *listed) {
    char *path = listed->probe_path == NULL ? NULL : hfi_strdup(listed->probe_path);
    if (path == NULL && listed->probe_path != NULL)
        return HF_ENOMEM;
    hfi_free(site->probe_path);
    site->probe_path = path;
    site->parks = parks(site);
    return 0;
}

/* A site for every downstream of the caller that has none, and the settings of all. Goes on after a failure. */
static int take_list(struct hfi_runner *runner) {
    struct hfi_listed *list;
    size_t count = 0;
    int code = hfi_caller_list(runner->parts.caller, &list, &count);
    if (code != 0)
        return code;
    for (size_t i = 0; i < count; i++) {
        struct hfi_site *site = hfi_park_site(runner, hf_downstream_name(list[i].downstream));
        if (site == NULL)
            site = hfi_park_add(runner, hf_downstream_name(list[i].downstream), list[i].downstream);
        else
            move_site(site, list[i].downstream);
        int failed = site == NULL ? HF_ENOMEM : set_site(site, &list[i]);
        code = failed != 0 ? failed : code;
    }
    hfi_free(list);
    for (size_t i = 0; i < runner->site_count; i++)
        runner->sites[i]->parks = parks(runner->sites[i]); /* also of hosts, which are in no list */
    return code;
}

int hfi_park_init(struct hfi_runner *runner) {
    return runner->parts.caller == NULL ? 0 : take_list(runner);
}

void hfi_park_begin(struct hfi_runner *runner) {
    for (size_t i = 0; i < runner->site_count; i++)
        hfi_park_watch(runner->sites[i]);
}

void hfi_park_reload(struct hfi_runner *runner) {
    size_t known = runner->site_count;
    int code = runner->parts.caller == NULL ? 0 : take_list(runner);
    if (code != 0)
        hfi_log(HF_LOG_ERROR, "runner.no_memory", HFI_S("for", "a reloaded downstream"), NULL);
    for (size_t i = known; i < runner->site_count && runner->life == HFI_LIFE_RUNNING; i++)
        hfi_park_watch(runner->sites[i]);
}

void hfi_park_rules(const struct hfi_lane *lane, struct hfi_rules *rules) {
    if (lane == NULL || lane->site == NULL)
        return;
    const struct hf_policy_options *options = &hfi_downstream_policy(site_of(lane)->downstream)->options;
    rules->retry_after_cap_ms = options->retry_after_cap_ms;
    rules->give_up_after_ms = options->give_up_after_ms;
}

void hfi_park_end(struct hfi_runner *runner) {
    for (size_t i = 0; i < runner->site_count; i++)
        atomic_store(&runner->sites[i]->downstream->watch, NULL);
}

void hfi_park_free(struct hfi_runner *runner) {
    for (size_t i = 0; i < runner->site_count; i++) {
        hf_downstream_unref(runner->sites[i]->downstream);
        hfi_free(runner->sites[i]->probe_path);
        hfi_free(runner->sites[i]->key);
        hfi_free(runner->sites[i]);
    }
    hfi_free(runner->sites);
}
