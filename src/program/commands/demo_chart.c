/* SPDX-License-Identifier: MIT */
/*
 * The demo's picture: an SVG of three bands on one time axis. It only draws numbers, so nothing needs escaping. No thread
 * of its own.
 */
#include <inttypes.h>
#include <stdio.h>

#include "program/commands/demo_chart.h"

#define WIDTH 960.0
#define LEFT 64.0
#define RIGHT 24.0
#define CALLS_TOP 92.0
#define CALLS_HEIGHT 210.0
#define PARKED_TOP 352.0
#define PARKED_HEIGHT 110.0
#define STATE_TOP 52.0

struct scale {
    double span_ms, calls, parked;
};

struct series {
    const char *name;
    const char *colour;
    uint64_t (*read)(const struct hfi_demo_sample *sample);
};

static uint64_t read_ok(const struct hfi_demo_sample *sample) {
    return sample->ok;
}
static uint64_t read_failed(const struct hfi_demo_sample *sample) {
    return sample->failed;
}
static uint64_t read_unanswered(const struct hfi_demo_sample *sample) {
    return sample->unanswered;
}
static uint64_t read_gone(const struct hfi_demo_sample *sample) {
    return sample->gone;
}

static const struct series all_series[] = {
    {"200 ok", "#2e8b57", read_ok},
    {"503", "#d1495b", read_failed},
    {"no answer", "#8e5ea2", read_unanswered},
    {"410 gone", "#b08900", read_gone},
};
#define SERIES_COUNT (sizeof all_series / sizeof all_series[0])

/* Indexed by enum hf_breaker_state. */
static const char *const state_colours[] = {"#cfe8d8", "#e79aa5", "#f3d48a", "#b9d6f2", "#999999"};

static double x_of(const struct scale *scale, int64_t at_ms) {
    return LEFT + (double)at_ms / scale->span_ms * (WIDTH - LEFT - RIGHT);
}

static double rate(const struct series *series, const struct hfi_demo_sample *samples, size_t i) {
    int64_t ms = samples[i].at_ms - samples[i - 1].at_ms;
    double count = (double)(series->read(&samples[i]) - series->read(&samples[i - 1]));
    return ms > 0 ? count * 1000.0 / (double)ms : 0.0;
}

static struct scale find_scale(const struct hfi_demo_sample *samples, size_t count) {
    struct scale scale = {1.0, 10.0, 10.0};
    for (size_t i = 1; i < count; i++) {
        for (size_t s = 0; s < SERIES_COUNT; s++) {
            double value = rate(&all_series[s], samples, i);
            scale.calls = value > scale.calls ? value : scale.calls;
        }
        double parked = (double)samples[i].parked;
        scale.parked = parked > scale.parked ? parked : scale.parked;
        scale.span_ms = (double)samples[i].at_ms;
    }
    return scale;
}

static void draw_text(FILE *file, double x, double y, const char *style, const char *text) {
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y, style, text);
}

static void draw_axis(FILE *file, double top, double height, double peak) {
    for (int i = 0; i <= 2; i++) {
        double y = top + height - height * i / 2.0;
        fprintf(file, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", LEFT, y, WIDTH - RIGHT, y);
        fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.0f</text>\n", LEFT - 6, y + 4, peak * i / 2.0);
    }
}

static void draw_states(FILE *file, const struct scale *scale, const struct hfi_demo_sample *samples, size_t count) {
    size_t start = 0;
    for (size_t i = 1; i <= count; i++) {
        if (i < count && samples[i].breaker == samples[start].breaker) {
            continue;
        }
        double x = x_of(scale, samples[start].at_ms);
        double end = x_of(scale, samples[i < count ? i : count - 1].at_ms);
        enum hf_breaker_state state = samples[start].breaker;
        fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"20\" fill=\"%s\"><title>%s</title></rect>\n", x,
                STATE_TOP, end - x, state_colours[state], hf_breaker_state_name(state));
        if (end - x > 44.0) {
            draw_text(file, x + 4, STATE_TOP + 14, "", hf_breaker_state_name(state));
        }
        start = i;
    }
}

static void draw_calls(FILE *file, const struct scale *scale, const struct hfi_demo_sample *samples, size_t count) {
    draw_axis(file, CALLS_TOP, CALLS_HEIGHT, scale->calls);
    draw_text(file, LEFT, CALLS_TOP - 6, "font-weight=\"bold\"", "requests per second, by what the downstream did");
    for (size_t s = 0; s < SERIES_COUNT; s++) {
        fprintf(file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", all_series[s].colour);
        for (size_t i = 1; i < count; i++) {
            fprintf(file, "%.1f,%.1f ", x_of(scale, samples[i].at_ms),
                    CALLS_TOP + CALLS_HEIGHT - rate(&all_series[s], samples, i) / scale->calls * CALLS_HEIGHT);
        }
        fprintf(file, "\"/>\n");
        double x = LEFT + 480.0 + 100.0 * (double)s;
        fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\"/>\n", x, CALLS_TOP - 15,
                all_series[s].colour);
        draw_text(file, x + 14, CALLS_TOP - 6, "", all_series[s].name);
    }
}

static void draw_parked(FILE *file, const struct scale *scale, const struct hfi_demo_sample *samples, size_t count) {
    draw_axis(file, PARKED_TOP, PARKED_HEIGHT, scale->parked);
    draw_text(file, LEFT, PARKED_TOP - 6, "font-weight=\"bold\"", "jobs parked: due, kept back, no execution spent");
    fprintf(file, "<polygon fill=\"#b9d6f2\" stroke=\"#2f6db5\" points=\"%.1f,%.1f ", LEFT, PARKED_TOP + PARKED_HEIGHT);
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "%.1f,%.1f ", x_of(scale, samples[i].at_ms),
                PARKED_TOP + PARKED_HEIGHT - (double)samples[i].parked / scale->parked * PARKED_HEIGHT);
    }
    fprintf(file, "%.1f,%.1f\"/>\n", x_of(scale, samples[count - 1].at_ms), PARKED_TOP + PARKED_HEIGHT);
}

static void draw_time(FILE *file, const struct scale *scale) {
    int step = scale->span_ms > 60000.0 ? 10 : 5;
    for (int s = 0; s * 1000.0 <= scale->span_ms; s += step) {
        fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%d s</text>\n", x_of(scale, s * INT64_C(1000)),
                PARKED_TOP + PARKED_HEIGHT + 18, s);
    }
}

int hfi_demo_chart_write(const char *path, const struct hfi_demo_sample *samples, size_t count) {
    FILE *file = count > 1 ? fopen(path, "w") : NULL;
    if (file == NULL) {
        return -1;
    }
    struct scale scale = find_scale(samples, count);
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, PARKED_TOP + PARKED_HEIGHT + 30);
    draw_text(file, LEFT, 24, "font-size=\"16\" font-weight=\"bold\"", "holdfast demo: a downstream dies and comes back");
    draw_text(file, LEFT, STATE_TOP - 6, "font-weight=\"bold\"", "circuit breaker");
    draw_states(file, &scale, samples, count);
    draw_calls(file, &scale, samples, count);
    draw_parked(file, &scale, samples, count);
    draw_time(file, &scale);
    fprintf(file, "</svg>\n");
    int bad = ferror(file);
    return fclose(file) != 0 || bad ? -1 : 0;
}
