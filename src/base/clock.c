/* SPDX-License-Identifier: MIT */
/*
 * Reads the clocks, and the saturating sums and calendar that times need. Must never consult a time zone: stored times
 * are UTC. Any thread.
 */
#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "holdfast/error.h"

#define SECOND_US INT64_C(1000000)
#define DAY_S INT64_C(86400)
#define FIRST_DAY (-INT64_C(719528)) /* 0000-01-01 */
#define LAST_DAY INT64_C(2932896)    /* 9999-12-31 */

static int64_t read_us(clockid_t clock) {
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        return 0; /* only for an unknown clock id or a bad pointer: not ours */
    return (int64_t)now.tv_sec * SECOND_US + now.tv_nsec / 1000;
}

struct hf_mono hfi_mono_now(void) {
    return (struct hf_mono){read_us(CLOCK_MONOTONIC)};
}

struct hf_mono hfi_mono_now_coarse(void) {
    return (struct hf_mono){read_us(CLOCK_MONOTONIC_COARSE)};
}

int64_t hfi_mono_coarse_step_us(void) {
    struct timespec step;
    return clock_getres(CLOCK_MONOTONIC_COARSE, &step) == 0 ? step.tv_sec * SECOND_US + step.tv_nsec / 1000 : 0;
}

struct hf_wall hfi_wall_now(void) {
    return (struct hf_wall){read_us(CLOCK_REALTIME)};
}

/* Both ways count in eras of 400 years = 146,097 days that begin on 1 March, so that the leap day comes last. */
int64_t hfi_days_from_civil(int64_t year, int month, int day) {
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static void civil_from_days(int64_t days, int *year, int *month, int *day) {
    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted_month = (5 * day_of_year + 2) / 153;
    *day = (int)(day_of_year - (153 * shifted_month + 2) / 5 + 1);
    *month = (int)(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
    *year = (int)(year_of_era + era * 400 + (*month <= 2 ? 1 : 0));
}

char *hfi_rfc3339(int64_t wall_us, char *text) {
    if (wall_us == 0) {
        text[0] = '\0';
        return text;
    }
    const int64_t lowest = FIRST_DAY * DAY_S * SECOND_US;
    const int64_t highest = (LAST_DAY + 1) * DAY_S * SECOND_US - 1;
    int64_t us = wall_us < lowest ? lowest : wall_us > highest ? highest : wall_us;
    int64_t second = us / SECOND_US - (us % SECOND_US < 0 ? 1 : 0);
    int64_t day_number = second / DAY_S - (second % DAY_S < 0 ? 1 : 0);
    unsigned of_day = (unsigned)(second - day_number * DAY_S);
    int year, month, day;
    civil_from_days(day_number, &year, &month, &day);
    /* The remainders tell the compiler what the clamps above guarantee: every field has its width. */
    snprintf(text, HFI_RFC3339_LENGTH, "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ", (unsigned)year % 10000,
             (unsigned)month % 100, (unsigned)day % 100, of_day / 3600 % 24, of_day / 60 % 60, of_day % 60,
             (unsigned)(us - second * SECOND_US) % 1000000);
    return text;
}

/* Exactly `width` digits; moves on. */
static bool digits(const char **at, int width, int *value) {
    *value = 0;
    for (int i = 0; i < width; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        *value = *value * 10 + (**at - '0');
    }
    return true;
}

static bool literal(const char **at, char wanted) {
    if (**at != wanted)
        return false;
    (*at)++;
    return true;
}

/* `.` and one digit or more; what is finer than a µs is cut. */
static bool fraction(const char **at, int *us) {
    *us = 0;
    if (**at != '.')
        return true;
    (*at)++;
    int scale = 100000;
    int count = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++, count++) {
        *us += (**at - '0') * scale;
        scale /= 10;
    }
    return count > 0;
}

static bool offset(const char **at, int *seconds) {
    *seconds = 0;
    if (**at == 'Z' || **at == 'z') {
        (*at)++;
        return true;
    }
    int sign = **at == '+' ? 1 : **at == '-' ? -1 : 0;
    if (sign == 0)
        return false;
    (*at)++;
    int hours, minutes;
    if (!digits(at, 2, &hours) || !literal(at, ':') || !digits(at, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

static int days_in_month(int year, int month) {
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return lengths[month - 1] + (month == 2 && leap ? 1 : 0);
}

int hfi_rfc3339_parse(const char *text, int64_t *wall_us) {
    const char *at = text;
    int year, month, day, hour, minute, second, us, zone;
    if (!text || !digits(&at, 4, &year) || !literal(&at, '-') || !digits(&at, 2, &month) || !literal(&at, '-') ||
        !digits(&at, 2, &day))
        return HF_EINVAL;
    if (!literal(&at, 'T') && !literal(&at, 't'))
        return HF_EINVAL;
    if (!digits(&at, 2, &hour) || !literal(&at, ':') || !digits(&at, 2, &minute) || !literal(&at, ':') ||
        !digits(&at, 2, &second) || !fraction(&at, &us) || !offset(&at, &zone) || *at != '\0')
        return HF_EINVAL;
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) || hour > 23 || minute > 59 ||
        second > 60)
        return HF_EINVAL;
    int64_t total = hfi_days_from_civil(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second - zone;
    if (second == 60 && total % DAY_S != 0)
        return HF_EINVAL; /* a leap second is the last of a UTC day (RFC 3339 section 5.7); it counts as the next one */
    *wall_us = total * SECOND_US + us;
    return 0;
}
