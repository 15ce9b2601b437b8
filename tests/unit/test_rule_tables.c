/* SPDX-License-Identifier: MIT */
/* The built-in tables as data: they show what the classifiers do, no row is dead, and every row is whole. S0.5, S4.5. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/classify.h"
#include "resilience/outcome.h"

static struct hf_outcome o;

/* Which rows were seen to decide, in the order of the tables. */
static bool reached[16][160];

static size_t number_of(const char *name) {
    struct hf_rule_table table = {.size = sizeof table};
    size_t i = 0;
    while (hf_rule_table(i, &table) == 0 && strcmp(table.name, name) != 0)
        i++;
    assert_true(i < sizeof reached / sizeof *reached);
    return i;
}

/* The row of `table` whose rule decided `o`: its verdicts are the outcome's. */
static void is_row_of(const char *table) {
    struct hf_rule_row row = {.size = sizeof row};
    for (size_t i = 0; hf_rule_row(table, i, &row) == 0; i++) {
        if (strcmp(row.rule, o.rule) != 0)
            continue;
        assert_true(i < sizeof *reached);
        reached[number_of(table)][i] = true;
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

/* Every number that a set shows is decided by that set: one that another set has too would be a lie on the page. */
static void every_number_is_of_its_set(void **state) {
    (void)state;
    static const char *const names[] = {"mssql", "mysql"};
    for (size_t server = 0; server < 2; server++) {
        struct hf_rule_row row = {.size = sizeof row};
        size_t numbers = 0;
        for (size_t i = 0; hf_rule_row(names[server], i, &row) == 0; i++) {
            char *at = row.match, *end;
            for (long number = strtol(at, &end, 10); end != at; number = strtol(at, &end, 10)) {
                int chain[] = {3621, (int)number}; /* behind one that no set knows, as some only count there */
                (server == 0 ? hf_classify_mssql : hf_classify_mysql)(chain, 2, &o);
                if (strcmp(o.rule, row.rule) != 0)
                    fail_msg("%s %ld is shown as %s, but is %s", names[server], number, row.rule, o.rule);
                numbers++;
                at = end + (*end == ',');
            }
        }
        assert_true(numbers > 80);
    }
}

/* No row is dead: for each there is an input that it decides. */
static void every_row_can_be_reached(void **state) {
    static const char *const walked[] = {"http", "curl", "errno", "sqlite", "sqlstate", "mssql", "mysql", "smtp", "exit",
                                         "signal"};
    static const int inner[] = {3621, 203}, unknown[] = {31337};
    static const char signs[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    tables_show_what_classifiers_do(state);
    hf_classify_mssql(inner, 2, &o);
    is_row_of("mssql");
    hf_classify_mssql(unknown, 1, &o);
    is_row_of("mssql");
    hf_classify_mysql(unknown, 1, &o);
    is_row_of("mysql");
    hf_classify_sqlstate(NULL, &o);
    is_row_of("sqlstate");
    hf_classify_sqlstate("?", &o);
    is_row_of("sqlstate");
    hf_classify_sqlstate_text("0A000", "cached plan must not change result type", &o);
    is_row_of("sqlstate");
    struct hf_rule_row row = {.size = sizeof row};
    for (size_t i = 0; hf_rule_row("sqlstate", i, &row) == 0; i++)
        for (size_t n = 0; n < 36 * 36; n++) {
            char code[8];
            size_t length = strspn(row.match, signs);
            if (length < 2 || length > 5)
                continue;
            snprintf(code, sizeof code, "%.*s0%c%c", (int)length, row.match, signs[n / 36], signs[n % 36]);
            code[5] = '\0';
            hf_classify_sqlstate(code, &o);
            is_row_of("sqlstate");
        }
    for (size_t t = 0; t < sizeof walked / sizeof *walked; t++)
        for (size_t i = 0; hf_rule_row(walked[t], i, &row) == 0; i++)
            if (!reached[number_of(walked[t])][i])
                fail_msg("no input reaches %s of %s", row.rule, walked[t]);
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
        cmocka_unit_test(tables_show_what_classifiers_do),
        cmocka_unit_test(every_number_is_of_its_set),
        cmocka_unit_test(every_row_can_be_reached),
        cmocka_unit_test(tables_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
