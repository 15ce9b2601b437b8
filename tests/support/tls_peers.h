/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_TLS_PEERS_H
#define TESTS_SUPPORT_TLS_PEERS_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/http.h"

/*
 * Servers with TLS, HTTP/2 and proxies in a process of their own (tls_peers.py), and calls of them through the public
 * client. Their certificates stand in a folder made for the run. Asserts: main thread only.
 */
int tls_peers_start(const char *script); /* 0, or -1: no python3 or openssl. Waits until all of them listen */
void tls_peers_stop(void);
int tls_peers_port(const char *name);
const char *tls_peers_file(const char *name); /* path of a file with certificates or keys; good until the next call */

struct tls_peers_count {
    unsigned connections, requests, tunnels;
};
struct tls_peers_count tls_peers_count(const char *name);
void tls_peers_chatter(const char *name); /* has sent frames that nobody asked for after its last answer */
void tls_peers_last(const char *name, char *text, size_t room); /* the newest request */

/* How one blocking call ended. */
struct call_answer {
    int status, native;
    enum hf_outcome_kind kind;
    enum hf_stage stage;
    enum hf_sent sent;
    enum hf_verdict verdict;
    enum hf_class class_of;
    uint32_t attempts, retries;
    char error_type[64], message[512], rule[64], body[256];
    int64_t connect_us, tls_us, first_byte_us, total_us;
};
struct call_answer tls_peers_call(struct hf_client *client, const struct hf_request *request);

#endif
