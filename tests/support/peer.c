/* SPDX-License-Identifier: MIT */
/*
 * The scripted raw-socket server: one thread, one poll loop. Must never read a byte of a request beyond the point where
 * its step acts. Its counters are read under its lock.
 */
#include "support/peer.h"

#include <errno.h>
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
#define CALLS 4096

struct connection {
    int fd;
    char *request;    /* what is kept of the request that is being read */
    size_t got, head; /* bytes read of it; length of its headers, 0 while they are not whole */
    size_t body;      /* length of its body */
    bool stepped;     /* it took its step, below */
    bool answering;   /* the step has come to act */
    bool draining;    /* our side has ended: only reads */
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
    size_t step_count, steps_taken;
    struct connection connections[CONNECTIONS];
    unsigned requests, seen, accepted, open, by_call[CALLS];
    uint64_t bytes;
    char last[REQUEST_ROOM];
    const char *poke;
    bool poke_closes, stopping;
    bool settling; /* somebody waits until nothing is left to read */
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

static const struct peer_step *next_step(const struct peer *peer) {
    return &peer->steps[peer->steps_taken < peer->step_count ? peer->steps_taken : peer->step_count - 1];
}

static void take_step(struct peer *peer, struct connection *connection) {
    connection->step = *next_step(peer);
    peer->steps_taken++;
    if (connection->step.answer && connection->step.length == 0)
        connection->step.length = strlen(connection->step.answer);
    connection->stepped = true;
}

static void act(struct connection *connection) {
    connection->answering = true;
    connection->written = 0;
    connection->due_us = hfi_mono_now().us + connection->step.delay_ms * 1000LL;
}

static void forget_request(struct connection *connection) {
    connection->got = connection->head = connection->body = 0;
    connection->stepped = connection->answering = false;
}

/* The headers are whole: how long is the body, and whose is it? */
static void read_head(struct peer *peer, struct connection *connection) {
    const char *start = connection->request, *head_end = start + connection->head - 2;
    for (const char *line = start; line && line < head_end; line = memchr(line, '\n', (size_t)(head_end - line))) {
        line += *line == '\n';
        if (strncasecmp(line, "Content-Length:", 15) == 0)
            connection->body = strtoul(line + 15, NULL, 10);
        else if (strncasecmp(line, "X-Call:", 7) == 0)
            peer->by_call[strtoul(line + 7, NULL, 10) % CALLS]++;
    }
}

/* How much may be read now, so that nothing behind the point where the step acts is. Looks without taking. */
static size_t readable(struct connection *connection) {
    char *at = connection->request + connection->got;
    if (connection->head > 0) {
        bool half = connection->stepped && connection->step.at == PEER_HALF && !connection->draining;
        return connection->head + (half ? connection->body / 2 : connection->body) - connection->got;
    }
    ssize_t there = recv(connection->fd, at, REQUEST_ROOM - 1 - connection->got, MSG_DONTWAIT | MSG_PEEK);
    if (there <= 0)
        return 1; /* the real one finds out */
    at[there] = '\0';
    const char *head_end = memmem(connection->request, connection->got + (size_t)there, "\r\n\r\n", 4);
    return head_end ? (size_t)(head_end + 4 - at) : (size_t)there;
}

/* Reads on, counts, and says whether anything came. The connection may be gone then. */
static bool read_some(struct peer *peer, struct connection *connection) {
    char scratch[16384];
    size_t wanted = readable(connection), room = REQUEST_ROOM - 1 - connection->got;
    bool keep = connection->got < REQUEST_ROOM - 1;
    if (wanted > (keep ? room : sizeof scratch))
        wanted = keep ? room : sizeof scratch;
    ssize_t got = recv(connection->fd, keep ? connection->request + connection->got : scratch, wanted, MSG_DONTWAIT);
    if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            end(peer, connection, false);
        return false;
    }
    peer->seen += connection->got == 0;
    peer->bytes += (uint64_t)got;
    connection->got += (size_t)got;
    if (keep)
        connection->request[connection->got] = '\0';
    if (connection->head == 0 && connection->got >= 4 && keep &&
        memcmp(connection->request + connection->got - 4, "\r\n\r\n", 4) == 0) {
        connection->head = connection->got;
        read_head(peer, connection);
    }
    return true;
}

static bool is_whole(const struct connection *connection) {
    return connection->head > 0 && connection->got >= connection->head + connection->body;
}

/* Is the request where its step acts? */
static bool reached(const struct connection *connection) {
    switch (connection->step.at) {
    case PEER_HEADERS:
        return connection->head > 0;
    case PEER_HALF:
        return connection->head > 0 && connection->got >= connection->head + connection->body / 2;
    case PEER_WHOLE:
        return is_whole(connection);
    case PEER_ACCEPT:
    case PEER_ARRIVED:
        break;
    }
    return true;
}

static void note_whole(struct peer *peer, const struct connection *connection) {
    size_t kept = connection->got < REQUEST_ROOM ? connection->got : REQUEST_ROOM - 1;
    peer->requests++;
    memcpy(peer->last, connection->request, kept);
    peer->last[kept] = '\0';
}

static void receive(struct peer *peer, struct connection *connection) {
    if (connection->answering) { /* only its end is looked for: no byte of the next request is touched */
        end(peer, connection, false);
        return;
    }
    if (!connection->stepped && !connection->draining) {
        char one;
        if (recv(connection->fd, &one, 1, MSG_DONTWAIT | MSG_PEEK) <= 0) {
            end(peer, connection, false);
            return;
        }
        take_step(peer, connection);
        if (connection->step.at == PEER_ACCEPT || connection->step.at == PEER_ARRIVED) {
            act(connection);
            return;
        }
    }
    if (!read_some(peer, connection))
        return;
    if (is_whole(connection))
        note_whole(peer, connection);
    if (connection->draining && is_whole(connection))
        forget_request(connection);
    else if (!connection->draining && reached(connection))
        act(connection);
}

static void finish(struct peer *peer, struct connection *connection) {
    switch (connection->step.then) {
    case PEER_KEEP:
        forget_request(connection);
        break;
    case PEER_HANG:
        connection->due_us = HFI_FOREVER_US;
        break;
    case PEER_FIN:
        shutdown(connection->fd, SHUT_WR);
        connection->draining = true;
        connection->answering = false;
        if (is_whole(connection))
            forget_request(connection);
        break;
    case PEER_CLOSE:
    case PEER_RESET:
        end(peer, connection, connection->step.then == PEER_RESET);
        break;
    }
}

static void answer(struct peer *peer, struct connection *connection) {
    const struct peer_step *step = &connection->step;
    while (connection->written < step->length) {
        size_t size = step->drip_ms ? 1 : step->length - connection->written;
        ssize_t sent = send(connection->fd, step->answer + connection->written, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0 && connection->written < step->length) {
            connection->due_us = hfi_mono_now().us + 1000; /* full, or gone: then the next look sees it */
            return;
        }
        connection->written += (size_t)sent;
        if (step->drip_ms) {
            connection->due_us = hfi_mono_now().us + step->drip_ms * 1000LL;
            if (connection->written < step->length)
                return;
        }
    }
    finish(peer, connection);
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
        if (next_step(peer)->at == PEER_ACCEPT) {
            take_step(peer, connection);
            act(connection);
        }
        return;
    }
    close(fd);
}

static void poke_all(struct peer *peer) {
    if (!peer->poke)
        return;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        struct connection *connection = &peer->connections[i];
        if (connection->fd < 0 || connection->stepped || connection->draining)
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
        polls[*count] = (struct pollfd){.fd = connection->fd, .events = connection->answering ? POLLRDHUP : POLLIN};
        owners[(*count)++] = connection;
    }
    if (peer->settling)
        return 0;
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
        int ready = poll(polls, (nfds_t)count + 2, wait);
        pthread_mutex_lock(&peer->lock);
        if (peer->settling && ready == 0) {
            peer->settling = false;
            pthread_cond_broadcast(&peer->poked);
        }
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
unsigned peer_seen(struct peer *peer) {
    return read_counter(peer, &peer->seen);
}
unsigned peer_seen_of(struct peer *peer, unsigned call) {
    return read_counter(peer, &peer->by_call[call % CALLS]);
}
unsigned peer_connections(struct peer *peer) {
    return read_counter(peer, &peer->accepted);
}
unsigned peer_open(struct peer *peer) {
    return read_counter(peer, &peer->open);
}

uint64_t peer_bytes(struct peer *peer) {
    pthread_mutex_lock(&peer->lock);
    uint64_t value = peer->bytes;
    pthread_mutex_unlock(&peer->lock);
    return value;
}

void peer_last(struct peer *peer, char *text, size_t room) {
    pthread_mutex_lock(&peer->lock);
    size_t length = strlen(peer->last);
    length = length < room ? length : room - 1;
    memcpy(text, peer->last, length);
    text[length] = '\0';
    pthread_mutex_unlock(&peer->lock);
}

void peer_settle(struct peer *peer) {
    pthread_mutex_lock(&peer->lock);
    peer->settling = true;
    wake_up(peer);
    while (peer->settling)
        pthread_cond_wait(&peer->poked, &peer->lock);
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
