/* SPDX-License-Identifier: MIT */
#ifndef HFI_SIM_REPORT_H
#define HFI_SIM_REPORT_H

#include "base/clock.h"
#include "holdfast/event.h"
#include "holdfast/simulate.h"
#include "resilience/histogram.h"
#include "resilience/outcome.h"
#include "sim/server.h"

/* What a simulation is asked for: counts, seconds, changes of the breaker. Times are µs from the scenario's start. Pure. */
struct hf_simulation {
    struct hf_simulation_summary summary;
    struct hf_simulation_second *seconds;
    size_t second_count, second_room;
    struct hf_simulation_change *changes;
    size_t change_count, change_room;
    bool closed; /* nothing is counted any more */
    bool failed; /* a change was lost: no memory */

    struct hf_simulation_second now; /* the second that is being counted */
    struct hfi_histogram calls, ok, calls_now, attempts_now;
    enum hf_breaker_state state;
    int64_t state_since_us, open_us, open_from_us; /* open_from: of this second */
    uint32_t *comes_due; /* by second: jobs that the curve had put off */
    uint64_t scheduled, open_at_outage;
    bool saw_outage;
    int64_t drained_us;
};

/* How things stand at the end of a second. */
struct hfi_report_look {
    struct hfi_server_counts *server;
    size_t phase;
    uint32_t in_flight;
    uint64_t retries_refused;
    double budget_left;
    uint64_t parked, running;
};

int hfi_report_new(const struct hf_scenario *scenario, struct hf_simulation **report); /* a checked one. HF_ENOMEM */
void hfi_report_call_began(struct hf_simulation *report);
void hfi_report_call_ended(struct hf_simulation *report, const struct hf_outcome *outcome, int64_t took_us);
void hfi_report_never_made(struct hf_simulation *report);
void hfi_report_attempt_began(struct hf_simulation *report);
void hfi_report_attempt_ended(struct hf_simulation *report, enum hfi_served how, int64_t took_us);
void hfi_report_job_put(struct hf_simulation *report);
void hfi_report_job_moved(struct hf_simulation *report, const struct hf_transition_view *view, int64_t at_us);
void hfi_report_change(struct hf_simulation *report, const struct hf_downstream_event *event, int64_t at_us);
/* Ends a second, and with the last one works out the summary. */
void hfi_report_tick(struct hf_simulation *report, const struct hfi_report_look *look);
void hfi_report_close(struct hf_simulation *report, const struct hfi_report_look *look);

#endif
