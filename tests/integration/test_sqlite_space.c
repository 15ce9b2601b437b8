/* SPDX-License-Identifier: MIT */
/*
 * A disk that is really full: what runs may end on the ballast, nothing new is taken in, and all goes on when there is
 * space again. A small file system in memory where the test may mount one, else SQLite's own limit of pages. Also the
 * log: it is emptied when it is long and cut when nothing happens (I76).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "support/sqlite_fixture.h"

#define PAGE_LIMIT 200

static char path[700];
static char found[1024];

static void note(bool is_error, const char *check, const char *text, const char *fix, void *user) {
    (void)user;
    (void)fix;
    size_t length = strlen(found);
    snprintf(found + length, sizeof found - length, "%s:%s: %s;", is_error ? "error" : "note", check, text);
}

static int put_big(struct hfi_store *store) {
    static char payload[60000];
    struct hfi_job job = plain_job("a", T0);
    memset(payload, 'x', sizeof payload);
    job.payload = payload;
    job.payload_length = sizeof payload;
    return put_job(store, &job, NULL);
}

static bool mount_small(const char *folder) {
    return mkdir(folder, 0700) == 0 && unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", folder, "tmpfs", 0, "size=96m") == 0;
}

/* All space but `left` bytes. */
static void fill_up(const char *folder, const char *filler, uint64_t left) {
    struct statvfs disk;
    assert_int_equal(statvfs(folder, &disk), 0);
    uint64_t space = (uint64_t)disk.f_bavail * disk.f_frsize;
    int file = open(filler, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_true(space > left);
    assert_int_equal(posix_fallocate(file, 0, (off_t)(space - left)), 0);
    close(file);
}

static void what_runs_may_end_on_a_full_disk(void **state) {
    (void)state;
    char folder[600], filler[700], second[700], ballast[720];
    struct hfi_store *store;
    struct hfi_job *jobs[40];
    size_t count;
    int64_t node;
    struct hf_outcome permanent = failure_of(HF_CLASS_PERMANENT);
    snprintf(folder, sizeof folder, "%s", hf_test_path("small"));
    if (!mount_small(folder)) {
        print_message("cannot mount here (%s): left to the limit of pages\n", strerror(errno));
        return;
    }
    snprintf(path, sizeof path, "%s/full.db", folder);
    snprintf(filler, sizeof filler, "%s/filler", folder);
    snprintf(ballast, sizeof ballast, "%s.ballast", path);
    assert_int_equal(open_store(path, &store, NULL), 0);
    assert_int_equal(access(ballast, F_OK), 0);
    assert_int_equal(join_node(store, &node), 0);
    assert_int_equal(put_many(store, "a", 40), 0);
    assert_int_equal(claim_jobs(store, node, T0 + S, 40, jobs, &count), 0);
    assert_int_equal(count, 40);
    fill_up(folder, filler, 300000);
    int code = 0;
    for (int i = 0; i < 100 && code == 0; i++)
        code = put_big(store);
    assert_int_equal(code, HF_ENOSPC);
    assert_int_equal(access(ballast, F_OK), -1);
    for (size_t i = 0; i < count; i++) {
        struct hfi_op_apply end = end_of(jobs[i], T0 + 2 * S, i % 2 ? &permanent : NULL);
        assert_int_equal(DO(store, &end), 0);
        hfi_free(jobs[i]);
    }
    struct hf_error error;
    hf_error_init(&error);
    struct hfi_put item = {.job = plain_job("a", T0)};
    struct hfi_op_put put = {.op = {.kind = HFI_OP_PUT, .error = &error}, .items = &item, .count = 1};
    assert_int_equal(DO(store, &put), HF_ENOSPC);
    assert_non_null(strstr(error.why, "full"));
    assert_int_equal(store->ops->doctor(store, note, NULL, &error), 0); /* what the ballast held is free for now */
    assert_non_null(strstr(found, "note:space:"));
    snprintf(second, sizeof second, "%s/second", folder);
    fill_up(folder, second, 300000);
    assert_int_equal(store->ops->doctor(store, note, NULL, &error), 1);
    assert_non_null(strstr(found, "error:space: the disk is full, 0 MiB are left"));
    assert_non_null(strstr(found, "the ballast is spent"));
    assert_int_equal(unlink(filler), 0);
    assert_int_equal(unlink(second), 0);
    store->ops->housekeep(store, true);
    assert_int_equal(access(ballast, F_OK), 0);
    found[0] = '\0';
    assert_int_equal(store->ops->doctor(store, note, NULL, &error), 0);
    assert_null(strstr(found, "space"));
    assert_int_equal(DO(store, &put), 0);
    store->ops->close(store);
    assert_null(broken_invariant(path));
    umount2(folder, MNT_DETACH);
}

static void a_limit_of_pages_is_no_space_and_harms_nothing(void **state) {
    (void)state;
    struct hfi_store *store;
    char sql[64];
    snprintf(path, sizeof path, "%s", hf_test_path("pages.db"));
    assert_int_equal(open_store(path, &store, NULL), 0);
    snprintf(sql, sizeof sql, "PRAGMA max_page_count = %d", PAGE_LIMIT);
    sqlite3_exec(hfi_sqlite_of(store)->db, sql, NULL, NULL, NULL);
    int code = 0, put = 0;
    while (put < 100 && (code = put_big(store)) == 0)
        put++;
    assert_int_equal(code, HF_ENOSPC);
    assert_true(put > 0);
    sqlite3_exec(hfi_sqlite_of(store)->db, "PRAGMA max_page_count = 1000000", NULL, NULL, NULL);
    store->ops->housekeep(store, true);
    assert_int_equal(put_big(store), 0);
    store->ops->close(store);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM jobs"), put + 1);
    assert_null(broken_invariant(path));
}

static int64_t log_size(void) {
    char whole[720];
    struct stat file;
    snprintf(whole, sizeof whole, "%s-wal", path);
    return stat(whole, &file) == 0 ? (int64_t)file.st_size : 0; /* by name: the file is SQLite's (I19) */
}

static void the_log_stays_short(void **state) {
    (void)state;
    struct hfi_store *store;
    snprintf(path, sizeof path, "%s", hf_test_path("log.db"));
    assert_int_equal(open_store(path, &store, NULL), 0);
    for (int i = 0; i < 1200; i++) { /* 70 MB */
        assert_int_equal(put_big(store), 0);
        store->ops->housekeep(store, false);
        assert_true(log_size() < 20 * 1024 * 1024);
    }
    assert_true(log_size() > 0);
    for (int i = 0; i < 12; i++)
        store->ops->housekeep(store, true);
    assert_int_equal(log_size(), 0);
    assert_int_equal(store->ops->housekeep(store, true), -1); /* and then it sleeps */
    store->ops->close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_of_pages_is_no_space_and_harms_nothing),
        cmocka_unit_test(the_log_stays_short),
        cmocka_unit_test(what_runs_may_end_on_a_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
