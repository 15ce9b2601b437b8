/* SPDX-License-Identifier: MIT */
/*
 * The least that libcurl can do for many small requests: handles made once and added again, nothing decided, nothing
 * kept. What holdfast's call is measured against. One thread.
 */
#include "http_bare.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "meter.h"

/* So few events a turn that what was read is still in the cache when it is sent again: 256 is up to 15 % slower. */
enum { DESCRIPTORS = 4096, EVENTS = 32 };

static CURLM *multi;
static bool failed;
static int in_flight;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static size_t sink(char *data, size_t one, size_t length, void *user) {
    (void)data;
    (void)user;
    return one * length;
}

static int close_kept(void *user, curl_socket_t fd);

/* The same bytes go out as from holdfast, in the way that costs libcurl least. */
static char user_agent[] = "User-Agent: holdfast";
static struct curl_slist lines = {.data = user_agent};

static void begin(const char *url, int concurrency) {
    multi = curl_multi_init();
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)concurrency + 16);
    failed = false;
    in_flight = concurrency;
    for (int i = 0; i < concurrency; i++) {
        CURL *easy = curl_easy_init();
        curl_easy_setopt(easy, CURLOPT_URL, url);
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, &lines);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, sink);
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 10000L);
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, 2000L);
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_kept);
        curl_multi_add_handle(multi, easy);
    }
}

/* Takes what has ended and starts it again; how many are in flight. */
static int take_ended(void) {
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(multi, &left))) {
        CURL *easy = message->easy_handle;
        failed = failed || message->data.result != CURLE_OK;
        curl_multi_remove_handle(multi, easy);
        if (!failed && meter_count()) {
            curl_multi_add_handle(multi, easy);
        } else {
            curl_easy_cleanup(easy);
            in_flight--;
        }
    }
    return in_flight;
}

static bool end(void) {
    curl_multi_cleanup(multi);
    return !failed;
}

bool bare_poll(const char *url, int concurrency) {
    int running;
    begin(url, concurrency);
    do {
        curl_multi_perform(multi, &running);
        if (take_ended() > 0)
            curl_multi_poll(multi, NULL, 0, 100, NULL);
    } while (in_flight > 0);
    return end();
}

static int set;
static double due; /* < 0: never */
static uint32_t watched[DESCRIPTORS];

static int epoll_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *assigned) {
    (void)easy;
    (void)user;
    (void)assigned;
    if (what == CURL_POLL_REMOVE || fd >= DESCRIPTORS)
        return 0; /* kept: the connection is used again at once */
    struct epoll_event event = {.events = EPOLLIN | (what & CURL_POLL_OUT ? EPOLLOUT : 0u), .data.fd = fd};
    if (watched[fd] == event.events)
        return 0;
    epoll_ctl(set, watched[fd] ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
    watched[fd] = event.events;
    return 0;
}

static int close_kept(void *user, curl_socket_t fd) {
    (void)user;
    if (fd < DESCRIPTORS)
        watched[fd] = 0;
    return close(fd);
}

static int epoll_timer(CURLM *handle, long timeout_ms, void *user) {
    (void)handle;
    (void)user;
    due = timeout_ms < 0 ? -1 : now() + (double)timeout_ms / 1e3;
    return 0;
}

static void epoll_round(void) {
    struct epoll_event events[EVENTS];
    int running, wait_ms = due < 0 ? -1 : (int)((due - now()) * 1e3) + 1;
    if (due >= 0 && now() >= due) {
        due = -1;
        curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
        return;
    }
    int count = epoll_wait(set, events, EVENTS, wait_ms > 0 ? wait_ms : wait_ms < 0 ? -1 : 0);
    for (int i = 0; i < count; i++) {
        uint32_t came = events[i].events;
        int flags = (came & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) | (came & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                    (came & EPOLLERR ? CURL_CSELECT_ERR : 0);
        curl_multi_socket_action(multi, events[i].data.fd, flags, &running);
    }
}

bool bare_epoll(const char *url, int concurrency) {
    set = epoll_create1(EPOLL_CLOEXEC);
    due = -1;
    begin(url, concurrency);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, epoll_socket);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, epoll_timer);
    due = now();
    while (take_ended() > 0)
        epoll_round();
    bool good = end();
    close(set);
    return good;
}

static uv_loop_t loop;
static uv_timer_t timer;

static void act(curl_socket_t fd, int flags) {
    int running;
    curl_multi_socket_action(multi, fd, flags, &running);
    if (take_ended() == 0)
        uv_stop(&loop);
}

static void on_poll(uv_poll_t *handle, int status, int events) {
    uv_os_fd_t fd;
    uv_fileno((uv_handle_t *)handle, &fd);
    act(fd, (status < 0 ? CURL_CSELECT_ERR : 0) | (events & UV_READABLE ? CURL_CSELECT_IN : 0) |
                (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0));
}

static void on_timer(uv_timer_t *handle) {
    (void)handle;
    act(CURL_SOCKET_TIMEOUT, 0);
}

static int uv_timer_set(CURLM *handle, long timeout_ms, void *user) {
    (void)handle;
    (void)user;
    if (timeout_ms < 0)
        uv_timer_stop(&timer);
    else
        uv_timer_start(&timer, on_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

static void on_closed(uv_handle_t *handle) {
    free(handle);
}

static int uv_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *assigned) {
    uv_poll_t *poll = assigned;
    (void)easy;
    (void)user;
    if (what == CURL_POLL_REMOVE) {
        if (poll) {
            uv_poll_stop(poll);
            uv_close((uv_handle_t *)poll, on_closed);
            curl_multi_assign(multi, fd, NULL);
        }
        return 0;
    }
    if (!poll) {
        poll = calloc(1, sizeof *poll);
        uv_poll_init_socket(&loop, poll, fd);
        curl_multi_assign(multi, fd, poll);
    }
    return uv_poll_start(poll, (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0),
                         on_poll);
}

bool bare_uv(const char *url, int concurrency) {
    uv_loop_init(&loop);
    uv_timer_init(&loop, &timer);
    begin(url, concurrency);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, uv_socket);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, uv_timer_set);
    uv_timer_start(&timer, on_timer, 0, 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    bool good = end();
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return good;
}
