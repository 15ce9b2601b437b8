/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_REGISTRY_H
#define HFI_RESILIENCE_REGISTRY_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "resilience/target.h"

/*
 * The hosts of one `per_host` downstream, by key (key.h). Bounded: at most `max`. A new one beyond that takes the place
 * of one that is idle: not in use by anybody, closed, with an empty window and a first break before it, or with a break
 * that was over long ago and nobody has called since. One that is open, half-open, in its ramp, isolated, gated or has
 * calls in flight is never forgotten (B31): without an idle one the new host shares the downstream's own breaker, and a
 * warning says so. References are counted: an entry that was evicted lives on for whoever holds it (B32). Pure; its
 * owner locks.
 */
struct hfi_registry;

int hfi_registry_new(uint32_t max, struct hfi_registry **registry); /* HF_ENOMEM */
void hfi_registry_free(struct hfi_registry *registry);              /* NULL is fine */

/*
 * The host of `key`, made of `origin` if it is new; `origin` itself when there is no room. One reference for the
 * caller. HF_ENOMEM changes nothing.
 */
int hfi_registry_take(struct hfi_registry *registry, struct hfi_target *origin, const char *key, struct hf_mono now,
                      struct hfi_target **target);
/*
 * Takes over the hosts of `old` for a changed `origin`: each keeps its downstream. `old` may be NULL and stays as it
 * is. More than `max` are taken over as they are, and become fewer by and by. HF_ENOMEM: nothing is taken over.
 */
int hfi_registry_adopt(struct hfi_registry *registry, struct hfi_target *origin, const struct hfi_registry *old);

size_t hfi_registry_count(const struct hfi_registry *registry);
uint64_t hfi_registry_overflows(const struct hfi_registry *registry); /* takes that got `origin` */
/* Copies up to `room` of their downstreams, the last used first, one reference each; how many. */
size_t hfi_registry_list(const struct hfi_registry *registry, struct hf_downstream **list, size_t room);

#endif
