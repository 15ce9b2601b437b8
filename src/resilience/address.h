/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_ADDRESS_H
#define HFI_RESILIENCE_ADDRESS_H

#include <sys/socket.h>

/*
 * Is `address` one that a stranger's URL must not reach: loopback, link-local, private, metadata, multicast, reserved
 * and so on, or an IPv6 form that carries such an IPv4 address? The name of its range (static text), or NULL for a public
 * one. Looks at the address that is connected to, not at a name: whatever the name resolved to decides. Pure.
 */
const char *hfi_address_private(const struct sockaddr *address);
/* The same of an address written as text, `127.0.0.1` or `fe80::1%eth0`. What is no address is "unknown". */
const char *hfi_address_private_text(const char *text);

#endif
