/* SPDX-License-Identifier: MIT */
/*
 * What an hour of 1,000 calls a second costs the simulator: all well, and with an outage of ten minutes in the middle. CPU
 * time of the process, one JSON line per result. Usage: simulate [CALLS_PER_SECOND].
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "holdfast/log.h"
#include "holdfast/simulate.h"

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void measure(const char *name, const struct hf_scenario *scenario) {
    struct hf_simulation *simulation;
    struct hf_error error = hf_error_none();
    double from = now_s();
    if (hf_simulate(scenario, &simulation, &error) != 0) {
        fprintf(stderr, "%s: %s\n", error.what, error.why);
        exit(1);
    }
    double took = now_s() - from;
    const struct hf_simulation_summary *summary = hf_simulation_summary(simulation);
    printf("{\"bench\":\"simulate\",\"case\":\"%s\",\"calls\":%llu,\"attempts\":%llu,\"cpu_s\":%.2f,\"us_per_call\":%.2f}\n", name,
           (unsigned long long)summary->calls, (unsigned long long)summary->attempts, took, took * 1e6 / (double)summary->calls);
    hf_simulation_free(simulation);
}

int main(int argc, char **argv) {
    struct hf_downstream_options downstream = hf_downstream_at("shop", "http://shop.example");
    struct hf_policy_options policy;
    struct hf_runner_options node = hf_runner_calling(&downstream, 1);
    struct hf_scenario scenario;
    struct hf_load load;
    struct hf_script_phase phases[3];
    hf_log_set(HF_LOG_ERROR, NULL, NULL);
    hf_policy_options_init(&policy);
    policy.bulkhead_max = 256;
    downstream.policy = &policy;
    hf_load_init(&load, HF_LOAD_POISSON);
    load.rate = argc > 1 ? atof(argv[1]) : 1000;
    for (int i = 0; i < 3; i++)
        hf_script_phase_init(&phases[i]);
    phases[0].latency.p99_us = 200000;
    phases[1] = phases[2] = phases[0];
    phases[1].at_ms = 1500000;
    phases[1].share[HF_FAILING_STATUS] = 1;
    phases[2].at_ms = 2100000;
    hf_scenario_init(&scenario);
    scenario.duration_ms = 3600000;
    scenario.node = &node;
    scenario.downstream = "shop";
    scenario.loads = &load;
    scenario.load_count = 1;
    scenario.phases = phases;
    scenario.phase_count = 1;
    measure("well", &scenario);
    scenario.phase_count = 3;
    measure("outage", &scenario);
    return 0;
}
