/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_HTTP_LOOKUPS_H
#define HFI_RESILIENCE_HTTP_LOOKUPS_H

#include <stdint.h>

#include "base/clock.h"

/*
 * How many name lookups are unresolved in this process. A lookup that nobody waits for any more still occupies a
 * thread inside the resolver until the name server answers, so it stays counted until that thread is gone. At most
 * HFI_LOOKUPS_MAX at once, and HFI_LOOKUPS_PER_DOWNSTREAM of one downstream: a dead zone harms nobody else. A host of a
 * per_host downstream is one of its own. There strangers choose the names, so all hosts of one together have at most
 * HFI_LOOKUPS_PER_GROUP, and those of all such downstreams HFI_LOOKUPS_OF_GROUPS: the rest stays with downstreams whose
 * address was configured. Any thread.
 */
#define HFI_LOOKUPS_MAX 32
#define HFI_LOOKUPS_PER_DOWNSTREAM 4
#define HFI_LOOKUPS_PER_GROUP 16
#define HFI_LOOKUPS_OF_GROUPS 24

/* Whose lookup it is, as hashes. */
struct hfi_lookup_owner {
    uint64_t downstream; /* or the host, of a per_host one and of none */
    uint64_t group;      /* the per_host downstream; 0: it is none */
};

/* A slot, or -1: too many are out. */
int hfi_lookup_begin(struct hfi_lookup_owner owner, struct hf_mono now);
void hfi_lookup_end(int slot); /* resolved, or failed by itself */
/*
 * Given up. `wire` is a descriptor (owned from here, -1 if unknown) whose other end the resolving thread closes when
 * it ends; without one the slot is held for HFI_LOOKUP_LAPSE_MS.
 */
void hfi_lookup_abandon(int slot, int wire, struct hf_mono now);
unsigned hfi_lookup_count(struct hf_mono now);

#define HFI_LOOKUP_LAPSE_MS 120000

#endif
