/* SPDX-License-Identifier: MIT */
/*
 * The demo's downstream, on libmicrohttpd: answers well, flakily, with 503 and dropped connections, or never. It counts
 * every request it saw, so that the demo can hold them against the attempts holdfast reports. A hung request keeps its
 * connection suspended until the mood turns or the server stops. Runs on libmicrohttpd's thread.
 */
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>

#include "program/web/misbehaving.h"

#define HUNG_MAX 4096

struct hfi_misbehaving {
    struct MHD_Daemon *daemon;
    unsigned port;
    _Atomic int mood;
    _Atomic uint64_t seen, ok, failed, gone, hung, dropped, hooks;
    _Atomic uint64_t turn;
    pthread_mutex_t lock; /* guards what follows */
    struct MHD_Connection *waiting[HUNG_MAX];
    size_t waiting_count;
};

enum answer { ANSWER_OK = 200, ANSWER_GONE = 410, ANSWER_FAIL = 503, ANSWER_DROP = 0, ANSWER_HANG = 1 };

/* One in eight fails when flaky; dead is half 503, half a dropped connection, so that both kinds of failure are seen. */
static enum answer choose(struct hfi_misbehaving *server, const char *path) {
    uint64_t turn = atomic_fetch_add(&server->turn, 1);
    if (strcmp(path, "/gone") == 0) {
        return ANSWER_GONE;
    }
    switch ((enum hfi_misbehaving_mood)atomic_load(&server->mood)) {
    case MOOD_FLAKY:
        return turn % 8 == 0 ? ANSWER_FAIL : ANSWER_OK;
    case MOOD_DEAD:
        return turn % 2 == 0 ? ANSWER_FAIL : ANSWER_DROP;
    case MOOD_HUNG:
        return ANSWER_HANG;
    case MOOD_WELL:
    default:
        return ANSWER_OK;
    }
}

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status) {
    static char text[] = "{}";
    struct MHD_Response *response = MHD_create_response_from_buffer(sizeof text - 1, text, MHD_RESPMEM_PERSISTENT);
    if (response == NULL) {
        return MHD_NO;
    }
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result hang(struct hfi_misbehaving *server, struct MHD_Connection *connection) {
    bool kept = false;
    pthread_mutex_lock(&server->lock);
    if (server->waiting_count < HUNG_MAX) {
        server->waiting[server->waiting_count++] = connection;
        MHD_suspend_connection(connection);
        kept = true;
    }
    pthread_mutex_unlock(&server->lock);
    return kept ? MHD_YES : MHD_NO;
}

static enum MHD_Result behave(struct hfi_misbehaving *server, struct MHD_Connection *connection, enum answer *chosen,
                              const char *path) {
    if (strcmp(path, "/hook") == 0) {
        atomic_fetch_add(&server->hooks, 1);
        return reply(connection, 200);
    }
    if (*chosen == ANSWER_HANG) { /* let go: its caller has long given up */
        return MHD_NO;
    }
    *chosen = choose(server, path);
    switch (*chosen) {
    case ANSWER_HANG:
        atomic_fetch_add(&server->hung, 1);
        return hang(server, connection);
    case ANSWER_DROP:
        atomic_fetch_add(&server->dropped, 1);
        return MHD_NO;
    case ANSWER_FAIL:
        atomic_fetch_add(&server->failed, 1);
        break;
    case ANSWER_GONE:
        atomic_fetch_add(&server->gone, 1);
        break;
    case ANSWER_OK:
    default:
        atomic_fetch_add(&server->ok, 1);
        break;
    }
    return reply(connection, (unsigned)*chosen);
}

/* libmicrohttpd calls this once for the head, then for each piece of the body, then once with none left. */
static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *path, const char *method,
                              const char *version, const char *body, size_t *body_length, void **state) {
    struct hfi_misbehaving *server = user;
    (void)method;
    (void)version;
    (void)body;
    if (*state == NULL) {
        *state = calloc(1, sizeof(enum answer));
        if (*state != NULL && strcmp(path, "/hook") != 0) {
            atomic_fetch_add(&server->seen, 1);
        }
        return *state != NULL ? MHD_YES : MHD_NO;
    }
    if (*body_length > 0) {
        *body_length = 0;
        return MHD_YES;
    }
    return behave(server, connection, *state, path);
}

static void forget(void *user, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode why) {
    (void)user;
    (void)connection;
    (void)why;
    free(*state);
    *state = NULL;
}

static void let_go(struct hfi_misbehaving *server) {
    pthread_mutex_lock(&server->lock);
    for (size_t i = 0; i < server->waiting_count; i++) {
        MHD_resume_connection(server->waiting[i]);
    }
    server->waiting_count = 0;
    pthread_mutex_unlock(&server->lock);
}

struct hfi_misbehaving *hfi_misbehaving_start(void) {
    struct hfi_misbehaving *server = calloc(1, sizeof *server);
    if (server == NULL) {
        return NULL;
    }
    pthread_mutex_init(&server->lock, NULL);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    server->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle,
                                      server, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address,
                                      MHD_OPTION_CONNECTION_LIMIT, 2048u, MHD_OPTION_NOTIFY_COMPLETED, forget, NULL,
                                      MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        server->daemon != NULL ? MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (info == NULL) {
        hfi_misbehaving_stop(server);
        return NULL;
    }
    server->port = info->port;
    return server;
}

unsigned hfi_misbehaving_port(const struct hfi_misbehaving *server) {
    return server->port;
}

void hfi_misbehaving_set_mood(struct hfi_misbehaving *server, enum hfi_misbehaving_mood mood) {
    atomic_store(&server->mood, mood);
    if (mood != MOOD_HUNG) {
        let_go(server);
    }
}

void hfi_misbehaving_look(struct hfi_misbehaving *server, struct hfi_misbehaving_counts *counts) {
    counts->seen = atomic_load(&server->seen);
    counts->ok = atomic_load(&server->ok);
    counts->failed = atomic_load(&server->failed);
    counts->gone = atomic_load(&server->gone);
    counts->hung = atomic_load(&server->hung);
    counts->dropped = atomic_load(&server->dropped);
    counts->hooks = atomic_load(&server->hooks);
}

void hfi_misbehaving_stop(struct hfi_misbehaving *server) {
    if (server == NULL) {
        return;
    }
    if (server->daemon != NULL) {
        let_go(server);
        MHD_stop_daemon(server->daemon);
    }
    pthread_mutex_destroy(&server->lock);
    free(server);
}
