/* SPDX-License-Identifier: MIT */
/* errno, exit statuses, signals, SQLite, SQLSTATE, SQL Server and MySQL: S0.1-S0.5. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/text.h"
#include "resilience/outcome.h"

#include "holdfast/classify.h"

static struct hf_outcome o;

/* What holds for every outcome of every table. */
static void sound(void) {
    assert_true(o.touched && o.rule[0] != '\0');
    assert_int_equal(o.kind == HF_OUTCOME_SUCCESS, o.klass == HF_CLASS_OK);
    assert_int_equal(o.kind == HF_OUTCOME_SUCCESS, o.error_type[0] == '\0');
    assert_int_equal(o.klass == HF_CLASS_PERMANENT, o.kind == HF_OUTCOME_FAILURE && o.retry == HF_RETRY_NONE);
    assert_int_not_equal(o.klass, HF_CLASS_POISON); /* S0.2: only who cannot decode a job says poison */
}

static void errno_table(void **state) {
    (void)state;
    hf_classify_errno(ECONNREFUSED, &o);
    assert_string_equal(o.error_type, "errno.ECONNREFUSED");
    assert_string_equal(o.rule, "errno.ECONNREFUSED");
    assert_int_equal(o.klass, HF_CLASS_TRANSIENT);
    assert_int_equal(o.sent, HF_SENT_NO);
    hf_classify_errno(ECONNRESET, &o);
    assert_int_equal(o.sent, HF_SENT_MAYBE);
    assert_int_equal(o.verdict, HF_VERDICT_FAILURE);
    hf_classify_errno(EMFILE, &o);
    assert_int_equal(o.verdict, HF_VERDICT_NEUTRAL); /* our own shortage, not the peer's fault */
    hf_classify_errno(EINVAL, &o);
    assert_int_equal(o.klass, HF_CLASS_PERMANENT);
    hf_classify_errno(ENOSPC, &o);
    assert_int_equal(o.retry, HF_RETRY_LATER);
    hf_classify_errno(0, &o);
    assert_int_equal(o.kind, HF_OUTCOME_SUCCESS);
    for (int number = -5; number < 200; number++) {
        hf_classify_errno(number, &o);
        sound();
        if (o.kind == HF_OUTCOME_SUCCESS || strcmp(o.error_type, "errno.unknown") == 0)
            continue;
        assert_int_equal(hf_errno_number(o.error_type + 6), number);
    }
    hf_classify_errno(9999, &o); /* S0.3 */
    assert_string_equal(o.error_type, "errno.unknown");
    assert_int_equal(o.klass, HF_CLASS_TRANSIENT);
    /* glibc knows 133 numbers: each has its name here. */
    int known = 0;
    for (int number = 1; number < 134; number++)
        if (strerrorname_np(number) != NULL) {
            assert_int_equal(hf_errno_number(strerrorname_np(number)), number);
            known++;
        }
    assert_true(known > 120);
    assert_int_equal(hf_errno_number("EWOULDBLOCK"), EWOULDBLOCK);
    assert_int_equal(hf_errno_number("EOPNOTSUPP"), EOPNOTSUPP);
    assert_int_equal(hf_errno_number("111"), 111);
    assert_int_equal(hf_errno_number("ENONSENSE"), -1);
    assert_int_equal(hf_errno_number(""), -1);
    assert_int_equal(hf_errno_number(NULL), -1);
}

static void s0_1_exit_statuses(void **state) {
    (void)state;
    for (int status = -1; status < 300; status++) {
        char type[32];
        hf_classify_exit(status, &o);
        sound();
        if (status == 0) {
            assert_int_equal(o.kind, HF_OUTCOME_SUCCESS);
            continue;
        }
        snprintf(type, sizeof type, "exit.%d", status);
        assert_string_equal(o.error_type, type);
        bool permanent = status >= 64 && status <= 78 && status != 75;
        assert_int_equal(o.klass, permanent ? HF_CLASS_PERMANENT : HF_CLASS_TRANSIENT);
    }
}

static void s0_1_signals(void **state) {
    (void)state;
    hf_classify_signal(SIGSEGV, &o);
    assert_string_equal(o.error_type, "signal.SIGSEGV");
    hf_classify_signal(99, &o);
    assert_string_equal(o.error_type, "signal.99");
    for (int number = 0; number < 70; number++) {
        hf_classify_signal(number, &o);
        sound();
        assert_int_equal(o.klass, HF_CLASS_TRANSIENT);
        if (number > 0 && number < 32)
            assert_int_equal(hf_signal_number(o.error_type + 7), number); /* all of them have a name */
    }
    assert_int_equal(hf_signal_number("KILL"), SIGKILL);
    assert_int_equal(hf_signal_number("sigterm"), SIGTERM);
    assert_int_equal(hf_signal_number("9"), 9);
    assert_int_equal(hf_signal_number("SIGNOPE"), -1);
    assert_int_equal(hf_signal_number(NULL), -1);
}

static void s0_5_sqlite(void **state) {
    (void)state;
    static const struct {
        int code;
        enum hf_class klass;
        enum hf_retry retry;
        enum hf_verdict verdict;
        const char *type;
    } rows[] = {
        {SQLITE_BUSY, HF_CLASS_TRANSIENT, HF_RETRY_NOW, HF_VERDICT_NEUTRAL, "sqlite.BUSY"},
        {SQLITE_BUSY_SNAPSHOT, HF_CLASS_TRANSIENT, HF_RETRY_NOW, HF_VERDICT_NEUTRAL, "sqlite.BUSY.SNAPSHOT"},
        {SQLITE_BUSY_RECOVERY, HF_CLASS_TRANSIENT, HF_RETRY_NOW, HF_VERDICT_NEUTRAL, "sqlite.BUSY.RECOVERY"},
        {SQLITE_LOCKED, HF_CLASS_TRANSIENT, HF_RETRY_NOW, HF_VERDICT_NEUTRAL, "sqlite.LOCKED"},
        {SQLITE_ABORT_ROLLBACK, HF_CLASS_TRANSIENT, HF_RETRY_NOW, HF_VERDICT_NEUTRAL, "sqlite.ABORT.ROLLBACK"},
        {SQLITE_ERROR_RETRY, HF_CLASS_TRANSIENT, HF_RETRY_NOW, HF_VERDICT_NEUTRAL, "sqlite.ERROR.RETRY"},
        {SQLITE_FULL, HF_CLASS_TRANSIENT, HF_RETRY_LATER, HF_VERDICT_FAILURE, "sqlite.FULL"},
        {SQLITE_IOERR_FSYNC, HF_CLASS_TRANSIENT, HF_RETRY_LATER, HF_VERDICT_FAILURE, "sqlite.IOERR.FSYNC"},
        {SQLITE_READONLY_DBMOVED, HF_CLASS_TRANSIENT, HF_RETRY_LATER, HF_VERDICT_FAILURE, "sqlite.READONLY.DBMOVED"},
        {SQLITE_CONSTRAINT_UNIQUE, HF_CLASS_PERMANENT, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, "sqlite.CONSTRAINT.UNIQUE"},
        {SQLITE_CORRUPT_INDEX, HF_CLASS_PERMANENT, HF_RETRY_NONE, HF_VERDICT_FAILURE, "sqlite.CORRUPT.INDEX"},
        {SQLITE_NOTADB, HF_CLASS_PERMANENT, HF_RETRY_NONE, HF_VERDICT_FAILURE, "sqlite.NOTADB"},
        {SQLITE_ERROR, HF_CLASS_PERMANENT, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, "sqlite.ERROR"},
        {SQLITE_BUSY | 99 << 8, HF_CLASS_TRANSIENT, HF_RETRY_NOW, HF_VERDICT_NEUTRAL, "sqlite.BUSY"},
        {SQLITE_FORMAT, HF_CLASS_TRANSIENT, HF_RETRY_NOW, HF_VERDICT_FAILURE, "sqlite.FORMAT"},
        {99, HF_CLASS_TRANSIENT, HF_RETRY_NOW, HF_VERDICT_FAILURE, "sqlite.unknown"}, /* S0.3 */
        {SQLITE_IOERR | 34 << 8, HF_CLASS_TRANSIENT, HF_RETRY_LATER, HF_VERDICT_FAILURE, "sqlite.IOERR.IN_PAGE"},
        {-1, HF_CLASS_TRANSIENT, HF_RETRY_NOW, HF_VERDICT_FAILURE, "sqlite.unknown"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hf_classify_sqlite(rows[i].code, &o);
        sound();
        assert_int_equal(o.klass, rows[i].klass);
        assert_int_equal(o.retry, rows[i].retry);
        assert_int_equal(o.verdict, rows[i].verdict);
        assert_string_equal(o.error_type, rows[i].type);
    }
    static const int fine[] = {SQLITE_OK, SQLITE_ROW, SQLITE_DONE};
    for (size_t i = 0; i < 3; i++) {
        hf_classify_sqlite(fine[i], &o);
        assert_int_equal(o.kind, HF_OUTCOME_SUCCESS);
    }
    hf_classify_sqlite(SQLITE_IOERR_FSYNC, &o);
    assert_int_equal(o.sent, HF_SENT_MAYBE); /* nobody knows whether the commit happened */
    for (int code = -300; code < 0x3000; code++) {
        hf_classify_sqlite(code, &o);
        sound();
    }
    assert_true(hfi_dotted_prefix("sqlite.BUSY", "sqlite.BUSY.SNAPSHOT"));
}

static void s0_5_sqlstates(void **state) {
    (void)state;
    static const struct {
        const char *code;
        enum hf_class klass;
        enum hf_verdict verdict;
        enum hf_sent sent;
        const char *rule;
    } rows[] = {
        {"40001", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, "sql.40001"},
        {"40P01", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, "sql.40P01"},
        {"40p01", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, "sql.40P01"},
        {"40003", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_MAYBE, "sql.40003"},
        {"08006", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, "sql.08"},
        {"08007", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, "sql.08"},
        {"08001", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_NO, "sql.08001"},
        {"08P01", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_MAYBE, "sql.08P01"},
        {"57P01", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, "sql.57P"},
        {"57P03", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_NO, "sql.57P03"},
        {"57014", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_YES, "sql.57"},
        {"53100", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_YES, "sql.53"},
        {"53300", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_NO, "sql.53300"},
        {"58030", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, "sql.58"},
        {"55P03", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, "sql.55P03"},
        {"25006", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_YES, "sql.25006"},
        {"HYT00", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, "sql.HYT"},
        {"XX000", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_YES, "sql.XX"},
        {"XX001", HF_CLASS_PERMANENT, HF_VERDICT_FAILURE, HF_SENT_YES, "sql.XX001"},
        {"23505", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, "sql.23"},
        {"0A000", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, "sql.0A"},
        {"26000", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, "sql.26"},
        {"25P03", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, "sql.25P03"},
        {"25001", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, "sql.25"},
        {"57P04", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_MAYBE, "sql.57P04"},
        {"P0001", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, "sql.P0"},
        {"72000", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, "sql.72"},
        {"55000", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, "sql.55"},
        {"22P02", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, "sql.22"},
        {"28P01", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_NO, "sql.28"},
        {"3D000", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_NO, "sql.3D"},
        {"42P01", HF_CLASS_PERMANENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, "sql.42"},
        {"00000", HF_CLASS_OK, HF_VERDICT_SUCCESS, HF_SENT_YES, "sql.00"},
        {"02000", HF_CLASS_OK, HF_VERDICT_SUCCESS, HF_SENT_YES, "sql.02"},
        {"ZZ999", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, "sql.unclassified"}, /* S0.3 */
        {"4000", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, "sql.unknown"},
        {"400011", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, "sql.unknown"},
        {"40 01", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, "sql.unknown"},
        {"", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, "sql.connection"},
        {NULL, HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, "sql.connection"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hf_classify_sqlstate(rows[i].code, &o);
        sound();
        assert_string_equal(o.rule, rows[i].rule);
        assert_int_equal(o.klass, rows[i].klass);
        assert_int_equal(o.verdict, rows[i].verdict);
        assert_int_equal(o.sent, rows[i].sent);
    }
    hf_classify_sqlstate("40p01", &o);
    assert_string_equal(o.error_type, "sql.40P01");
}

static void s0_5_mssql_walks_the_chain(void **state) {
    (void)state;
    static const struct {
        int numbers[4];
        size_t count;
        enum hf_class klass;
        int native;
        const char *rule;
    } rows[] = {
        {{40613}, 1, HF_CLASS_TRANSIENT, 40613, "mssql.moving"},
        {{49918}, 1, HF_CLASS_TRANSIENT, 49918, "mssql.core"},
        {{1205}, 1, HF_CLASS_TRANSIENT, 1205, "mssql.lock"},
        {{-2}, 1, HF_CLASS_TRANSIENT, -2, "mssql.network"},
        {{2627}, 1, HF_CLASS_PERMANENT, 2627, "mssql.permanent"},
        {{2627, 1205}, 2, HF_CLASS_TRANSIENT, 1205, "mssql.lock"},           /* any transient match wins */
        {{3621, 2627, 547}, 3, HF_CLASS_PERMANENT, 2627, "mssql.permanent"}, /* an unknown one is no match */
        {{3621}, 1, HF_CLASS_TRANSIENT, 3621, "mssql.unclassified"},         /* S0.3 */
        {{18456, 0, 0, 4060}, 4, HF_CLASS_TRANSIENT, 4060, "mssql.moving"},
        {{203}, 1, HF_CLASS_TRANSIENT, 203, "mssql.unclassified"}, /* a transport error only behind another */
        {{233, 203}, 2, HF_CLASS_TRANSIENT, 233, "mssql.network"},
        {{3621, 203}, 2, HF_CLASS_TRANSIENT, 203, "mssql.network.inner"},
        {{1533}, 1, HF_CLASS_TRANSIENT, 1533, "mssql.more"}, /* inside the range 1532-1535 */
        {{1536}, 1, HF_CLASS_TRANSIENT, 1536, "mssql.unclassified"},
        {{701}, 1, HF_CLASS_TRANSIENT, 701, "mssql.resource"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hf_classify_mssql(rows[i].numbers, rows[i].count, &o);
        sound();
        assert_int_equal(o.klass, rows[i].klass);
        assert_int_equal(o.native, rows[i].native);
        assert_string_equal(o.rule, rows[i].rule);
    }
    hf_classify_mssql(NULL, 0, &o);
    sound();
    assert_int_equal(o.klass, HF_CLASS_TRANSIENT);
}

static void s0_5_mysql(void **state) {
    (void)state;
    static const struct {
        int number;
        enum hf_class klass;
        enum hf_sent sent;
        const char *rule;
    } rows[] = {
        {1213, HF_CLASS_TRANSIENT, HF_SENT_YES, "mysql.lock"},
        {1205, HF_CLASS_TRANSIENT, HF_SENT_YES, "mysql.lock"},
        {1040, HF_CLASS_TRANSIENT, HF_SENT_NO, "mysql.connect"},
        {2003, HF_CLASS_TRANSIENT, HF_SENT_NO, "mysql.connect"},
        {2013, HF_CLASS_TRANSIENT, HF_SENT_MAYBE, "mysql.unknown_outcome"},
        {1290, HF_CLASS_TRANSIENT, HF_SENT_YES, "mysql.failover"},
        {1160, HF_CLASS_TRANSIENT, HF_SENT_MAYBE, "mysql.cut"},
        {1062, HF_CLASS_PERMANENT, HF_SENT_YES, "mysql.permanent"},
        {1180, HF_CLASS_TRANSIENT, HF_SENT_MAYBE, "mysql.commit"}, /* an error during COMMIT: nobody knows */
        {1021, HF_CLASS_TRANSIENT, HF_SENT_YES, "mysql.resource"},
        {1047, HF_CLASS_TRANSIENT, HF_SENT_YES, "mysql.failover"},
        {31337, HF_CLASS_TRANSIENT, HF_SENT_MAYBE, "mysql.unclassified"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hf_classify_mysql(&rows[i].number, 1, &o);
        sound();
        assert_int_equal(o.klass, rows[i].klass);
        assert_int_equal(o.sent, rows[i].sent);
        assert_string_equal(o.rule, rows[i].rule);
    }
    static const int chain[] = {1062, 31337, 1213};
    hf_classify_mysql(chain, 3, &o);
    assert_string_equal(o.rule, "mysql.lock");
    hf_classify_mysql(chain, 2, &o);
    assert_string_equal(o.rule, "mysql.permanent");
    hf_classify_mysql(NULL, 0, &o);
    sound();
    assert_int_equal(o.klass, HF_CLASS_TRANSIENT);
}

/* A statement whose table changed under it is refused as "not supported": only its text tells it apart. */
static void s0_5_sqlstate_with_text(void **state) {
    (void)state;
    static const char *const texts[] = {"cached plan must not change result type", "RevalidateCachedQuery"};
    for (size_t i = 0; i < 2; i++) {
        hf_classify_sqlstate_text("0A000", texts[i], &o);
        sound();
        assert_int_equal(o.klass, HF_CLASS_TRANSIENT);
        assert_int_equal(o.retry, HF_RETRY_NOW);
        assert_string_equal(o.rule, "sql.0A000.plan");
        hf_classify_sqlstate_text("42601", texts[i], &o); /* the text alone decides nothing */
        assert_int_equal(o.klass, HF_CLASS_PERMANENT);
    }
    hf_classify_sqlstate_text("0A000", "LOCK TABLE is not supported", &o);
    assert_int_equal(o.klass, HF_CLASS_PERMANENT);
}

/* S0.5: any transient match wins, wherever it stands in the chain. */
static void s0_5_chains(void **state) {
    (void)state;
    static const struct {
        const char *codes[3];
        size_t count;
        enum hf_class klass;
        enum hf_sent sent;
        const char *rule;
    } rows[] = {
        {{"23505", "40P01"}, 2, HF_CLASS_TRANSIENT, HF_SENT_YES, "sql.40P01"},
        {{"40P01", "23505"}, 2, HF_CLASS_TRANSIENT, HF_SENT_YES, "sql.40P01"},
        {{"ZZ999", "23505"}, 2, HF_CLASS_PERMANENT, HF_SENT_YES, "sql.23"},
        {{"01000", "ZZ999"}, 2, HF_CLASS_TRANSIENT, HF_SENT_MAYBE, "sql.unclassified"}, /* S0.1: no success */
        {{"00000", "01000"}, 2, HF_CLASS_OK, HF_SENT_YES, "sql.00"},
        {{"08001", "08004"}, 2, HF_CLASS_TRANSIENT, HF_SENT_NO, "sql.08001"},
        {{"08001", "40001"}, 2, HF_CLASS_TRANSIENT, HF_SENT_YES, "sql.08001"}, /* the proof is contradicted */
        {{"08001", "ZZ999"}, 2, HF_CLASS_TRANSIENT, HF_SENT_NO, "sql.08001"},
        {{NULL}, 0, HF_CLASS_TRANSIENT, HF_SENT_MAYBE, "sql.unknown"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hf_classify_sqlstates(rows[i].codes, rows[i].count, &o);
        sound();
        assert_int_equal(o.klass, rows[i].klass);
        assert_int_equal(o.sent, rows[i].sent);
        assert_string_equal(o.rule, rows[i].rule);
    }
    /* Causes of different kinds: a driver's error, and the system call behind it. */
    struct hf_outcome cause;
    hfi_outcome_init(&o);
    hf_classify_sqlstate("42601", &cause);
    hf_classify_join(&o, &cause);
    hf_classify_errno(ECONNRESET, &cause);
    hf_classify_join(&o, &cause);
    assert_string_equal(o.rule, "errno.ECONNRESET");
    assert_int_equal(o.sent, HF_SENT_YES);
}

static void smtp(void **state) {
    (void)state;
    static const struct {
        int code;
        enum hf_class klass;
        enum hf_retry retry;
        enum hf_verdict verdict;
        const char *rule;
    } rows[] = {
        {250, HF_CLASS_OK, HF_RETRY_NONE, HF_VERDICT_SUCCESS, "smtp.2yz"},
        {354, HF_CLASS_TRANSIENT, HF_RETRY_NOW, HF_VERDICT_FAILURE, "smtp.3yz"}, /* S0.1: it never ended */
        {421, HF_CLASS_TRANSIENT, HF_RETRY_NOW, HF_VERDICT_FAILURE, "smtp.421"},
        {450, HF_CLASS_TRANSIENT, HF_RETRY_LATER, HF_VERDICT_NEUTRAL, "smtp.4yz"},
        {452, HF_CLASS_TRANSIENT, HF_RETRY_LATER, HF_VERDICT_FAILURE, "smtp.452"},
        {550, HF_CLASS_PERMANENT, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, "smtp.5yz"},
        {554, HF_CLASS_PERMANENT, HF_RETRY_NONE, HF_VERDICT_NEUTRAL, "smtp.5yz"},
        {0, HF_CLASS_TRANSIENT, HF_RETRY_NOW, HF_VERDICT_FAILURE, "smtp.unknown"},
        {600, HF_CLASS_TRANSIENT, HF_RETRY_NOW, HF_VERDICT_FAILURE, "smtp.unknown"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hf_classify_smtp(rows[i].code, &o);
        sound();
        assert_int_equal(o.klass, rows[i].klass);
        assert_int_equal(o.retry, rows[i].retry);
        assert_int_equal(o.verdict, rows[i].verdict);
        assert_string_equal(o.rule, rows[i].rule);
    }
}

/* The row of `table` whose rule decided `o`: its verdicts are the outcome's. */
static void is_row_of(const char *table) {
    struct hf_rule_row row = {.size = sizeof row};
    for (size_t i = 0; hf_rule_row(table, i, &row) == 0; i++) {
        if (strcmp(row.rule, o.rule) != 0)
            continue;
        assert_int_equal(row.kind, o.kind);
        assert_int_equal(row.klass, o.klass);
        assert_int_equal(row.retry, o.retry);
        assert_int_equal(row.verdict, o.verdict);
        assert_int_equal(row.stage, o.stage);
        assert_int_equal(row.sent, o.sent);
        return;
    }
    fail_msg("no row of table %s has the rule %s", table, o.rule);
}

/* What the tables show is what the classifiers do, for every input there is. */
static void tables_show_what_classifiers_do(void **state) {
    (void)state;
    for (int number = -200; number < 50000; number++) {
        hf_classify_mssql(&number, 1, &o);
        if (!o.guess || number < 0)
            is_row_of("mssql");
        hf_classify_mysql(&number, 1, &o);
        if (!o.guess || number < 0)
            is_row_of("mysql");
        if (number > 1100)
            continue;
        hf_classify_http(number, NULL, 0, &o);
        is_row_of("http");
        hf_classify_http(number, "1", 0, &o);
        is_row_of("http");
        hf_classify_curl(number, HF_SENT_MAYBE, &o);
        is_row_of("curl");
        hf_classify_errno(number, &o);
        is_row_of("errno");
        hf_classify_smtp(number, &o);
        is_row_of("smtp");
        hf_classify_exit(number, &o);
        is_row_of("exit");
        hf_classify_signal(number, &o);
        is_row_of("signal");
    }
    for (int code = -1; code < 0x3000; code++) {
        hf_classify_sqlite(code, &o);
        is_row_of("sqlite");
    }
    static const char letters[] = "0128ABCFHLPXYZ345";
    char sqlstate[] = "00000";
    for (size_t a = 0; letters[a]; a++)
        for (size_t b = 0; letters[b]; b++)
            for (size_t c = 0; letters[c]; c++) {
                sqlstate[0] = letters[a];
                sqlstate[1] = letters[b];
                sqlstate[2] = letters[c];
                sqlstate[4] = letters[(a + b) % 4];
                hf_classify_sqlstate(sqlstate, &o);
                is_row_of("sqlstate");
            }
}

/* Every row of every table: whole texts, valid verdicts, a rule of its own. */
static void tables_are_whole(void **state) {
    (void)state;
    struct hf_rule_table table = {.size = sizeof table};
    size_t tables = 0;
    for (; hf_rule_table(tables, &table) == 0; tables++) {
        struct hf_rule_row row = {.size = sizeof row}, other = row;
        assert_true(table.rows > 0 && table.about[0] && table.source[0]);
        assert_int_equal(hf_rule_row(table.name, table.rows, &row), HF_ENOENT);
        for (size_t i = 0; i < table.rows; i++) {
            assert_int_equal(hf_rule_row(table.name, i, &row), 0);
            assert_string_equal(row.table, table.name);
            assert_true(row.match[0] != '\0' && strlen(row.match) < sizeof row.match - 1);
            assert_true(row.rule[0] != '\0' && strlen(row.rule) < sizeof row.rule - 1);
            assert_string_not_equal(hf_stage_name(row.stage), "unknown");
            assert_int_equal(row.kind == HF_OUTCOME_SUCCESS, row.klass == HF_CLASS_OK);
            assert_true(row.klass != HF_CLASS_PERMANENT || row.retry == HF_RETRY_NONE);
            for (size_t k = 0; k < i; k++) {
                assert_int_equal(hf_rule_row(table.name, k, &other), 0);
                assert_string_not_equal(row.rule, other.rule);
                assert_string_not_equal(row.match, other.match);
            }
        }
    }
    assert_true(tables >= 13);
    assert_int_equal(hf_rule_row("nonsense", 0, &(struct hf_rule_row){.size = sizeof(struct hf_rule_row)}), HF_ENOENT);
    assert_int_equal(hf_rule_row("http", 0, &(struct hf_rule_row){0}), HF_EINVAL);
    assert_int_equal(hf_rule_table(0, &(struct hf_rule_table){0}), HF_EINVAL);
    /* An older caller, with a struct that ends earlier, gets what it has room for. */
    struct {
        struct hf_rule_table known;
        char guard[16];
    } old = {.known = {.size = offsetof(struct hf_rule_table, about)}};
    old.known.about = "untouched";
    assert_int_equal(hf_rule_table(0, &old.known), 0);
    assert_string_equal(old.known.name, "http");
    assert_string_equal(old.known.about, "untouched");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errno_table),
        cmocka_unit_test(s0_1_exit_statuses),
        cmocka_unit_test(s0_1_signals),
        cmocka_unit_test(s0_5_sqlite),
        cmocka_unit_test(s0_5_sqlstates),
        cmocka_unit_test(s0_5_mssql_walks_the_chain),
        cmocka_unit_test(s0_5_mysql),
        cmocka_unit_test(s0_5_sqlstate_with_text),
        cmocka_unit_test(s0_5_chains),
        cmocka_unit_test(smtp),
        cmocka_unit_test(tables_show_what_classifiers_do),
        cmocka_unit_test(tables_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
