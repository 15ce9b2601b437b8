/* SPDX-License-Identifier: MIT */
/*
 * The rules of storm collapse and of the pace of messages. Must never leave a death without a message that it goes out
 * with, whatever the wall clock does. Pure, any thread.
 */
#include "jobs/deaths/storm.h"

#include "base/clock.h"

#define MINUTE_US INT64_C(60000000)

enum hfi_storm_place hfi_storm_arrives(struct hfi_storm *storm, int64_t now_us, int64_t window_us) {
    int64_t end = hfi_add(now_us, window_us);
    bool astray = storm->until_us > end; /* the clock went back, or the window was made shorter */
    if (storm->lead != 0 && !astray)
        return HFI_STORM_JOINS; /* also past its end, while nobody took it */
    if (storm->until_us > now_us && !astray)
        return HFI_STORM_LEADS;
    storm->until_us = end;
    storm->lead = 0;
    return HFI_STORM_FIRST;
}

void hfi_storm_seal(struct hfi_storm *storm, int64_t now_us, int64_t window_us) {
    storm->lead = 0;
    storm->until_us = hfi_add(now_us, window_us);
}

/* A time ahead of now is from before the clock went back. */
static bool counts(int64_t at_us, int64_t now_us) {
    return at_us != 0 && at_us <= now_us && at_us > hfi_sub(now_us, MINUTE_US);
}

uint32_t hfi_storm_room(const struct hfi_storm_pace *pace, int64_t now_us) {
    uint32_t room = 0;
    for (int i = 0; i < HFI_STORM_PER_MINUTE; i++)
        room += !counts(pace->at_us[i], now_us);
    return room;
}

int64_t hfi_storm_room_at(const struct hfi_storm_pace *pace, int64_t now_us) {
    int64_t oldest = now_us;
    if (hfi_storm_room(pace, now_us) > 0)
        return now_us;
    for (int i = 0; i < HFI_STORM_PER_MINUTE; i++)
        oldest = pace->at_us[i] < oldest ? pace->at_us[i] : oldest;
    return hfi_add(oldest, MINUTE_US);
}

void hfi_storm_spend(struct hfi_storm_pace *pace, int64_t now_us) {
    for (int i = 0; i < HFI_STORM_PER_MINUTE; i++) {
        if (counts(pace->at_us[i], now_us))
            continue;
        pace->at_us[i] = now_us;
        return;
    }
}

bool hfi_storm_digests(struct hfi_storm_pace *pace, int64_t now_us, bool fresh) {
    if (hfi_storm_room(pace, now_us) == 0) {
        pace->held = pace->held || fresh;
        return false;
    }
    bool digests = pace->held && fresh;
    pace->held = false;
    return digests;
}
