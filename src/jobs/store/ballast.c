/* SPDX-License-Identifier: MIT */
/*
 * A file of 16 MiB beside the store that is given up when the disk is full, so that what runs can still end: with SQLite
 * even a DELETE needs space. Laid again when there is room. Must never be what fills the disk. Writer thread; looking, any.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"
#include "jobs/store/internal.h"

#define BALLAST ((off_t)16 * 1024 * 1024)
#define ROOM (4 * (uint64_t)BALLAST)  /* free space that must be there before some of it is taken */
#define ENOUGH ((uint64_t)8 << 20) /* to go on without ballast, on a small disk */

static const char *ballast_path(const struct hfi_sqlite *store, char *path) {
    snprintf(path, HFI_PATH_MAX + 16, "%s.ballast", store->path);
    return path;
}

void hfi_sqlite_ballast_lay(struct hfi_sqlite *store) {
    char path[HFI_PATH_MAX + 16];
    struct stat there;
    struct statvfs disk;
    if (stat(ballast_path(store, path), &there) == 0 && there.st_size >= BALLAST) {
        store->full = false; /* another process laid it */
        return;
    }
    if (statvfs(store->path, &disk) != 0)
        return;
    uint64_t space = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (space < ROOM) {
        store->full = store->full && space < ENOUGH;
        return;
    }
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    bool laid = posix_fallocate(file, 0, BALLAST) == 0;
    close(file);
    if (!laid) {
        unlink(path);
        return;
    }
    if (store->full)
        hfi_log(HF_LOG_WARNING, "store.space", HFI_S("path", store->path), HFI_S("why", "there is space again"), NULL);
    store->full = false;
}

void hfi_sqlite_space_look(const struct hfi_sqlite *store, struct hfi_space *space) {
    char path[HFI_PATH_MAX + 16];
    struct stat there;
    struct statvfs disk;
    bool known = statvfs(store->path, &disk) == 0;
    space->free_bytes = known ? (uint64_t)disk.f_bavail * disk.f_frsize : UINT64_MAX;
    space->ballast = stat(ballast_path(store, path), &there) == 0 && there.st_size >= BALLAST;
    space->is_full = space->free_bytes < ENOUGH;
    space->is_short = !space->ballast && space->free_bytes < ROOM;
}

bool hfi_sqlite_ballast_drop(struct hfi_sqlite *store) {
    char path[HFI_PATH_MAX + 16];
    bool dropped = unlink(ballast_path(store, path)) == 0;
    hfi_log(HF_LOG_WARNING, "store.full", HFI_S("path", store->path),
            HFI_S("why", "the disk is full: nothing new is taken in, what runs may end"), HFI_B("ballast_given_up", dropped),
            NULL);
    return dropped;
}
