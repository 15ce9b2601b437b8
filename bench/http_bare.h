/* SPDX-License-Identifier: MIT */
#ifndef BENCH_HTTP_BARE_H
#define BENCH_HTTP_BARE_H

#include <stdbool.h>

/*
 * GETs of `url` by libcurl alone, `concurrency` at once, until the meter says that it is enough; false when one failed.
 * The three usual ways to drive a multi handle: curl_multi_poll; epoll that keeps its descriptors; libuv as in
 * libcurl's example.
 */
bool bare_poll(const char *url, int concurrency);
bool bare_epoll(const char *url, int concurrency);
bool bare_uv(const char *url, int concurrency);

#endif
