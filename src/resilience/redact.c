/* SPDX-License-Identifier: MIT */
/*
 * What of a URL may be shown and stored. Decides it for any text, also one that is no valid URL, because those are what
 * complaints are about. Must never let a user, a password, the value of a query or a fragment through; rather loses a
 * part of the path. Pure, any thread.
 */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "holdfast/http.h"

#define HIDDEN "***"

struct out {
    char *text;
    size_t room, length;
};

static void put(struct out *out, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++, out->length++)
        if (out->length + 1 < out->room)
            out->text[out->length] = text[i];
}

/* Bytes of `https://`, or 0. */
static size_t scheme_of(const char *url) {
    size_t length = 0;
    while (isalnum((unsigned char)url[length]) || (url[length] && strchr("+.-", url[length])))
        length++;
    return length > 0 && strncmp(url + length, "://", 3) == 0 ? length + 3 : 0;
}

/* Does it end in `:` and something else than a port? Then it may be a user and the beginning of a password. */
static bool is_no_host(const char *text, size_t length) {
    const char *bracket = *text == '[' ? memchr(text, ']', length) : NULL, *after = bracket ? bracket + 1 : text;
    const char *colon = memchr(after, ':', (size_t)(text + length - after));
    for (const char *c = colon ? colon + 1 : text + length; c < text + length; c++)
        if (!isdigit((unsigned char)*c))
            return true;
    return false;
}

/* Where the host begins in what stands behind a scheme: behind the userinfo, and behind what could be one. */
static const char *host_of(const char *rest, bool scheme) {
    const char *at;
    do {
        size_t length = strcspn(rest, "/?#\\");
        at = memrchr(rest, '@', length);
        if (!at && (!scheme || is_no_host(rest, length))) /* a password with a slash in it */
            at = strrchr(rest, '@');
        rest = at ? at + 1 : rest;
    } while (at);
    return rest;
}

/* `a=1&b` as `a=***&***`: names are kept, and nothing of what has no name. */
static void put_query(struct out *out, const char *query, size_t length) {
    const char *end = query + length;
    while (query < end) {
        size_t whole = 0;
        while (query + whole < end && query[whole] != '&' && query[whole] != ';')
            whole++;
        const char *equal = memchr(query, '=', whole);
        if (equal)
            put(out, query, (size_t)(equal + 1 - query));
        if (whole > 0)
            put(out, HIDDEN, sizeof HIDDEN - 1);
        query += whole;
        if (query < end)
            put(out, query++, 1);
    }
}

size_t hf_url_redact(const char *url, char *text, size_t room) {
    struct out out = {text, room, 0};
    size_t scheme = scheme_of(url);
    const char *host = host_of(url + scheme, scheme > 0);
    put(&out, url, scheme);
    size_t place = strcspn(host, "?#"), query = strcspn(host + place, "#");
    put(&out, host, place);
    if (query > 0) {
        put(&out, "?", 1);
        put_query(&out, host + place + 1, query - 1);
    }
    if (host[place + query] == '#')
        put(&out, "#" HIDDEN, sizeof "#" HIDDEN - 1);
    if (room > 0)
        text[out.length < room ? out.length : room - 1] = '\0';
    return out.length;
}
