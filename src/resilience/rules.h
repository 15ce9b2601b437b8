/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_RULES_H
#define HFI_RESILIENCE_RULES_H

#include "holdfast/classify.h"
#include "resilience/transport.h"

/* Own rules of a call or a downstream: a checked, deep copy in memory of its owner. */
struct hfi_rules {
    const struct hf_rule *items;
    size_t count;
};

/* Rule `index` of an array whose caller may know fewer fields. False: the array's `size` is not set. */
bool hfi_rule_take(const struct hf_rule *rules, size_t index, struct hf_rule *rule);

/* Bytes that a copy of `given` needs, aligned for pointers; 0 for none. `given` has passed hf_rules_check. */
size_t hfi_rules_room(const struct hf_rule *given, size_t count);
/* Copies `given` to `at`, aligned for pointers, of that size. Returns the end. */
char *hfi_rules_put(struct hfi_rules *rules, const struct hf_rule *given, size_t count, char *at);

/*
 * The rules of the call, then those of the downstream: the first that matches overrules `outcome`. `facts` NULL: the
 * attempt was cut by a limit.
 */
void hfi_rules_judge(const struct hfi_rules *call, const struct hfi_rules *downstream, const char *method,
                     const struct hfi_attempt_facts *facts, struct hf_outcome *outcome);

#endif
