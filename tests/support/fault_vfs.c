/* SPDX-License-Identifier: MIT */
/* Files that fail on demand, below SQLite. One thread at a time arms; counters are not shared between threads. */
#include "support/fault_vfs.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

struct fault_file {
    sqlite3_file base;
    sqlite3_file *real;
};

static sqlite3_vfs *real_vfs, fault_vfs;
static sqlite3_io_methods methods;
static enum fault_kind armed;
static long at, seen;
static int answer, for_ever, struck, kills;

static int strikes(enum fault_kind kind) {
    if (armed != kind && armed != FAULT_ANY)
        return 0;
    seen++;
    if (at == 0 || seen < at || (seen > at && !for_ever))
        return 0;
    struck++;
    return 1;
}

static sqlite3_file *real(sqlite3_file *file) {
    return ((struct fault_file *)(void *)file)->real;
}

static int io_close(sqlite3_file *file) {
    int code = real(file)->pMethods ? real(file)->pMethods->xClose(real(file)) : SQLITE_OK;
    free(real(file));
    return code;
}
static int io_read(sqlite3_file *file, void *to, int length, sqlite3_int64 from) {
    return real(file)->pMethods->xRead(real(file), to, length, from);
}
/* A write that fails has written the first half: torn. */
static int io_write(sqlite3_file *file, const void *bytes, int length, sqlite3_int64 to) {
    if (strikes(FAULT_WRITE)) {
        real(file)->pMethods->xWrite(real(file), bytes, length / 2, to);
        if (kills)
            raise(SIGKILL);
        return answer;
    }
    return real(file)->pMethods->xWrite(real(file), bytes, length, to);
}
static int io_truncate(sqlite3_file *file, sqlite3_int64 size) {
    if (strikes(FAULT_TRUNCATE)) {
        if (kills)
            raise(SIGKILL);
        return answer;
    }
    return real(file)->pMethods->xTruncate(real(file), size);
}
/* Power does not fail here, so nothing waits for the disk. */
static int io_sync(sqlite3_file *file, int flags) {
    (void)file;
    (void)flags;
    int code = strikes(FAULT_SYNC) ? answer : SQLITE_OK;
    if (code != SQLITE_OK && kills)
        raise(SIGKILL);
    return code;
}
static int io_size(sqlite3_file *file, sqlite3_int64 *size) {
    return real(file)->pMethods->xFileSize(real(file), size);
}
static int io_lock(sqlite3_file *file, int level) {
    return real(file)->pMethods->xLock(real(file), level);
}
static int io_unlock(sqlite3_file *file, int level) {
    return real(file)->pMethods->xUnlock(real(file), level);
}
static int io_reserved(sqlite3_file *file, int *out) {
    return real(file)->pMethods->xCheckReservedLock(real(file), out);
}
static int io_control(sqlite3_file *file, int op, void *argument) {
    return real(file)->pMethods->xFileControl(real(file), op, argument);
}
static int io_sector(sqlite3_file *file) {
    return real(file)->pMethods->xSectorSize(real(file));
}
static int io_traits(sqlite3_file *file) {
    return real(file)->pMethods->xDeviceCharacteristics(real(file));
}
static int io_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out) {
    return real(file)->pMethods->xShmMap(real(file), page, size, extend, out);
}
static int io_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
    return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
}
static void io_shm_barrier(sqlite3_file *file) {
    real(file)->pMethods->xShmBarrier(real(file));
}
static int io_shm_unmap(sqlite3_file *file, int remove) {
    return real(file)->pMethods->xShmUnmap(real(file), remove);
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out) {
    struct fault_file *made = (struct fault_file *)(void *)file;
    (void)vfs;
    made->base.pMethods = NULL;
    made->real = calloc(1, (size_t)real_vfs->szOsFile);
    if (!made->real)
        return SQLITE_NOMEM;
    int code = real_vfs->xOpen(real_vfs, name, made->real, flags, out);
    if (code == SQLITE_OK)
        made->base.pMethods = &methods;
    else
        free(made->real);
    return code;
}

static void install(void) {
    real_vfs = sqlite3_vfs_find(NULL);
    memcpy(&fault_vfs, real_vfs, sizeof fault_vfs);
    fault_vfs.zName = "fault";
    fault_vfs.szOsFile = (int)sizeof(struct fault_file);
    fault_vfs.xOpen = vfs_open;
    methods = (sqlite3_io_methods){.iVersion = 2, .xClose = io_close, .xRead = io_read, .xWrite = io_write,
                                   .xTruncate = io_truncate, .xSync = io_sync, .xFileSize = io_size, .xLock = io_lock,
                                   .xUnlock = io_unlock, .xCheckReservedLock = io_reserved, .xFileControl = io_control,
                                   .xSectorSize = io_sector, .xDeviceCharacteristics = io_traits, .xShmMap = io_shm_map,
                                   .xShmLock = io_shm_lock, .xShmBarrier = io_shm_barrier, .xShmUnmap = io_shm_unmap};
    sqlite3_vfs_register(&fault_vfs, 1);
}

void fault_arm(enum fault_kind kind, long nth, int native, int forever) {
    if (!real_vfs)
        install();
    armed = kind;
    at = nth;
    answer = native;
    for_ever = forever;
    seen = struck = kills = 0;
}

void fault_kill(long nth) {
    fault_arm(FAULT_ANY, nth, SQLITE_IOERR, 0);
    kills = 1;
}

void fault_point(void) {
    if (strikes(FAULT_ANY) && kills)
        raise(SIGKILL);
}

long fault_seen(void) {
    return seen;
}

int fault_struck(void) {
    return struck;
}
