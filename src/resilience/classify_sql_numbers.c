/* SPDX-License-Identifier: MIT */
/*
 * SQL Server's and MySQL's error numbers as sets. Both report chains, and every error of one is looked at: any
 * transient match wins, then any permanent one; what no set knows is transient [S0.3, S0.5]. No
 * number is in two sets. Pure, any thread.
 */
#include "resilience/table.h"

#include <stdio.h>

#define COUNT(array) (sizeof array / sizeof *array)

/* One set of SQL error numbers and what they mean; `chain_only`: counts only behind another error of the chain. */
struct number_set {
    const char *rule;
    enum hfi_effect effect;
    enum hf_stage stage;
    enum hf_sent sent;
    bool chain_only;
    const int *numbers;
    size_t count;
    const char *note;
};

/* clang-format off */
static const int mssql_network[] = {
    -2, -1, 2, 20, 53, 64, 121, 233, 258, 10053, 10054, 10060, 10061, 11001,
};

static const int mssql_inner[] = {
    203,
};

static const int mssql_lock[] = {
    1203, 1204, 1205, 1221, 1222, 3948, 3950, 3953, 3957, 3960, 3966, 41301, 41302, 41305, 41325, 41339, 41823,
    41839, 41840,
};

static const int mssql_resource[] = {
    701, 802, 1807, 8628, 8645, 8651, 10922, 10928, 10929, 10930, 10936, 17197, 17889, 39108, 39110, 40189, 40501,
    40642, 40648, 40675,
};

static const int mssql_moving[] = {
    615, 617, 921, 927, 941, 952, 976, 978, 982, 983, 988, 3980, 4060, 4221, 18401, 40613, 42108, 42109, 45153,
    45156, 45157, 45161, 45179, 45182, 49510, 49802,
};

static const int mssql_core[] = {
    997, 40143, 40197, 40540, 49918, 49919, 49920,
};

static const int mssql_more[] = {
    539, 601, 669, 926, 1215, 1216, 1232, 1404, 1413, 1421, 1438, 1532, 1533, 1534, 1535, 2021, 2816, 3429, 3635,
    3935, 3941, 3947, 4117, 4184, 5280, 5529, 6292, 7951, 9020, 9515, 9985, 11539, 14355, 14817, 14868, 14906,
    16528, 16554, 16555, 17065, 17066, 17067, 18858, 19413, 19416, 19494, 20041, 21503, 22225, 22226, 22335, 22353,
    22355, 22358, 22427, 22430, 22491, 22493, 22498, 22754, 22758, 22759, 22760, 22984, 25003, 25738, 25740, 30080,
    30085, 33123, 35216, 35218, 35256, 35293, 37202, 37327, 39025, 39151, 39152, 40106, 40623, 40671, 40890, 40903,
    40918, 40938, 41383, 41614, 41619, 41640, 41700, 41701, 42029, 45319, 45547, 47132, 47137, 47139, 49977, 49983,
};

static const int mssql_permanent[] = {
    102, 105, 109, 110, 137, 156, 170, 201, 206, 207, 208, 213, 229, 230, 241, 242, 245, 248, 257, 262, 297, 300, 402,
    515, 547, 911, 916, 2601, 2627, 2628, 2714, 2812, 4104, 4121, 8114, 8115, 8134, 8144, 8145, 8152, 8178, 18452,
    18456, 18470, 18487, 18488,
};

static const int mysql_lock[] = {
    1020, 1205, 1206, 1213, 1223, 1412, 1613, 1614, 1637, 1689, 3058, 3101, 3572,
};

static const int mysql_connect[] = {
    1040, 1042, 1043, 1129, 1203, 1226, 2001, 2002, 2003, 2004, 2005, 2012,
};

static const int mysql_resource[] = {
    1021, 1037, 1038, 1041, 1114, 1135, 3170,
};

static const int mysql_cut[] = {
    1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 4031,
};

static const int mysql_failover[] = {
    1047, 1290, 1792, 1836, 3100, 3168,
};

static const int mysql_unknown[] = {
    1969, 2006, 2013, 2055, 3024, 3169,
};

static const int mysql_interrupted[] = {
    1317,
};

static const int mysql_commit[] = {
    1180, 1181,
};

static const int mysql_permanent[] = {
    1044, 1045, 1046, 1048, 1049, 1050, 1052, 1054, 1062, 1064, 1065, 1066, 1109, 1110, 1136, 1142, 1143, 1146, 1153,
    1169, 1216, 1217, 1227, 1242, 1264, 1265, 1292, 1305, 1318, 1364, 1365, 1366, 1370, 1406, 1451, 1452, 1586, 1690,
    1698, 1761, 1762, 1820, 3819, 4025,
};
/* clang-format on */

/* A deadlock or a full tempdb says nothing against the server; a network error or a moving database does. */
#define SET(rule, effect, stage, sent, chain_only, numbers, note)                                                      \
    { rule, HFI_EFFECT_##effect, HF_STAGE_##stage, HF_SENT_##sent, chain_only, numbers, COUNT(numbers), note }
static const struct number_set mssql[] = {
    SET("mssql.network", DOWN, WAIT, MAYBE, false, mssql_network, "the connection"),
    SET("mssql.network.inner", DOWN, WAIT, MAYBE, true, mssql_inner,
        "the connection; only behind another error of the chain"),
    SET("mssql.lock", BUSY, WAIT, YES, false, mssql_lock, "deadlocks, locks, write conflicts"),
    SET("mssql.resource", DOWN_LATER, WAIT, YES, false, mssql_resource, "memory, workers, limits of the service"),
    SET("mssql.moving", DOWN, WAIT, YES, false, mssql_moving, "a database that starts, moves or fails over"),
    SET("mssql.core", DOWN, WAIT, MAYBE, false, mssql_core, "what Azure SQL calls transient besides"),
    SET("mssql.more", DOWN, WAIT, MAYBE, false, mssql_more, "what Microsoft's clients retry besides"),
    SET("mssql.permanent", REFUSED, WAIT, YES, false, mssql_permanent, "statement, data, constraint or login"),
};

static const struct number_set mysql[] = {
    SET("mysql.lock", BUSY, WAIT, YES, false, mysql_lock, "deadlocks, lock waits, certification"),
    SET("mysql.connect", DOWN, CONNECT, NO, false, mysql_connect, "never connected"),
    SET("mysql.resource", DOWN_LATER, WAIT, YES, false, mysql_resource, "disk, memory, threads"),
    SET("mysql.cut", DOWN, WAIT, MAYBE, false, mysql_cut, "the connection was cut"),
    SET("mysql.failover", DOWN, WAIT, YES, false, mysql_failover, "read-only, or not part of the cluster now"),
    SET("mysql.unknown_outcome", DOWN, WAIT, MAYBE, false, mysql_unknown, "nobody knows how it ended"),
    SET("mysql.interrupted", BUSY, WAIT, MAYBE, false, mysql_interrupted, "cancelled by who asked, or killed"),
    SET("mysql.commit", BUSY, WAIT, MAYBE, false, mysql_commit,
        "an error during COMMIT or ROLLBACK: often a cluster's deadlock"),
    SET("mysql.permanent", REFUSED, WAIT, YES, false, mysql_permanent, "statement, data, constraint or login"),
};
#undef SET

/* One server's sets. */
struct server {
    const char *name, *unclassified;
    const struct number_set *sets;
    size_t count;
};
static const struct server servers[] = {{"mssql", "mssql.unclassified", mssql, COUNT(mssql)},
                                        {"mysql", "mysql.unclassified", mysql, COUNT(mysql)}};

static const struct number_set *find(const struct server *server, int number, bool inner) {
    for (size_t i = 0; i < server->count; i++) {
        const struct number_set *set = &server->sets[i];
        for (size_t k = 0; k < set->count && (inner || !set->chain_only); k++)
            if (set->numbers[k] == number)
                return set;
    }
    return NULL;
}

static void classify(const struct server *server, int number, bool inner, struct hf_outcome *outcome) {
    char type[32];
    const struct number_set *set = find(server, number, inner);
    snprintf(type, sizeof type, "%s.%d", server->name, number);
    if (set != NULL)
        hfi_effect_apply(outcome, set->effect, set->stage, set->sent, number, type, set->rule);
    else
        hfi_effect_guess(outcome, number, type, server->unclassified);
    hfi_outcome_message(outcome, "%s error %d", server->name, number);
}

static void walk(const struct server *server, const int *numbers, size_t count, struct hf_outcome *outcome) {
    struct hf_outcome one;
    hfi_outcome_init(outcome);
    for (size_t i = 0; i < count; i++) {
        classify(server, numbers[i], i > 0, &one);
        hf_classify_join(outcome, &one);
    }
    if (count == 0)
        classify(server, 0, false, outcome);
}

void hf_classify_mssql(const int *numbers, size_t count, struct hf_outcome *outcome) {
    walk(&servers[0], numbers, count, outcome);
}

void hf_classify_mysql(const int *numbers, size_t count, struct hf_outcome *outcome) {
    walk(&servers[1], numbers, count, outcome);
}

static void show(const struct server *server, size_t index, struct hf_rule_row *row) {
    if (index == server->count) {
        hfi_row_rest(row, server->unclassified);
        return;
    }
    const struct number_set *set = &server->sets[index];
    char numbers[sizeof row->match] = "";
    size_t at = 0;
    for (size_t i = 0; i < set->count && at < sizeof numbers; i++)
        at += (size_t)snprintf(numbers + at, sizeof numbers - at, "%s%d", i > 0 ? ", " : "", set->numbers[i]);
    hfi_row_fill(row, set->effect, set->stage, set->sent, set->rule, set->note, "%s", numbers);
}

static void show_mssql(size_t index, struct hf_rule_row *row) {
    show(&servers[0], index, row);
}

static void show_mysql(size_t index, struct hf_rule_row *row) {
    show(&servers[1], index, row);
}

const struct hfi_table hfi_table_mssql = {
    "mssql",
    "Error numbers of SQL Server and Azure SQL; all of a chain are looked at, and any transient one wins.",
    "SQL Server error reference; the retry lists of Microsoft.Data.SqlClient and EF Core",
    true,
    COUNT(mssql) + 1,
    show_mssql};
const struct hfi_table hfi_table_mysql = {
    "mysql",
    "Error numbers of MySQL and MariaDB, server and client; all of a chain are looked at, and any transient one wins.",
    "MySQL 8.0 error reference, MariaDB error codes",
    true,
    COUNT(mysql) + 1,
    show_mysql};
