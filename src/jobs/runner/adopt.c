/* SPDX-License-Identifier: MIT */
/*
 * What other nodes and people wrote about a downstream, taken over by this node's breaker: an isolation, a break, its end,
 * a ramp. Must never make a break longer than the policy allows, whatever the clocks say, nor take a break back that this
 * node has yet to tell of. Loop thread.
 */
#include <string.h>

#include "base/text.h"
#include "jobs/runner/runner_state.h"
#include "resilience/policy.h"

int64_t hfi_adopt_wall(const struct hfi_runner *runner, int64_t mono_us) {
    if (mono_us == 0 || mono_us == HFI_FOREVER_US)
        return 0;
    return hfi_add(hfi_runner_wall(runner).us, hfi_sub(mono_us, hfi_runner_mono(runner).us));
}

static int64_t to_mono(const struct hfi_runner *runner, int64_t wall_us) {
    return hfi_add(hfi_runner_mono(runner).us, hfi_sub(wall_us, hfi_runner_wall(runner).us));
}

static void take_forced(struct hfi_site *site, const struct hfi_downstream_state *row) {
    struct hfi_runner *runner = site->runner;
    struct hf_mono now = hfi_runner_mono(runner);
    int64_t wall = hfi_runner_wall(runner).us;
    bool forced = row->forced != 0 && (row->forced_until_us == 0 || row->forced_until_us > wall);
    bool same = site->forced && row->forced_until_us == site->stored.forced_until_us &&
                strcmp(row->reason, site->stored.reason) == 0;
    if (forced && !same) {
        int64_t for_ms = row->forced_until_us == 0 ? 0 : hfi_us_to_ms_up(row->forced_until_us - wall);
        hfi_breaker_isolate(&site->downstream->breaker, now, for_ms, row->reason);
    } else if (!forced && site->forced) {
        hfi_breaker_close(&site->downstream->breaker, now);
    }
    site->forced = forced;
}

/* Another node's break, or the one of our last life: it goes on here, its end rebased (B27). */
static void take_break(struct hfi_site *site, const struct hfi_downstream_state *row) {
    struct hfi_breaker_saved saved = {.state = HF_BREAKER_OPEN, .trips = row->trips};
    struct hf_mono now = hfi_runner_mono(site->runner);
    int64_t until = to_mono(site->runner, row->open_until_us);
    int64_t longest = hfi_mono_after_ms(now, hfi_downstream_policy(site->downstream)->options.breaker_max_break_ms).us;
    saved.until_us = until < now.us ? now.us : until > longest ? longest : until; /* no wall clock makes it longer */
    hfi_text_copy(saved.reason, sizeof saved.reason, row->reason[0] == '\0' ? "stored" : row->reason);
    hfi_breaker_restore(&site->downstream->breaker, now, &saved);
}

static bool still_open(const struct hfi_site *site, const struct hfi_downstream_state *row) {
    return row->phase == HF_BREAKER_OPEN && row->open_until_us > hfi_runner_wall(site->runner).us;
}

/* Another node's probes have failed: ours need not, when our own break, which nothing moves (B10), is over. */
static void take_running_break(struct hfi_site *site, const struct hfi_downstream_state *row) {
    struct hfi_breaker *breaker = &site->downstream->breaker;
    struct hf_mono now = hfi_runner_mono(site->runner);
    struct hfi_breaker_look look;
    hfi_breaker_tick(breaker, now);
    hfi_breaker_look(breaker, now, &look);
    if (look.state == HF_BREAKER_ISOLATED || look.probes_in_flight > 0)
        return;
    take_break(site, row); /* while open it takes over the trips alone */
    site->break_waits = look.state == HF_BREAKER_OPEN;
}

void hfi_adopt_late(struct hfi_site *site) {
    struct hfi_breaker_look look;
    if (!site->break_waits)
        return;
    hfi_breaker_look(&site->downstream->breaker, hfi_runner_mono(site->runner), &look);
    if (look.state == HF_BREAKER_OPEN && !look.probe_ready)
        return;
    site->break_waits = false; /* once: a wall clock that steps back must not make it last */
    if (look.probe_ready && still_open(site, &site->stored))
        take_running_break(site, &site->stored);
}

static void take_phase(struct hfi_site *site, const struct hfi_downstream_state *row, bool untold) {
    struct hfi_runner *runner = site->runner;
    struct hfi_breaker *breaker = &site->downstream->breaker;
    struct hf_mono now = hfi_runner_mono(runner);
    struct hfi_breaker_look look;
    hfi_breaker_look(breaker, now, &look);
    site->break_waits = false;
    bool broken = row->phase == HF_BREAKER_OPEN || row->phase == HF_BREAKER_HALF_OPEN || row->phase == HF_BREAKER_RAMP;
    bool unwell = look.state == HF_BREAKER_OPEN || look.state == HF_BREAKER_HALF_OPEN;
    if (!site->loaded) {
        if (row->version != 0 && broken && look.state == HF_BREAKER_CLOSED)
            take_break(site, row); /* over already: then it begins with probes, not with everything */
        if (row->unhealthy_since_us != 0 && broken)
            site->unhealthy_since_us = row->unhealthy_since_us;
    } else if (still_open(site, row)) {
        take_running_break(site, row);
    } else if (row->phase == HF_BREAKER_RAMP && row->ramp_from_us != 0 && unwell && !untold) {
        int64_t from = to_mono(runner, row->ramp_from_us);
        hfi_breaker_ramp(breaker, now, (struct hf_mono){from < now.us ? from : now.us});
    } else if (row->phase == HF_BREAKER_CLOSED && unwell) {
        hfi_breaker_close(breaker, now); /* by hand, or another node found it well */
    }
    if (row->gate_until_us > hfi_runner_wall(runner).us) {
        int64_t cap = hfi_mono_after_ms(now, hfi_downstream_policy(site->downstream)->options.gate_cap_ms).us;
        int64_t gate = to_mono(runner, row->gate_until_us);
        hfi_breaker_gate(breaker, (struct hf_mono){gate < cap ? gate : cap});
    }
}

void hfi_adopt(struct hfi_site *site, const struct hfi_downstream_state *row, bool phase, bool untold) {
    take_forced(site, row);
    if (phase)
        take_phase(site, row, untold);
}
