/* SPDX-License-Identifier: MIT */
/* Opening: what is refused, with which code, and that a refused file stays byte for byte as it was. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "jobs/store/schema.h"
#include "support/sqlite_fixture.h"

static char path[600];
static struct hf_error error;

static const char *at(const char *name) {
    snprintf(path, sizeof path, "%s/%s", hf_test_dir(), name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t length) {
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* Size, times and a sum of the bytes. */
static uint64_t print_of(const char *name) {
    FILE *file = fopen(name, "rb");
    uint64_t sum = 1469598103934665603u;
    int byte;
    assert_non_null(file);
    while ((byte = fgetc(file)) != EOF)
        sum = (sum ^ (uint64_t)byte) * 1099511628211u;
    fclose(file);
    return sum;
}

static bool exists(const char *name, const char *suffix) {
    char whole[700];
    struct stat status;
    snprintf(whole, sizeof whole, "%s%s", name, suffix);
    return stat(whole, &status) == 0;
}

static int try_open(const char *name, bool create) {
    struct hfi_store *store;
    struct hf_store_options options;
    hf_store_options_init(&options);
    options.create = create;
    hf_error_init(&error);
    int code = hfi_sqlite_store_open(name, &options, &store, &error);
    if (code == 0)
        store->ops->close(store);
    else
        assert_null(store);
    return code;
}

static void refuse_untouched(const char *name, int code) {
    uint64_t before = print_of(name);
    assert_int_equal(try_open(name, true), code);
    assert_int_equal(error.code, code);
    assert_true(error.why[0] != '\0');
    assert_true(print_of(name) == before);
    assert_false(exists(name, "-wal"));
    assert_false(exists(name, "-shm"));
    assert_false(exists(name, ".ckpt"));
    assert_false(exists(name, ".ballast"));
}

static void a_missing_file_is_not_made_unasked(void **state) {
    (void)state;
    at("missing.db");
    assert_int_equal(try_open(path, false), HF_ENOENT);
    assert_false(exists(path, ""));
    assert_int_equal(try_open(at("no/such/folder.db"), true), HF_ENOENT);
    assert_int_equal(try_open(hf_test_dir(), true), HF_EFOREIGN);
    assert_int_equal(try_open("", true), HF_EINVAL);
}

static void what_is_not_ours_is_left_alone(void **state) {
    (void)state;
    write_file(at("text.db"), "this is no database, but long enough to look like one .....................", 76);
    refuse_untouched(path, HF_EFOREIGN);
    char zeros[8192] = {0};
    write_file(at("zeros.db"), zeros, sizeof zeros);
    refuse_untouched(path, HF_EFOREIGN);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(at("other.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE jobs(x); PRAGMA journal_mode = WAL;", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    refuse_untouched(path, HF_EFOREIGN);
}

static void a_newer_store_is_refused_only_when_it_says_so(void **state) {
    (void)state;
    char sql[160];
    sqlite3 *db;
    at("newer.db");
    assert_int_equal(try_open(path, true), 0);
    for (int bump = 0; bump < 2; bump++) {
        /* schema ahead, min_writer not: works side by side [3.1] */
        snprintf(sql, sizeof sql, "PRAGMA user_version = %d; UPDATE meta SET value = %d WHERE key = '%s';", HFI_SCHEMA + 1,
                 HFI_SCHEMA + 1, bump ? "min_writer" : "schema");
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        uint64_t before = print_of(path);
        assert_int_equal(try_open(path, true), bump ? HF_EVERSION : 0);
        if (bump)
            assert_true(print_of(path) == before);
    }
}

static void a_store_opens_again_and_again(void **state) {
    (void)state;
    struct hfi_store *store;
    struct hf_store_info info = {.size = sizeof info};
    char uuid[40];
    int64_t id;
    at("again.db");
    assert_int_equal(open_store(path, &store, &error), 0);
    assert_int_equal(store->ops->look(store, &info), 0);
    assert_int_equal(info.schema, HFI_SCHEMA);
    assert_false(info.migrated);
    assert_int_equal(strlen(info.uuid), 36);
    memcpy(uuid, info.uuid, sizeof uuid);
    struct hfi_job job = plain_job("a", T0);
    assert_int_equal(put_job(store, &job, &id), 0);
    store->ops->close(store);
    assert_false(exists(path, "-wal")); /* the last one tidies up */
    assert_int_equal(open_store(path, &store, &error), 0);
    store->ops->look(store, &info);
    assert_string_equal(info.uuid, uuid);
    struct hf_job *seen;
    assert_int_equal(store->ops->get_job(store, id, &seen, &error), 0);
    hf_job_free(seen);
    store->ops->close(store);
    assert_int_equal(ask_number(path, "PRAGMA application_id"), HFI_APPLICATION_ID);
    assert_int_equal(ask_number(path, "PRAGMA auto_vacuum"), 2); /* incremental: set before the log mode (pitfalls 3) */
    assert_null(broken_invariant(path));
}

static void an_empty_file_and_half_made_ones_become_stores(void **state) {
    (void)state;
    sqlite3 *db;
    char sql[80];
    write_file(at("empty.db"), "", 0);
    assert_int_equal(try_open(path, true), 0);
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d;", HFI_APPLICATION_ID); /* killed before the schema came */
    assert_int_equal(sqlite3_open(at("half.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(try_open(path, true), 0);
    assert_int_equal(ask_number(path, "PRAGMA user_version"), HFI_SCHEMA);
}

static void paths_are_names_never_uris(void **state) {
    (void)state;
    static const char *const names[] = {"file:x.db?mode=memory", "100%.db", "a#b.db", "ünïcode ☃.db"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(try_open(at(names[i]), true), 0);
        assert_true(exists(path, ""));
        assert_int_equal(try_open(path, false), 0);
    }
}

static void the_checks_of_the_folder(void **state) {
    (void)state;
    char whole[700];
    at("locked");
    assert_int_equal(mkdir(path, 0500), 0);
    snprintf(whole, sizeof whole, "%s/x.db", path);
    if (geteuid() != 0) { /* root may write anywhere */
        assert_int_equal(try_open(whole, true), HF_EIO);
        assert_string_not_equal(error.fix, "");
    }
    struct statvfs disk; /* a read-only file system tells root too */
    if (statvfs("/proc", &disk) == 0)
        assert_int_not_equal(try_open("/proc/holdfast.db", true), 0);
}

static size_t read_file(const char *name, unsigned char **bytes) {
    struct stat status;
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &status), 0);
    *bytes = malloc((size_t)status.st_size);
    assert_int_equal(fread(*bytes, 1, (size_t)status.st_size, file), status.st_size);
    fclose(file);
    return (size_t)status.st_size;
}

static uint32_t big_endian(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/*
 * A checkpoint copies page 1 first, with a page count the file has not grown to yet. Whoever opens the store then, or
 * after a kill at that moment, has to find it sound: the log still holds everything.
 */
static void a_store_killed_in_a_checkpoint_opens(void **state) {
    (void)state;
    struct hfi_store *store;
    unsigned char *log, *file, *first = NULL;
    char name[700], torn[700];
    at("checkpoint.db");
    assert_int_equal(open_store(path, &store, &error), 0);
    assert_int_equal(put_many(store, "a", 500), 0);
    snprintf(name, sizeof name, "%s-wal", path);
    size_t length = read_file(path, &file), log_length = read_file(name, &log), page = big_endian(log + 8);
    for (size_t frame = 32; frame + 24 + page <= log_length; frame += 24 + page)
        if (big_endian(log + frame) == 1)
            first = log + frame + 24;
    assert_non_null(first);
    assert_true(big_endian(first + 28) > length / page); /* the count of pages is ahead */
    memcpy(file, first, page);
    at("torn.db");
    snprintf(torn, sizeof torn, "%s-wal", path);
    write_file(torn, log, log_length);
    write_file(path, file, length);
    assert_int_equal(try_open(path, false), 0);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM jobs"), 500);
    assert_null(broken_invariant(path));
    store->ops->close(store);
    free(file);
    free(log);
}

static void a_store_that_was_moved_away_is_not_written(void **state) {
    (void)state;
    struct hfi_store *store;
    char other[700];
    struct hfi_job job = plain_job("a", T0);
    at("moved.db");
    snprintf(other, sizeof other, "%s.away", path);
    assert_int_equal(open_store(path, &store, &error), 0);
    assert_int_equal(put_job(store, &job, NULL), 0);
    assert_int_equal(rename(path, other), 0);
    store->ops->housekeep(store, true);
    assert_int_equal(put_job(store, &job, NULL), HF_EIO); /* else it would be lost without a word (pitfalls 3) */
    assert_int_equal(rename(other, path), 0);
    store->ops->housekeep(store, true);
    assert_int_equal(put_job(store, &job, NULL), 0);
    store->ops->close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_file_is_not_made_unasked),
        cmocka_unit_test(what_is_not_ours_is_left_alone),
        cmocka_unit_test(a_newer_store_is_refused_only_when_it_says_so),
        cmocka_unit_test(a_store_opens_again_and_again),
        cmocka_unit_test(an_empty_file_and_half_made_ones_become_stores),
        cmocka_unit_test(paths_are_names_never_uris),
        cmocka_unit_test(the_checks_of_the_folder),
        cmocka_unit_test(a_store_killed_in_a_checkpoint_opens),
        cmocka_unit_test(a_store_that_was_moved_away_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
