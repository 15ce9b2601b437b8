/* SPDX-License-Identifier: MIT */
/*
 * Makes a new store beside its place, whole, and then gives it its name: a crash or a full disk on the way leaves no
 * half-made file under that name. Must never take the place of a file that is there. The opening thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/text.h"
#include "jobs/store/internal.h"

static void remove_draft(const char *path) {
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    char whole[HFI_PATH_MAX + 16];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(whole, sizeof whole, "%s%s", path, suffixes[i]);
        unlink(whole);
    }
}

/* The new name is in the folder for good. */
static void sync_folder(const char *path) {
    char folder[HFI_PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    int file = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file >= 0) {
        fsync(file);
        close(file);
    }
}

/* A whole store under another name; the handle is closed, so all of it is in the one file. */
static int make_draft(struct hfi_sqlite *draft, struct hf_error *error) {
    int code = hfi_sqlite_connect(draft->path, false, &draft->db, error);
    if (code != 0)
        return code;
    code = hfi_sqlite_migrate(draft, error);
    int64_t unused;
    int native = code == 0 ? hfi_sqlite_number(draft->db, "PRAGMA wal_checkpoint(TRUNCATE)", &unused) : SQLITE_OK;
    if (native != SQLITE_OK)
        code = hfi_sqlite_fail(error, draft->db, native, draft->path);
    sqlite3_close(draft->db);
    return code;
}

/* 0 also when another process was faster: its store is there then. */
int hfi_sqlite_create(const struct hfi_sqlite *store, struct hf_error *error) {
    struct hfi_sqlite *draft = hfi_alloc(sizeof *draft);
    uint32_t number;
    if (!draft)
        return hfi_fail(error, HF_ENOMEM, store->path, NULL, "out of memory");
    hfi_entropy(&number, sizeof number);
    draft->base.options = store->base.options;
    draft->gate = -1;
    int length = snprintf(draft->path, sizeof draft->path, "%s.new-%08x", store->path, number);
    int code = length < (int)sizeof draft->path ? make_draft(draft, error)
                                                : hfi_fail(error, HF_ETOOBIG, "store path", "use a shorter one",
                                                           "at most %d bytes fit", HFI_PATH_MAX - 20);
    if (code == 0 && link(draft->path, store->path) != 0 && errno != EEXIST)
        code = hfi_fail(error, errno == ENOSPC ? HF_ENOSPC : HF_EIO, store->path, NULL, "%s", strerror(errno));
    if (code == 0)
        sync_folder(store->path);
    remove_draft(draft->path);
    hfi_free(draft);
    return code;
}
