/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_FAULTS_H
#define HOLDFAST_FAULTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "api.h"
#include "error.h"

/*
 * delay: the attempt starts later. status: an answer with that status, without asking the peer. reset: the connection is
 * reset while we wait for the answer. drop: no answer until a limit ends the attempt.
 */
#define HF_FAULT_MAP(X) X(DELAY, "delay") X(STATUS, "status") X(RESET, "reset") X(DROP, "drop")
#define HF_FAULT_MEMBER(name, text) HF_FAULT_##name,
enum hf_fault_kind { HF_FAULT_MAP(HF_FAULT_MEMBER) };
#undef HF_FAULT_MEMBER

#define HF_FAULTS_MAX 16 /* of one downstream */

HF_BEGIN

struct hf_downstream;

/*
 * One fault for tests and game days. It is classified as the real thing would be, counts for breaker and budget, and
 * can be told by the outcome's message, the counter `faults` of the view and the log.
 */
struct hf_fault {
    uint32_t size;
    enum hf_fault_kind kind;
    int status;       /* of HF_FAULT_STATUS: 200…599 */
    int64_t delay_ms; /* of HF_FAULT_DELAY: above 0; of the others: waits so long before it strikes, 0 = at once */
    double share;     /* of the attempts, above 0, at most 1: 1 */
    int64_t every_ms; /* 0 = all the time; else only in the first `for_ms` of each so long, from the first attempt on */
    int64_t for_ms;
};
static inline void hf_fault_init(struct hf_fault *fault, enum hf_fault_kind kind) {
    memset(fault, 0, sizeof *fault);
    fault->size = (uint32_t)sizeof *fault;
    fault->kind = kind;
    fault->share = 1;
}

/* Are they sound? HF_EINVAL or HF_ETOOBIG with `error.what` as "faults[0].status". Pure, any thread. Since 0.1. */
HF_API int hf_faults_check(const struct hf_fault *faults, size_t count, struct hf_error *error);

/*
 * From now on these faults strike the attempts of the downstream, in place of those before; the first that strikes an
 * attempt is the only one. `count` 0 ends it. They are copied (an array steps by the `size` of its first item) and work
 * for HTTP calls and hf_guard_run; hf_guard_enter knows none. Logs `downstream.faults` as a warning. Refused with
 * HF_EPERM unless the policy says allow_fault_injection. Any thread. Errors: HF_EINVAL, HF_ETOOBIG, HF_EPERM,
 * HF_ENOMEM. Since 0.1.
 */
HF_API int hf_downstream_inject(struct hf_downstream *downstream, const struct hf_fault *faults, size_t count,
                                struct hf_error *error);

HF_API const char *hf_fault_name(enum hf_fault_kind kind); /* "unknown" for any other number. Any thread. Since 0.1. */

HF_END

#endif
