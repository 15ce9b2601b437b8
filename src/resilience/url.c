/* SPDX-License-Identifier: MIT */
/*
 * Takes a URL apart (RFC 3986, http and https) and refuses whatever two readers could understand in two ways. Must
 * never quote it, nor repair it. Pure.
 */
#include "resilience/url.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "resilience/target.h"

#define LABEL_MAX 63
#define DIGITS "0123456789"
#define NAME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "-_"

/* `digits` is what stands behind the colon. */
static bool read_port(const char *digits, size_t length, uint16_t *port) {
    unsigned value = 0;
    if (length == 0 || length > 5)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        value = value * 10 + (unsigned)(digits[i] - '0');
    }
    *port = (uint16_t)value;
    return value >= 1 && value <= 65535;
}

static bool is_quad(const char *host, size_t length) {
    char text[INET_ADDRSTRLEN];
    struct in_addr address;
    if (length >= sizeof text)
        return false;
    memcpy(text, host, length);
    text[length] = '\0';
    return inet_pton(AF_INET, text, &address) == 1; /* strict: four decimal numbers, no zeros in front */
}

static bool is_six(const char *host, size_t length) {
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (length >= sizeof text)
        return false;
    memcpy(text, host, length);
    text[length] = '\0';
    return inet_pton(AF_INET6, text, &address) == 1;
}

/* Would some reader take this last label for a number, and the whole for an IPv4 address? */
static bool is_number(const char *label, size_t length) {
    size_t prefix = length > 1 && label[0] == '0' && (label[1] | 0x20) == 'x' ? 2 : 0;
    const char *digits = prefix ? DIGITS "abcdefABCDEF" : DIGITS;
    for (size_t i = prefix; i < length; i++)
        if (!strchr(digits, label[i]))
            return false;
    return true;
}

/* Labels of letters, digits, - and _, joined by single dots; one more dot at the end is the root's. */
static const char *check_name(const char *host, size_t length) {
    size_t start = 0, last = 0, last_length = 0;
    if (host[length - 1] == '.')
        length--;
    if (length == 0 || length > HFI_HOST_MAX)
        return "its host is empty or longer than 253 bytes";
    for (size_t i = 0; i <= length; i++) {
        if (i < length && host[i] != '.') {
            if (!strchr(NAME, host[i]))
                return "its host holds a character that no host name has";
            continue;
        }
        if (i == start || i - start > LABEL_MAX)
            return "its host has a label of no or more than 63 bytes";
        last = start;
        last_length = i - start;
        start = i + 1;
    }
    if (is_number(host + last, last_length) && !is_quad(host, length))
        return "its host is a number, or an IPv4 address in another form than a.b.c.d";
    return NULL;
}

static const char *check_host(const char *host, size_t length) {
    if (length == 0)
        return "it has no host";
    if (host[0] != '[')
        return check_name(host, length);
    if (host[length - 1] != ']')
        return "its host has one bracket only";
    if (memchr(host, '%', length))
        return "its IPv6 address has a zone, which means something on one machine only";
    return is_six(host + 1, length - 2) ? NULL : "its host is not an IPv6 address";
}

/* `user@host:port`, from `start` to `end`. */
static const char *split_authority(const char *start, const char *end, struct hfi_url *url) {
    const char *at = memrchr(start, '@', (size_t)(end - start));
    url->userinfo = at ? start : NULL;
    url->userinfo_length = at ? (size_t)(at - start) : 0;
    url->host = at ? at + 1 : start;
    const char *bracket = memrchr(url->host, ']', (size_t)(end - url->host));
    const char *after = bracket ? bracket + 1 : url->host;
    const char *colon = memchr(after, ':', (size_t)(end - after));
    if (bracket && after != end && colon != after)
        return "something stands between its host and its port";
    url->host_length = (size_t)((colon ? colon : end) - url->host);
    url->port = url->https ? 443 : 80;
    const char *wrong = check_host(url->host, url->host_length);
    if (!wrong && colon && !read_port(colon + 1, (size_t)(end - colon - 1), &url->port))
        wrong = "its port is not a number from 1 to 65535";
    return wrong;
}

const char *hfi_url_split(const char *text, struct hfi_url *url) {
    memset(url, 0, sizeof *url);
    url->https = strncasecmp(text, "https://", 8) == 0;
    if (!url->https && strncasecmp(text, "http://", 7) != 0)
        return "it does not start with http:// or https://";
    if (!hfi_is_url_text(text))
        return "it holds a space, a control character or a byte outside ASCII";
    if (strlen(text) > HFI_URL_MAX)
        return HFI_URL_LONG;
    if (strpbrk(text, "\\#"))
        return "it holds a backslash or a fragment";
    url->scheme = url->https ? 8 : 7;
    const char *start = text + url->scheme;
    url->place = start + strcspn(start, "/?");
    const char *query = strchr(url->place, '?');
    url->path_length = query ? (size_t)(query - url->place) : strlen(url->place);
    url->query = query ? query + 1 : NULL;
    return split_authority(start, url->place, url);
}
