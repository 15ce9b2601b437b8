/* SPDX-License-Identifier: MIT */
#ifndef BENCH_METER_H
#define BENCH_METER_H

#include <stdbool.h>

/* Counts requests and client CPU, from the `warm`th request on: connections and handles are made by then. One at a
 * time. */
void meter_begin(long warm, double seconds);
bool meter_count(void); /* one ended well; false: the time is over, start no other */
void meter_end(double *per_s, double *cpu_us);

#endif
