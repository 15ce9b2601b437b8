/* SPDX-License-Identifier: MIT */
/* The clock and the CPU clock of a benchmark. Must never count what came before all was warm. One thread at a time. */
#include "meter.h"

#include <sys/resource.h>
#include <time.h>

static struct {
    long warm, count;
    double seconds, begun, cpu, ended, cpu_end;
} m;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double cpu_now(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void meter_begin(long warm, double seconds) {
    m.warm = warm;
    m.count = 0;
    m.seconds = seconds;
    m.ended = 0;
}

bool meter_count(void) {
    if (m.warm > 0) {
        if (--m.warm == 0) {
            m.cpu = cpu_now();
            m.begun = now();
        }
        return true;
    }
    if (m.ended > 0)
        return false;
    m.count++;
    double time = now();
    if (time - m.begun < m.seconds)
        return true;
    m.ended = time;
    m.cpu_end = cpu_now();
    return false;
}

void meter_end(double *per_s, double *cpu_us) {
    *per_s = (double)m.count / (m.ended - m.begun);
    *cpu_us = (m.cpu_end - m.cpu) * 1e6 / (double)m.count;
}
