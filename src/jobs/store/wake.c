/* SPDX-License-Identifier: MIT */
/*
 * News from other processes: the kernel tells when the write-ahead log is written, and nothing of the database is opened
 * for it (I19). Own writes are told too; that is the price. Loop thread.
 */
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "jobs/store/internal.h"

int hfi_sqlite_wake_fd(struct hfi_store *self) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    char path[HFI_PATH_MAX + 8];
    if (store->wake_fd >= 0)
        return store->wake_fd;
    int file = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (file < 0)
        return -1; /* polling finds it too, a little later */
    snprintf(path, sizeof path, "%s-wal", store->path);
    if (inotify_add_watch(file, path, IN_MODIFY) < 0) {
        close(file);
        return -1;
    }
    return store->wake_fd = file;
}

void hfi_sqlite_wake_drain(struct hfi_store *self) {
    const struct hfi_sqlite *store = hfi_sqlite_of(self);
    char events[4096];
    while (store->wake_fd >= 0 && read(store->wake_fd, events, sizeof events) > 0)
        ;
}
