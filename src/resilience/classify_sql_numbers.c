/* SPDX-License-Identifier: MIT */
/*
 * SQL Server's and MySQL's error numbers as sets. SQL Server reports a chain, and every error of it is looked at: any
 * transient match wins, then any permanent one; what no set knows is transient [S0.3, S0.5]. A number that is in two
 * sets counts in the first. Pure, any thread.
 */
#include "holdfast/classify.h"

#include <stdio.h>

#include "resilience/effect.h"

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
    233, 997, 1204, 1205, 1222, 4060, 4221, 10060, 10928, 10929, 40143, 40197, 40501, 40540, 40613, 42108, 42109,
    49918, 49919, 49920,
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
    102, 156, 207, 208, 229, 245, 515, 547, 2601, 2627, 2628, 2812, 8152, 18452, 18456,
};

static const int mysql_lock[] = {
    1180, 1205, 1206, 1213, 1412, 1614, 1637, 1689, 3058, 3101, 3572,
};

static const int mysql_connect[] = {
    1040, 1041, 1042, 1043, 1129, 1203, 1226, 2002, 2003, 2005,
};

static const int mysql_cut[] = {
    1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 4031,
};

static const int mysql_failover[] = {
    1290, 1792, 1836,
};

static const int mysql_unknown[] = {
    1317, 1969, 2006, 2013, 2055, 3024,
};

static const int mysql_permanent[] = {
    1044, 1045, 1049, 1054, 1062, 1064, 1146, 1216, 1217, 1264, 1292, 1366, 1406, 1451, 1452, 1698,
};
/* clang-format on */

/* A deadlock or a full tempdb says nothing against the server; a network error or a moving database does. */
static const struct number_set mssql[] = {
    {"mssql.network", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE, false, mssql_network, COUNT(mssql_network)},
    {"mssql.network", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE, true, mssql_inner, COUNT(mssql_inner)},
    {"mssql.lock", HFI_EFFECT_BUSY, HF_STAGE_WAIT, HF_SENT_YES, false, mssql_lock, COUNT(mssql_lock)},
    {"mssql.resource", HFI_EFFECT_DOWN_LATER, HF_STAGE_WAIT, HF_SENT_YES, false, mssql_resource, COUNT(mssql_resource)},
    {"mssql.moving", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_YES, false, mssql_moving, COUNT(mssql_moving)},
    {"mssql.core", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE, false, mssql_core, COUNT(mssql_core)},
    {"mssql.more", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE, false, mssql_more, COUNT(mssql_more)},
    {"mssql.permanent", HFI_EFFECT_REFUSED, HF_STAGE_WAIT, HF_SENT_YES, false, mssql_permanent, COUNT(mssql_permanent)},
};

static const struct number_set mysql[] = {
    {"mysql.lock", HFI_EFFECT_BUSY, HF_STAGE_WAIT, HF_SENT_YES, false, mysql_lock, COUNT(mysql_lock)},
    {"mysql.connect", HFI_EFFECT_DOWN, HF_STAGE_CONNECT, HF_SENT_NO, false, mysql_connect, COUNT(mysql_connect)},
    {"mysql.cut", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE, false, mysql_cut, COUNT(mysql_cut)},
    {"mysql.failover", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_YES, false, mysql_failover, COUNT(mysql_failover)},
    {"mysql.unknown_outcome", HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE, false, mysql_unknown,
     COUNT(mysql_unknown)},
    {"mysql.permanent", HFI_EFFECT_REFUSED, HF_STAGE_WAIT, HF_SENT_YES, false, mysql_permanent, COUNT(mysql_permanent)},
};

static const struct number_set *find(const struct number_set *sets, size_t count, int number, bool inner) {
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sets[i].count && (inner || !sets[i].chain_only); k++)
            if (sets[i].numbers[k] == number)
                return &sets[i];
    return NULL;
}

static void apply(struct hf_outcome *outcome, const char *server, const struct number_set *set, int number) {
    char type[32], unclassified[32];
    snprintf(type, sizeof type, "%s.%d", server, number);
    snprintf(unclassified, sizeof unclassified, "%s.unclassified", server);
    if (set != NULL)
        hfi_effect_apply(outcome, set->effect, set->stage, set->sent, number, type, set->rule);
    else
        hfi_effect_apply(outcome, HFI_EFFECT_DOWN, HF_STAGE_WAIT, HF_SENT_MAYBE, number, type, unclassified);
    hfi_outcome_message(outcome, "%s error %d", server, number);
}

void hf_classify_mssql(const int *numbers, size_t count, struct hf_outcome *outcome) {
    const struct number_set *permanent = NULL;
    int permanent_number = 0;
    for (size_t i = 0; i < count; i++) {
        const struct number_set *set = find(mssql, COUNT(mssql), numbers[i], i > 0);
        if (set == NULL)
            continue;
        if (set->effect != HFI_EFFECT_REFUSED) {
            apply(outcome, "mssql", set, numbers[i]);
            return;
        }
        if (permanent == NULL) {
            permanent = set;
            permanent_number = numbers[i];
        }
    }
    apply(outcome, "mssql", permanent, permanent != NULL ? permanent_number : count > 0 ? numbers[0] : 0);
}

void hf_classify_mysql(int number, struct hf_outcome *outcome) {
    apply(outcome, "mysql", find(mysql, COUNT(mysql), number, false), number);
}
