/* An UPDATE that waits out a locked database: SQLITE_BUSY is classified, retried within limits, and tells on nobody. */
#include <holdfast/holdfast.h>
#include <sqlite3.h>
#include <stdio.h>

static void withdraw(int64_t deadline_us, struct hf_outcome *outcome, void *user) {
    sqlite3 *db = user;
    (void)deadline_us; /* sqlite3_busy_timeout is 0: it does not wait by itself */
    sqlite3_exec(db, "UPDATE account SET balance = balance - 10", NULL, NULL, NULL);
    hf_classify_sqlite(sqlite3_extended_errcode(db), outcome);
    printf("try: %s\n", sqlite3_errmsg(db));
    fflush(stdout);
}

int main(int argc, char **argv) {
    struct hf_policy_options policy;
    struct hf_guard_options options;
    struct hf_error error = hf_error_none();
    struct hf_policy *frozen = NULL;
    struct hf_downstream *bank = NULL;
    struct hf_outcome *outcome = hf_outcome_new();
    sqlite3 *db = NULL;
    char line[512];
    hf_policy_options_init(&policy);
    policy.retry_jitter = HF_JITTER_EQUAL; /* 250 to 500 ms, 500 to 1000 ms, 1 to 2 s */
    hf_guard_options_init(&options);
    options.repeatable = true; /* a statement that failed has changed nothing */
    int ok = 0;
    if (hf_policy_new(&policy, &frozen, &error) || hf_downstream_new("bank.db", frozen, &bank, &error))
        fprintf(stderr, "guard_sqlite: %s: %s\n", error.what, error.why);
    else if (argc > 1 && outcome && sqlite3_open(argv[1], &db) == SQLITE_OK &&
             hf_guard_run_with(bank, &options, withdraw, outcome, db) == 0) {
        hf_outcome_print(outcome, line, sizeof line);
        puts(line);
        ok = hf_outcome_get_kind(outcome) == HF_OUTCOME_SUCCESS;
    }
    sqlite3_close(db);
    hf_outcome_free(outcome);
    hf_downstream_unref(bank);
    hf_policy_unref(frozen);
    return !ok;
}
