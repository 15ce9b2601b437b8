/* SPDX-License-Identifier: MIT */
/*
 * One spelling for every URL of one server, so that it has one breaker and no other server has the same. Must never let
 * a password, a path or a query into a key. Pure.
 */
#include "resilience/key.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Without brackets in, with brackets out. hfi_url_split has seen that it is an address. */
static char *put_six(char *to, const char *end, const char *host, size_t length) {
    char given[INET6_ADDRSTRLEN] = "", shortest[INET6_ADDRSTRLEN] = "";
    struct in6_addr address;
    memcpy(given, host + 1, length - 2 < sizeof given ? length - 2 : sizeof given - 1);
    if (inet_pton(AF_INET6, given, &address) == 1)
        inet_ntop(AF_INET6, &address, shortest, sizeof shortest);
    return to + snprintf(to, (size_t)(end - to), "[%s]", shortest);
}

static char *put_name(char *to, const char *host, size_t length) {
    if (host[length - 1] == '.')
        length--; /* the root's: the same name */
    for (size_t i = 0; i < length; i++)
        *to++ = lower(host[i]);
    *to = '\0';
    return to;
}

size_t hfi_key_print(const struct hfi_url *url, char *text) {
    const char *end = text + HFI_KEY_LENGTH;
    char *to = stpcpy(text, url->https ? "https://" : "http://");
    to =
        url->host[0] == '[' ? put_six(to, end, url->host, url->host_length) : put_name(to, url->host, url->host_length);
    if (url->port != (url->https ? 443 : 80))
        to += snprintf(to, (size_t)(end - to), ":%u", url->port);
    return (size_t)(to - text);
}

void hfi_host_key_print(const struct hfi_url *url, const char *downstream, char *text) {
    size_t length = hfi_key_print(url, text);
    snprintf(text + length, HFI_HOST_KEY_LENGTH - length, "#%s", downstream);
}

const char *hfi_host_key_split(const char *key, char *host) {
    char spelled[HFI_KEY_LENGTH];
    struct hfi_url url;
    size_t length = strcspn(key, "#");
    if (key[length] == '\0' || key[length + 1] == '\0' || length >= HFI_KEY_LENGTH)
        return NULL;
    memcpy(host, key, length);
    host[length] = '\0';
    if (hfi_url_split(host, &url) != NULL)
        return NULL;
    hfi_key_print(&url, spelled);
    return strcmp(spelled, host) == 0 ? key + length + 1 : NULL;
}
