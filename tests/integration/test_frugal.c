/* SPDX-License-Identifier: MIT */
/*
 * What many requests cost the loop, counted and not timed (L4): timers, watches and stack stay the same however many
 * requests follow each other, each started from the callback of the one before.
 */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>

#include "assembly/client.h"
#include "loop/loop.h"
#include "support/peer.h"

#define REQUESTS 10000
#define AT_ONCE 8

static struct hfi_scheduler_ops counting;
static const struct hfi_scheduler_ops *real;
static struct hfi_scheduler *loop;
static struct hf_client *client;
static unsigned arms, watches, changes, ended, good;
static uintptr_t lowest = UINTPTR_MAX, highest;
static bool inside, nested;

static int arm(struct hfi_scheduler *self, struct hfi_timer *timer, struct hf_mono at) {
    arms++;
    return real->arm(self, timer, at);
}

static int watch(struct hfi_scheduler *self, int fd, unsigned events, hfi_watch_fn ready, void *user,
                 struct hfi_watch **out) {
    watches++;
    return real->watch(self, fd, events, ready, user, out);
}

static int change(struct hfi_scheduler *self, struct hfi_watch *watched, unsigned events) {
    changes++;
    return real->change(self, watched, events);
}

static void on_done(struct hf_response *response, void *user) {
    struct hf_request request = hf_request_to("peer", "GET", "/");
    uintptr_t here = (uintptr_t)&request;
    (void)user;
    nested = nested || inside;
    inside = true;
    lowest = here < lowest ? here : lowest;
    highest = here > highest ? here : highest;
    good += hf_response_status(response) == 200;
    hf_response_free(response);
    ended++;
    if (ended == REQUESTS)
        loop->ops->stop(loop);
    else if (ended <= REQUESTS - AT_ONCE)
        hf_call_start(client, &request, NULL, on_done, NULL, NULL);
    inside = false;
}

static void test_ten_thousand(void **state) { /* L4 */
    (void)state;
    char url[64];
    static const struct peer_step ok = {.answer = PEER_OK};
    struct hf_downstream_options options = hf_downstream_at("peer", url);
    struct hf_request request = hf_request_to("peer", "GET", "/");
    struct peer *peer = peer_new(&ok, 1);
    assert_non_null(peer);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", peer_port(peer));
    assert_int_equal(hfi_loop_new(&loop), 0);
    real = loop->ops;
    counting = *real;
    counting.arm = arm;
    counting.watch = watch;
    counting.change = change;
    loop->ops = &counting;
    assert_int_equal(hfi_client_borrow(loop, &options, 1, &client, NULL), 0);
    for (int i = 0; i < AT_ONCE; i++)
        assert_int_equal(hf_call_start(client, &request, NULL, on_done, NULL, NULL), 0);
    loop->ops->run(loop);
    printf("%d requests: %u timers armed, %u watches made, %u changed, %u bytes of stack between callbacks\n", REQUESTS,
           arms, watches, changes, (unsigned)(highest - lowest));
    assert_int_equal(good, REQUESTS);
    assert_int_equal(peer_seen(peer), REQUESTS);
    assert_int_equal(peer_connections(peer), AT_ONCE);
    assert_false(nested);
    assert_true(highest - lowest < 65536);    /* no recursion: libuv has 12 KiB on it at one of two ways to come here */
    assert_true(arms <= 5 * REQUESTS);        /* no timer that spins; one-shot: it fires no more often */
    assert_true(watches <= 2 * AT_ONCE);      /* a watch lives as long as its connection … */
    assert_true(changes <= 2 * AT_ONCE + 16); /* … and is not touched between requests */
    hf_client_close(client);
    loop->ops->close(loop);
    peer_free(peer);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ten_thousand)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
