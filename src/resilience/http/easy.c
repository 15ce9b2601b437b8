/* SPDX-License-Identifier: MIT */
/*
 * What one attempt sends: an easy handle's options. Those that never differ are set once and stay with the pooled
 * handle; everything that belongs to one attempt is set every time, so nothing of the last one is left. Must never
 * let the environment, a redirect or a default decide where bytes go. On the scheduler's thread.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "resilience/http/engine.h"
#include "resilience/http/sign.h"
#include "resilience/http/unpack.h"

#define NAMES_KEPT_S 60L
#define IDLE_CONNECTION_S 20L  /* well under what servers allow: they rarely close under a request */
#define CONNECTION_LIFE_S 300L /* so that a changed address is seen */
#define CA_CACHE_S 3600L
static char user_agent[] = "User-Agent: holdfast";
static struct curl_slist only_user_agent = {.data = user_agent}; /* what most requests send; libcurl only reads it */
#define ACCEPT_ENCODING "Accept-Encoding: " HFI_UNPACK_ACCEPT
#define CONNECT_GRACE_MS 1000 /* ours ends a connect first; libcurl's limit makes it share the time among addresses */

static CURLcode set_behaviour(CURL *easy) {
    CURLcode rc = CURLE_OK;
    rc |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    rc |= curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* never join a resolver thread (L2) */
    rc |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    rc |= curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    rc |= curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L); /* it takes half a stream for a whole one */
    rc |= curl_easy_setopt(easy, CURLOPT_NOPROXY, ""); /* not the environment's: libcurl would ask it every time */
    rc |= curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* a proxy's answer is not the peer's */
    rc |= curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    rc |= curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    rc |= curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, NAMES_KEPT_S);
    rc |= curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, IDLE_CONNECTION_S);
    rc |= curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN, CONNECTION_LIFE_S);
    rc |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    rc |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    rc |= curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* with it each connection parses the bundle anew: 30 ms */
    rc |= curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, CA_CACHE_S);
    return rc;
}

static CURLcode set_callbacks(CURL *easy, struct hfi_attempt *attempt) {
    CURLcode rc = CURLE_OK;
    rc |= curl_easy_setopt(easy, CURLOPT_PRIVATE, attempt);
    rc |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, attempt->error);
    rc |= curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, hfi_answer_header);
    rc |= curl_easy_setopt(easy, CURLOPT_HEADERDATA, attempt);
    rc |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, hfi_answer_body);
    rc |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, attempt);
    rc |= curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, hfi_answer_send);
    rc |= curl_easy_setopt(easy, CURLOPT_PREREQDATA, attempt);
    rc |= curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, hfi_hosts_lookup);
    rc |= curl_easy_setopt(easy, CURLOPT_RESOLVER_START_DATA, attempt);
    rc |= curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, hfi_sockets_open);
    rc |= curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, attempt);
    rc |= curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, hfi_sockets_close);
    rc |= curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, attempt->engine); /* outlives the attempt */
    return rc;
}

CURL *hfi_easy_new(struct hfi_attempt *attempt) {
    CURL *easy = curl_easy_init();
    if (easy && (set_behaviour(easy) || set_callbacks(easy, attempt))) {
        curl_easy_cleanup(easy);
        easy = NULL;
    }
    return easy;
}

void hfi_easy_free(struct hfi_attempt *attempt) {
    if (attempt->easy)
        curl_easy_cleanup(attempt->easy);
    curl_url_cleanup(attempt->loaded.parsed);
    hfi_free(attempt->loaded.url);
}

/* Has the request a body, if only an empty one? */
static bool carries(const struct hfi_attempt_spec *spec) {
    const char *method = spec->method;
    return spec->body_length > 0 ||
           (method[0] == 'P' &&
            (strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0));
}

static bool has_header(const struct hfi_attempt_spec *spec, const char *name) {
    for (size_t i = 0; i < spec->header_count; i++)
        if (strcasecmp(spec->headers[i].name, name) == 0)
            return true;
    return false;
}

/* Appends `name: value` at `text`; libcurl spells an empty header `name;` and a suppressed one `name:`. */
static char *write_line(struct curl_slist *node, char *text, const char *name, const char *mark, const char *value) {
    node->data = text;
    node->next = node + 1;
    text = stpcpy(stpcpy(stpcpy(text, name), mark), value);
    return text + 1;
}

#define SIGNATURE_LINES 3
#define TIMESTAMP_ROOM 24

static size_t signature_room(const struct hfi_attempt_spec *spec) {
    size_t names = sizeof "webhook-id: " + sizeof "webhook-timestamp: " + sizeof "webhook-signature: ";
    return spec->signing ? names + strlen(spec->message_id) + TIMESTAMP_ROOM + HFI_SIGN_ROOM(spec->signing->count) : 0;
}

/* The three headers of Standard Webhooks. The time is this attempt's: receivers refuse old ones. */
static int write_signature(const struct hfi_attempt *attempt, struct curl_slist **node, char *text) {
    const struct hfi_attempt_spec *spec = &attempt->spec;
    struct hfi_scheduler *scheduler = attempt->engine->scheduler;
    int64_t now_s = scheduler->ops->wall(scheduler).us / 1000000;
    char timestamp[TIMESTAMP_ROOM];
    snprintf(timestamp, sizeof timestamp, "%" PRId64, now_s);
    text = write_line((*node)++, text, "webhook-id", ": ", spec->message_id);
    text = write_line((*node)++, text, "webhook-timestamp", ": ", timestamp);
    char *signature = text + strlen("webhook-signature: ");
    write_line((*node)++, text, "webhook-signature", ": ", "");
    return hfi_sign(spec->signing, spec->message_id, now_s, spec->body, spec->body_length, signature);
}

/* The request headers in one block that is kept with the handle: no allocation per header. */
static int write_lines(struct hfi_attempt *attempt, struct curl_slist **lines) {
    const struct hfi_attempt_spec *spec = &attempt->spec;
    size_t count = spec->header_count + 4 + SIGNATURE_LINES;
    size_t room = count * sizeof(struct curl_slist) + sizeof user_agent + sizeof ACCEPT_ENCODING +
                  sizeof "Expect:" + sizeof "Content-Type:" + signature_room(spec);
    for (size_t i = 0; i < spec->header_count; i++)
        room += strlen(spec->headers[i].name) + strlen(spec->headers[i].value) + 3;
    if (room > attempt->lines_room) {
        struct curl_slist *block = hfi_realloc(attempt->lines, room);
        if (!block)
            return HF_ENOMEM;
        attempt->lines = block;
        attempt->lines_room = room;
    }
    struct curl_slist *node = attempt->lines;
    char *text = (char *)(node + count);
    for (size_t i = 0; i < spec->header_count; i++) {
        const char *value = spec->headers[i].value;
        if (hfi_redirect_keeps(attempt, spec->headers[i].name))
            text = write_line(node++, text, spec->headers[i].name, *value ? ": " : ";", value);
    }
    if (!has_header(spec, "User-Agent")) /* CURLOPT_USERAGENT would be printed anew for each request */
        text = write_line(node++, text, user_agent, "", "");
    if (spec->compressed && !has_header(spec, "Accept-Encoding"))
        text = write_line(node++, text, ACCEPT_ENCODING, "", "");
    if (carries(spec)) /* libcurl compares every header with each of these: only where they matter */
        text = write_line(node++, text, "Expect", ":", ""); /* no 100-continue: it stalls, and 417 sends twice */
    if (carries(spec) && !has_header(spec, "Content-Type"))
        text = write_line(node++, text, "Content-Type", ":", ""); /* none, rather than libcurl's guess */
    if (spec->signing && write_signature(attempt, &node, text))
        return HF_ENOMEM;
    if (node > attempt->lines)
        node[-1].next = NULL;
    *lines = node > attempt->lines ? attempt->lines : NULL;
    return 0;
}

static int choose_lines(struct hfi_attempt *attempt, struct curl_slist **lines) {
    const struct hfi_attempt_spec *spec = &attempt->spec;
    if (spec->header_count > 0 || spec->signing || spec->compressed || carries(spec))
        return write_lines(attempt, lines);
    *lines = &only_user_agent;
    return 0;
}

static long clamp_ms(int64_t ms) {
    return ms < 1 ? 1L : ms > INT_MAX ? (long)INT_MAX : (long)ms; /* 0 would mean no limit, negative 49 days */
}

/*
 * How the peer is reached. Certificates belong to one downstream: libcurl shares no connection across them. Most have
 * nothing of their own: then what a pooled handle has from the last time still stands.
 */
static CURLcode set_reach(struct hfi_attempt *attempt) {
    const struct hfi_reach *reach = hfi_reach_of(attempt);
    const char *trusted = reach->ca_file ? reach->ca_file : attempt->engine->ca_bundle;
    bool plain = !reach->ca_file && !reach->client_cert && !reach->proxy && !reach->tls13 && !reach->http2;
    CURL *easy = attempt->easy;
    CURLcode rc = CURLE_OK;
    if (plain && attempt->loaded.usual)
        return rc;
    rc |= curl_easy_setopt(easy, CURLOPT_PROXY, reach->proxy ? reach->proxy : ""); /* "": not the environment's */
    rc |= curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                           (long)(reach->http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    if (trusted)
        rc |= curl_easy_setopt(easy, CURLOPT_CAINFO, trusted);
    rc |= curl_easy_setopt(easy, CURLOPT_SSLVERSION,
                           (long)(reach->tls13 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2));
    rc |= curl_easy_setopt(easy, CURLOPT_SSLCERT, attempt->left_host ? NULL : reach->client_cert);
    rc |= curl_easy_setopt(easy, CURLOPT_SSLKEY, attempt->left_host ? NULL : reach->client_key);
    attempt->loaded.usual = plain && rc == CURLE_OK;
    return rc;
}

/* What libcurl cannot parse it is to complain about itself, with a code of its own. */
static CURLcode set_url(struct hfi_attempt *attempt) {
    struct hfi_loaded *loaded = &attempt->loaded;
    const char *url = attempt->spec.url;
    if (loaded->url && strcmp(loaded->url, url) == 0)
        return CURLE_OK;
    size_t room = strlen(url) + 1;
    if (room > loaded->url_room) {
        char *copy = hfi_realloc(loaded->url, room);
        if (!copy)
            return CURLE_OUT_OF_MEMORY;
        loaded->url = copy;
        loaded->url_room = room;
    }
    loaded->url[0] = '\0';
    if (!loaded->parsed && !(loaded->parsed = curl_url()))
        return CURLE_OUT_OF_MEMORY;
    CURLUcode code = curl_url_set(loaded->parsed, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME | CURLU_PATH_AS_IS);
    if (code == CURLUE_OUT_OF_MEMORY)
        return CURLE_OUT_OF_MEMORY;
    CURLcode rc = curl_easy_setopt(attempt->easy, CURLOPT_URL, url);
    rc |= curl_easy_setopt(attempt->easy, CURLOPT_CURLU, code ? NULL : loaded->parsed);
    if (rc == CURLE_OK) {
        memcpy(loaded->url, url, room);
        loaded->address = hfi_hosts_is_address(url);
    }
    return rc;
}

static CURLcode set_method(CURL *easy, const struct hfi_attempt_spec *spec, bool plain) {
    CURLcode rc = CURLE_OK;
    bool body = carries(spec);
    rc |= curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(body ? spec->body_length : 0));
    rc |= curl_easy_setopt(easy, CURLOPT_POSTFIELDS, spec->body_length ? spec->body : "");
    if (strcmp(spec->method, "HEAD") == 0)
        rc |= curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else if (body)
        rc |= curl_easy_setopt(easy, CURLOPT_POST, 1L);
    else
        rc |= curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    rc |= curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, plain ? NULL : spec->method);
    return rc;
}

static CURLcode set_request(struct hfi_attempt *attempt, const struct curl_slist *lines) {
    const struct hfi_attempt_spec *spec = &attempt->spec;
    struct hfi_loaded *loaded = &attempt->loaded;
    CURL *easy = attempt->easy;
    CURLcode rc = CURLE_OK;
    bool plain = !carries(spec) && strcmp(spec->method, "GET") == 0;
    if (!plain || !loaded->plain)
        rc |= set_method(easy, spec, plain);
    if (loaded->fresh != spec->fresh_connection)
        rc |= curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, spec->fresh_connection ? 1L : 0L);
    if (loaded->backstop_ms != spec->backstop_ms)
        rc |= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, clamp_ms(spec->backstop_ms));
    if (loaded->connect_timeout_ms != spec->connect_timeout_ms)
        rc |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                               clamp_ms(hfi_add(spec->connect_timeout_ms, CONNECT_GRACE_MS)));
    if (loaded->lines != lines)
        rc |= curl_easy_setopt(easy, CURLOPT_HTTPHEADER, lines);
    loaded->plain = plain && rc == CURLE_OK; /* a setting fails for want of memory only: then all is said again */
    loaded->fresh = spec->fresh_connection;
    loaded->backstop_ms = rc == CURLE_OK ? spec->backstop_ms : 0;
    loaded->connect_timeout_ms = rc == CURLE_OK ? spec->connect_timeout_ms : 0;
    loaded->lines = rc == CURLE_OK ? lines : NULL;
    return rc;
}

int hfi_easy_load(struct hfi_attempt *attempt) {
    hfi_answer_reset(attempt);
    struct curl_slist *lines;
    int chosen = choose_lines(attempt, &lines);
    if (chosen)
        return chosen;
    CURLcode rc = set_url(attempt);
    if (rc == CURLE_OK)
        rc = set_request(attempt, lines);
    rc |= set_reach(attempt);
    return rc == CURLE_OK ? 0 : rc == CURLE_OUT_OF_MEMORY ? HF_ENOMEM : HF_EINVAL;
}
