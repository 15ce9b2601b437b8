/* SPDX-License-Identifier: MIT */
/* How measured attempts are kept in a store, the same in every kind of it. Pure; any thread. */
#include "jobs/measuring.h"

#include "holdfast/error.h"
#include "resilience/spread.h"

#define HOUR_US INT64_C(3600000000)

int64_t hfi_measured_hour(int64_t wall_us) {
    return wall_us > 0 ? wall_us / HOUR_US : 0;
}

int hfi_measured_merge(const void *stored, size_t stored_length, const void *bytes, size_t length, unsigned char **sum,
                       size_t *sum_length) {
    struct hfi_packed none, packed = {0};
    hfi_packed_begin(&none);
    if (none.failed)
        return HF_ENOMEM;
    int code = stored != NULL ? hfi_packed_merge(stored, stored_length, bytes, length, &packed) : HF_EINVAL;
    if (code == HF_EINVAL)
        code = hfi_packed_merge(none.bytes, none.length, bytes, length, &packed);
    hfi_packed_end(&none);
    *sum = packed.bytes;
    *sum_length = packed.length;
    return code;
}
