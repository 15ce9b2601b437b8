/* SPDX-License-Identifier: MIT */
/* The scripted raw-socket server: one thread, one poll loop. Its counters are read under its lock. */
#include "support/peer.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define CONNECTIONS 256
#define REQUEST_ROOM 65536

struct connection {
    int fd;
    char *request;
    size_t length;
    bool answering;
    struct peer_step step;
    size_t written;
    int64_t due_us;
};

struct peer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t poked;
    int listener, wake, port;
    struct peer_step *steps;
    size_t step_count;
    struct connection connections[CONNECTIONS];
    unsigned requests, accepted, open;
    char last[REQUEST_ROOM];
    const char *poke;
    bool poke_closes, stopping;
};

static void end(struct peer *peer, struct connection *connection, bool reset) {
    struct linger linger = {1, 0};
    if (reset)
        setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(connection->fd);
    free(connection->request);
    memset(connection, 0, sizeof *connection);
    connection->fd = -1;
    peer->open--;
}

/* Length of the first whole request in the buffer, 0 while it is not whole. */
static size_t whole(const struct connection *connection) {
    const char *head_end = memmem(connection->request, connection->length, "\r\n\r\n", 4);
    if (!head_end)
        return 0;
    size_t head = (size_t)(head_end - connection->request) + 4, body = 0;
    for (const char *line = connection->request; line < head_end; line = strchr(line, '\n') + 1)
        if (strncasecmp(line, "Content-Length:", 15) == 0)
            body = strtoul(line + 15, NULL, 10);
    return connection->length >= head + body ? head + body : 0;
}

static void take_request(struct peer *peer, struct connection *connection) {
    size_t length = whole(connection);
    if (length == 0 || connection->answering)
        return;
    size_t number = peer->requests++;
    connection->step = peer->steps[number < peer->step_count ? number : peer->step_count - 1];
    if (connection->step.answer && connection->step.length == 0)
        connection->step.length = strlen(connection->step.answer);
    memcpy(peer->last, connection->request, length);
    peer->last[length] = '\0';
    memmove(connection->request, connection->request + length, connection->length - length);
    connection->length -= length;
    connection->answering = true;
    connection->written = 0;
    connection->due_us = hfi_mono_now().us + connection->step.delay_ms * 1000LL;
}

static void receive(struct peer *peer, struct connection *connection) {
    ssize_t got = recv(connection->fd, connection->request + connection->length, REQUEST_ROOM - 1 - connection->length,
                       MSG_DONTWAIT);
    if (got == 0 || (got < 0 && connection->length < REQUEST_ROOM - 1)) {
        end(peer, connection, false);
        return;
    }
    connection->length += got > 0 ? (size_t)got : 0;
    connection->request[connection->length] = '\0';
    take_request(peer, connection);
}

static void answer(struct peer *peer, struct connection *connection) {
    const struct peer_step *step = &connection->step;
    while (connection->written < step->length) {
        size_t size = step->drip_ms ? 1 : step->length - connection->written;
        ssize_t sent = send(connection->fd, step->answer + connection->written, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0 && connection->written < step->length) {
            connection->due_us = hfi_mono_now().us + 1000; /* full, or gone: then the next receive sees it */
            return;
        }
        connection->written += (size_t)sent;
        if (step->drip_ms) {
            connection->due_us = hfi_mono_now().us + step->drip_ms * 1000LL;
            if (connection->written < step->length)
                return;
        }
    }
    switch (step->then) {
    case PEER_KEEP:
        connection->answering = false;
        take_request(peer, connection);
        break;
    case PEER_HANG:
        connection->due_us = HFI_FOREVER_US;
        break;
    case PEER_CLOSE:
    case PEER_RESET:
        end(peer, connection, step->then == PEER_RESET);
        break;
    }
}

static void welcome(struct peer *peer) {
    int fd = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        struct connection *connection = &peer->connections[i];
        if (connection->fd >= 0)
            continue;
        connection->fd = fd;
        connection->request = calloc(1, REQUEST_ROOM);
        peer->accepted++;
        peer->open++;
        return;
    }
    close(fd);
}

static void poke_all(struct peer *peer) {
    if (!peer->poke)
        return;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        struct connection *connection = &peer->connections[i];
        if (connection->fd < 0 || connection->answering)
            continue;
        send(connection->fd, peer->poke, strlen(peer->poke), MSG_NOSIGNAL);
        if (peer->poke_closes)
            end(peer, connection, false);
    }
    peer->poke = NULL;
    pthread_cond_broadcast(&peer->poked);
}

/* One round under the lock: what is due, then how long nothing is. */
static int prepare(struct peer *peer, struct pollfd *polls, struct connection **owners, int *count) {
    int64_t now = hfi_mono_now().us, next = HFI_FOREVER_US;
    poke_all(peer);
    *count = 0;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        struct connection *connection = &peer->connections[i];
        if (connection->fd >= 0 && connection->answering && connection->due_us <= now)
            answer(peer, connection);
        if (connection->fd < 0)
            continue;
        if (connection->answering && connection->due_us < next)
            next = connection->due_us;
        polls[*count] = (struct pollfd){.fd = connection->fd, .events = POLLIN};
        owners[(*count)++] = connection;
    }
    int64_t wait = next == HFI_FOREVER_US ? 1000 : (next - hfi_mono_now().us) / 1000 + 1;
    return wait < 0 ? 0 : wait > 1000 ? 1000 : (int)wait;
}

static void *serve(void *user) {
    struct peer *peer = user;
    static _Thread_local struct pollfd polls[CONNECTIONS + 2];
    static _Thread_local struct connection *owners[CONNECTIONS];
    pthread_mutex_lock(&peer->lock);
    while (!peer->stopping) {
        int count;
        int wait = prepare(peer, polls, owners, &count);
        polls[count] = (struct pollfd){.fd = peer->listener, .events = POLLIN};
        polls[count + 1] = (struct pollfd){.fd = peer->wake, .events = POLLIN};
        pthread_mutex_unlock(&peer->lock);
        poll(polls, (nfds_t)count + 2, wait);
        pthread_mutex_lock(&peer->lock);
        uint64_t drained;
        if (polls[count + 1].revents && read(peer->wake, &drained, sizeof drained) < 0)
            continue;
        for (int i = 0; i < count; i++)
            if (polls[i].revents)
                receive(peer, owners[i]);
        if (polls[count].revents)
            welcome(peer);
    }
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (peer->connections[i].fd >= 0)
            end(peer, &peer->connections[i], false);
    pthread_mutex_unlock(&peer->lock);
    return NULL;
}

static int open_listener(struct peer *peer) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    peer->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (peer->listener < 0 || peer->wake < 0 || bind(peer->listener, (struct sockaddr *)&address, length) ||
        listen(peer->listener, 1024) || getsockname(peer->listener, (struct sockaddr *)&address, &length))
        return -1;
    peer->port = ntohs(address.sin_port);
    return 0;
}

struct peer *peer_new(const struct peer_step *steps, size_t count) {
    struct peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        return NULL;
    for (size_t i = 0; i < CONNECTIONS; i++)
        peer->connections[i].fd = -1;
    peer->steps = calloc(count, sizeof *steps);
    if (!peer->steps || open_listener(peer))
        return NULL;
    memcpy(peer->steps, steps, count * sizeof *steps);
    peer->step_count = count;
    pthread_mutex_init(&peer->lock, NULL);
    pthread_cond_init(&peer->poked, NULL);
    return pthread_create(&peer->thread, NULL, serve, peer) ? NULL : peer;
}

static void wake_up(struct peer *peer) {
    uint64_t one = 1;
    if (write(peer->wake, &one, sizeof one) < 0)
        return; /* full: it is awake anyway */
}

void peer_free(struct peer *peer) {
    if (!peer)
        return;
    pthread_mutex_lock(&peer->lock);
    peer->stopping = true;
    pthread_mutex_unlock(&peer->lock);
    wake_up(peer);
    pthread_join(peer->thread, NULL);
    close(peer->listener);
    close(peer->wake);
    pthread_mutex_destroy(&peer->lock);
    pthread_cond_destroy(&peer->poked);
    free(peer->steps);
    free(peer);
}

int peer_port(const struct peer *peer) {
    return peer->port;
}

static unsigned read_counter(struct peer *peer, const unsigned *counter) {
    pthread_mutex_lock(&peer->lock);
    unsigned value = *counter;
    pthread_mutex_unlock(&peer->lock);
    return value;
}
unsigned peer_requests(struct peer *peer) {
    return read_counter(peer, &peer->requests);
}
unsigned peer_connections(struct peer *peer) {
    return read_counter(peer, &peer->accepted);
}
unsigned peer_open(struct peer *peer) {
    return read_counter(peer, &peer->open);
}

void peer_last(struct peer *peer, char *text, size_t room) {
    pthread_mutex_lock(&peer->lock);
    size_t length = strlen(peer->last);
    length = length < room ? length : room - 1;
    memcpy(text, peer->last, length);
    text[length] = '\0';
    pthread_mutex_unlock(&peer->lock);
}

void peer_poke(struct peer *peer, const char *bytes, bool close_after) {
    pthread_mutex_lock(&peer->lock);
    peer->poke = bytes;
    peer->poke_closes = close_after;
    wake_up(peer);
    while (peer->poke)
        pthread_cond_wait(&peer->poked, &peer->lock);
    pthread_mutex_unlock(&peer->lock);
}
