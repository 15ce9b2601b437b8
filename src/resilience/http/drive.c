/* SPDX-License-Identifier: MIT */
/*
 * Drives libcurl's multi handle from the scheduler: its one timer, its sockets' events, and the results of a turn. Must
 * never call libcurl from inside one of its callbacks, nor sleep on a finished transfer unread. On the scheduler's
 * thread.
 */
#include "resilience/http/engine.h"

/* libcurl says when it wants to be called next; -1: not at all. Only notes it: acting here would recurse (L4). */
int hfi_drive_timer(CURLM *multi, long timeout_ms, void *user) {
    struct hfi_engine *engine = user;
    struct hfi_scheduler *scheduler = engine->scheduler;
    (void)multi;
    if (timeout_ms < 0) {
        scheduler->ops->disarm(scheduler, &engine->timer);
        return 0;
    }
    struct hf_mono at = hfi_mono_after_ms(scheduler->ops->mono(scheduler), timeout_ms);
    if (scheduler->ops->arm(scheduler, &engine->timer, at))
        engine->broken = true; /* -1 from here would end all transfers behind our back */
    return 0;
}

static void read_results(struct hfi_engine *engine) {
    CURLMsg *message;
    int left;
    while (engine->multi && (message = curl_multi_info_read(engine->multi, &left))) {
        if (message->msg != CURLMSG_DONE)
            continue;
        CURL *easy = message->easy_handle; /* the message dies with the handle's removal */
        CURLcode code = message->data.result;
        char *private = NULL;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
        hfi_engine_finish((struct hfi_attempt *)(void *)private, code);
    }
}

/* Everything a libcurl call may have left behind, until nothing is left. Callbacks may start and cancel meanwhile. */
static void settle(struct hfi_engine *engine) {
    struct hfi_attempt *attempt;
    do {
        if (engine->broken)
            hfi_engine_rebuild(engine);
        read_results(engine);
        hfi_hosts_settle(engine);
        while ((attempt = TAILQ_FIRST(&engine->failing)))
            hfi_engine_finish(attempt, attempt->code);
    } while (engine->broken || engine->settled);
}

static void act(struct hfi_engine *engine, curl_socket_t fd, int flags) {
    int running;
    if (engine->multi && !engine->broken &&
        curl_multi_socket_action(engine->multi, fd, flags, &running) != CURLM_OK)
        engine->broken = true;
}

void hfi_drive_fire(struct hfi_timer *timer, void *user) {
    (void)timer;
    act(user, CURL_SOCKET_TIMEOUT, 0);
    settle(user);
}

void hfi_drive_results(struct hfi_timer *timer, void *user) {
    (void)timer;
    settle(user);
}

/*
 * First libcurl reads all that came in this turn, then all of it is told: one after the other both would push each
 * other's code out of the processor's cache with every answer.
 */
void hfi_drive_event(struct hfi_engine *engine, curl_socket_t fd, int flags) {
    static const struct hf_mono at_once;
    act(engine, fd, flags);
    if (!hfi_timer_armed(&engine->results) &&
        engine->scheduler->ops->arm(engine->scheduler, &engine->results, at_once))
        settle(engine);
}
