/* SPDX-License-Identifier: MIT */
#ifndef BENCH_HTTP_BARE_H
#define BENCH_HTTP_BARE_H

/*
 * GETs of `url` by libcurl alone, `concurrency` at once, for `seconds`; how many succeeded, -1 when one failed. The
 * three usual ways to drive a multi handle: curl_multi_poll; epoll that keeps its descriptors; libuv as in libcurl's
 * example.
 */
long bare_poll(const char *url, int concurrency, double seconds);
long bare_epoll(const char *url, int concurrency, double seconds);
long bare_uv(const char *url, int concurrency, double seconds);

double bench_now(void); /* seconds, monotonic */

#endif
