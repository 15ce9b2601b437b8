/* SPDX-License-Identifier: MIT */
/*
 * Counts what the phases of attempts took, by what ended them. Decides what of an outcome is a sample of which phase. Must
 * never fail an attempt for want of memory, nor lose a count while somebody takes them away. Any thread, no lock.
 */
#include "resilience/recorder.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"

struct page {
    _Atomic uint64_t counts[HFI_SPREAD_STEPS];
};
struct book {
    struct page *_Atomic pages[HFI_SPREAD_PAGES];
};
struct hfi_recorder {
    struct book *_Atomic books[HFI_MEASURED_SPREADS];
};

/* What is there, or a new one. NULL: no memory. */
#define NEED(place, there)                                                                                             \
    do {                                                                                                               \
        (there) = atomic_load_explicit(place, memory_order_acquire);                                                   \
        if ((there) == NULL) {                                                                                         \
            void *fresh = hfi_alloc(sizeof *(there));                                                                  \
            if (fresh == NULL || atomic_compare_exchange_strong(place, &(there), fresh))                               \
                (there) = fresh;                                                                                       \
            else                                                                                                       \
                hfi_free(fresh); /* another thread was first */                                                        \
        }                                                                                                              \
    } while (0)

static bool count(struct hfi_recorder *recorder, size_t spread, unsigned bucket, uint64_t more) {
    struct book *book = NULL;
    struct page *page = NULL;
    NEED(&recorder->books[spread], book);
    if (book != NULL)
        NEED(&book->pages[bucket / HFI_SPREAD_STEPS], page);
    if (page != NULL)
        atomic_fetch_add_explicit(&page->counts[bucket % HFI_SPREAD_STEPS], more, memory_order_relaxed);
    return page != NULL;
}

static void sample(struct hfi_recorder *recorder, enum hf_phase phase, enum hf_fate fate, int64_t us) {
    count(recorder, hfi_measured_at(phase, fate), hfi_spread_bucket(us), 1);
}

static enum hf_fate fate_of(const struct hf_outcome *outcome) {
    const char *type = outcome->error_type;
    if (hfi_dotted_prefix("timeout.connect", type))
        return HF_FATE_CUT_CONNECT;
    if (hfi_dotted_prefix("timeout.attempt", type))
        return HF_FATE_CUT_ATTEMPT;
    if (hfi_dotted_prefix("timeout", type)) /* of the call, or of what is around it */
        return HF_FATE_CUT_TOTAL;
    if (outcome->verdict == HF_VERDICT_SUCCESS || outcome->life)
        return HF_FATE_ENDED;
    return outcome->verdict == HF_VERDICT_FAILURE ? HF_FATE_FAILED : HF_FATE_CANCELLED;
}

/* The phase in which an attempt was when it was cut; HF_PHASES: in none, its answer had begun. */
static enum hf_phase phase_of(const struct hf_outcome *outcome) {
    if (outcome->phases.first_byte_us >= 0)
        return HF_PHASES;
    switch (outcome->stage) {
    case HF_STAGE_RESOLVE:
        return HF_PHASE_RESOLVE;
    case HF_STAGE_CONNECT:
        return HF_PHASE_CONNECT;
    case HF_STAGE_TLS:
        return HF_PHASE_TLS;
    case HF_STAGE_SEND:
    case HF_STAGE_WAIT:
    case HF_STAGE_RECEIVE:
        return HF_PHASE_FIRST_BYTE;
    default:
        return HF_PHASES;
    }
}

/* One that ended at `end_us`, after all before it had ended at `from_us`; gives when the next one begins. */
static int64_t ended(struct hfi_recorder *recorder, enum hf_phase phase, int64_t from_us, int64_t end_us) {
    if (end_us < 0)
        return from_us;
    sample(recorder, phase, HF_FATE_ENDED, end_us > from_us ? end_us - from_us : 0);
    return end_us > from_us ? end_us : from_us;
}

static void add(struct hfi_recorder *recorder, const struct hf_outcome *outcome) {
    const struct hfi_phases *phases = &outcome->phases;
    enum hf_fate fate = fate_of(outcome);
    bool is_cut = fate != HF_FATE_ENDED && fate != HF_FATE_FAILED;
    enum hf_phase within = phase_of(outcome);
    int64_t at_us = ended(recorder, HF_PHASE_RESOLVE, 0, phases->resolve_us);
    at_us = ended(recorder, HF_PHASE_CONNECT, at_us, phases->connect_us);
    at_us = ended(recorder, HF_PHASE_TLS, at_us, phases->tls_us);
    bool sent = within == HF_PHASE_FIRST_BYTE || phases->first_byte_us >= 0;
    if (sent && phases->connect_us >= 0)
        sample(recorder, HF_PHASE_SETUP, HF_FATE_ENDED, at_us);
    ended(recorder, HF_PHASE_FIRST_BYTE, at_us, phases->first_byte_us);
    if (is_cut && within != HF_PHASES) {
        sample(recorder, within, fate, hfi_sub(phases->total_us, at_us));
        if (!sent)
            sample(recorder, HF_PHASE_SETUP, fate, phases->total_us);
    }
    sample(recorder, HF_PHASE_ATTEMPT, fate, phases->total_us);
}

void hfi_recorder_add(struct hfi_recorder *_Atomic *place, const struct hf_outcome *outcome) {
    struct hfi_recorder *recorder = NULL;
    NEED(place, recorder);
    if (recorder != NULL)
        add(recorder, outcome);
}

void hfi_recorder_free(struct hfi_recorder *recorder) {
    for (size_t i = 0; recorder != NULL && i < HFI_MEASURED_SPREADS; i++) {
        struct book *book = atomic_load(&recorder->books[i]);
        for (size_t page = 0; book != NULL && page < HFI_SPREAD_PAGES; page++)
            hfi_free(atomic_load(&book->pages[page]));
        hfi_free(book);
    }
    hfi_free(recorder);
}

/* All pages there are, in the order of their keys. */
typedef void (*page_fn)(struct page *page, size_t spread, unsigned bucket, void *user);
static void each_page(const struct hfi_recorder *recorder, page_fn fn, void *user) {
    for (size_t i = 0; recorder != NULL && i < HFI_MEASURED_SPREADS; i++) {
        const struct book *book = atomic_load_explicit(&recorder->books[i], memory_order_acquire);
        for (unsigned at = 0; book != NULL && at < HFI_SPREAD_PAGES; at++) {
            struct page *page = atomic_load_explicit(&book->pages[at], memory_order_acquire);
            if (page != NULL)
                fn(page, i, at * HFI_SPREAD_STEPS, user);
        }
    }
}

static void take_page(struct page *page, size_t spread, unsigned bucket, void *user) {
    struct hfi_packed *packed = user;
    for (unsigned i = 0; i < HFI_SPREAD_STEPS && !packed->failed; i++) {
        if (atomic_load_explicit(&page->counts[i], memory_order_relaxed) == 0)
            continue;
        uint64_t taken = atomic_exchange_explicit(&page->counts[i], 0, memory_order_relaxed);
        hfi_packed_put(packed, (uint64_t)spread * HFI_SPREAD_BUCKETS + bucket + i, taken);
        if (packed->failed)
            atomic_fetch_add_explicit(&page->counts[i], taken, memory_order_relaxed);
    }
}

void hfi_recorder_take(struct hfi_recorder *recorder, struct hfi_packed *packed) {
    hfi_packed_begin(packed);
    each_page(recorder, take_page, packed);
}

static void look_page(struct page *page, size_t spread, unsigned bucket, void *user) {
    struct hfi_spread *spreads = user;
    for (unsigned i = 0; i < HFI_SPREAD_STEPS; i++) {
        uint64_t *place = &spreads[spread].counts[bucket + i];
        *place = hfi_spread_sum(*place, atomic_load_explicit(&page->counts[i], memory_order_relaxed));
    }
}

void hfi_recorder_look(const struct hfi_recorder *recorder, struct hfi_spread *spreads) {
    each_page(recorder, look_page, spreads);
}

static bool put_back(uint64_t key, uint64_t more, void *user) {
    return key < HFI_MEASURED_SPREADS * HFI_SPREAD_BUCKETS &&
           count(user, key / HFI_SPREAD_BUCKETS, (unsigned)(key % HFI_SPREAD_BUCKETS), more);
}

int hfi_recorder_put_back(struct hfi_recorder *recorder, const void *bytes, size_t length) {
    return hfi_packed_each(bytes, length, put_back, recorder);
}
