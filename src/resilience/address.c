/* SPDX-License-Identifier: MIT */
/*
 * Decides which network an address belongs to. The tables are the special-purpose registries of IANA (RFC 6890 and what
 * came after) with the metadata addresses of clouds that stand in public space. Must never take the absence of a row for
 * a public IPv6 address outside 2000::/3. Pure, any thread.
 */
#include "resilience/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct range4 {
    uint32_t base;
    unsigned bits;
    const char *name;
};
#define V4(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

static const struct range4 ranges4[] = {
    {V4(0, 0, 0, 0), 8, "unspecified"},         /* RFC 791: "this network"; Linux connects 0.0.0.0 to itself */
    {V4(10, 0, 0, 0), 8, "private"},            /* RFC 1918 */
    {V4(100, 64, 0, 0), 10, "shared"},          /* RFC 6598, carriers; 100.100.100.200 is a metadata address */
    {V4(127, 0, 0, 0), 8, "loopback"},          /* RFC 1122 */
    {V4(169, 254, 0, 0), 16, "link-local"},     /* RFC 3927; 169.254.169.254 is the metadata address of most clouds */
    {V4(172, 16, 0, 0), 12, "private"},         /* RFC 1918 */
    {V4(192, 0, 0, 0), 24, "reserved"},         /* RFC 6890; 192.0.0.192 is a metadata address */
    {V4(192, 0, 2, 0), 24, "documentation"},    /* RFC 5737 */
    {V4(192, 88, 99, 0), 24, "reserved"},       /* RFC 7526: once the 6to4 relay */
    {V4(192, 168, 0, 0), 16, "private"},        /* RFC 1918 */
    {V4(198, 18, 0, 0), 15, "benchmark"},       /* RFC 2544 */
    {V4(198, 51, 100, 0), 24, "documentation"}, /* RFC 5737 */
    {V4(203, 0, 113, 0), 24, "documentation"},  /* RFC 5737 */
    {V4(168, 63, 129, 16), 32, "metadata"},     /* a cloud's host agent, in public space */
    {V4(224, 0, 0, 0), 4, "multicast"},         /* RFC 5771 */
    {V4(255, 255, 255, 255), 32, "broadcast"},  /* RFC 919 */
    {V4(240, 0, 0, 0), 4, "reserved"},          /* RFC 1112 */
};

/* What carries an IPv4 address, and where: its own address decides then. */
#define NOT_CARRIED (-1)
struct range6 {
    uint8_t base[16];
    unsigned bits;
    int carries; /* byte at which an IPv4 address begins */
    const char *name;
};

static const struct range6 ranges6[] = {
    {{0}, 128, NOT_CARRIED, "unspecified"},
    {{[15] = 1}, 128, NOT_CARRIED, "loopback"},
    {{[10] = 0xff, [11] = 0xff}, 96, 12, NULL},                               /* ::ffff:a.b.c.d, RFC 4291 */
    {{[8] = 0xff, [9] = 0xff}, 96, 12, NULL},                                 /* ::ffff:0:a.b.c.d, RFC 2765 */
    {{0}, 96, 12, NULL},                                                      /* ::a.b.c.d, RFC 4291, deprecated */
    {{0x00, 0x64, 0xff, 0x9b}, 96, 12, NULL},                                 /* NAT64, RFC 6052 */
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, NOT_CARRIED, "private"},       /* NAT64 of a site, RFC 8215 */
    {{0x01, 0x00}, 64, NOT_CARRIED, "discard"},                               /* RFC 6666 */
    {{0x20, 0x01}, 23, NOT_CARRIED, "reserved"},                              /* RFC 2928: Teredo, ORCHID, benchmarks … */
    {{0x20, 0x01, 0x0d, 0xb8}, 32, NOT_CARRIED, "documentation"},             /* RFC 3849 */
    {{0x20, 0x02}, 16, 2, NULL},                                              /* 6to4, RFC 3056 */
    {{0x3f, 0xff}, 20, NOT_CARRIED, "documentation"},                         /* RFC 9637 */
    {{0xfc, 0x00}, 7, NOT_CARRIED, "unique-local"},                           /* RFC 4193; fd00:ec2::254 is metadata */
    {{0xfe, 0x80}, 10, NOT_CARRIED, "link-local"},                            /* RFC 4291 */
    {{0xfe, 0xc0}, 10, NOT_CARRIED, "site-local"},                            /* RFC 3879, deprecated */
    {{0xff, 0x00}, 8, NOT_CARRIED, "multicast"},                              /* RFC 4291 */
};

static const char *private4(uint32_t address) {
    for (size_t i = 0; i < sizeof ranges4 / sizeof *ranges4; i++)
        if ((address ^ ranges4[i].base) >> (32 - ranges4[i].bits) == 0)
            return ranges4[i].name;
    return NULL;
}

static uint32_t at(const uint8_t *bytes) {
    return V4(bytes[0], bytes[1], bytes[2], bytes[3]);
}

static bool within(const uint8_t *address, const struct range6 *range) {
    unsigned whole = range->bits / 8, rest = range->bits % 8;
    if (memcmp(address, range->base, whole) != 0)
        return false;
    return rest == 0 || (address[whole] ^ range->base[whole]) >> (8 - rest) == 0;
}

/* An interface identifier of ISATAP (RFC 5214) ends in an IPv4 address to which a router may tunnel. */
static bool is_isatap(const uint8_t *address) {
    return (address[8] & 0xfd) == 0 && address[9] == 0 && address[10] == 0x5e && address[11] == 0xfe;
}

static const char *private6(const uint8_t *address) {
    for (size_t i = 0; i < sizeof ranges6 / sizeof *ranges6; i++) {
        const struct range6 *range = &ranges6[i];
        if (within(address, range))
            return range->carries == NOT_CARRIED ? range->name : private4(at(address + range->carries));
    }
    if (address[0] >> 5 != 1) /* global unicast is 2000::/3 and nothing else (RFC 4291) */
        return "reserved";
    return is_isatap(address) ? private4(at(address + 12)) : NULL;
}

const char *hfi_address_private(const struct sockaddr *address) {
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        return private4(ntohl(in.sin_addr.s_addr));
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, address, sizeof in6);
        return private6(in6.sin6_addr.s6_addr);
    }
    return "unknown";
}

const char *hfi_address_private_text(const char *text) {
    char bare[INET6_ADDRSTRLEN];
    struct in_addr in;
    struct in6_addr in6;
    size_t length = strcspn(text, "%"); /* a zone changes nothing */
    if (length >= sizeof bare)
        return "unknown";
    memcpy(bare, text, length);
    bare[length] = '\0';
    if (inet_pton(AF_INET, bare, &in) == 1)
        return private4(ntohl(in.s_addr));
    return inet_pton(AF_INET6, bare, &in6) == 1 ? private6(in6.s6_addr) : "unknown";
}
