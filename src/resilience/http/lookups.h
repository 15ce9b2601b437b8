/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_HTTP_LOOKUPS_H
#define HFI_RESILIENCE_HTTP_LOOKUPS_H

#include <stdint.h>

#include "base/clock.h"

/*
 * How many name lookups are unresolved in this process. A lookup that nobody waits for any more still occupies a
 * thread inside the resolver until the name server answers, so it stays counted until that thread is gone. At most
 * HFI_LOOKUPS_MAX at once, HFI_LOOKUPS_PER_HOST for one host, which is all that most downstreams have, and
 * HFI_LOOKUPS_PER_DOWNSTREAM for one with many: a dead zone harms nobody else. Any thread.
 */
#define HFI_LOOKUPS_MAX 32
#define HFI_LOOKUPS_PER_DOWNSTREAM 16
#define HFI_LOOKUPS_PER_HOST 4

/* A slot, or -1: too many are out. `host` is a hash of host and port, `downstream` of its name, 0: of none. */
int hfi_lookup_begin(uint64_t host, uint64_t downstream, struct hf_mono now);
void hfi_lookup_end(int slot); /* resolved, or failed by itself */
/*
 * Given up. `wire` is a descriptor (owned from here, -1 if unknown) whose other end the resolving thread closes when
 * it ends; without one the slot is held for HFI_LOOKUP_LAPSE_MS.
 */
void hfi_lookup_abandon(int slot, int wire, struct hf_mono now);
unsigned hfi_lookup_count(struct hf_mono now);

#define HFI_LOOKUP_LAPSE_MS 120000

#endif
