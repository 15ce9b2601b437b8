/* SPDX-License-Identifier: MIT */
/*
 * The public client: wires scheduler, libcurl transport and caller together, and brings calls from any thread to the
 * loop and back. Must never block the loop, run a callback twice or leave one out, nor touch a call off its thread.
 * Any thread; what says so runs on the loop.
 */
#include "assembly/client.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/alloc.h"
#include "base/blocking.h"
#include "base/log.h"
#include "base/text.h"
#include "loop/loop.h"
#include "resilience/faulty.h"
#include "resilience/http/http.h"

/* One call between its start and its callback. An id names a slot and how often the slot was used. */
struct ticket {
    struct hf_client *client;
    struct hfi_call *call; /* of the loop thread, until it is over */
    hf_call_fn done;
    void *user;
    uint64_t id;
    struct hfi_task start, cancel;
    /* under the client's lock: */
    unsigned posted; /* tasks that have not run yet: they keep the ticket */
    bool cancelled, over;
    struct ticket *next, **link; /* of the client's open calls */
};

struct hf_client {
    struct hfi_scheduler *scheduler;
    struct hfi_transport *transport;
    struct hfi_caller *caller;
    bool owned;
    pthread_t thread;
    struct hfi_task close_task;
    pthread_mutex_t lock;
    bool closing, closed;
    size_t tickets; /* that exist; with the last one the memory of a closed client goes */
    uint64_t last_id;
    struct ticket *buckets[256]; /* by id */
};

static struct ticket **bucket_of(struct hf_client *client, uint64_t id) {
    return &client->buckets[id % (sizeof client->buckets / sizeof *client->buckets)];
}

/* Under the lock. */
static void add_ticket(struct hf_client *client, struct ticket *ticket) {
    struct ticket **bucket = bucket_of(client, ticket->id);
    ticket->next = *bucket;
    ticket->link = bucket;
    if (ticket->next)
        ticket->next->link = &ticket->next;
    *bucket = ticket;
}

/* Under the lock. */
static void remove_ticket(struct ticket *ticket) {
    *ticket->link = ticket->next;
    if (ticket->next)
        ticket->next->link = ticket->link;
}

static void free_memory(struct hf_client *client) {
    pthread_mutex_destroy(&client->lock);
    hfi_free(client);
}

/* Frees a ticket that nobody will look at again. */
static void drop_ticket(struct ticket *ticket) {
    struct hf_client *client = ticket->client;
    hfi_free(ticket);
    pthread_mutex_lock(&client->lock);
    bool last = --client->tickets == 0 && client->closed;
    pthread_mutex_unlock(&client->lock);
    if (last)
        free_memory(client);
}

static void on_done(struct hf_response *response, void *user) {
    struct ticket *ticket = user;
    struct hf_client *client = ticket->client;
    hf_call_fn done = ticket->done;
    void *done_user = ticket->user;
    pthread_mutex_lock(&client->lock);
    remove_ticket(ticket);
    ticket->over = true;
    bool unused = ticket->posted == 0;
    pthread_mutex_unlock(&client->lock);
    if (unused)
        drop_ticket(ticket);
    done(response, done_user);
}

/* A task of the ticket has come to the loop. False: the call is over. */
static bool arrive(struct ticket *ticket) {
    struct hf_client *client = ticket->client;
    pthread_mutex_lock(&client->lock);
    bool over = ticket->over, unused = --ticket->posted == 0 && over;
    pthread_mutex_unlock(&client->lock);
    if (unused)
        drop_ticket(ticket);
    return !over;
}

static void begin(struct ticket *ticket) {
    if (hfi_call_begin(ticket->call))
        hfi_call_give_up(ticket->call);
}

static void run_start(struct hfi_task *task, void *user) {
    (void)task;
    if (arrive(user))
        begin(user);
}

static void run_cancel(struct hfi_task *task, void *user) {
    struct ticket *ticket = user;
    (void)task;
    if (arrive(ticket))
        hfi_call_cancel(ticket->call);
}

/* On 0 the ticket is the client's. */
static int open_ticket(struct hf_client *client, const struct hf_request *request, uint64_t *id, hf_call_fn done,
                       void *user, struct hf_error *error) {
    struct ticket *ticket = hfi_alloc(sizeof *ticket);
    if (!ticket)
        return hfi_fail(error, HF_ENOMEM, "call", NULL, "out of memory");
    int rc = hfi_call_new(client->caller, request, on_done, ticket, &ticket->call, error);
    if (rc) {
        hfi_free(ticket);
        return rc;
    }
    ticket->client = client;
    ticket->done = done;
    ticket->user = user;
    ticket->start.run = run_start;
    ticket->start.user = ticket;
    ticket->cancel.run = run_cancel;
    ticket->cancel.user = ticket;
    pthread_mutex_lock(&client->lock);
    if (client->closing) {
        pthread_mutex_unlock(&client->lock);
        hfi_call_discard(ticket->call);
        hfi_free(ticket);
        return hfi_fail(error, HF_ECLOSED, "client", NULL, "it is being closed");
    }
    ticket->id = ++client->last_id;
    ticket->posted = 1;
    client->tickets++;
    add_ticket(client, ticket);
    if (id)
        *id = ticket->id; /* before the callback can run */
    client->scheduler->ops->post(client->scheduler, &ticket->start);
    pthread_mutex_unlock(&client->lock);
    return 0;
}

int hf_call_start(struct hf_client *client, const struct hf_request *request, uint64_t *id, hf_call_fn done,
                  void *user, struct hf_error *error) {
    if (!client || !request || !done)
        return hfi_fail(error, HF_EINVAL, "call", NULL, "client, request or callback is NULL");
    return open_ticket(client, request, id, done, user, error);
}

int hf_client_check(struct hf_client *client, const struct hf_request *request, struct hf_error *error) {
    return client ? hfi_caller_check(client->caller, request, error)
                  : hfi_fail(error, HF_EINVAL, "client", NULL, "it is NULL");
}

void hf_call_cancel(struct hf_client *client, uint64_t id) {
    if (!client)
        return;
    pthread_mutex_lock(&client->lock);
    struct ticket *ticket = *bucket_of(client, id);
    while (ticket && ticket->id != id)
        ticket = ticket->next;
    /* Once is enough; and closing cancels everything by itself. */
    if (ticket && !ticket->cancelled && !client->closing) {
        ticket->cancelled = true;
        ticket->posted++;
        client->scheduler->ops->post(client->scheduler, &ticket->cancel);
    }
    pthread_mutex_unlock(&client->lock);
}

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct hf_response *response;
};

static void wake(struct hf_response *response, void *user) {
    struct waiter *waiter = user;
    pthread_mutex_lock(&waiter->lock);
    waiter->response = response;
    pthread_cond_signal(&waiter->changed);
    pthread_mutex_unlock(&waiter->lock);
}

int hf_call(struct hf_client *client, const struct hf_request *request, struct hf_response **response,
            struct hf_error *error) {
    if (!client || !request || !response)
        return hfi_fail(error, HF_EINVAL, "call", NULL, "client, request or response is NULL");
    if (!hfi_may_block() || client->scheduler->ops->on_thread(client->scheduler))
        return hfi_fail(error, HF_EDEADLK, "call", "use hf_call_start", "it would block a thread that must not");
    struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL};
    int rc = open_ticket(client, request, NULL, wake, &waiter, error);
    pthread_mutex_lock(&waiter.lock);
    while (rc == 0 && !waiter.response)
        pthread_cond_wait(&waiter.changed, &waiter.lock);
    pthread_mutex_unlock(&waiter.lock);
    pthread_cond_destroy(&waiter.changed);
    pthread_mutex_destroy(&waiter.lock);
    if (rc == 0)
        *response = waiter.response;
    return rc;
}

struct hf_downstream *hf_client_downstream(struct hf_client *client, const char *name) {
    return client && name ? hfi_caller_downstream(client->caller, name) : NULL;
}

int hf_client_host(struct hf_client *client, const char *name, const char *url, struct hf_downstream **downstream,
                   struct hf_error *error) {
    if (!client || !name || !downstream)
        return hfi_fail(error, HF_EINVAL, "host", NULL, "client, name or the place for it is NULL");
    return hfi_caller_host(client->caller, name, url, downstream, error);
}

int hf_client_reload(struct hf_client *client, const struct hf_downstream_options *downstreams, size_t count,
                     struct hf_error *error) {
    if (!client)
        return hfi_fail(error, HF_EINVAL, "client", NULL, "it is NULL");
    return hfi_caller_reload(client->caller, downstreams, count, error);
}

int hf_client_each(struct hf_client *client, hf_downstream_fn each, void *user) {
    return client && each ? hfi_caller_each(client->caller, each, user) : HF_EINVAL;
}

struct hfi_caller *hfi_client_caller(struct hf_client *client) {
    return client->caller;
}

struct hfi_transport *hfi_client_transport(struct hf_client *client) {
    return client->transport;
}

static void free_client(struct hf_client *client) {
    hfi_caller_free(client->caller);
    if (client->transport)
        client->transport->ops->close(client->transport);
    if (client->owned && client->scheduler)
        client->scheduler->ops->close(client->scheduler);
    pthread_mutex_lock(&client->lock);
    client->closed = true;
    bool last = client->tickets == 0; /* else a borrowed loop has tasks of ours to run yet */
    pthread_mutex_unlock(&client->lock);
    if (last)
        free_memory(client);
}

static struct hf_client *make(struct hf_error *error) {
    struct hf_client *client = hfi_alloc(sizeof *client);
    if (!client)
        hfi_fail(error, HF_ENOMEM, "client", NULL, "out of memory");
    else
        pthread_mutex_init(&client->lock, NULL);
    return client;
}

static int wire(struct hf_client *client, const struct hf_downstream_options *downstreams, size_t count,
                struct hf_error *error) {
    int rc = hfi_curl_transport_new(client->scheduler, &client->transport, error);
    if (rc)
        return rc;
    uint64_t seed;
    hfi_entropy(&seed, sizeof seed);
    rc = hfi_faulty_new(client->scheduler, client->transport, seed, &client->transport);
    if (rc)
        return hfi_fail(error, rc, "client", NULL, "out of memory");
    struct hfi_caller_options options = {.scheduler = client->scheduler, .transport = client->transport};
    hfi_entropy(&options.seed, sizeof options.seed);
    return hfi_caller_new(&options, downstreams, count, &client->caller, error);
}

int hfi_client_borrow(struct hfi_scheduler *scheduler, const struct hf_downstream_options *downstreams, size_t count,
                      struct hf_client **out, struct hf_error *error) {
    struct hf_client *client = make(error);
    if (!client)
        return HF_ENOMEM;
    client->scheduler = scheduler;
    int rc = wire(client, downstreams, count, error);
    if (rc) {
        free_client(client);
        return rc;
    }
    *out = client;
    return 0;
}

static void *loop_main(void *user) {
    struct hf_client *client = user;
    client->scheduler->ops->run(client->scheduler);
    return NULL;
}

/* The loop's thread takes no signals: they are the host's. */
static int start_thread(struct hf_client *client) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&client->thread, NULL, loop_main, client);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int hf_client_new(const struct hf_downstream_options *downstreams, size_t count, struct hf_client **out,
                  struct hf_error *error) {
    if (!out)
        return hfi_fail(error, HF_EINVAL, "client", NULL, "the out parameter is NULL");
    struct hf_client *client = make(error);
    if (!client)
        return HF_ENOMEM;
    client->owned = true;
    int rc = hfi_loop_new(&client->scheduler);
    if (rc)
        hfi_fail(error, rc, "client", NULL, "no loop: %s", hf_strerror(rc));
    else
        rc = wire(client, downstreams, count, error);
    if (rc == 0 && start_thread(client))
        rc = hfi_fail(error, HF_EIO, "client", NULL, "no thread could be started");
    if (rc) {
        free_client(client);
        return rc;
    }
    *out = client;
    return 0;
}

/* Ends every call, those too whose start has not come to the loop. */
static void end_calls(struct hf_client *client) {
    hfi_caller_end(client->caller);
    for (size_t i = 0; i < sizeof client->buckets / sizeof *client->buckets; i++) {
        struct ticket *ticket;
        while ((ticket = client->buckets[i])) { /* left ones have not begun */
            begin(ticket);
            hfi_caller_end(client->caller);
        }
    }
}

static void run_close(struct hfi_task *task, void *user) {
    struct hf_client *client = user;
    (void)task;
    end_calls(client);
    client->scheduler->ops->stop(client->scheduler);
}

void hf_client_close(struct hf_client *client) {
    if (!client)
        return;
    if (client->owned && client->scheduler->ops->on_thread(client->scheduler)) {
        hfi_log(HF_LOG_ERROR, "client.close", HFI_S("why", "called on its own loop thread, which it would wait for"),
                NULL);
        return;
    }
    pthread_mutex_lock(&client->lock);
    client->closing = true;
    pthread_mutex_unlock(&client->lock);
    if (client->owned) {
        client->close_task.run = run_close;
        client->close_task.user = client;
        client->scheduler->ops->post(client->scheduler, &client->close_task);
        pthread_join(client->thread, NULL);
    } else {
        end_calls(client);
    }
    free_client(client);
}
