/* SPDX-License-Identifier: MIT */
/*
 * A histogram of a phase as lines of text: # what ended, x what failed, : what was cut. Only draws. The main thread's.
 */
#include "program/commands/ladder_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "program/output.h"

#define ROWS 96    /* half doublings from 1 µs on */
#define WIDTH 50

struct row {
    double ended, failed, cut;
};

bool hfi_fate_is_cut(enum hf_fate fate) {
    return fate != HF_FATE_ENDED && fate != HF_FATE_FAILED;
}

char *hfi_show_us(int64_t us, char *text) {
    double value = (double)us;
    if (us < 0)
        snprintf(text, HFI_US_ROOM, "-");
    else if (us < 1000)
        snprintf(text, HFI_US_ROOM, "%lld us", (long long)us);
    else if (us < 1000000)
        snprintf(text, HFI_US_ROOM, "%.3g ms", value / 1000);
    else
        snprintf(text, HFI_US_ROOM, "%.3g s", value / 1000000);
    return text;
}

static int row_of(int64_t us) {
    int row = us > 1 ? (int)(2 * log2((double)us)) : 0;
    return row < ROWS ? row : ROWS - 1;
}

static int64_t row_begins(int row) {
    return (int64_t)ceil(exp2(row / 2.0) - 1e-9);
}

static void fill(const struct hf_measured *measured, enum hf_phase phase, struct row *rows) {
    for (int i = 0; i < HF_FATES; i++) {
        enum hf_fate fate = (enum hf_fate)i;
        uint32_t cursor = 0;
        int64_t from_us, to_us;
        uint64_t count;
        while (hf_measured_next(measured, phase, fate, &cursor, &from_us, &to_us, &count)) {
            struct row *row = &rows[row_of(to_us)];
            double *place = hfi_fate_is_cut(fate) ? &row->cut : fate == HF_FATE_FAILED ? &row->failed : &row->ended;
            *place += (double)count;
        }
    }
}

/* Anything that is there is seen: one column at least. */
static int columns(double count, double most) {
    return count > 0 ? (int)fmax(1, round(count / most * WIDTH)) : 0;
}

static void print_row(const struct row *row, int at, double most) {
    char bar[3 * WIDTH + 4], from[HFI_US_ROOM], to[HFI_US_ROOM];
    int ended = columns(row->ended, most), failed = columns(row->failed, most), cut = columns(row->cut, most);
    memset(bar, '#', (size_t)ended);
    memset(bar + ended, 'x', (size_t)failed);
    memset(bar + ended + failed, ':', (size_t)cut);
    bar[ended + failed + cut] = '\0';
    hfi_say("  %9s to %9s |%s %.0f", hfi_show_us(row_begins(at), from), hfi_show_us(row_begins(at + 1), to), bar,
            row->ended + row->failed + row->cut);
}

void hfi_ladder_plot(const struct hf_measured *measured, enum hf_phase phase, const char *limit, int64_t limit_ms) {
    struct row rows[ROWS] = {{0}};
    char span[HFI_SPAN_LENGTH];
    int first = ROWS, last = -1, limit_row = limit_ms > 0 ? row_of(limit_ms * 1000) : -1;
    double most = 0;
    fill(measured, phase, rows);
    for (int i = 0; i < ROWS; i++) {
        double all = rows[i].ended + rows[i].failed + rows[i].cut;
        if (all == 0)
            continue;
        first = i < first ? i : first;
        last = i;
        most = fmax(most, all);
    }
    if (last < 0)
        return;
    hfi_say("%s", "");
    hfi_say("%s", hf_phase_name(phase));
    for (int i = first; i <= last; i++) {
        print_row(&rows[i], i, most);
        if (i == limit_row || (i == last && limit_row > last))
            hfi_say("  ---------------------- | %s %s%s", limit, hfi_show_span(limit_ms, span),
                    i == limit_row ? " (in the row above)" : "");
    }
}
