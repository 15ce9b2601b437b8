/* SPDX-License-Identifier: MIT */
/*
 * The transport port on libcurl: starts and cancels attempts, keeps warm easy handles, and gives everything up in an
 * orderly way when libcurl itself fails. Must never retry, classify, block, or tell `done` inside start or cancel. On
 * the scheduler's thread.
 */
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "resilience/http/engine.h"
#include "resilience/http/http.h"

#define CONNECTIONS_KEPT 512L /* the default, 4 per running transfer, forgets warm hosts as soon as it is quiet */

static struct hfi_attempts *list_of(struct hfi_attempt *attempt, enum hfi_place place) {
    switch (place) {
    case HFI_PLACE_POOL:
        return &attempt->engine->pool;
    case HFI_PLACE_RUNNING:
        return &attempt->engine->running;
    case HFI_PLACE_FAILING:
        return &attempt->engine->failing;
    case HFI_PLACE_WAITING:
        return hfi_hosts_waiters(attempt->host);
    case HFI_PLACE_NONE:
        break;
    }
    return NULL;
}

void hfi_engine_place(struct hfi_attempt *attempt, enum hfi_place place) {
    struct hfi_attempts *from = list_of(attempt, attempt->place), *to = list_of(attempt, place);
    if (from)
        TAILQ_REMOVE(from, attempt, entry);
    attempt->engine->pool_count -= attempt->place == HFI_PLACE_POOL;
    attempt->place = place;
    attempt->engine->pool_count += place == HFI_PLACE_POOL;
    if (to)
        TAILQ_INSERT_TAIL(to, attempt, entry);
}

/* Something waits that only the drive may do: it comes in the next turn. */
static void kick(struct hfi_engine *engine) {
    if (engine->broken || engine->settled || !TAILQ_EMPTY(&engine->failing))
        engine->scheduler->ops->arm(engine->scheduler, &engine->timer, hfi_now(engine->scheduler));
}

static int make_multi(struct hfi_engine *engine) {
    CURLM *multi = curl_multi_init();
    if (!multi)
        return HF_ENOMEM;
    if (curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, hfi_sockets_changed) ||
        curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, engine) ||
        curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, hfi_drive_timer) ||
        curl_multi_setopt(multi, CURLMOPT_TIMERDATA, engine) ||
        curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_KEPT)) {
        curl_multi_cleanup(multi);
        return HF_ENOMEM;
    }
    engine->multi = multi;
    return 0;
}

void hfi_engine_rebuild(struct hfi_engine *engine) {
    CURLM *multi = engine->multi;
    struct hfi_attempt *attempt;
    engine->multi = NULL;
    engine->broken = false;
    while ((attempt = TAILQ_FIRST(&engine->running))) {
        hfi_hosts_give_up(attempt, CURLE_OK);
        curl_multi_remove_handle(multi, attempt->easy);
        attempt->code = CURLE_ABORTED_BY_CALLBACK;
        attempt->reason = HFI_REASON_ENGINE;
        hfi_engine_place(attempt, HFI_PLACE_FAILING);
    }
    engine->scheduler->ops->disarm(engine->scheduler, &engine->timer);
    curl_multi_cleanup(multi);
    hfi_sockets_free(engine);
    hfi_hosts_forget(engine); /* libcurl knew the addresses, and its cache is gone */
    engine->broken = false; /* its end may have reported more of the same */
    make_multi(engine);     /* or the next start does */
}

static void free_attempt(struct hfi_attempt *attempt) {
    hfi_easy_free(attempt);
    hfi_bytes_free(&attempt->head);
    hfi_bytes_free(&attempt->body);
    hfi_redirect_reset(attempt);
    hfi_free(attempt->at);
    hfi_free(attempt->headers);
    hfi_free(attempt->lines);
    hfi_free(attempt);
}

static struct hfi_attempt *take_attempt(struct hfi_engine *engine) {
    struct hfi_attempt *attempt = TAILQ_LAST(&engine->pool, hfi_attempts); /* the warmest */
    if (attempt) {
        hfi_engine_place(attempt, HFI_PLACE_NONE);
        return attempt;
    }
    attempt = hfi_alloc(sizeof *attempt);
    if (!attempt)
        return NULL;
    attempt->engine = engine;
    hfi_bytes_init(&attempt->head, 1 << 20); /* libcurl stops at 300 KB of headers */
    hfi_bytes_init(&attempt->body, SIZE_MAX / 4);
    attempt->easy = hfi_easy_new(attempt);
    if (!attempt->easy) {
        free_attempt(attempt);
        return NULL;
    }
    return attempt;
}

static void give_back(struct hfi_attempt *attempt) {
    hfi_engine_place(attempt, HFI_PLACE_NONE);
    hfi_answer_reset(attempt);
    hfi_redirect_reset(attempt);
    if (attempt->engine->pool_count < HFI_ENGINE_POOL)
        hfi_engine_place(attempt, HFI_PLACE_POOL);
    else
        free_attempt(attempt);
}

void hfi_engine_run(struct hfi_attempt *attempt) {
    struct hfi_engine *engine = attempt->engine;
    if (attempt->place == HFI_PLACE_WAITING)
        attempt->added = hfi_now(engine->scheduler);
    if (engine->multi && curl_multi_add_handle(engine->multi, attempt->easy) == CURLM_OK) {
        hfi_engine_place(attempt, HFI_PLACE_RUNNING);
        return;
    }
    attempt->reason = engine->multi ? HFI_REASON_MEMORY : HFI_REASON_ENGINE;
    attempt->code = CURLE_FAILED_INIT;
    hfi_engine_place(attempt, HFI_PLACE_FAILING);
}

/* Tells the watch of its connection when that one speaks HTTP/2. */
static void mark_framed(struct hfi_attempt *attempt) {
    curl_socket_t fd = CURL_SOCKET_BAD;
    long version = 0;
    curl_easy_getinfo(attempt->easy, CURLINFO_HTTP_VERSION, &version);
    if (version == CURL_HTTP_VERSION_2_0 && !curl_easy_getinfo(attempt->easy, CURLINFO_ACTIVESOCKET, &fd))
        hfi_sockets_framed(attempt->engine, fd);
}

/* Takes it from libcurl and from its host. */
static void withdraw(struct hfi_attempt *attempt, CURLcode code) {
    if (attempt->place == HFI_PLACE_RUNNING) {
        if (hfi_reach_of(attempt)->http2)
            mark_framed(attempt);
        hfi_hosts_give_up(attempt, code);
        curl_multi_remove_handle(attempt->engine->multi, attempt->easy);
    }
    hfi_engine_place(attempt, HFI_PLACE_NONE);
    hfi_hosts_leave(attempt, code);
}

/* Puts its request on the way. HF_ENOMEM, HF_EINVAL: it is still nowhere. */
static int launch(struct hfi_attempt *attempt) {
    int rc = hfi_easy_load(attempt);
    if (rc == 0)
        rc = hfi_hosts_enter(attempt);
    if (rc == 1)
        hfi_engine_place(attempt, HFI_PLACE_WAITING);
    else if (rc == 0)
        hfi_engine_run(attempt);
    return rc < 0 ? rc : 0;
}

void hfi_engine_finish(struct hfi_attempt *attempt, CURLcode code) {
    struct hfi_attempt_facts facts;
    if (hfi_redirect_next(attempt, code)) {
        withdraw(attempt, code);
        int rc = launch(attempt);
        if (rc == 0)
            return;
        attempt->reason = rc == HF_EINVAL ? HFI_REASON_URL : HFI_REASON_MEMORY;
        code = rc == HF_EINVAL ? CURLE_URL_MALFORMAT : CURLE_OUT_OF_MEMORY;
    }
    hfi_answer_facts(attempt, code, &facts);
    withdraw(attempt, code);
    attempt->done(&facts, attempt->user);
    give_back(attempt);
}

static int start(struct hfi_transport *self, const struct hfi_attempt_spec *spec, hfi_attempt_fn done, void *user,
                 struct hfi_attempt **out) {
    struct hfi_engine *engine = (struct hfi_engine *)self;
    if (!engine->multi && make_multi(engine))
        return HF_ENOMEM;
    struct hfi_attempt *attempt = take_attempt(engine);
    if (!attempt)
        return HF_ENOMEM;
    attempt->spec = *spec;
    attempt->done = done;
    attempt->user = user;
    attempt->started = spec->now.us ? spec->now : hfi_now(engine->scheduler);
    attempt->added = attempt->started;
    int rc = hfi_redirect_begin(attempt);
    if (rc == 0)
        rc = launch(attempt);
    if (rc) {
        give_back(attempt);
        return rc;
    }
    kick(engine);
    *out = attempt;
    return 0;
}

static enum hf_sent cancel(struct hfi_transport *self, struct hfi_attempt *attempt, enum hf_stage *stage,
                           struct hfi_phases *phases) {
    struct hfi_engine *engine = (struct hfi_engine *)self;
    enum hf_sent sent = hfi_answer_sent(attempt);
    *stage = hfi_answer_stage(attempt, CURLE_OK);
    hfi_answer_phases(attempt, phases);
    withdraw(attempt, CURLE_OK);
    give_back(attempt);
    kick(engine);
    return sent;
}

static enum hf_stage stage(struct hfi_transport *self, struct hfi_attempt *attempt) {
    (void)self;
    enum hf_stage at = hfi_answer_stage(attempt, CURLE_OK);
    return attempt->hops > 0 && at < HF_STAGE_SEND ? HF_STAGE_SEND : at;
}

static uint32_t hops(struct hfi_transport *self, struct hfi_attempt *attempt) {
    (void)self;
    return attempt->hops;
}

static void end(struct hfi_transport *self) {
    struct hfi_engine *engine = (struct hfi_engine *)self;
    struct hfi_attempt *attempt;
    while ((attempt = TAILQ_FIRST(&engine->pool))) {
        hfi_engine_place(attempt, HFI_PLACE_NONE);
        free_attempt(attempt);
    }
    if (engine->multi)
        curl_multi_cleanup(engine->multi);
    engine->scheduler->ops->disarm(engine->scheduler, &engine->timer);
    engine->scheduler->ops->disarm(engine->scheduler, &engine->results);
    hfi_sockets_free(engine);
    hfi_hosts_free(engine);
    hfi_free(engine->ca_bundle);
    hfi_free(engine);
}

static const struct hfi_transport_ops operations = {
    .version = HFI_TRANSPORT_VERSION,
    .start = start,
    .cancel = cancel,
    .stage = stage,
    .hops = hops,
    .close = end,
};

static CURLcode global_code;
static void init_libcurl(void) {
    /* Never undone: lookups that were given up may still be inside libcurl at the end. */
    global_code = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int check_libcurl(struct hf_error *error) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_libcurl);
    if (global_code)
        return hfi_fail(error, HF_ENOMEM, "libcurl", NULL, "it could not be initialised: %s",
                        curl_easy_strerror(global_code));
    const curl_version_info_data *version = curl_version_info(CURLVERSION_NOW);
    if (version->version_num < 0x075700)
        return hfi_fail(error, HF_ENOTSUP, "libcurl", "install libcurl 7.87 or newer",
                        "version %s cannot leave a hanging name lookup", version->version);
    if (!(version->features & CURL_VERSION_ASYNCHDNS))
        return hfi_fail(error, HF_ENOTSUP, "libcurl", "install one with a threaded or c-ares resolver",
                        "version %s resolves names synchronously: one slow name server would stop every call",
                        version->version);
    return 0;
}

int hfi_curl_transport_new(struct hfi_scheduler *scheduler, struct hfi_transport **transport, struct hf_error *error) {
    int rc = check_libcurl(error);
    if (rc)
        return rc;
    struct hfi_engine *engine = hfi_alloc(sizeof *engine);
    if (!engine)
        return hfi_fail(error, HF_ENOMEM, "the HTTP transport", NULL, "out of memory");
    engine->transport.ops = &operations;
    engine->scheduler = scheduler;
    TAILQ_INIT(&engine->running);
    TAILQ_INIT(&engine->failing);
    TAILQ_INIT(&engine->pool);
    hfi_timer_init(&engine->timer, hfi_drive_fire, engine);
    hfi_timer_init(&engine->results, hfi_drive_results, engine);
    const char *bundle = curl_version_info(CURLVERSION_NOW)->cainfo;
    engine->ca_bundle = bundle ? hfi_strdup(bundle) : NULL;
    if ((bundle && !engine->ca_bundle) || make_multi(engine)) {
        hfi_free(engine->ca_bundle);
        hfi_free(engine);
        return hfi_fail(error, HF_ENOMEM, "the HTTP transport", NULL, "out of memory");
    }
    *transport = &engine->transport;
    return 0;
}
