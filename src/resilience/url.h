/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_URL_H
#define HFI_RESILIENCE_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An absolute http or https URL taken apart; it points into the text. */
struct hfi_url {
    bool https;
    size_t scheme;        /* bytes up to and with `://` */
    const char *userinfo; /* NULL: none; without the @ */
    size_t userinfo_length;
    const char *host; /* a name, four numbers, or an IPv6 address in its brackets */
    size_t host_length;
    uint16_t port;      /* as written, else the scheme's own */
    const char *place;  /* behind the host and port: "" or a path or a query */
    size_t path_length; /* of place, up to the ? */
    const char *query;  /* NULL: none; without the ? */
};

/*
 * The one reader of URLs, for those of the configuration and those of users. NULL, or what is wrong with it: another
 * scheme, anything but visible ASCII, a backslash or fragment, a host that is none, an IPv6 zone, an IPv4 address in
 * another form than a.b.c.d (0x7f.1, 2130706433, 0177.0.0.1, which libraries read in different ways), a port out of
 * range. Never quotes the text, for it may hold a password. Userinfo and query are found, not judged.
 */
const char *hfi_url_split(const char *text, struct hfi_url *url);

#define HFI_HOST_MAX 253 /* RFC 1035, written as text */

#endif
