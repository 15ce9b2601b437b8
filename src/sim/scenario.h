/* SPDX-License-Identifier: MIT */
#ifndef HFI_SIM_SCENARIO_H
#define HFI_SIM_SCENARIO_H

#include "holdfast/simulate.h"

/* All of a scenario but its node: 0 or HF_EINVAL. Pure. */
int hfi_scenario_check(const struct hf_scenario *scenario, struct hf_error *error);
/* About how many arrivals a load has. */
double hfi_load_size(const struct hf_load *load, int64_t duration_ms);

/* The node of a scenario: what of its options plays a part. */
struct hfi_cast {
    struct hf_downstream_options downstream;
    struct hf_type_options *types; /* of the loads, each once */
    struct hf_runner_options options;
    bool jobs; /* any */
};
int hfi_cast_init(struct hfi_cast *cast, const struct hf_scenario *scenario, struct hf_error *error); /* HF_ECONFIG, HF_ENOMEM */
void hfi_cast_end(struct hfi_cast *cast);

#endif
