/* SPDX-License-Identifier: MIT */
/*
 * Turns of the processes that write to one file (I73). SQLite hands its write lock to whoever asks first after it came
 * free, and lets the others sleep up to a tenth of a second: a process that writes without a pause takes it again and
 * again. So a process takes its turn first, a lock on the second byte of <db>.ckpt, waits for SQLite's lock with it, and
 * gives it up once it has that: who has just written finds the turn taken and stands behind the one that waits. Must
 * never wait for a turn without end: its holder may have been stopped. Then, until the turn is seen free again, SQLite's
 * lock is asked for without one. Writer thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "base/random.h"
#include "jobs/store/internal.h"

#define TURN_TRIES 1000 /* about half a second */
#define SLEEP_LEAST_US 100
#define SLEEP_MORE_US 800
#define LONG_WAIT_US 200000 /* no commit is meant to take that long: no need to look so often */
#define LONG_SLEEP_US 5000

/* True: it is ours, or given up. `type` as fcntl has it. */
static bool ask(const struct hfi_sqlite *store, short type) {
    struct flock byte = {.l_type = type, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
    return fcntl(store->gate, F_OFD_SETLK, &byte) == 0;
}

/* So that those who wait do not look at the same moments. How long it was to take. */
static int64_t rest(struct hfi_turn *turn, int64_t least_us) {
    int64_t us = least_us + (int64_t)hfi_random_below(&turn->random, SLEEP_MORE_US);
    nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
    return us;
}

void hfi_sqlite_turn_take(struct hfi_sqlite *store) {
    struct hfi_turn *turn = &store->turn;
    hfi_sqlite_gate_open(store);
    if (store->gate < 0)
        return; /* without the file nothing is written: the gate says so */
    turn->held = ask(store, F_WRLCK);
    for (int i = 0; i < TURN_TRIES && !turn->held && !turn->stuck; i++) {
        if (errno != EAGAIN && errno != EACCES)
            return; /* no such locks here: as it was without turns */
        rest(turn, SLEEP_LEAST_US);
        turn->held = ask(store, F_WRLCK);
    }
    turn->stuck = !turn->held;
}

void hfi_sqlite_turn_give(struct hfi_sqlite *store) {
    if (store->turn.held)
        ask(store, F_UNLCK);
    store->turn.held = false;
}

/* SQLite's lock is another's; with the turn there is nobody else who asks. */
static int wait_for_lock(void *user, int asked) {
    struct hfi_sqlite *store = user;
    struct hfi_turn *turn = &store->turn;
    if (asked == 0)
        turn->waited_us = 0;
    if (turn->waited_us >= hfi_ms_to_us(HFI_BUSY_TIMEOUT_MS))
        return 0;
    if (turn->waits)
        turn->waits(turn->user);
    turn->waited_us += rest(turn, turn->waited_us < LONG_WAIT_US ? SLEEP_LEAST_US : LONG_SLEEP_US);
    return 1;
}

void hfi_sqlite_turn_waits(struct hfi_sqlite *store) {
    sqlite3_busy_handler(store->db, wait_for_lock, store);
}

void hfi_sqlite_turn_begin(struct hfi_sqlite *store) {
    uint64_t seed;
    hfi_entropy(&seed, sizeof seed);
    hfi_random_seed(&store->turn.random, seed);
    hfi_sqlite_turn_waits(store);
}
