/* SPDX-License-Identifier: MIT */
/*
 * When a message is given up. Must never give up because of what a clock says alone. Pure, any thread.
 */
#include "jobs/deaths/patience.h"

#include "base/clock.h"

#define LOOK_LEAST_US INT64_C(30000000)  /* several nodes look each minute: one of them writes */
#define LOOK_MOST_US INT64_C(3600000000) /* nodes that come hourly are as good as one that stays */

int64_t hfi_alerts_wait_ms(uint32_t tries) {
    static const int64_t waits[] = {5000, 30000, 120000, 600000, 3600000};
    uint32_t last = sizeof waits / sizeof *waits - 1;
    return tries <= 1 ? waits[0] : tries - 1 > last ? waits[last] : waits[tries - 1];
}

static int64_t between(int64_t value, int64_t least, int64_t most) {
    return value < least ? least : value > most ? most : value;
}

int64_t hfi_alerts_piece_us(uint32_t tries, int64_t from_us, int64_t to_us, int64_t lease_ms) {
    return between(hfi_sub(to_us, from_us), 0, hfi_ms_to_us(hfi_add(hfi_alerts_wait_ms(tries), lease_ms)));
}

bool hfi_alerts_give_up(int64_t tried_us) {
    return tried_us >= HFI_ALERT_GIVE_UP_US;
}

bool hfi_absence_look(struct hfi_absence *absence, int64_t now_us) {
    int64_t piece = hfi_sub(now_us, absence->looked_us);
    if (absence->looked_us != 0 && piece >= 0 && piece < LOOK_LEAST_US)
        return false;
    if (absence->looked_us != 0)
        absence->absent_us = hfi_add(absence->absent_us, between(piece, 0, LOOK_MOST_US));
    absence->looked_us = now_us;
    return true;
}

bool hfi_absence_over(const struct hfi_absence *absence) {
    return absence->absent_us >= HFI_ALERT_GIVE_UP_US;
}
