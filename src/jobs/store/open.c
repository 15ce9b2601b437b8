/* SPDX-License-Identifier: MIT */
/*
 * Opens a store file: decides whether it may be touched at all before anything is. Must never change a file that it
 * refuses, nor open the database by other means than SQLite: closing such a descriptor drops SQLite's locks (I19). The
 * opening thread.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/store/codes.h"
#include "jobs/store/internal.h"
#include "jobs/store/schema.h"
#include "jobs/store/sqlite.h"

#define HEAD_BYTES 100 /* of the file format: https://sqlite.org/fileformat2.html#the_database_header */
#define MARK_AT 68

/* File systems whose locks do not reach other hosts, or do not hold. */
static bool on_network(const struct statfs *disk) {
    static const unsigned long kinds[] = {
        0x6969,     /* NFS */
        0x517B,     /* SMB */
        0xFF534D42, /* CIFS */
        0xFE534D42, /* SMB2 */
        0x01021997, /* 9p */
        0x00C36400, /* Ceph */
        0x5346414F, /* AFS */
        0x73757245, /* Coda */
        0x01161970, /* GFS2 */
        0x7461636F, /* OCFS2 */
        0x0BD00BD3, /* Lustre */
        0x47504653, /* GPFS */
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (((unsigned long)disk->f_type & 0xffffffffu) == kinds[i])
            return true;
    return false;
}

/* An absolute path: SQLite takes `file:…` for a URI, and a daemon changes its folder. */
static int resolve(struct hfi_sqlite *store, const char *path, struct hf_error *error) {
    char folder[HFI_PATH_MAX], name[HFI_PATH_MAX], whole[PATH_MAX];
    if (strlen(path) >= HFI_PATH_MAX)
        return hfi_fail(error, HF_ETOOBIG, "store path", "use a shorter one", "%zu bytes, at most %d fit", strlen(path),
                        HFI_PATH_MAX - 1);
    memcpy(folder, path, strlen(path) + 1);
    memcpy(name, path, strlen(path) + 1);
    if (*path == '\0' || path[strlen(path) - 1] == '/')
        return hfi_fail(error, HF_EINVAL, "store path", "name a file", "\"%s\" names none", path);
    if (!realpath(dirname(folder), whole))
        return hfi_fail(error, errno == ENOENT ? HF_ENOENT : HF_EIO, path, "make the folder first", "its folder: %s",
                        strerror(errno));
    int length = snprintf(store->path, sizeof store->path, "%s/%s", strcmp(whole, "/") == 0 ? "" : whole, basename(name));
    if (length < 0 || (size_t)length >= sizeof store->path)
        return hfi_fail(error, HF_ETOOBIG, "store path", "use a shorter one", "at most %d bytes fit", HFI_PATH_MAX - 1);
    return 0;
}

static int check_folder(const struct hfi_sqlite *store, struct hf_error *error) {
    char folder[HFI_PATH_MAX];
    struct statfs disk;
    memcpy(folder, store->path, sizeof folder);
    const char *name = dirname(folder);
    if (statfs(name, &disk) == 0 && on_network(&disk))
        return hfi_fail(error, HF_ENOTSUP, store->path, "put it on a local disk, or use PostgreSQL",
                        "its folder is on a network file system (type 0x%lx), whose locks do not hold",
                        (unsigned long)disk.f_type & 0xffffffffu);
    if (access(name, W_OK | X_OK) != 0) /* the log and the locks stand there too */
        return hfi_fail(error, HF_EIO, store->path, "give this user write access to the folder", "its folder: %s",
                        strerror(errno));
    return 0;
}

/* What is there before SQLite touches it. */
enum found { NOTHING, EMPTY, SOMETHING };
static int check_file(const struct hfi_sqlite *store, enum found *found, struct hf_error *error) {
    struct stat file;
    *found = NOTHING;
    if (stat(store->path, &file) != 0) {
        if (errno != ENOENT)
            return hfi_fail(error, HF_EIO, store->path, NULL, "%s", strerror(errno));
        if (!store->base.options.create)
            return hfi_fail(error, HF_ENOENT, store->path, "`holdfast run` or `enqueue` makes one", "there is no store");
        return 0;
    }
    if (!S_ISREG(file.st_mode))
        return hfi_fail(error, HF_EFOREIGN, store->path, "name a file", "it is not a regular file");
    if (access(store->path, R_OK | W_OK) != 0)
        return hfi_fail(error, HF_EIO, store->path, "give this user read and write access", "%s", strerror(errno));
    *found = file.st_size == 0 ? EMPTY : SOMETHING;
    return 0;
}

/* The path as a URI that reads the file as it stands: no locks, no log, nothing made beside it. */
static void immutable_uri(const char *path, char *uri, size_t room) {
    size_t length = (size_t)snprintf(uri, room, "file:");
    for (; *path && length + 24 < room; path++)
        if (strchr("?#%", *path))
            length += (size_t)snprintf(uri + length, room - length, "%%%02X", (unsigned char)*path);
        else
            uri[length++] = *path;
    snprintf(uri + length, room - length, "?immutable=1");
}

/*
 * The head of the file, byte for byte, through SQLite's own descriptor. SQLite itself must not interpret it: read
 * without locks beside a running or killed checkpoint, the page count in it is ahead of the file's size, and SQLite
 * would call a sound store malformed.
 */
static int read_head(sqlite3 *db, unsigned char *head) {
    sqlite3_file *file = NULL;
    int native = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (native == SQLITE_OK)
        native = file && file->pMethods ? file->pMethods->xRead(file, head, HEAD_BYTES, 0) : SQLITE_CANTOPEN;
    return native == SQLITE_IOERR_SHORT_READ ? SQLITE_NOTADB : native;
}

/* Ours? Decided by the mark in the file's head, read through SQLite without any trace. */
static int check_mark(const struct hfi_sqlite *store, struct hf_error *error) {
    char uri[3 * HFI_PATH_MAX + 32];
    unsigned char head[HEAD_BYTES];
    sqlite3 *db = NULL;
    immutable_uri(store->path, uri, sizeof uri);
    int native = sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    if (native == SQLITE_OK)
        native = read_head(db, head);
    int code = native == SQLITE_OK || native == SQLITE_NOTADB ? 0 : hfi_sqlite_fail(error, db, native, store->path);
    sqlite3_close(db);
    if (code != 0)
        return code;
    if (native == SQLITE_NOTADB || memcmp(head, "SQLite format 3", 16) != 0)
        return hfi_fail(error, HF_EFOREIGN, store->path, "name another file", "not a database");
    const unsigned char *mark = head + MARK_AT;
    uint32_t id = (uint32_t)mark[0] << 24 | (uint32_t)mark[1] << 16 | (uint32_t)mark[2] << 8 | mark[3];
    if (id != HFI_APPLICATION_ID)
        return hfi_fail(error, HF_EFOREIGN, store->path, "name another file",
                        "a database of another program (application_id %lld)", (long long)(int32_t)id);
    return 0;
}

/* May this program write here? Reads `meta`; the file is one of ours. */
static int check_version(struct hfi_sqlite *store, struct hf_error *error) {
    int64_t version = 0, tables = 0, writer = 0;
    int native = hfi_sqlite_number(store->db, "PRAGMA user_version", &version);
    if (native == SQLITE_OK)
        native = hfi_sqlite_number(store->db, "SELECT count(*) FROM sqlite_schema WHERE name = 'meta'", &tables);
    if (native == SQLITE_OK && tables > 0)
        native = hfi_sqlite_number(store->db, "SELECT value FROM meta WHERE key = 'min_writer'", &writer);
    if (native != SQLITE_OK)
        return hfi_sqlite_fail(error, store->db, native, store->path);
    if (writer <= HFI_SCHEMA)
        return 0;
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL); /* it is left as it was */
    return hfi_fail(error, HF_EVERSION, store->path, "use a newer holdfast",
                    "its schema %lld asks for writers of schema %lld, this program has %d", (long long)version,
                    (long long)writer, HFI_SCHEMA);
}

static int read_meta(struct hfi_sqlite *store, struct hf_error *error) {
    sqlite3_stmt *statement;
    int native = sqlite3_prepare_v2(store->db, "SELECT key, value FROM meta", -1, &statement, NULL);
    if (native != SQLITE_OK)
        return hfi_sqlite_fail(error, store->db, native, store->path);
    while ((native = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *key = hfi_column_text(statement, 0);
        if (strcmp(key, "store_uuid") == 0)
            hfi_text_copy(store->base.uuid, sizeof store->base.uuid, hfi_column_text(statement, 1));
        else if (strcmp(key, "schema") == 0)
            store->schema = sqlite3_column_int(statement, 1);
        else if (strcmp(key, "min_reader") == 0)
            store->min_reader = sqlite3_column_int(statement, 1);
        else if (strcmp(key, "min_writer") == 0)
            store->min_writer = sqlite3_column_int(statement, 1);
    }
    native = sqlite3_finalize(statement);
    return native == SQLITE_OK ? 0 : hfi_sqlite_fail(error, store->db, native, store->path);
}

static int note_file(struct hfi_sqlite *store, struct hf_error *error) {
    struct stat file;
    if (stat(store->path, &file) != 0)
        return hfi_fail(error, HF_EIO, store->path, NULL, "%s", strerror(errno));
    store->device = (uint64_t)file.st_dev;
    store->inode = (uint64_t)file.st_ino;
    return 0;
}

static int open_checked(struct hfi_sqlite *store, const char *path, struct hf_error *error) {
    enum found found = NOTHING;
    int code = resolve(store, path, error);
    if (code == 0)
        code = check_file(store, &found, error);
    if (code == 0)
        code = check_folder(store, error);
    if (code == 0 && found == NOTHING)
        code = hfi_sqlite_create(store, error);
    if (code == 0 && found != EMPTY)
        code = check_mark(store, error);
    if (code == 0)
        code = hfi_sqlite_connect(store->path, false, &store->db, error);
    if (code == 0)
        hfi_sqlite_turn_begin(store);
    if (code == 0 && found != EMPTY)
        code = check_version(store, error);
    if (code == 0)
        code = hfi_sqlite_migrate(store, error);
    if (code == 0)
        code = read_meta(store, error);
    if (code == 0)
        code = note_file(store, error);
    return code;
}

static void close_store(struct hfi_store *self) {
    struct hfi_sqlite *store = hfi_sqlite_of(self);
    for (int i = 0; i < HFI_SQL_COUNT; i++)
        sqlite3_finalize(store->statements[i]);
    sqlite3_close(store->reader); /* first, so that the writer is the last and tidies up */
    sqlite3_close(store->db);
    hfi_sqlite_locks_free(store);
    hfi_sqlite_lanes_free(store);
    hfi_sqlite_policies_free(store);
    hfi_sqlite_deps_free(store);
    if (store->gate >= 0)
        close(store->gate);
    if (store->wake_fd >= 0)
        close(store->wake_fd);
    pthread_mutex_destroy(&store->reading);
    hfi_free(store);
}

static const struct hfi_store_ops operations = {
    .version = HFI_STORE_VERSION,
    .kind = "sqlite",
    .commit = hfi_sqlite_commit,
    .housekeep = hfi_sqlite_housekeep,
    .list_jobs = hfi_sqlite_list_jobs,
    .get_job = hfi_sqlite_get_job,
    .count_jobs = hfi_sqlite_count_jobs,
    .list_queues = hfi_sqlite_list_queues,
    .list_limits = hfi_sqlite_list_limits,
    .list_forwards = hfi_sqlite_list_forwards,
    .look_phases = hfi_sqlite_look_phases,
    .look_measured = hfi_sqlite_look_measured,
    .list_downstreams = hfi_sqlite_list_downstreams,
    .list_dead = hfi_sqlite_list_dead,
    .get_dead = hfi_sqlite_get_dead,
    .group_dead = hfi_sqlite_group_dead,
    .list_redrives = hfi_sqlite_list_redrives,
    .list_alerts = hfi_sqlite_list_alerts,
    .look = hfi_sqlite_look,
    .doctor = hfi_sqlite_doctor,
    .wake_fd = hfi_sqlite_wake_fd,
    .wake_drain = hfi_sqlite_wake_drain,
    .close = close_store,
};

int hfi_sqlite_store_open(const char *path, const struct hf_store_options *options, struct hfi_store **store,
                          struct hf_error *error) {
    struct hfi_sqlite *made = hfi_alloc(sizeof *made);
    *store = NULL;
    if (!made)
        return hfi_fail(error, HF_ENOMEM, path, NULL, "out of memory");
    made->base.ops = &operations;
    made->base.options = *options;
    made->gate = made->wake_fd = -1;
    made->deadline.limit_us = made->read_deadline.limit_us = hfi_ms_to_us(HFI_DEADLINE_MS);
    pthread_mutex_init(&made->reading, NULL);
    int code = open_checked(made, path, error);
    if (code != 0) {
        close_store(&made->base);
        return code;
    }
    sqlite3_wal_hook(made->db, hfi_sqlite_wal_hook, made);
    hfi_deadline_watch(&made->deadline, made->db);
    hfi_sqlite_ballast_lay(made);
    *store = &made->base;
    return 0;
}
