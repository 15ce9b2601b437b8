/* SPDX-License-Identifier: MIT */
/* Which addresses a stranger's URL may not reach (2.8, pitfalls 1.4): both ends of every range, and what carries one. */
#include "support/support.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "resilience/address.h"

static const struct {
    const char *text;
    const char *range; /* NULL: public */
} rows[] = {
    {"0.0.0.0", "unspecified"},
    {"0.255.255.255", "unspecified"},
    {"1.0.0.0", NULL},
    {"9.255.255.255", NULL},
    {"10.0.0.0", "private"},
    {"10.255.255.255", "private"},
    {"11.0.0.0", NULL},
    {"100.63.255.255", NULL},
    {"100.64.0.0", "shared"},
    {"100.100.100.200", "shared"},
    {"100.127.255.255", "shared"},
    {"100.128.0.0", NULL},
    {"126.255.255.255", NULL},
    {"127.0.0.0", "loopback"},
    {"127.0.0.1", "loopback"},
    {"127.255.255.255", "loopback"},
    {"128.0.0.0", NULL},
    {"168.63.129.15", NULL},
    {"168.63.129.16", "metadata"},
    {"168.63.129.17", NULL},
    {"169.253.255.255", NULL},
    {"169.254.0.0", "link-local"},
    {"169.254.169.254", "link-local"},
    {"169.254.255.255", "link-local"},
    {"169.255.0.0", NULL},
    {"172.15.255.255", NULL},
    {"172.16.0.0", "private"},
    {"172.31.255.255", "private"},
    {"172.32.0.0", NULL},
    {"191.255.255.255", NULL},
    {"192.0.0.0", "reserved"},
    {"192.0.0.192", "reserved"},
    {"192.0.0.255", "reserved"},
    {"192.0.1.0", NULL},
    {"192.0.2.0", "documentation"},
    {"192.0.2.255", "documentation"},
    {"192.0.3.0", NULL},
    {"192.88.99.1", "reserved"},
    {"192.167.255.255", NULL},
    {"192.168.0.0", "private"},
    {"192.168.255.255", "private"},
    {"192.169.0.0", NULL},
    {"198.17.255.255", NULL},
    {"198.18.0.0", "benchmark"},
    {"198.19.255.255", "benchmark"},
    {"198.20.0.0", NULL},
    {"198.51.100.7", "documentation"},
    {"203.0.113.7", "documentation"},
    {"223.255.255.255", NULL},
    {"224.0.0.0", "multicast"},
    {"239.255.255.255", "multicast"},
    {"240.0.0.0", "reserved"},
    {"255.255.255.254", "reserved"},
    {"255.255.255.255", "broadcast"},
    {"::", "unspecified"},
    {"::1", "loopback"},
    {"::127.0.0.1", "loopback"},
    {"::8.8.8.8", NULL},
    {"::ffff:127.0.0.1", "loopback"},
    {"::ffff:7f00:1", "loopback"},
    {"::ffff:169.254.169.254", "link-local"},
    {"::ffff:8.8.8.8", NULL},
    {"::ffff:0:10.1.2.3", "private"},
    {"64:ff9b::10.0.0.1", "private"},
    {"64:ff9b::8.8.8.8", NULL},
    {"64:ff9b:1::1", "private"},
    {"64:ff9b:0:1::1", "reserved"},
    {"100::1", "discard"},
    {"2000::1", NULL},
    {"2001::1", "reserved"},
    {"2001:1ff:ffff::1", "reserved"},
    {"2001:200::1", NULL},
    {"2001:db7::1", NULL},
    {"2001:db8::1", "documentation"},
    {"2001:db9::1", NULL},
    {"2002:7f00:1::1", "loopback"},
    {"2002:c0a8:101::1", "private"},
    {"2002:808:808::1", NULL},
    {"2606:4700:4700::1111", NULL},
    {"2606:4700::5efe:10.0.0.1", "private"},
    {"2606:4700::200:5efe:127.0.0.1", "loopback"},
    {"2606:4700::5efe:8.8.8.8", NULL},
    {"3fff::1", "documentation"},
    {"3fff:fff::1", "documentation"},
    {"3fff:1000::1", NULL},
    {"4000::1", "reserved"},
    {"5f00::1", "reserved"},
    {"fbff::1", "reserved"},
    {"fc00::1", "unique-local"},
    {"fd00:ec2::254", "unique-local"},
    {"fdff:ffff::1", "unique-local"},
    {"fe00::1", "reserved"},
    {"fe80::1", "link-local"},
    {"fe80::1%eth0", "link-local"},
    {"febf::1", "link-local"},
    {"fec0::1", "site-local"},
    {"ff02::1", "multicast"},
    {"", "unknown"},
    {"localhost", "unknown"},
    {"2130706433", "unknown"},
    {"127.1", "unknown"},
    {"1111:2222:3333:4444:5555:6666:7777:8888:9999:0000:1111", "unknown"},
};

static void test_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *range = hfi_address_private_text(rows[i].text);
        if (range != rows[i].range && (!range || !rows[i].range || strcmp(range, rows[i].range) != 0))
            fail_msg("%s is %s, not %s", rows[i].text, range ? range : "public", rows[i].range ? rows[i].range : "public");
    }
}

/* What a socket is connected to; other families are never let through. */
static void test_sockets(void **state) {
    (void)state;
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "/tmp/x"};
    assert_string_equal(hfi_address_private((struct sockaddr *)&four), "loopback");
    four.sin_addr.s_addr = htonl(0x08080808);
    assert_null(hfi_address_private((struct sockaddr *)&four));
    six.sin6_addr.s6_addr[15] = 1;
    assert_string_equal(hfi_address_private((struct sockaddr *)&six), "loopback");
    six.sin6_addr.s6_addr[0] = 0x20;
    assert_null(hfi_address_private((struct sockaddr *)&six));
    assert_string_equal(hfi_address_private((struct sockaddr *)&local), "unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_sockets)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
