/* SPDX-License-Identifier: MIT */
/*
 * Follows redirects where a downstream allows it: each hop is a request of its own with our own URL, method and
 * headers, because libcurl would send every header but Authorization and Cookie to whatever host it is sent to. Must
 * never leave http and https, go from https to http, turn a POST into a GET that loses its body (but for 303, RFC 9110
 * 15.4.4), or take a secret to another scheme, host or port. On the scheduler's thread.
 */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "resilience/http/engine.h"
#include "resilience/target.h"
#include "resilience/url.h"

struct origin {
    char *scheme, *host, *port, *user;
};

static void forget(struct origin *origin) {
    curl_free(origin->scheme);
    curl_free(origin->host);
    curl_free(origin->port);
    curl_free(origin->user);
}

static bool read_origin(CURLU *url, struct origin *origin) {
    curl_url_get(url, CURLUPART_USER, &origin->user, 0); /* absent is fine */
    return !curl_url_get(url, CURLUPART_SCHEME, &origin->scheme, 0) &&
           !curl_url_get(url, CURLUPART_HOST, &origin->host, 0) &&
           !curl_url_get(url, CURLUPART_PORT, &origin->port, CURLU_DEFAULT_PORT);
}

static bool is_web(const struct origin *origin) {
    return strcasecmp(origin->scheme, "https") == 0 || strcasecmp(origin->scheme, "http") == 0;
}

static bool is_same(const struct origin *a, const struct origin *b) {
    return strcasecmp(a->scheme, b->scheme) == 0 && strcasecmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0;
}

/* NULL: go; else why not. */
static const char *judge(struct hfi_attempt *attempt, const struct origin *from, const struct origin *to) {
    if (!is_web(to))
        return "the redirect was not followed: it leads out of http and https";
    if (to->user)
        return "the redirect was not followed: it names a user";
    if (strcasecmp(from->scheme, "https") == 0 && strcasecmp(to->scheme, "http") == 0)
        return "the redirect was not followed: it leads from https to http";
    bool same = is_same(from, to);
    if (!same && !hfi_reach_of(attempt)->other_hosts)
        return "the redirect was not followed: it leads to another scheme, host or port";
    attempt->left_host = attempt->left_host || !same;
    return NULL;
}

/*
 * Does `location` name its host as a configured URL may? libcurl rewrites a host as it reads it: 0x7f.1 and 2130706433
 * become 127.0.0.1 and %65 a letter, so what comes out says nothing about what another reader would have understood.
 */
static bool is_plain_host(const char *location) {
    struct hfi_url parts;
    size_t scheme = strcspn(location, ":/?#");
    if (location[scheme] == ':')
        location += scheme + 1;
    else if (strncmp(location, "//", 2) != 0)
        return true; /* a path: the host stays */
    if (strncmp(location, "//", 2) != 0)
        return false;
    size_t length = 2 + strcspn(location + 2, "/?#");
    char *url = hfi_alloc(sizeof "http:" + length);
    if (!url)
        return false;
    memcpy(stpcpy(url, "http:"), location, length);
    bool plain = !hfi_url_split(url, &parts);
    hfi_free(url);
    return plain;
}

/* Resolves `location` against where we are, and makes it the attempt's URL. NULL, or why not. */
static const char *turn_to(struct hfi_attempt *attempt, const char *location) {
    const char *why = "the redirect was not followed: its Location is no URL";
    struct origin from = {0}, to = {0};
    struct hfi_url parts;
    char *whole = NULL;
    CURLU *url = curl_url();
    if (url && !curl_url_set(url, CURLUPART_URL, attempt->spec.url, 0) && read_origin(url, &from) &&
        !curl_url_set(url, CURLUPART_URL, location, CURLU_URLENCODE | CURLU_NON_SUPPORT_SCHEME) &&
        read_origin(url, &to) && !curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0) &&
        !curl_url_get(url, CURLUPART_URL, &whole, 0))
        why = judge(attempt, &from, &to);
    if (!why && (!is_plain_host(location) || hfi_url_split(whole, &parts)))
        why = "the redirect was not followed: its Location can be read in two ways";
    if (!why) {
        char *copy = hfi_strdup(whole);
        if (copy) {
            hfi_free(attempt->url);
            attempt->url = copy;
            attempt->spec.url = copy;
        } else {
            why = "the redirect was not followed: out of memory";
        }
    }
    curl_free(whole);
    forget(&from);
    forget(&to);
    curl_url_cleanup(url);
    return why;
}

/* May a request with this method go on to where a `status` sends it? */
static const char *check_method(const struct hfi_attempt *attempt) {
    const char *method = attempt->spec.method;
    bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if ((attempt->status == 301 || attempt->status == 302) && !reads)
        return "the redirect was not followed: a 301 or 302 leaves open whether the method stays (307, 308 and 303 do "
               "not)";
    return NULL;
}

static bool is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

int hfi_redirect_begin(struct hfi_attempt *attempt) {
    if (hfi_reach_of(attempt)->redirects == 0)
        return 0;
    attempt->kept = hfi_headers_copy(attempt->spec.headers, attempt->spec.header_count);
    attempt->spec.headers = attempt->kept;
    return attempt->kept ? 0 : HF_ENOMEM;
}

bool hfi_redirect_next(struct hfi_attempt *attempt, CURLcode code) {
    const struct hfi_reach *reach = hfi_reach_of(attempt);
    attempt->unfollowed = NULL;
    if (reach->redirects == 0 || code != CURLE_OK || !attempt->final || !is_redirect(attempt->status))
        return false;
    const char *location = hfi_answer_get(attempt, "Location"), *why = check_method(attempt);
    if (!location || location[0] == '\0') /* libcurl would go where it just was */
        why = "the redirect was not followed: it has no Location";
    else if (attempt->hops >= reach->redirects)
        why = "the redirect was not followed: there were too many before it";
    if (!why)
        why = turn_to(attempt, location);
    attempt->unfollowed = why;
    if (why)
        return false;
    attempt->hops++;
    if (attempt->left_host)
        attempt->spec.signing = NULL;
    if (attempt->status == 303 && strcmp(attempt->spec.method, "HEAD") != 0) {
        attempt->as_get = true;
        attempt->spec.method = "GET";
        attempt->spec.body = NULL;
        attempt->spec.body_length = 0;
    }
    return true;
}

static bool begins(const char *header, const char *with) {
    return strncasecmp(header, with, strlen(with)) == 0;
}

bool hfi_redirect_keeps(const struct hfi_attempt *attempt, const char *header) {
    if (attempt->as_get && begins(header, "Content-"))
        return false;
    /* Any other may hold a secret: to another host goes what says how to read the message, and nothing else. */
    return !attempt->left_host || begins(header, "Content-") || strcasecmp(header, "Accept") == 0 ||
           begins(header, "Accept-") || strcasecmp(header, "User-Agent") == 0;
}

void hfi_redirect_reset(struct hfi_attempt *attempt) {
    hfi_free(attempt->kept);
    hfi_free(attempt->url);
    attempt->kept = NULL;
    attempt->url = NULL;
    attempt->hops = 0;
    attempt->left_host = false;
    attempt->as_get = false;
    attempt->unfollowed = NULL;
}
