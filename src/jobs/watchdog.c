/* SPDX-License-Identifier: MIT */
/*
 * Decides whether a loop hangs: no beat for the deadline, or for the grace at its start, and still none one round later.
 * Must never take a healthy loop for a hung one: a loop that sleeps owes no beat, nor does one in somebody else's code, and
 * a watchdog that did not run itself has seen nothing. Pure but for the pulses, which any thread may write.
 */
#include "jobs/watchdog.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/stack.h"

#define ROUND_MAX_MS 15000
#define TELL_EVERY_US INT64_C(60000000)

static void sign(struct hfi_pulse *pulse, enum hfi_doing doing) {
    if (atomic_load_explicit(&pulse->thread, memory_order_relaxed) == 0)
        atomic_store(&pulse->thread, (int)syscall(SYS_gettid));
    hfi_stack_listen(&pulse->heard);
    uint64_t beats = atomic_load_explicit(&pulse->beats, memory_order_relaxed); /* nobody else writes it */
    atomic_store_explicit(&pulse->doing, doing, memory_order_relaxed);
    atomic_store_explicit(&pulse->beats, beats + 1, memory_order_release);
}

void hfi_pulse_beat(struct hfi_pulse *pulse) {
    sign(pulse, HFI_DOING_ITS_OWN);
}

void hfi_pulse_rest(struct hfi_pulse *pulse) {
    sign(pulse, HFI_DOING_NOTHING);
}

void hfi_pulse_lend(struct hfi_pulse *pulse) {
    sign(pulse, HFI_DOING_OTHERS);
}

int64_t hfi_watchdog_round_ms(const struct hfi_watchdog_limits *limits) {
    int64_t quarter = limits->deadline_ms / 4;
    return quarter < 1 ? 1 : quarter < ROUND_MAX_MS ? quarter : ROUND_MAX_MS;
}

void hfi_watched_begin(struct hfi_watched *watched, struct hf_mono now) {
    *watched = (struct hfi_watched){.looked = now};
}

static enum hfi_watchdog_word alive(struct hfi_watched *watched) {
    bool was_late = watched->late;
    watched->silent_us = 0;
    watched->late = watched->hung = watched->restarted = false;
    return was_late ? HFI_WATCHDOG_BACK : HFI_WATCHDOG_FINE;
}

void hfi_watched_again(struct hfi_watched *watched) {
    watched->silent_us = watched->told_us = 0;
    watched->hung = false;
    watched->restarted = true;
}

enum hfi_watchdog_word hfi_watched_look(struct hfi_watched *watched, const struct hfi_watchdog_limits *limits,
                                        const struct hfi_pulse *pulse, struct hf_mono now) {
    int64_t gap = hfi_sub(now.us, watched->looked.us);
    int64_t most = 2 * hfi_ms_to_us(hfi_watchdog_round_ms(limits));
    uint64_t beats = atomic_load_explicit(&pulse->beats, memory_order_acquire);
    bool went_on = beats != watched->beats || atomic_load(&pulse->doing) != HFI_DOING_ITS_OWN;
    watched->looked = now;
    watched->beats = beats;
    if (went_on)
        return alive(watched);
    watched->silent_us = hfi_add(watched->silent_us, gap < 0 ? 0 : gap < most ? gap : most);
    int64_t limit_ms = beats == 0 && limits->grace_ms > limits->deadline_ms ? limits->grace_ms : limits->deadline_ms;
    if (watched->silent_us <= hfi_ms_to_us(limit_ms))
        return HFI_WATCHDOG_FINE;
    if (watched->late && !watched->hung) {
        watched->hung = true;
        return HFI_WATCHDOG_HUNG;
    }
    if (watched->late && hfi_sub(watched->silent_us, watched->told_us) < TELL_EVERY_US)
        return HFI_WATCHDOG_STILL;
    bool first = !watched->late;
    watched->late = true;
    watched->told_us = watched->silent_us;
    return first ? HFI_WATCHDOG_LATE : HFI_WATCHDOG_AGAIN;
}
