/* SPDX-License-Identifier: MIT */
/*
 * What a service manager wants to hear, by datagrams to the socket it named. Must never block, nor fail a node because
 * nobody listens. Any thread; the pacemaker has its own.
 */
#include "program/notify.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PERIOD_MAX_MS 60000

void hfi_notify(const char *text) {
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t length = path ? strlen(path) : 0;
    if (length < 2 || length >= sizeof to.sun_path || (*path != '/' && *path != '@'))
        return;
    memcpy(to.sun_path, path, length);
    if (*path == '@')
        to.sun_path[0] = '\0'; /* of the abstract namespace: its end is its length */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    ssize_t sent;
    do
        sent = sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&to,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    while (sent < 0 && errno == EINTR);
    close(fd);
}

/* Half of what the manager waits; 0: it does not, or means another process. */
static int period_ms(void) {
    const char *period = getenv("WATCHDOG_USEC"), *process = getenv("WATCHDOG_PID");
    char *end;
    if (!period || !getenv("NOTIFY_SOCKET") || (process && strtol(process, NULL, 10) != (long)getpid()))
        return 0;
    errno = 0;
    unsigned long long us = strtoull(period, &end, 10);
    if (errno != 0 || end == period || *end || us == 0)
        return 0;
    unsigned long long ms = us / 2000;
    return ms < 1 ? 1 : ms < PERIOD_MAX_MS ? (int)ms : PERIOD_MAX_MS;
}

static void *keep_pace(void *user) {
    const struct hfi_pacemaker *pacemaker = user;
    struct pollfd stop = {.fd = pacemaker->stop_fd, .events = POLLIN};
    do {
        if (hf_runner_healthy(pacemaker->runner))
            hfi_notify("WATCHDOG=1");
    } while (poll(&stop, 1, pacemaker->period_ms) == 0);
    return NULL;
}

void hfi_pacemaker_start(struct hfi_pacemaker *pacemaker, const struct hf_runner *runner) {
    sigset_t all, before;
    *pacemaker = (struct hfi_pacemaker){.runner = runner, .period_ms = period_ms(), .stop_fd = -1};
    if (pacemaker->period_ms == 0 || (pacemaker->stop_fd = eventfd(0, EFD_CLOEXEC)) < 0)
        return;
    sigfillset(&all); /* SIGTERM and SIGINT are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pacemaker->started = pthread_create(&pacemaker->thread, NULL, keep_pace, pacemaker) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void hfi_pacemaker_end(struct hfi_pacemaker *pacemaker) {
    uint64_t one = 1;
    if (pacemaker->started && write(pacemaker->stop_fd, &one, sizeof one) == (ssize_t)sizeof one)
        pthread_join(pacemaker->thread, NULL);
    if (pacemaker->stop_fd >= 0)
        close(pacemaker->stop_fd);
}
