/* SPDX-License-Identifier: MIT */
/*
 * The descriptors of libcurl: made close-on-exec, watched from their first use until they are closed. Between two
 * requests on one connection the watch stays and nothing is told to the kernel. Must never let a pooled connection
 * on which bytes came unasked be used again (pitfalls 1.1-4), nor keep the watch of a descriptor that is closed:
 * libcurl closes a socket that never finished connecting without telling us. On the scheduler's thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "resilience/address.h"
#include "resilience/http/engine.h"

static struct hfi_socket *find(const struct hfi_engine *engine, int fd) {
    return fd >= 0 && (size_t)fd < engine->socket_room ? engine->sockets[fd] : NULL;
}

static void drop(struct hfi_socket *socket) {
    struct hfi_engine *engine = socket->engine;
    engine->scheduler->ops->unwatch(engine->scheduler, socket->watch);
    engine->sockets[socket->fd] = NULL;
    hfi_free(socket);
}

/*
 * 0 when `fd` is not open. The number alone says nothing: another thread may have it again at once, so it is asked
 * about as a name in the table of descriptors (fstatat), not used as a descriptor that would be ours (fstat).
 */
static uint64_t identity(int fd) {
    struct stat status;
    return fstatat(fd, "", &status, AT_EMPTY_PATH) == 0 ? status.st_ino : 0;
}

static struct hfi_socket *add(struct hfi_engine *engine, int fd, bool foreign) {
    if (find(engine, fd)) /* its descriptor was closed behind our back, and this is another one */
        drop(find(engine, fd));
    if ((size_t)fd >= engine->socket_room) {
        size_t room = engine->socket_room ? engine->socket_room : 64;
        while (room <= (size_t)fd)
            room *= 2;
        struct hfi_socket **sockets = hfi_realloc(engine->sockets, room * sizeof *sockets);
        if (!sockets)
            return NULL;
        memset(sockets + engine->socket_room, 0, (room - engine->socket_room) * sizeof *sockets);
        engine->sockets = sockets;
        engine->socket_room = room;
    }
    struct hfi_socket *socket = hfi_alloc(sizeof *socket);
    if (!socket)
        return NULL;
    socket->fd = fd;
    socket->foreign = foreign;
    socket->engine = engine;
    socket->identity = foreign ? 0 : identity(fd);
    engine->sockets[fd] = socket;
    return socket;
}

static void on_ready(struct hfi_watch *watch, unsigned events, void *user);

/* Asks the scheduler for `events`, keeping the watch. */
static void watch_for(struct hfi_socket *socket, unsigned events) {
    struct hfi_scheduler *scheduler = socket->engine->scheduler;
    int rc = 0;
    if (!socket->watch)
        rc = scheduler->ops->watch(scheduler, socket->fd, events, on_ready, socket, &socket->watch);
    else if (socket->watched != events)
        rc = scheduler->ops->change(scheduler, socket->watch, events);
    socket->watched = rc ? 0 : events;
    if (rc)
        socket->engine->broken = true;
}

/*
 * A pooled connection became readable: the peer closed it, or sent what nobody asked for (an idle 408). libcurl
 * would take such bytes for the next answer. They are thrown away and the connection is shut, so that libcurl finds
 * it dead when it looks for one to reuse.
 */
static void spoil(struct hfi_socket *socket) {
    char scratch[4096];
    ssize_t got;
    bool readable = false;
    int rounds = 16;
    while ((got = recv(socket->fd, scratch, sizeof scratch, MSG_DONTWAIT)) > 0 && --rounds > 0)
        readable = true;
    if (!readable && got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    shutdown(socket->fd, SHUT_RDWR);
    watch_for(socket, 0);
}

static void on_ready(struct hfi_watch *watch, unsigned events, void *user) {
    struct hfi_socket *socket = user;
    struct hfi_engine *engine = socket->engine;
    int fd = socket->fd;
    (void)watch;
    if (!socket->wanted) {
        if (socket->framed) /* libcurl reads the frames itself before it uses the connection again */
            watch_for(socket, 0);
        else
            spoil(socket);
        return;
    }
    /* With flags 0 libcurl looks for itself and finds the true error; CURL_CSELECT_ERR hides it. */
    int flags = (events & HFI_READABLE ? CURL_CSELECT_IN : 0) | (events & HFI_WRITABLE ? CURL_CSELECT_OUT : 0);
    hfi_drive_event(engine, fd, flags);
    /* The scheduler may have stopped reporting after an error: ask again if libcurl still wants it. */
    if ((events & HFI_BROKEN) && find(engine, fd) == socket && socket->wanted) {
        socket->watched = 0;
        watch_for(socket, socket->wanted);
    }
}

static struct hfi_attempt *attempt_of(CURL *easy) {
    char *private = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
    return (struct hfi_attempt *)(void *)private;
}

/* libcurl waits for it no longer: it is closed, or idle in the pool. */
static void release(CURL *easy, struct hfi_socket *socket) {
    socket->wanted = 0;
    if (socket->foreign || (!socket->proven && identity(socket->fd) != socket->identity)) {
        drop(socket);
        return;
    }
    const struct hfi_attempt *attempt = socket->proven ? NULL : attempt_of(easy);
    socket->proven = socket->proven || (attempt && attempt->sends > 0);
    if (socket->watched & HFI_WRITABLE)
        watch_for(socket, HFI_READABLE);
}

int hfi_sockets_changed(CURL *easy, curl_socket_t fd, int what, void *user, void *assigned) {
    struct hfi_engine *engine = user;
    struct hfi_socket *socket = find(engine, fd);
    (void)assigned;
    if (what == CURL_POLL_REMOVE) {
        if (socket)
            release(easy, socket);
        return 0;
    }
    if (!socket) {
        /* Not one of ours: the resolver's wake-up. While a lookup is out, its other end belongs to the thread. */
        socket = add(engine, fd, true);
        if (!socket) {
            engine->broken = true;
            return 0;
        }
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        struct hfi_attempt *attempt = attempt_of(easy);
        if (attempt && attempt->lookup >= 0)
            attempt->wire = fd;
    }
    socket->wanted = (what & CURL_POLL_IN ? HFI_READABLE : 0) | (what & CURL_POLL_OUT ? HFI_WRITABLE : 0);
    watch_for(socket, socket->wanted);
    return 0;
}

curl_socket_t hfi_sockets_open(void *user, curlsocktype purpose, struct curl_sockaddr *address) {
    struct hfi_attempt *attempt = user;
    (void)purpose;
    hfi_hosts_resolved(attempt);
    if (attempt->spec.deny_private && hfi_address_private(&address->addr)) {
        if (attempt->opened != attempt->sends + 1) /* else another address was tried: its failure is the reason */
            attempt->reason = HFI_REASON_PRIVATE_NETWORK;
        return CURL_SOCKET_BAD;
    }
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd < 0) {
        attempt->failed_errno = errno;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            attempt->reason = HFI_REASON_DESCRIPTORS;
        return CURL_SOCKET_BAD;
    }
    if (!add(attempt->engine, fd, false)) {
        close(fd);
        attempt->reason = HFI_REASON_MEMORY;
        return CURL_SOCKET_BAD;
    }
    attempt->socket = fd;
    attempt->opened = attempt->sends + 1;
    attempt->reason = HFI_REASON_NONE; /* the first address may have failed to get one */
    return fd;
}

int hfi_sockets_close(void *user, curl_socket_t fd) {
    struct hfi_socket *socket = find(user, fd);
    if (socket)
        drop(socket);
    return close(fd);
}

bool hfi_sockets_connected(const struct hfi_engine *engine, int fd) {
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    return find(engine, fd) && getpeername(fd, (struct sockaddr *)&peer, &length) == 0;
}

void hfi_sockets_framed(struct hfi_engine *engine, int fd) {
    struct hfi_socket *socket = find(engine, fd);
    if (socket)
        socket->framed = true;
}

void hfi_sockets_free(struct hfi_engine *engine) {
    for (size_t i = 0; i < engine->socket_room; i++)
        if (engine->sockets[i])
            drop(engine->sockets[i]);
    hfi_free(engine->sockets);
    engine->sockets = NULL;
    engine->socket_room = 0;
}
