/* SPDX-License-Identifier: MIT */
/*
 * SQLite's result codes (sqlite.org/rescode), primary and extended, by number: this half knows no database. An extended
 * code is named below its primary (`sqlite.BUSY.SNAPSHOT`), so that a rule for the primary covers it; one that is not
 * listed counts as its primary. After an I/O error nobody knows whether the commit happened. Pure, any thread.
 */
#include "resilience/table.h"

#include <stdio.h>

/* clang-format off */
/* X(code, "PRIMARY" or "PRIMARY.DETAIL", effect, sent) */
#define SQLITE_MAP(X) \
    X(0, "OK", OK, YES) X(1, "ERROR", REFUSED, YES) X(2, "INTERNAL", BROKEN, YES) X(3, "PERM", REFUSED, YES) \
    X(4, "ABORT", BUSY, YES) X(5, "BUSY", BUSY, YES) X(6, "LOCKED", BUSY, YES) X(7, "NOMEM", BUSY, YES) \
    X(8, "READONLY", DOWN_LATER, YES) X(9, "INTERRUPT", BUSY, YES) X(10, "IOERR", DOWN_LATER, MAYBE) \
    X(11, "CORRUPT", BROKEN, YES) X(12, "NOTFOUND", REFUSED, YES) X(13, "FULL", DOWN_LATER, MAYBE) \
    X(14, "CANTOPEN", DOWN_LATER, YES) X(15, "PROTOCOL", BUSY, YES) X(17, "SCHEMA", REFUSED, YES) \
    X(18, "TOOBIG", REFUSED, YES) X(19, "CONSTRAINT", REFUSED, YES) X(20, "MISMATCH", REFUSED, YES) \
    X(21, "MISUSE", REFUSED, YES) X(22, "NOLFS", BROKEN, YES) X(23, "AUTH", REFUSED, YES) \
    X(25, "RANGE", REFUSED, YES) X(26, "NOTADB", BROKEN, YES) X(100, "ROW", OK, YES) X(101, "DONE", OK, YES) \
    X(257, "ERROR.MISSING_COLLSEQ", REFUSED, YES) X(513, "ERROR.RETRY", BUSY, YES) \
    X(769, "ERROR.SNAPSHOT", BUSY, YES) X(266, "IOERR.READ", DOWN_LATER, MAYBE) \
    X(522, "IOERR.SHORT_READ", DOWN_LATER, MAYBE) X(778, "IOERR.WRITE", DOWN_LATER, MAYBE) \
    X(1034, "IOERR.FSYNC", DOWN_LATER, MAYBE) X(1290, "IOERR.DIR_FSYNC", DOWN_LATER, MAYBE) \
    X(1546, "IOERR.TRUNCATE", DOWN_LATER, MAYBE) X(1802, "IOERR.FSTAT", DOWN_LATER, MAYBE) \
    X(2058, "IOERR.UNLOCK", DOWN_LATER, MAYBE) X(2314, "IOERR.RDLOCK", DOWN_LATER, MAYBE) \
    X(2570, "IOERR.DELETE", DOWN_LATER, MAYBE) X(2826, "IOERR.BLOCKED", DOWN_LATER, MAYBE) \
    X(3082, "IOERR.NOMEM", BUSY, MAYBE) X(3338, "IOERR.ACCESS", DOWN_LATER, MAYBE) \
    X(3594, "IOERR.CHECKRESERVEDLOCK", DOWN_LATER, MAYBE) X(3850, "IOERR.LOCK", DOWN_LATER, MAYBE) \
    X(4106, "IOERR.CLOSE", DOWN_LATER, MAYBE) X(4362, "IOERR.DIR_CLOSE", DOWN_LATER, MAYBE) \
    X(4618, "IOERR.SHMOPEN", DOWN_LATER, MAYBE) X(4874, "IOERR.SHMSIZE", DOWN_LATER, MAYBE) \
    X(5130, "IOERR.SHMLOCK", DOWN_LATER, MAYBE) X(5386, "IOERR.SHMMAP", DOWN_LATER, MAYBE) \
    X(5642, "IOERR.SEEK", DOWN_LATER, MAYBE) X(5898, "IOERR.DELETE_NOENT", DOWN_LATER, MAYBE) \
    X(6154, "IOERR.MMAP", DOWN_LATER, MAYBE) X(6410, "IOERR.GETTEMPPATH", DOWN_LATER, MAYBE) \
    X(6666, "IOERR.CONVPATH", DOWN_LATER, MAYBE) X(6922, "IOERR.VNODE", DOWN_LATER, MAYBE) \
    X(7178, "IOERR.AUTH", DOWN_LATER, MAYBE) X(7434, "IOERR.BEGIN_ATOMIC", DOWN_LATER, MAYBE) \
    X(7690, "IOERR.COMMIT_ATOMIC", DOWN_LATER, MAYBE) X(7946, "IOERR.ROLLBACK_ATOMIC", DOWN_LATER, MAYBE) \
    X(8202, "IOERR.DATA", DOWN_LATER, MAYBE) X(8458, "IOERR.CORRUPTFS", DOWN_LATER, MAYBE) \
    X(262, "LOCKED.SHAREDCACHE", BUSY, YES) X(518, "LOCKED.VTAB", BUSY, YES) \
    X(270, "CANTOPEN.NOTEMPDIR", DOWN_LATER, YES) X(526, "CANTOPEN.ISDIR", DOWN_LATER, YES) \
    X(782, "CANTOPEN.FULLPATH", DOWN_LATER, YES) X(1038, "CANTOPEN.CONVPATH", DOWN_LATER, YES) \
    X(1294, "CANTOPEN.DIRTYWAL", DOWN_LATER, YES) X(1550, "CANTOPEN.SYMLINK", DOWN_LATER, YES) \
    X(267, "CORRUPT.VTAB", BROKEN, YES) X(523, "CORRUPT.SEQUENCE", BROKEN, YES) X(779, "CORRUPT.INDEX", BROKEN, YES) \
    X(264, "READONLY.RECOVERY", DOWN_LATER, YES) X(520, "READONLY.CANTLOCK", DOWN_LATER, YES) \
    X(776, "READONLY.ROLLBACK", DOWN_LATER, YES) X(1032, "READONLY.DBMOVED", DOWN_LATER, YES) \
    X(1288, "READONLY.CANTINIT", DOWN_LATER, YES) X(1544, "READONLY.DIRECTORY", DOWN_LATER, YES) \
    X(516, "ABORT.ROLLBACK", BUSY, YES) X(275, "CONSTRAINT.CHECK", REFUSED, YES) \
    X(531, "CONSTRAINT.COMMITHOOK", REFUSED, YES) X(787, "CONSTRAINT.FOREIGNKEY", REFUSED, YES) \
    X(1043, "CONSTRAINT.FUNCTION", REFUSED, YES) X(1299, "CONSTRAINT.NOTNULL", REFUSED, YES) \
    X(1555, "CONSTRAINT.PRIMARYKEY", REFUSED, YES) X(1811, "CONSTRAINT.TRIGGER", REFUSED, YES) \
    X(2067, "CONSTRAINT.UNIQUE", REFUSED, YES) X(2323, "CONSTRAINT.VTAB", REFUSED, YES) \
    X(2579, "CONSTRAINT.ROWID", REFUSED, YES) X(2835, "CONSTRAINT.PINNED", REFUSED, YES) \
    X(3091, "CONSTRAINT.DATATYPE", REFUSED, YES) X(279, "AUTH.USER", REFUSED, YES) \
    X(256, "OK.LOAD_PERMANENTLY", OK, YES) X(512, "OK.SYMLINK", OK, YES) X(261, "BUSY.RECOVERY", BUSY, YES) \
    X(517, "BUSY.SNAPSHOT", BUSY, YES) X(773, "BUSY.TIMEOUT", BUSY, YES) X(8714, "IOERR.IN_PAGE", DOWN_LATER, MAYBE) \
    X(16, "EMPTY", DOWN, MAYBE) X(24, "FORMAT", DOWN, MAYBE) X(27, "NOTICE", DOWN, MAYBE) \
    X(283, "NOTICE.RECOVER_WAL", DOWN, MAYBE) X(539, "NOTICE.RECOVER_ROLLBACK", DOWN, MAYBE) \
    X(795, "NOTICE.RBU", DOWN, MAYBE) X(28, "WARNING", DOWN, MAYBE) X(284, "WARNING.AUTOINDEX", DOWN, MAYBE)
/* clang-format on */

static const struct row {
    int code;
    const char *name;
    enum hfi_effect effect;
    enum hf_sent sent;
} table[] = {
#define ROW(code, name, effect, sent) {code, name, HFI_EFFECT_##effect, HF_SENT_##sent},
    SQLITE_MAP(ROW)
#undef ROW
};

#define ROWS (sizeof table / sizeof *table)

/* A switch, so that a code that stands twice in the map does not compile. */
static const struct row *find(int code) {
    enum {
#define PLACE(code, name, effect, sent) PLACE_##code,
        SQLITE_MAP(PLACE)
#undef PLACE
    };
    switch (code) {
#define CASE(code, name, effect, sent)                                                                                 \
    case code:                                                                                                         \
        return &table[PLACE_##code];
        SQLITE_MAP(CASE)
#undef CASE
    default:
        return NULL;
    }
}

void hf_classify_sqlite(int extended_code, struct hf_outcome *outcome) {
    char type[HFI_ERROR_TYPE_MAX], rule[32];
    const struct row *row = find(extended_code);
    if (row == NULL)
        row = find(extended_code & 0xff);
    if (row == NULL || extended_code < 0) {
        hfi_effect_guess(outcome, extended_code, "sqlite.unknown", "sqlite.unknown");
        hfi_outcome_message(outcome, "SQLite result %d, which is not known", extended_code);
        return;
    }
    snprintf(type, sizeof type, "sqlite.%s", row->name);
    snprintf(rule, sizeof rule, "sqlite.%d", row->code);
    hfi_effect_apply(outcome, row->effect, HF_STAGE_WAIT, row->sent, extended_code, type, rule);
    if (outcome->kind != HF_OUTCOME_SUCCESS)
        hfi_outcome_message(outcome, "SQLite result %d (%s)", extended_code, row->name);
}

static void show(size_t index, struct hf_rule_row *row) {
    char rule[32];
    if (index == ROWS) {
        hfi_row_rest(row, "sqlite.unknown");
        return;
    }
    const struct row *from = &table[index];
    snprintf(rule, sizeof rule, "sqlite.%d", from->code);
    hfi_row_fill(row, from->effect, HF_STAGE_WAIT, from->sent, rule, "", "%d %s", from->code, from->name);
}

const struct hfi_table hfi_table_sqlite = {
    "sqlite",
    "Result codes of SQLite, primary and extended; an extended code that is not listed counts as its primary.",
    "sqlite.org/rescode.html",
    false,
    ROWS + 1,
    show};
