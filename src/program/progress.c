/* SPDX-License-Identifier: MIT */
/*
 * Progress of long work. Must never write to stdout, nor more often than people can read. The main thread's; the wall
 * clock only spaces the lines.
 */
#include "program/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/units.h"
#include "program/output.h"

#define BAR 30
#define REDRAW_US 100000
#define LINE_US 5000000

void hfi_progress_start(struct hfi_progress *progress, const char *what, uint64_t total) {
    const char *term = getenv("TERM");
    memset(progress, 0, sizeof *progress);
    progress->what = what;
    progress->total = total;
    progress->started_us = progress->shown_us = hf_time_now();
    progress->terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static void draw(const struct hfi_progress *progress, double seconds) {
    char bar[BAR + 1];
    double share = progress->total > 0 ? (double)progress->done / (double)progress->total : 0;
    int full = (int)(share > 1 ? BAR : share * BAR);
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)full);
    bar[BAR] = '\0';
    double rate = seconds > 0 ? (double)progress->done / seconds : 0;
    if (progress->total > 0)
        fprintf(stderr, "\r[%s] %llu of %llu %s, %.0f/s\033[K", bar, (unsigned long long)progress->done,
                (unsigned long long)progress->total, progress->what, rate);
    else
        fprintf(stderr, "\r%llu %s, %.0f/s\033[K", (unsigned long long)progress->done, progress->what, rate);
    fflush(stderr);
}

void hfi_progress_move(struct hfi_progress *progress, uint64_t done) {
    int64_t now = hf_time_now(), spacing = progress->terminal ? REDRAW_US : LINE_US;
    progress->done = done;
    /* A clock that was set back must not silence it. */
    if (hfi_manner()->quiet || (now >= progress->shown_us && now - progress->shown_us < spacing))
        return;
    progress->shown_us = now;
    progress->shown = true;
    if (progress->terminal)
        draw(progress, (double)(now - progress->started_us) / 1e6);
    else if (progress->total > 0)
        fprintf(stderr, "%llu of %llu %s\n", (unsigned long long)done, (unsigned long long)progress->total, progress->what);
    else
        fprintf(stderr, "%llu %s\n", (unsigned long long)done, progress->what);
}

void hfi_progress_end(struct hfi_progress *progress) {
    if (progress->terminal && progress->shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}
