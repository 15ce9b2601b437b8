/* SPDX-License-Identifier: MIT */
/*
 * What a store keeps of the attempts of a downstream. Must never fail because one row is damaged: it says so and goes on
 * without. Any thread but the loop's and the writer's.
 */
#include "resilience/measured.h"

#include <string.h>

#include "assembly/store_calls.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "jobs/measuring.h"
#include "resilience/phase_histograms.h"

static bool add(int64_t hour, const void *bytes, size_t length, void *user) {
    struct hf_measured *measured = user;
    if (hfi_measured_add(measured, bytes, length) == 0)
        measured->hours++;
    else
        hfi_log(HF_LOG_WARNING, "measured.damaged", HFI_I("hour", hour), HFI_S("why", "its bytes cannot be read"), NULL);
    return true;
}

int hf_store_measured(struct hf_store *store, const char *key, int64_t since_us, struct hf_measured **measured,
                      struct hf_error *error) {
    if (key == NULL || measured == NULL)
        return hfi_fail(error, HF_EINVAL, "measured", "give both", "a name and the place for the answer are required");
    *measured = NULL;
    int code = hfi_store_may_block(store, "hf_store_measured", error);
    if (code != 0)
        return code;
    int64_t from = hfi_measured_hour(since_us), oldest = hfi_measured_hour(hfi_store_now(store).us) - HFI_MEASURED_HOURS;
    struct hf_measured *made;
    if (hfi_measured_new(&made) != 0)
        return hfi_fail(error, HF_ENOMEM, "measured", NULL, "out of memory");
    code = store->port->ops->look_measured(store->port, key, from > oldest ? from : oldest, add, made, error);
    if (code != 0) {
        hf_measured_free(made);
        return code;
    }
    hfi_measured_settle(made);
    *measured = made;
    return 0;
}

static struct hf_latency_view all_of(const struct hf_measured *measured, enum hf_phase phase) {
    return hfi_latency_of(&measured->spreads[hfi_measured_at(phase, HF_FATE_ENDED)]);
}

/* What is known of every attempt. False: nothing is. */
static bool from_measured(struct hf_store *store, const char *key, struct hf_phases_view *whole, int *code,
                          struct hf_error *error) {
    struct hf_measured *measured;
    *code = hf_store_measured(store, key, 0, &measured, error);
    if (*code != 0)
        return true;
    bool any = measured->hours > 0;
    for (int fate = HF_FATE_FAILED; fate < HF_FATES; fate++) /* the attempts in whole are all of them, however they ended */
        hfi_spread_merge(&measured->spreads[hfi_measured_at(HF_PHASE_ATTEMPT, HF_FATE_ENDED)],
                         &measured->spreads[hfi_measured_at(HF_PHASE_ATTEMPT, (enum hf_fate)fate)]);
    if (any)
        *whole = (struct hf_phases_view){
            .resolve = all_of(measured, HF_PHASE_RESOLVE),
            .connect = all_of(measured, HF_PHASE_CONNECT),
            .tls = all_of(measured, HF_PHASE_TLS),
            .first_byte = all_of(measured, HF_PHASE_FIRST_BYTE),
            .total = all_of(measured, HF_PHASE_ATTEMPT),
        };
    hf_measured_free(measured);
    return any;
}

/* What the history of jobs has: the last attempt of each execution. */
static int from_history(struct hf_store *store, const char *key, struct hf_phases_view *whole, struct hf_error *error) {
    struct hfi_phase_tally *tally = hfi_alloc(sizeof *tally);
    if (!tally)
        return hfi_fail(error, HF_ENOMEM, "phases", NULL, "out of memory");
    int code = store->port->ops->look_phases(store->port, key, hfi_phases_tally, tally, error);
    *whole = (struct hf_phases_view){
        .resolve = hfi_latency_look(&tally->phases.resolve),
        .connect = hfi_latency_look(&tally->phases.connect),
        .tls = hfi_latency_look(&tally->phases.tls),
        .first_byte = hfi_latency_look(&tally->phases.first_byte),
        .total = hfi_latency_look(&tally->total),
    };
    hfi_free(tally);
    return code;
}

int hf_store_look_phases(struct hf_store *store, const char *key, struct hf_phases_view *view, struct hf_error *error) {
    struct hf_phases_view whole;
    if (!key || !view || view->size < sizeof view->size)
        return hfi_fail(error, HF_EINVAL, "phases", "call hf_phases_view_init first", "no name, or no view");
    int code = hfi_store_may_block(store, "hf_store_look_phases", error);
    if (code == 0 && !from_measured(store, key, &whole, &code, error))
        code = from_history(store, key, &whole, error);
    if (code != 0)
        return code;
    whole.size = view->size;
    memcpy(view, &whole, view->size < sizeof whole ? view->size : sizeof whole);
    return 0;
}
