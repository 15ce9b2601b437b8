/* SPDX-License-Identifier: MIT */
/*
 * The roll of a node's loops: who is late by the judge (watchdog.c), who is begun again. Must never hold its lock while
 * anything else is waited for: a loop that comes or goes would hang with the one that hangs. Any thread.
 */
#include "jobs/wards.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "holdfast/error.h"

struct hfi_wards {
    pthread_mutex_t lock;
    struct hfi_ward *first;
    _Atomic uint64_t users, late, missed, restarted;
};

int hfi_wards_new(struct hfi_wards **wards) {
    *wards = hfi_alloc(sizeof **wards);
    if (*wards == NULL)
        return HF_ENOMEM;
    pthread_mutex_init(&(*wards)->lock, NULL);
    (*wards)->users = 1;
    return 0;
}

struct hfi_wards *hfi_wards_hold(struct hfi_wards *wards) {
    if (wards != NULL)
        atomic_fetch_add(&wards->users, 1);
    return wards;
}

void hfi_wards_free(struct hfi_wards *wards) {
    if (wards == NULL || atomic_fetch_sub(&wards->users, 1) > 1)
        return;
    pthread_mutex_destroy(&wards->lock);
    hfi_free(wards);
}

void hfi_wards_add(struct hfi_wards *wards, struct hfi_ward *ward) {
    if (wards == NULL)
        return;
    ward->begun = false;
    pthread_mutex_lock(&wards->lock);
    ward->next = wards->first;
    wards->first = ward;
    pthread_mutex_unlock(&wards->lock);
}

/* Lock held. */
static void drop(struct hfi_wards *wards, const struct hfi_ward *ward) {
    struct hfi_ward **at = &wards->first;
    while (*at != NULL && *at != ward)
        at = &(*at)->next;
    if (*at == NULL)
        return;
    *at = ward->next;
    if (ward->begun && ward->state.late)
        atomic_fetch_sub(&wards->late, 1);
}

void hfi_wards_remove(struct hfi_wards *wards, struct hfi_ward *ward) {
    if (wards == NULL)
        return;
    pthread_mutex_lock(&wards->lock);
    drop(wards, ward);
    pthread_mutex_unlock(&wards->lock);
}

/* Lock held. Once: one that hangs again without a sign of life in between would do so for ever. */
static enum hfi_watchdog_word begin_again(struct hfi_wards *wards, struct hfi_ward *ward) {
    enum hfi_restart how = ward->restart != NULL && !ward->state.restarted ? ward->restart(ward) : HFI_RESTART_NO;
    if (how == HFI_RESTART_NO)
        return HFI_WATCHDOG_HUNG;
    atomic_fetch_add(&wards->restarted, 1);
    if (how == HFI_RESTART_REPLACED)
        drop(wards, ward);
    else
        hfi_watched_again(&ward->state);
    return HFI_WATCHDOG_RESTARTED;
}

/* Lock held. */
static enum hfi_watchdog_word look_at(struct hfi_wards *wards, struct hfi_ward *ward,
                                      const struct hfi_watchdog_limits *limits, struct hf_mono now) {
    struct hfi_watchdog_limits own = *limits;
    own.deadline_ms = hfi_add(own.deadline_ms, ward->period_ms);
    if (!ward->begun)
        hfi_watched_begin(&ward->state, now);
    ward->begun = true;
    enum hfi_watchdog_word word = hfi_watched_look(&ward->state, &own, ward->pulse, now);
    if (word == HFI_WATCHDOG_BACK)
        atomic_fetch_sub(&wards->late, 1);
    if (word == HFI_WATCHDOG_LATE)
        atomic_fetch_add(&wards->late, 1);
    if (word == HFI_WATCHDOG_LATE || word == HFI_WATCHDOG_AGAIN)
        atomic_fetch_add(&wards->missed, 1);
    return word;
}

size_t hfi_wards_look(struct hfi_wards *wards, const struct hfi_watchdog_limits *limits, struct hf_mono now,
                      struct hfi_ward_word *words) {
    size_t count = 0;
    struct hfi_ward *next;
    pthread_mutex_lock(&wards->lock);
    for (struct hfi_ward *ward = wards->first; ward != NULL && count < HFI_WARD_WORDS; ward = next) {
        next = ward->next;
        struct hfi_ward_word *said = &words[count];
        said->word = look_at(wards, ward, limits, now);
        said->thread = atomic_load(&ward->pulse->thread);
        said->silent_ms = ward->state.silent_us / 1000;
        memcpy(said->name, ward->name, sizeof said->name);
        if (said->word == HFI_WATCHDOG_HUNG)
            said->word = begin_again(wards, ward);
        count += said->word != HFI_WATCHDOG_FINE && said->word != HFI_WATCHDOG_STILL;
    }
    pthread_mutex_unlock(&wards->lock);
    return count;
}

void hfi_wards_count(const struct hfi_wards *wards, struct hfi_wards_counts *counts) {
    *counts = (struct hfi_wards_counts){atomic_load(&wards->late), atomic_load(&wards->missed),
                                        atomic_load(&wards->restarted)};
}
