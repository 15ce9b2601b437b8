/* SPDX-License-Identifier: MIT */
/*
 * Reads a raw Retry-After value (RFC 9110 10.2.3): delta-seconds, or an HTTP-date in any of its three forms (5.6.7).
 * Strict: what is none of them gives -1, never a guess and never 0, which would mean "at once" (A7). Waits are rounded
 * up, a server is never asked early (A2). Must never look at a clock. Pure, any thread.
 */
#include "holdfast/classify.h"

#include <string.h>
#include <strings.h>

#include "base/clock.h"

struct date {
    int year, month, day, hour, minute, second;
};

/* A position in a value whose end is known; every reader moves on only when it matched. */
struct reader {
    const char *at, *end;
};

static bool literal(struct reader *reader, const char *text) {
    size_t length = strlen(text);
    if ((size_t)(reader->end - reader->at) < length || strncasecmp(reader->at, text, length) != 0)
        return false;
    reader->at += length;
    return true;
}

static bool digits(struct reader *reader, int count, int *value) {
    if (reader->end - reader->at < count)
        return false;
    int sum = 0;
    for (int i = 0; i < count; i++) {
        char c = reader->at[i];
        if (c < '0' || c > '9')
            return false;
        sum = sum * 10 + (c - '0');
    }
    reader->at += count;
    *value = sum;
    return true;
}

static bool one_of(struct reader *reader, const char *const *names, int count, int *index) {
    for (int i = 0; i < count; i++) {
        if (literal(reader, names[i])) {
            *index = i;
            return true;
        }
    }
    return false;
}

static const char *const short_days[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
static const char *const long_days[] = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};

static bool month(struct reader *reader, struct date *date) {
    static const char *const names[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    if (!one_of(reader, names, 12, &date->month))
        return false;
    date->month++;
    return true;
}

static bool time_of_day(struct reader *reader, struct date *date) {
    return digits(reader, 2, &date->hour) && literal(reader, ":") && digits(reader, 2, &date->minute) &&
           literal(reader, ":") && digits(reader, 2, &date->second);
}

/* Sun, 06 Nov 1994 08:49:37 GMT */
static bool imf_fixdate(struct reader reader, struct date *date) {
    int day;
    return one_of(&reader, short_days, 7, &day) && literal(&reader, ", ") && digits(&reader, 2, &date->day) &&
           literal(&reader, " ") && month(&reader, date) && literal(&reader, " ") && digits(&reader, 4, &date->year) &&
           literal(&reader, " ") && time_of_day(&reader, date) && literal(&reader, " GMT") && reader.at == reader.end;
}

/* Sunday, 06-Nov-94 08:49:37 GMT */
static bool rfc850_date(struct reader reader, struct date *date) {
    int day;
    return one_of(&reader, long_days, 7, &day) && literal(&reader, ", ") && digits(&reader, 2, &date->day) &&
           literal(&reader, "-") && month(&reader, date) && literal(&reader, "-") && digits(&reader, 2, &date->year) &&
           literal(&reader, " ") && time_of_day(&reader, date) && literal(&reader, " GMT") && reader.at == reader.end;
}

/* Sun Nov  6 08:49:37 1994 */
static bool asctime_date(struct reader reader, struct date *date) {
    int day;
    if (!one_of(&reader, short_days, 7, &day) || !literal(&reader, " ") || !month(&reader, date) ||
        !literal(&reader, " "))
        return false;
    if (!(literal(&reader, " ") ? digits(&reader, 1, &date->day) : digits(&reader, 2, &date->day)))
        return false;
    return literal(&reader, " ") && time_of_day(&reader, date) && literal(&reader, " ") &&
           digits(&reader, 4, &date->year) && reader.at == reader.end;
}

static bool exists(const struct date *date) {
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (date->year % 4 == 0 && date->year % 100 != 0) || date->year % 400 == 0;
    int last = lengths[date->month - 1] + (date->month == 2 && leap ? 1 : 0);
    return date->day >= 1 && date->day <= last && date->hour <= 23 && date->minute <= 59 && date->second <= 60;
}

static int64_t seconds(const struct date *date, int years_less) {
    int64_t days = hfi_days_from_civil(date->year - years_less, date->month, date->day);
    return days * 86400 + date->hour * 3600 + date->minute * 60 + date->second;
}

/* The latest year with these two digits that is not more than 50 years in the future (RFC 9110 5.6.7). */
static void widen_year(struct date *date, int64_t now_us) {
    int64_t now_s = now_us / 1000000;
    int century = (int)(now_s / 86400 * 400 / 146097 + 1970) / 100 * 100; /* within a day of a century's turn: either */
    date->year += century + 100;
    while (seconds(date, 50) > now_s && date->year >= 100)
        date->year -= 100;
}

static int64_t delta_seconds(const struct reader *reader) {
    int64_t sum = 0;
    for (const char *c = reader->at; c < reader->end; c++) {
        if (*c < '0' || *c > '9')
            return -1;
        sum = hfi_add(hfi_mul(sum, 10), *c - '0');
    }
    return hfi_mul(sum, 1000);
}

int64_t hf_retry_after_ms(const char *value, int64_t now_us) {
    if (value == NULL)
        return -1;
    struct reader reader = {value, value + strlen(value)};
    while (reader.at < reader.end && (*reader.at == ' ' || *reader.at == '\t'))
        reader.at++;
    while (reader.end > reader.at && (reader.end[-1] == ' ' || reader.end[-1] == '\t'))
        reader.end--;
    if (reader.at == reader.end)
        return -1;
    if (*reader.at >= '0' && *reader.at <= '9')
        return delta_seconds(&reader);

    struct date date;
    if (rfc850_date(reader, &date))
        widen_year(&date, now_us);
    else if (!imf_fixdate(reader, &date) && !asctime_date(reader, &date))
        return -1;
    if (!exists(&date))
        return -1;
    int64_t wait_us = hfi_sub(hfi_mul(seconds(&date, 0), 1000000), now_us);
    return wait_us > 0 ? hfi_us_to_ms_up(wait_us) : 0;
}
