/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_STORE_GAUGES_H
#define HFI_JOBS_STORE_GAUGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct hfi_sqlite;
struct hfi_gauge; /* of one queue, or of one limit key; lives as long as the store */

/* The gauge of that name, made when it is new; NULL: no memory. */
struct hfi_gauge *hfi_sqlite_gauge(struct hfi_gauge **gauges, const char *name);
void hfi_sqlite_gauges_free(struct hfi_sqlite *store);

/*
 * Makes what runs true for this transaction; until its end hfi_sqlite_lane_moved keeps it so. 0 or a fault. Costs one
 * small read, and one of an index entry for each running job when another process has written.
 */
int hfi_sqlite_gauges_read(struct hfi_sqlite *store);
void hfi_sqlite_gauge_moved(struct hfi_gauge *gauge, int by); /* NULL is fine */
uint32_t hfi_sqlite_gauge_running(const struct hfi_gauge *gauge); /* NULL: 0 */

/* A gauge's part in one claim, empty at the first look after hfi_sqlite_pauses_read. */
struct hfi_gauge_part {
    uint64_t look;
    int64_t full_at_us; /* of a limit key's rate */
    uint16_t budget;    /* hfi_merge_budget */
};
struct hfi_gauge_part *hfi_sqlite_gauge_part(const struct hfi_sqlite *store, struct hfi_gauge *gauge);

/* Which queues are paused now; hfi_sqlite_gauge_paused answers by the last reading. */
int hfi_sqlite_pauses_read(struct hfi_sqlite *store, struct hf_wall now);
bool hfi_sqlite_gauge_paused(const struct hfi_sqlite *store, const struct hfi_gauge *queue);

/* When the bucket of a key is full again; 0: it is. */
int hfi_sqlite_rate_get(struct hfi_sqlite *store, const char *limit_key, int64_t *full_at_us);
int hfi_sqlite_rate_set(struct hfi_sqlite *store, const char *limit_key, int64_t full_at_us);

#endif
