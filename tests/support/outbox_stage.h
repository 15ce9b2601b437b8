/* SPDX-License-Identifier: MIT */
#ifndef HF_TEST_OUTBOX_STAGE_H
#define HF_TEST_OUTBOX_STAGE_H

/* An application's file with an outbox, a store, and a relay between them whose steps a test can wait for. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/holdfast.h"
#include "jobs/store/outbox/relay.h"
#include "support/support.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned steps[HFI_RELAY_DELETED + 1];
    void (*at)(enum hfi_relay_step step); /* on the relay's thread */
} stage = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static inline void stage_step(enum hfi_relay_step step, void *user) {
    (void)user;
    pthread_mutex_lock(&stage.lock);
    stage.steps[step]++;
    pthread_cond_broadcast(&stage.moved);
    pthread_mutex_unlock(&stage.lock);
    if (stage.at)
        stage.at(step);
}

static inline void stage_changed(void *user) {
    (void)user;
    pthread_mutex_lock(&stage.lock);
    pthread_cond_broadcast(&stage.moved);
    pthread_mutex_unlock(&stage.lock);
}

/* Until the relay came to this step `times` more; the harness ends a test that waits for ever. */
static inline unsigned stage_seen(enum hfi_relay_step step) {
    pthread_mutex_lock(&stage.lock);
    unsigned seen = stage.steps[step];
    pthread_mutex_unlock(&stage.lock);
    return seen;
}
static inline void stage_await(enum hfi_relay_step step, unsigned count) {
    pthread_mutex_lock(&stage.lock);
    while (stage.steps[step] < count)
        pthread_cond_wait(&stage.moved, &stage.lock);
    pthread_mutex_unlock(&stage.lock);
}
static inline void stage_await_idle(const struct hfi_relay *relay) {
    struct hfi_relay_view view;
    pthread_mutex_lock(&stage.lock);
    for (hfi_relay_look(relay, &view); view.busy; hfi_relay_look(relay, &view))
        pthread_cond_wait(&stage.moved, &stage.lock);
    pthread_mutex_unlock(&stage.lock);
}

static inline int stage_sql(sqlite3 *db, const char *sql) {
    int native = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (native != SQLITE_OK)
        fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
    return native;
}

/* The application's handle on `path`, WAL, with an outbox. NULL on failure. */
static inline sqlite3 *stage_application(const char *path) {
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK)
        return NULL;
    sqlite3_busy_timeout(db, 10000);
    stage_sql(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF"); /* no power is cut here */
    return hf_outbox_create_in_sqlite(db, NULL) == 0 ? db : NULL;
}

static inline struct hf_store *stage_store(const char *path) {
    char url[700];
    struct hf_store *store = NULL;
    snprintf(url, sizeof url, "sqlite:%s", path);
    return hf_store_open(url, NULL, &store, NULL) == 0 ? store : NULL;
}

static inline struct hfi_relay *stage_relay(const char *path, struct hf_store *store, struct hfi_rulebook *book, int64_t poll_ms) {
    struct hf_outbox_options outbox;
    struct hfi_relay *relay = NULL;
    hf_outbox_options_init(&outbox);
    outbox.name = "shop";
    outbox.file = path;
    outbox.poll_ms = poll_ms;
    struct hfi_relay_options options = {.outbox = &outbox, .writer = store->writer, .book = book, .payload_max = 65536,
                                        .changed = stage_changed, .at = stage_step};
    if (hfi_relay_new(&options, &relay, NULL) != 0 || hfi_relay_start(relay) != 0)
        return NULL;
    return relay;
}

/* Relays what is there, to the end. */
static inline struct hfi_relay_view stage_relay_all(const char *path, struct hf_store *store, struct hfi_rulebook *book) {
    struct hfi_relay *relay = stage_relay(path, store, book, 10);
    struct hfi_relay_view view;
    stage_await_idle(relay);
    hfi_relay_join(relay);
    hfi_relay_look(relay, &view);
    hfi_relay_free(relay);
    return view;
}

#endif
