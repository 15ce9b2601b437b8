/* SPDX-License-Identifier: MIT */
/*
 * An order and the job that charges for it, in one transaction of the application's own database: both are there or
 * neither. `holdfast run` with `outboxes: {shop: {file: shop.db}}` turns the row into a job. Usage: outbox FILE [ID]...
 */
#include <holdfast/holdfast.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static int place_order(sqlite3 *shop, const char *id, struct hf_error *error) {
    struct hf_job_spec charge = hf_job_of("charge", id);
    charge.source = "shop";
    charge.source_message_id = id; /* an order that is placed twice is charged once */
    if (sqlite3_exec(shop, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return HF_EBUSY;
    char *sql = sqlite3_mprintf("INSERT INTO orders(id) VALUES (%Q)", id);
    int failed = sql ? sqlite3_exec(shop, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    int code = failed ? HF_EEXIST : hf_enqueue_in_sqlite(shop, &charge, NULL, error);
    if (code == 0 && sqlite3_exec(shop, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    sqlite3_exec(shop, "ROLLBACK", NULL, NULL, NULL); /* the order and its job */
    return code != 0 ? code : HF_EBUSY;
}

int main(int argc, char **argv) {
    struct hf_error error = hf_error_none();
    sqlite3 *shop = NULL;
    int refused = 0;
    if (argc < 2 || sqlite3_open(argv[1], &shop) != SQLITE_OK ||
        sqlite3_exec(shop, "CREATE TABLE IF NOT EXISTS orders(id TEXT PRIMARY KEY)", NULL, NULL, NULL) != SQLITE_OK ||
        hf_outbox_create_in_sqlite(shop, &error) != 0) {
        fprintf(stderr, "outbox: no database: %s\n", error.why);
        sqlite3_close(shop);
        return 1;
    }
    for (int i = 2; i < argc; i++) {
        int code = place_order(shop, argv[i], &error);
        refused += code != 0;
        printf("order %s: %s\n", argv[i], code == 0 ? "placed" : hf_strerror(code));
    }
    sqlite3_close(shop);
    return refused > 0;
}
