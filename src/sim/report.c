/* SPDX-License-Identifier: MIT */
/*
 * Counts what happens in a simulation, second by second and in all. Must never change what it counts. Pure: times are
 * handed in.
 */
#include "sim/report.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

#define SECOND INT64_C(1000000)

int hfi_report_new(const struct hf_scenario *scenario, struct hf_simulation **out) {
    struct hf_simulation *report = hfi_alloc(sizeof *report);
    if (report == NULL)
        return HF_ENOMEM;
    report->second_room = (size_t)((scenario->duration_ms + 999) / 1000);
    report->seconds = hfi_alloc_array(report->second_room, sizeof *report->seconds);
    report->comes_due = hfi_alloc_array(report->second_room + 1, sizeof *report->comes_due);
    if (report->seconds == NULL || report->comes_due == NULL) {
        hf_simulation_free(report);
        return HF_ENOMEM;
    }
    report->drained_us = -1;
    report->summary.size = (uint32_t)sizeof report->summary;
    report->summary.duration_ms = scenario->duration_ms;
    hfi_phase_outages(scenario, &report->summary.outage_from_ms, &report->summary.outage_until_ms);
    *out = report;
    return 0;
}

void hf_simulation_free(struct hf_simulation *report) {
    if (report == NULL)
        return;
    hfi_free(report->seconds);
    hfi_free(report->comes_due);
    hfi_free(report->changes);
    hfi_free(report);
}

void hfi_report_call_began(struct hf_simulation *report) {
    report->now.calls++;
    report->summary.calls++;
}

void hfi_report_never_made(struct hf_simulation *report) {
    report->summary.never_made++;
}

void hfi_report_call_ended(struct hf_simulation *report, const struct hf_outcome *outcome, int64_t took_us) {
    struct hf_simulation_summary *all = &report->summary;
    struct hf_simulation_second *now = &report->now;
    if (report->closed)
        return;
    bool ok = outcome->kind == HF_OUTCOME_SUCCESS, rejected = outcome->kind == HF_OUTCOME_REJECTED && outcome->attempts == 0;
    now->retries += outcome->retries;
    all->retries += outcome->retries;
    now->succeeded += ok;
    all->succeeded += ok;
    now->rejected += rejected;
    all->rejected += rejected;
    now->failed += !ok && !rejected;
    all->failed += !ok && !rejected;
    hfi_histogram_add_alone(&report->calls, took_us);
    if (ok)
        hfi_histogram_add_alone(&report->ok, took_us);
    if (took_us > all->longest_us)
        all->longest_us = took_us;
    if (rejected)
        return;
    hfi_histogram_add_alone(&report->calls_now, took_us);
    if (took_us > now->longest_us)
        now->longest_us = took_us;
}

void hfi_report_attempt_began(struct hf_simulation *report) {
    report->now.attempts++;
    report->summary.attempts += !report->closed;
}

void hfi_report_attempt_ended(struct hf_simulation *report, enum hfi_served how, int64_t took_us) {
    struct hf_simulation_summary *all = &report->summary;
    struct hf_simulation_second *now = &report->now;
    if (report->closed)
        return;
    now->attempts_succeeded += how == HFI_SERVED_WELL;
    all->attempts_succeeded += how == HFI_SERVED_WELL;
    now->attempts_failed += how == HFI_SERVED_FAILED;
    all->attempts_failed += how == HFI_SERVED_FAILED;
    now->attempts_abandoned += how == HFI_SERVED_ABANDONED;
    all->attempts_abandoned += how == HFI_SERVED_ABANDONED;
    if (how != HFI_SERVED_ABANDONED)
        hfi_histogram_add_alone(&report->attempts_now, took_us);
}

void hfi_report_job_put(struct hf_simulation *report) {
    report->summary.jobs++;
    report->summary.jobs_open++;
}

void hfi_report_job_moved(struct hf_simulation *report, const struct hf_transition_view *view, int64_t at_us) {
    struct hf_simulation_summary *all = &report->summary;
    if (report->closed)
        return;
    bool ran = strcmp(view->event, "quarantined") != 0;
    report->now.executions += ran;
    all->executions += ran;
    if (view->terminal) {
        bool well = view->state == HF_JOB_SUCCEEDED;
        report->now.jobs_succeeded += well;
        all->jobs_succeeded += well;
        report->now.deaths += !well;
        all->jobs_open -= all->jobs_open > 0;
        return;
    }
    int64_t wait_us = view->run_at_us - view->at_us;
    all->long_retries += strcmp(view->event, "failed") == 0;
    if (view->run_at_us <= view->at_us)
        return;
    report->scheduled++;
    size_t second = (size_t)(hfi_add(at_us, wait_us) / SECOND);
    report->comes_due[second < report->second_room ? second : report->second_room]++;
}

/* ------------------------------------------------------------------ the breaker */

static bool is_open(enum hf_breaker_state state) {
    return state == HF_BREAKER_OPEN || state == HF_BREAKER_HALF_OPEN || state == HF_BREAKER_ISOLATED;
}

/* Adds the time up to `us` that it was open. */
static void spend(struct hf_simulation *report, int64_t us) {
    if (is_open(report->state))
        report->open_us += us - report->state_since_us;
    report->state_since_us = us;
}

static int more_changes(struct hf_simulation *report) {
    size_t room = report->change_room > 0 ? report->change_room * 2 : 64;
    struct hf_simulation_change *changes = hfi_realloc(report->changes, room * sizeof *changes);
    if (changes == NULL)
        return HF_ENOMEM;
    report->changes = changes;
    report->change_room = room;
    return 0;
}

void hfi_report_change(struct hf_simulation *report, const struct hf_downstream_event *event, int64_t at_us) {
    struct hf_simulation_summary *all = &report->summary;
    if (report->closed)
        return;
    spend(report, at_us);
    report->state = event->to;
    all->opens += event->to == HF_BREAKER_OPEN;
    if (report->change_count == report->change_room && more_changes(report) != 0) {
        report->failed = true;
        return;
    }
    struct hf_simulation_change *change = &report->changes[report->change_count++];
    *change = (struct hf_simulation_change){.at_us = at_us, .from = event->from, .to = event->to};
    hfi_text_copy(change->reason, sizeof change->reason, event->reason);
}

/* ------------------------------------------------------------------ the seconds */

static void look_at_jobs(struct hf_simulation *report, const struct hfi_report_look *look) {
    struct hf_simulation_summary *all = &report->summary;
    struct hf_simulation_second *now = &report->now;
    report->scheduled -= report->comes_due[report->second_count];
    now->jobs_open = all->jobs_open;
    now->jobs_parked = look->parked;
    now->jobs_running = look->running;
    now->jobs_scheduled = report->scheduled;
    uint64_t other = look->running + report->scheduled;
    now->jobs_due = all->jobs_open > other ? all->jobs_open - other : 0;
    if (look->parked > all->peak_parked)
        all->peak_parked = look->parked;
    if (now->jobs_due > all->peak_due)
        all->peak_due = now->jobs_due;
    int64_t end_ms = ((int64_t)report->second_count + 1) * 1000;
    if (all->outage_from_ms >= 0 && !report->saw_outage && end_ms > all->outage_from_ms) {
        report->saw_outage = true;
        report->open_at_outage = report->second_count > 0 ? report->seconds[report->second_count - 1].jobs_open : 0;
    }
    if (all->outage_until_ms >= 0 && end_ms >= all->outage_until_ms && report->drained_us < 0 &&
        all->jobs_open <= report->open_at_outage)
        report->drained_us = end_ms * 1000 - hfi_ms_to_us(all->outage_until_ms);
}

void hfi_report_tick(struct hf_simulation *report, const struct hfi_report_look *look) {
    struct hf_simulation_summary *all = &report->summary;
    struct hf_simulation_second *now = &report->now;
    struct hfi_server_counts *server = look->server;
    if (report->closed || report->second_count == report->second_room)
        return;
    spend(report, ((int64_t)report->second_count + 1) * SECOND);
    now->open_ms = (uint32_t)((report->open_us - report->open_from_us) / 1000);
    report->open_from_us = report->open_us;
    now->state = report->state;
    now->in_flight = look->in_flight;
    now->phase = (uint32_t)look->phase;
    now->budget_left = look->budget_left;
    now->retries_refused = (uint32_t)(look->retries_refused - all->retries_refused);
    all->retries_refused = look->retries_refused;
    now->in_flight_peak = server->peak_in_flight;
    now->waiting_peak = server->peak_waiting;
    if (server->peak_in_flight > all->peak_in_flight)
        all->peak_in_flight = server->peak_in_flight;
    if (server->peak_waiting > all->peak_waiting)
        all->peak_waiting = server->peak_waiting;
    server->peak_in_flight = server->in_work + server->waiting;
    server->peak_waiting = server->waiting;
    now->p50_us = hfi_histogram_quantile(&report->calls_now, 500);
    now->p99_us = hfi_histogram_quantile(&report->calls_now, 990);
    now->longest_us = now->p50_us < 0 ? -1 : now->longest_us;
    now->attempt_p50_us = hfi_histogram_quantile(&report->attempts_now, 500);
    now->attempt_p99_us = hfi_histogram_quantile(&report->attempts_now, 990);
    look_at_jobs(report, look);
    report->seconds[report->second_count++] = *now;
    memset(now, 0, sizeof *now);
    memset(&report->calls_now, 0, sizeof report->calls_now);
    memset(&report->attempts_now, 0, sizeof report->attempts_now);
}

/* ------------------------------------------------------------------ the summary */

static void measure_breaker(struct hf_simulation *report) {
    struct hf_simulation_summary *all = &report->summary;
    int64_t from_us = hfi_ms_to_us(all->outage_from_ms), until_us = hfi_ms_to_us(all->outage_until_ms);
    all->open_ms = report->open_us / 1000;
    all->to_open_ms = all->to_close_ms = -1;
    bool closed = true; /* as the outage ended */
    for (size_t i = 0; i < report->change_count; i++) {
        const struct hf_simulation_change *change = &report->changes[i];
        if (all->outage_from_ms >= 0 && all->to_open_ms < 0 && change->to == HF_BREAKER_OPEN && change->at_us >= from_us)
            all->to_open_ms = (change->at_us - from_us) / 1000;
        if (all->outage_until_ms < 0)
            continue;
        if (change->at_us < until_us)
            closed = change->to == HF_BREAKER_CLOSED;
        else if (all->to_close_ms < 0 && !closed && change->to == HF_BREAKER_CLOSED)
            all->to_close_ms = (change->at_us - until_us) / 1000;
    }
}

/* Whole seconds only; before the first outage and after the last one. */
static void measure_load(struct hf_simulation *report) {
    struct hf_simulation_summary *all = &report->summary;
    size_t from = all->outage_from_ms >= 0 ? (size_t)(all->outage_from_ms / 1000) : report->second_count;
    size_t until = all->outage_until_ms >= 0 ? (size_t)((all->outage_until_ms + 999) / 1000) : report->second_count;
    uint64_t sum = 0;
    all->before_per_s = all->peak_after_per_s = all->overshoot = -1;
    for (size_t i = 0; i < from && i < report->second_count; i++)
        sum += report->seconds[i].attempts;
    if (from > 0 && from < report->second_count)
        all->before_per_s = (double)sum / (double)from;
    for (size_t i = until; i < report->second_count; i++)
        if (report->seconds[i].attempts > all->peak_after_per_s)
            all->peak_after_per_s = report->seconds[i].attempts;
    if (all->before_per_s > 0 && all->peak_after_per_s >= 0)
        all->overshoot = all->peak_after_per_s / all->before_per_s;
}

void hfi_report_close(struct hf_simulation *report, const struct hfi_report_look *look) {
    struct hf_simulation_summary *all = &report->summary;
    if (report->second_count < report->second_room)
        hfi_report_tick(report, look); /* the last one may be cut */
    report->closed = true;
    uint64_t ended = all->succeeded + all->failed + all->rejected, asked = all->calls + all->jobs;
    all->open = all->calls - ended;
    all->amplification = asked > 0 ? (double)all->attempts / (double)asked : -1;
    all->success_share = ended > 0 ? (double)all->succeeded / (double)ended : -1;
    all->wasted = look->server->wasted;
    all->turned_away = look->server->turned_away;
    all->collapses = look->server->collapses;
    all->busy_ms = (double)look->server->busy_us / 1000;
    all->p50_us = hfi_histogram_quantile(&report->calls, 500);
    all->p95_us = hfi_histogram_quantile(&report->calls, 950);
    all->p99_us = hfi_histogram_quantile(&report->calls, 990);
    all->longest_us = all->p50_us < 0 ? -1 : all->longest_us;
    all->ok_p50_us = hfi_histogram_quantile(&report->ok, 500);
    all->ok_p95_us = hfi_histogram_quantile(&report->ok, 950);
    all->ok_p99_us = hfi_histogram_quantile(&report->ok, 990);
    all->to_drain_ms = all->jobs > 0 && report->drained_us >= 0 ? report->drained_us / 1000 : -1;
    measure_breaker(report);
    measure_load(report);
}

/* ------------------------------------------------------------------ to look at */

const struct hf_simulation_summary *hf_simulation_summary(const struct hf_simulation *simulation) {
    return &simulation->summary;
}

const struct hf_simulation_second *hf_simulation_second_at(const struct hf_simulation *simulation, size_t second) {
    return second < simulation->second_count ? &simulation->seconds[second] : NULL;
}

const struct hf_simulation_change *hf_simulation_change_at(const struct hf_simulation *simulation, size_t index) {
    return index < simulation->change_count ? &simulation->changes[index] : NULL;
}

size_t hf_simulation_seconds(const struct hf_simulation *simulation) {
    return simulation->second_count;
}

size_t hf_simulation_changes(const struct hf_simulation *simulation) {
    return simulation->change_count;
}
