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
        {"08P01", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, "sql.08"},
        {"57P01", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, "sql.57P"},
        {"57P03", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_NO, "sql.57P03"},
        {"57014", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_YES, "sql.57014"}, /* B28 */
        {"57000", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_YES, "sql.57"},
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
        {"57P04", HF_CLASS_TRANSIENT, HF_VERDICT_FAILURE, HF_SENT_MAYBE, "sql.57P"},
        {"57P05", HF_CLASS_TRANSIENT, HF_VERDICT_NEUTRAL, HF_SENT_MAYBE, "sql.57P05"},
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

/* S0.5 to the letter: 40001, 40P01, 08xxx, 57P0x, 53xxx are transient, whatever the rest of the code is. */
static void s0_5_the_named_sqlstates(void **state) {
    (void)state;
    static const char *const begins[] = {"40001", "40P01", "08", "57P0", "53"};
    static const char signs[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        for (size_t n = 0; n < 36 * 36 * 36; n++) {
            char code[16];
            snprintf(code, sizeof code, "%s%c%c%c", begins[i], signs[n % 36], signs[n / 36 % 36], signs[n / 1296]);
            code[5] = '\0';
            hf_classify_sqlstate(code, &o);
            assert_int_equal(o.klass, HF_CLASS_TRANSIENT);
            assert_false(o.guess);
        }
}

/* B28: a statement that was cancelled says nothing of the server, whichever it is. */
static void b28_cancelled_statements_are_neutral(void **state) {
    (void)state;
    static const int mysql_interrupted = 1317;
    hf_classify_sqlstate("57014", &o);
    assert_int_equal(o.verdict, HF_VERDICT_NEUTRAL);
    hf_classify_mysql(&mysql_interrupted, 1, &o);
    assert_int_equal(o.verdict, HF_VERDICT_NEUTRAL);
    hf_classify_sqlite(9, &o); /* SQLITE_INTERRUPT */
    assert_int_equal(o.verdict, HF_VERDICT_NEUTRAL);
    hf_classify_errno(ECANCELED, &o);
    assert_int_equal(o.verdict, HF_VERDICT_NEUTRAL);
    hf_classify_errno(EINTR, &o);
    assert_int_equal(o.verdict, HF_VERDICT_NEUTRAL);
    hf_classify_curl(42, HF_SENT_MAYBE, &o); /* CURLE_ABORTED_BY_CALLBACK */
    assert_int_equal(o.verdict, HF_VERDICT_NEUTRAL);
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
        {1317, HF_CLASS_TRANSIENT, HF_SENT_MAYBE, "mysql.interrupted"},
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errno_table),
        cmocka_unit_test(s0_1_exit_statuses),
        cmocka_unit_test(s0_1_signals),
        cmocka_unit_test(s0_5_sqlite),
        cmocka_unit_test(s0_5_sqlstates),
        cmocka_unit_test(s0_5_the_named_sqlstates),
        cmocka_unit_test(b28_cancelled_statements_are_neutral),
        cmocka_unit_test(s0_5_mssql_walks_the_chain),
        cmocka_unit_test(s0_5_mysql),
        cmocka_unit_test(s0_5_sqlstate_with_text),
        cmocka_unit_test(s0_5_chains),
        cmocka_unit_test(smtp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
