/* SPDX-License-Identifier: MIT */
/*
 * Would a scenario run? Every key with its range, and what belongs together. Must never let through what the engine cannot
 * take: it trusts this. Names in complaints are the keys of a scenario file. Pure.
 */
#include "sim/scenario.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "sim/draw.h"

#define DURATION_MAX_MS (INT64_C(7) * 86400000)
#define ARRIVALS_MAX 1e9
#define JOBS_MAX 5e6
#define LOADS_MAX 100
#define PHASES_MAX 10000
#define EVENTS_MAX 1000
#define PLACES_MAX 1000000
#define WAITING_MAX 10000000
#define RECORDED_MAX 20000000
#define STEPS_MAX 100000

#define HF_LOAD_TEXT(name, text) text,
static const char *const load_names[] = {HF_LOAD_MAP(HF_LOAD_TEXT)};
#define HF_FAILING_TEXT(name, text) text,
static const char *const failing_names[] = {HF_FAILING_MAP(HF_FAILING_TEXT)};

const char *hf_load_name(enum hf_load_kind kind) {
    return (unsigned)kind < sizeof load_names / sizeof *load_names ? load_names[kind] : "unknown";
}

const char *hf_failing_name(enum hf_failing failing) {
    return (unsigned)failing < HF_FAILINGS ? failing_names[failing] : "unknown";
}

struct check {
    struct hf_error *error;
    char at[64]; /* `loads[3]` */
};

static int refuse(const struct check *check, const char *key, const char *fix, const char *why, ...) HF_PRINTF(4, 5);
static int refuse(const struct check *check, const char *key, const char *fix, const char *why, ...) {
    char what[160], text[300];
    va_list arguments;
    va_start(arguments, why);
    vsnprintf(text, sizeof text, why, arguments);
    va_end(arguments);
    snprintf(what, sizeof what, "%s%s%s", check->at, *check->at && *key ? "." : "", key);
    return hfi_fail(check->error, HF_EINVAL, what, fix, "%s", text);
}

/* ------------------------------------------------------------------ loads */

double hfi_load_size(const struct hf_load *load, int64_t duration_ms) {
    int64_t until_ms = load->until_ms > 0 && load->until_ms < duration_ms ? load->until_ms : duration_ms;
    double seconds = until_ms > load->from_ms ? (double)(until_ms - load->from_ms) / 1000 : 0;
    switch (load->kind) {
    case HF_LOAD_RAMP:
        return (load->rate + load->rate_to) / 2 * seconds;
    case HF_LOAD_HERD:
        return load->burst * (load->every_ms > 0 ? ceil(seconds * 1000 / (double)load->every_ms) : 1);
    case HF_LOAD_REPLAY:
        return (double)load->arrival_count;
    default:
        return load->rate * seconds;
    }
}

static bool is_rate(double rate) {
    return rate >= 0 && rate <= 1e6; /* false for NaN */
}

static int check_recording(const struct check *check, const struct hf_load *load) {
    if (load->arrival_count == 0)
        return refuse(check, "arrivals", "record some, or choose another kind", "the recording is empty");
    if (load->arrival_count > RECORDED_MAX)
        return refuse(check, "arrivals", "cut it", "%zu arrivals are more than %d", load->arrival_count, RECORDED_MAX);
    for (size_t i = 0; i < load->arrival_count; i++)
        if (load->arrivals_us[i] < (i > 0 ? load->arrivals_us[i - 1] : 0))
            return refuse(check, "arrivals", "sort them", "arrival %zu is before the one before it", i + 1);
    return 0;
}

static int check_herd(const struct check *check, const struct hf_load *load) {
    if (load->burst == 0)
        return refuse(check, "burst", "write how many call at once", "a herd of 0 calls nothing");
    if (load->every_ms < 0 || load->spread_ms < 0)
        return refuse(check, "every", "write 0 or more", "time cannot run backwards");
    if (load->every_ms > 0 && load->spread_ms > load->every_ms)
        return refuse(check, "spread", "make it `every` at most", "%lld ms of spread run into the next herd after %lld ms",
                      (long long)load->spread_ms, (long long)load->every_ms);
    return 0;
}

static int check_load(const struct check *check, const struct hf_load *load, int64_t duration_ms) {
    if ((unsigned)load->kind > HF_LOAD_REPLAY)
        return refuse(check, "kind", "use constant, poisson, ramp, herd or replay", "there is no kind %d", (int)load->kind);
    if (load->from_ms < 0 || load->from_ms >= duration_ms)
        return refuse(check, "from", "begin before the end", "%lld ms is not within the duration of %lld ms",
                      (long long)load->from_ms, (long long)duration_ms);
    if (load->until_ms != 0 && load->until_ms <= load->from_ms)
        return refuse(check, "until", "make it later than `from`", "it ends before it begins");
    if (load->kind == HF_LOAD_REPLAY)
        return check_recording(check, load);
    if (load->kind == HF_LOAD_HERD)
        return check_herd(check, load);
    if (!is_rate(load->rate) || (load->kind != HF_LOAD_RAMP && load->rate == 0))
        return refuse(check, "rate", "write 10/s, or leave the load out", "%g a second is not above 0 and at most a million", load->rate);
    if (load->kind == HF_LOAD_RAMP && !is_rate(load->rate_to))
        return refuse(check, "to", "write 10/s", "%g a second is not within 0 and a million", load->rate_to);
    if (load->kind == HF_LOAD_RAMP && load->rate == 0 && load->rate_to == 0)
        return refuse(check, "to", "give one end a rate", "from 0 to 0 nothing ever calls");
    return 0;
}

static int check_loads(struct check *check, const struct hf_scenario *scenario) {
    double sum = 0, jobs = 0;
    if (scenario->load_count == 0 || scenario->load_count > LOADS_MAX)
        return refuse(check, "loads", "give 1 to 100", "%zu loads", scenario->load_count);
    for (size_t i = 0; i < scenario->load_count; i++) {
        const struct hf_load *load = &scenario->loads[i];
        snprintf(check->at, sizeof check->at, "loads[%zu]", i);
        int code = check_load(check, load, scenario->duration_ms);
        if (code != 0)
            return code;
        sum += hfi_load_size(load, scenario->duration_ms);
        jobs += load->job != NULL ? hfi_load_size(load, scenario->duration_ms) : 0;
    }
    check->at[0] = '\0';
    if (sum > ARRIVALS_MAX)
        return refuse(check, "loads", "shorten it, or lower the rates", "about %.0f arrivals are more than %.0f", sum, ARRIVALS_MAX);
    if (jobs > JOBS_MAX)
        return refuse(check, "loads", "shorten it, or lower the rates", "about %.0f jobs are more than the %.0f that are kept in memory",
                      jobs, JOBS_MAX);
    return 0;
}

/* ------------------------------------------------------------------ phases */

static int check_pair(const struct check *check, const char *key, int64_t median_us, int64_t p99_us) {
    if (median_us < 1 || median_us > HFI_DELAY_MAX_US)
        return refuse(check, key, "write a duration up to 1h", "a median of %lld us is not within 1 us and 1 h", (long long)median_us);
    if (p99_us != 0 && (p99_us < median_us || p99_us > HFI_DELAY_MAX_US))
        return refuse(check, key, "make p99 the median at least", "a p99 of %lld us does not fit a median of %lld us",
                      (long long)p99_us, (long long)median_us);
    return 0;
}

static int check_steps(const struct check *check, const struct hf_delay *delay) {
    uint64_t sum = 0;
    if (delay->step_count > STEPS_MAX)
        return refuse(check, "latency.histogram", "merge some", "%zu steps are more than %d", delay->step_count, STEPS_MAX);
    for (size_t i = 0; i < delay->step_count; i++) {
        const struct hf_delay_step *step = &delay->steps[i];
        if (step->upto_us <= (i > 0 ? delay->steps[i - 1].upto_us : 0) || step->upto_us > HFI_DELAY_MAX_US)
            return refuse(check, "latency.histogram", "sort the steps, up to 1h", "step %zu does not end after the one before it", i + 1);
        if (step->count > UINT64_MAX / 2 - sum)
            return refuse(check, "latency.histogram", "divide the counts", "the counts overflow");
        sum += step->count;
    }
    if (sum == 0)
        return refuse(check, "latency.histogram", "measure some", "the histogram is empty");
    return 0;
}

static int check_delay(const struct check *check, const struct hf_delay *delay) {
    int code = delay->step_count > 0 ? check_steps(check, delay) : check_pair(check, "latency", delay->median_us, delay->p99_us);
    if (code != 0)
        return code;
    if (!(delay->tail_share >= 0 && delay->tail_share <= 1))
        return refuse(check, "latency.tail.share", "write a share such as 0.01", "%g is not within 0 and 1", delay->tail_share);
    return delay->tail_share > 0 ? check_pair(check, "latency.tail", delay->tail_median_us, delay->tail_p99_us) : 0;
}

static int check_shares(const struct check *check, const struct hf_script_phase *phase) {
    double sum = 0;
    for (int i = 0; i < HF_FAILINGS; i++) {
        char key[40];
        snprintf(key, sizeof key, "errors.%s", failing_names[i]);
        if (!(phase->share[i] >= 0 && phase->share[i] <= 1))
            return refuse(check, key, "write a share such as 0.2", "%g is not within 0 and 1", phase->share[i]);
        sum += phase->share[i];
    }
    if (sum > 1 + 1e-9)
        return refuse(check, "errors", "lower some", "the shares make %g together, more than 1", sum);
    return 0;
}

static int check_phase(const struct check *check, const struct hf_script_phase *phase, size_t index) {
    if (phase->grows_to < 0.001 || !(phase->grows_to <= 1000))
        return refuse(check, "latency.grows_to", "write a factor from 0.001 to 1000", "%g is none", phase->grows_to);
    if (phase->connect_us < 0 || phase->connect_us > HFI_DELAY_MAX_US)
        return refuse(check, "connect", "write a duration up to 1h", "%lld us is none", (long long)phase->connect_us);
    if (phase->hang_us < 1 || phase->hang_us > HFI_DELAY_MAX_US)
        return refuse(check, "hang_for", "write a duration up to 1h", "%lld us is none", (long long)phase->hang_us);
    if (phase->status < 400 || phase->status > 599)
        return refuse(check, "status", "write an error from 400 to 599", "%d is no HTTP status of a failure", phase->status);
    if (phase->capacity > PLACES_MAX)
        return refuse(check, "capacity", "leave it out for no limit", "%u is more than %d", phase->capacity, PLACES_MAX);
    if (phase->flap_ms < 0 || (phase->flap_ms > 0 && index == 0))
        return refuse(check, "flap", "put the phase it takes turns with before it", "the first phase has none before it");
    int code = check_delay(check, &phase->latency);
    return code != 0 ? code : check_shares(check, phase);
}

static int check_phases(struct check *check, const struct hf_scenario *scenario) {
    if (scenario->phase_count == 0 || scenario->phase_count > PHASES_MAX)
        return refuse(check, "phases", "give 1 to 10000", "%zu phases", scenario->phase_count);
    for (size_t i = 0; i < scenario->phase_count; i++) {
        const struct hf_script_phase *phase = &scenario->phases[i];
        snprintf(check->at, sizeof check->at, "phases[%zu]", i);
        if (i == 0 && phase->at_ms != 0)
            return refuse(check, "at", "write at: 0s", "the first phase has to begin at 0");
        if (i > 0 && phase->at_ms <= phase[-1].at_ms)
            return refuse(check, "at", "sort the phases", "it does not begin after the one before it");
        if (phase->at_ms >= scenario->duration_ms)
            return refuse(check, "at", "lengthen the duration, or leave it out", "it begins at the end or after it");
        int code = check_phase(check, phase, i);
        if (code != 0)
            return code;
    }
    check->at[0] = '\0';
    return 0;
}

/* ------------------------------------------------------------------ the rest */

static int check_events(struct check *check, const struct hf_scenario *scenario) {
    if (scenario->clock_step_count > EVENTS_MAX || scenario->crash_count > EVENTS_MAX)
        return refuse(check, "crashes", "leave some out", "more than %d clock steps or crashes", EVENTS_MAX);
    for (size_t i = 0; i < scenario->clock_step_count; i++) {
        const struct hf_clock_step *step = &scenario->clock_steps[i];
        snprintf(check->at, sizeof check->at, "clock_steps[%zu]", i);
        if (step->at_ms < 0 || step->at_ms >= scenario->duration_ms)
            return refuse(check, "at", "put it within the duration", "%lld ms is not", (long long)step->at_ms);
        if (step->by_ms < -3650 * INT64_C(86400000) || step->by_ms > 3650 * INT64_C(86400000))
            return refuse(check, "by", "write 3650d at most", "it steps by more than ten years");
    }
    for (size_t i = 0; i < scenario->crash_count; i++) {
        const struct hf_crash *crash = &scenario->crashes[i];
        snprintf(check->at, sizeof check->at, "crashes[%zu]", i);
        if (crash->at_ms < 0 || crash->at_ms >= scenario->duration_ms)
            return refuse(check, "at", "put it within the duration", "%lld ms is not", (long long)crash->at_ms);
        if (crash->down_ms < 1 || crash->down_ms > DURATION_MAX_MS)
            return refuse(check, "down", "write a duration", "a node is down for 1 ms at least");
        if (i > 0 && crash->at_ms < crash[-1].at_ms + crash[-1].down_ms)
            return refuse(check, "at", "let it start first", "the node is still down from the crash before");
    }
    check->at[0] = '\0';
    return 0;
}

int hfi_scenario_check(const struct hf_scenario *scenario, struct hf_error *error) {
    struct check check = {.error = error};
    if (scenario == NULL || scenario->node == NULL || scenario->downstream == NULL || scenario->method == NULL)
        return refuse(&check, "scenario", "give all three", "node, downstream and method are required");
    if (scenario->duration_ms < 1 || scenario->duration_ms > DURATION_MAX_MS)
        return refuse(&check, "duration", "write 10m", "%lld ms is not within 1 ms and 7 days", (long long)scenario->duration_ms);
    if (scenario->capacity > PLACES_MAX)
        return refuse(&check, "capacity", "leave it out for no limit", "%u is more than %d", scenario->capacity, PLACES_MAX);
    if (scenario->queue > WAITING_MAX)
        return refuse(&check, "queue", "lower it", "%u is more than %d", scenario->queue, WAITING_MAX);
    if (scenario->collapse_above > 0 && (scenario->collapse_for_ms < 1 || scenario->collapse_for_ms > DURATION_MAX_MS))
        return refuse(&check, "collapse.down", "write a duration", "%lld ms is none", (long long)scenario->collapse_for_ms);
    int code = check_phases(&check, scenario);
    if (code == 0)
        code = check_loads(&check, scenario);
    return code != 0 ? code : check_events(&check, scenario);
}
