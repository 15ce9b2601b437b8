/* SPDX-License-Identifier: MIT */
/*
 * The write-ahead log: emptied between groups when it is long and cut off when nothing happens, by the one handle that
 * writes, and never while any process is in a write transaction: SQLite before 3.51.3 can lose a commit when a
 * checkpoint races with one that starts the log anew. A lock on <db>.ckpt, shared per transaction, exclusive per
 * checkpoint, keeps them apart; and a door before it, which a checkpoint shuts while it waits for those inside, for among
 * many busy processes there is always one that has the lock or waits for SQLite's with it (I76). Writer thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "jobs/store/internal.h"

#define PAGE 4096
#define FRAMES(mebibytes) ((mebibytes) * 1024 * 1024 / PAGE)
#define LONG_LOG FRAMES(16)
#define FAR_TOO_LONG_LOG FRAMES(256)
#define RETRY_AFTER FRAMES(2) /* more frames before a checkpoint that could not be had is tried again */
#define LONGER_LOG FRAMES(48)
#define GATE_TRIES 50         /* a millisecond each */
#define GATE_TRIES_LONGER 500
#define BUSY_MS 50
#define QUIET_CALLS 8         /* of housekeep with nothing written: idle */
#define SPARE_PAGES 2048      /* free ones that are kept for what comes */
#define LOOK_AGAIN_MS 1000

/* After every commit: how long the log is. */
int hfi_sqlite_wal_hook(void *user, sqlite3 *db, const char *name, int frames) {
    struct hfi_sqlite *store = user;
    (void)db;
    (void)name;
    store->wal_frames = frames;
    store->wrote = true;
    return SQLITE_OK;
}

/* The first byte of the lock file; independent of the lock on the whole. 0, or -1 and errno EWOULDBLOCK. */
static int door(const struct hfi_sqlite *store, short type) {
    struct flock byte = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};
    if (fcntl(store->gate, F_OFD_SETLK, &byte) == 0)
        return 0;
    errno = errno == EACCES ? EWOULDBLOCK : errno;
    return -1;
}

/* Nobody stays in the door. */
static int walk_in(const struct hfi_sqlite *store) {
    if (door(store, F_RDLCK) != 0)
        return -1;
    int failed = flock(store->gate, LOCK_SH | LOCK_NB), number = errno;
    door(store, F_UNLCK);
    errno = number;
    return failed;
}

void hfi_sqlite_gate_open(struct hfi_sqlite *store) {
    char path[HFI_PATH_MAX + 8];
    if (store->gate >= 0)
        return;
    snprintf(path, sizeof path, "%s.ckpt", store->path);
    store->gate = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

int hfi_sqlite_gate_enter(struct hfi_sqlite *store) {
    const struct timespec pause = {.tv_nsec = 1000000};
    int failed = 0;
    hfi_sqlite_gate_open(store);
    for (int i = 0; store->gate >= 0 && (failed = walk_in(store)) != 0; i++) {
        if (errno != EWOULDBLOCK || i == HFI_BUSY_TIMEOUT_MS)
            break;
        nanosleep(&pause, NULL); /* whoever holds it may have been stopped: not waited for without end (I10) */
    }
    if (store->gate >= 0 && failed == 0)
        return 0;
    failed = errno;
    if (store->gate >= 0 && failed == EWOULDBLOCK) {
        snprintf(store->why, sizeof store->why, "another process keeps its lock file .ckpt");
        return HF_EBUSY;
    }
    snprintf(store->why, sizeof store->why, "its lock file .ckpt: %s", strerror(failed));
    return failed == ENOSPC ? HF_ENOSPC : HF_EIO;
}

void hfi_sqlite_gate_leave(struct hfi_sqlite *store) {
    if (store->gate >= 0)
        flock(store->gate, LOCK_UN);
}

/* Who is inside comes out in a moment; the longer the log, the longer that is waited for. */
static bool gate_close(struct hfi_sqlite *store) {
    const struct timespec pause = {.tv_nsec = 1000000};
    int tries = store->wal_frames > LONGER_LOG ? GATE_TRIES_LONGER : GATE_TRIES;
    bool shut = false, closed = false;
    for (int i = 0; i < tries && !closed; i++) {
        shut = shut || door(store, F_WRLCK) == 0;
        closed = shut && flock(store->gate, LOCK_EX | LOCK_NB) == 0;
        if (!closed)
            nanosleep(&pause, NULL);
    }
    if (shut)
        door(store, F_UNLCK); /* closed: nobody gets past the lock itself */
    return closed;
}

static void note_length(struct hfi_sqlite *store) {
    if (store->wal_frames > FAR_TOO_LONG_LOG && store->wal_wanted <= FAR_TOO_LONG_LOG)
        hfi_log(HF_LOG_WARNING, "store.wal", HFI_S("path", store->path), HFI_I("bytes", (long long)store->wal_frames * PAGE),
                HFI_S("why", "a reader or another process keeps the log from being emptied"), NULL);
}

static void checkpoint(struct hfi_sqlite *store, int mode) {
    int frames = 0, moved = 0;
    if (store->gate < 0 || !gate_close(store)) {
        store->wal_wanted = store->wal_frames + RETRY_AFTER;
        return;
    }
    sqlite3_busy_timeout(store->db, BUSY_MS);
    int native = sqlite3_wal_checkpoint_v2(store->db, NULL, mode, &frames, &moved);
    hfi_sqlite_turn_waits(store);
    flock(store->gate, LOCK_UN);
    note_length(store);
    bool empty = native == SQLITE_OK && frames == moved;
    if (empty)
        store->wal_frames = 0;
    store->wal_wanted = empty ? LONG_LOG : store->wal_frames + RETRY_AFTER;
    if (native != SQLITE_OK && (native & 0xff) != SQLITE_BUSY)
        hfi_log(HF_LOG_WARNING, "store.checkpoint", HFI_S("path", store->path), HFI_S("why", sqlite3_errmsg(store->db)),
                HFI_I("native", native), NULL);
}

/* Pages that nothing uses any more go back to the disk, a few at a time, when there are many. */
static void shrink(struct hfi_sqlite *store) {
    int64_t unused = 0, pages = 0;
    if (hfi_sqlite_number(store->db, "PRAGMA freelist_count", &unused) != SQLITE_OK ||
        hfi_sqlite_number(store->db, "PRAGMA page_count", &pages) != SQLITE_OK || unused < SPARE_PAGES || unused < pages / 4)
        return;
    if (hfi_sqlite_gate_enter(store) != 0)
        return;
    sqlite3_exec(store->db, "PRAGMA incremental_vacuum(500)", NULL, NULL, NULL); /* best effort; steps to its end */
    hfi_sqlite_gate_leave(store);
}

/* Looked at by its name only: opening the file here would drop SQLite's locks on it (I19). */
static void look_for_file(struct hfi_sqlite *store) {
    struct stat file;
    bool same = stat(store->path, &file) == 0 && (uint64_t)file.st_ino == store->inode &&
                (uint64_t)file.st_dev == store->device;
    if (!same && !store->moved)
        hfi_log(HF_LOG_ERROR, "store.moved", HFI_S("path", store->path),
                HFI_S("why", "the file was replaced or removed while it was open; nothing is written any more"), NULL);
    store->moved = !same;
}

int64_t hfi_sqlite_housekeep(struct hfi_store *self, bool idle) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    if (store->wal_wanted == 0)
        store->wal_wanted = LONG_LOG;
    store->quiet = store->wrote || !idle ? 0 : store->quiet + 1;
    store->wrote = false;
    look_for_file(store);
    if (store->quiet == QUIET_CALLS - 1 && !store->moved)
        shrink(store);
    if (store->full)
        hfi_sqlite_ballast_lay(store);
    if (store->wal_frames >= store->wal_wanted)
        checkpoint(store, SQLITE_CHECKPOINT_FULL);
    else if (store->wal_frames > 0 && store->quiet == QUIET_CALLS)
        checkpoint(store, SQLITE_CHECKPOINT_TRUNCATE);
    return idle && ((store->wal_frames > 0 && store->quiet < QUIET_CALLS) || store->full) ? LOOK_AGAIN_MS : -1;
}
