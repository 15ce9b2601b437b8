/* SPDX-License-Identifier: MIT */
#ifndef HFI_SIM_SERVER_H
#define HFI_SIM_SERVER_H

#include "base/scheduler.h"
#include "holdfast/simulate.h"
#include "resilience/transport.h"

/*
 * The simulated downstream behind the transport port: a queue, so many requests in work at once, phases, failures. What a
 * client has given up on is worked on all the same: that is how retries make an overload worse. On the scheduler's thread.
 */
struct hfi_server;

enum hfi_served { HFI_SERVED_WELL, HFI_SERVED_FAILED, HFI_SERVED_ABANDONED };

/* Who is told what happens there: the report. */
struct hfi_server_ear {
    void (*began)(void *user);
    /* `took_us` from its start; of abandoned ones until then. */
    void (*ended)(enum hfi_served how, int64_t took_us, void *user);
    void *user;
};

/* Running sums and peaks; whoever looks may set the peaks back to the figures of now. */
struct hfi_server_counts {
    uint64_t turned_away, collapses, wasted, busy_us;
    uint32_t in_work, waiting;            /* now, abandoned ones included */
    uint32_t peak_in_flight, peak_waiting;
};

/* The scenario (checked) outlives it. Its time 0 is the scheduler's now. HF_ENOMEM. */
int hfi_server_new(const struct hf_scenario *scenario, struct hfi_scheduler *scheduler, const struct hfi_server_ear *ear,
                   struct hfi_server **server);
struct hfi_transport *hfi_server_transport(struct hfi_server *server); /* its close frees the server */
struct hfi_server_counts *hfi_server_counts(struct hfi_server *server);
size_t hfi_server_phase(const struct hfi_server *server); /* index of the one whose time it is */

/* The phases as a table: which one behaves at that time, and by what its latency is multiplied. Pure. */
size_t hfi_phase_at(const struct hf_scenario *scenario, int64_t us);         /* whose time it is */
size_t hfi_phase_in_force(const struct hf_scenario *scenario, int64_t us);   /* the same, but for flapping */
double hfi_phase_growth(const struct hf_scenario *scenario, size_t phase, int64_t us);
bool hfi_phase_is_outage(const struct hf_script_phase *phase);
/* Start of the first outage and end of the last one, ms; -1, -1: there is none; until -1: it lasts to the end. */
void hfi_phase_outages(const struct hf_scenario *scenario, int64_t *from_ms, int64_t *until_ms);

#endif
