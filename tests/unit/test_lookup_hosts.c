/* SPDX-License-Identifier: MIT */
/* Whose name lookup an attempt waits for, and how long a host is remembered: no network, on virtual time. */
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include "resilience/http/engine.h"
#include "sim/virtual.h"

#define MANY 1100 /* more than are kept: old ones are forgotten on the way */
#define KEPT 1024

static struct hfi_engine engine;

static int set_up(void **state) {
    (void)state;
    memset(&engine, 0, sizeof engine);
    return hfi_virtual_new((struct hf_mono){1000000}, (struct hf_wall){0}, &engine.scheduler);
}

static int tear_down(void **state) {
    (void)state;
    hfi_hosts_free(&engine);
    engine.scheduler->ops->close(engine.scheduler);
    return 0;
}

/* Whether it has to look the name up. */
static bool enter(struct hfi_attempt *attempt, const char *url) {
    memset(attempt, 0, sizeof *attempt);
    attempt->engine = &engine;
    attempt->spec.url = url;
    attempt->lookup = attempt->wire = attempt->socket = -1;
    assert_int_equal(hfi_hosts_enter(attempt), 0);
    return attempt->leads;
}

static void look_up(struct hfi_attempt *attempt) {
    assert_int_equal(hfi_hosts_lookup(NULL, NULL, attempt), 0);
    hfi_hosts_resolved(attempt);
    hfi_hosts_settle(&engine);
}

static void visit_many(void) {
    for (int i = 0; i < MANY; i++) {
        struct hfi_attempt other;
        char url[64];
        snprintf(url, sizeof url, "http://host%d.test/", i);
        assert_true(enter(&other, url));
        look_up(&other);
        hfi_hosts_leave(&other, CURLE_OK);
    }
}

/* It sends, or opens another socket, long after its name was resolved: its host is still there. */
static void test_a_late_send(void **state) {
    (void)state;
    struct hfi_attempt slow, next;
    assert_true(enter(&slow, "http://peer.test/"));
    look_up(&slow);
    hfi_virtual_advance(engine.scheduler, 60000); /* longer than the name is known */
    visit_many();
    hfi_hosts_resolved(&slow); /* wrote into freed memory */
    assert_false(enter(&next, "http://PEER.test/x")); /* … and it is the host that all others see */
    hfi_hosts_leave(&next, CURLE_OK);
    hfi_hosts_leave(&slow, CURLE_OK);
}

/* The same of one that does not lead: the name seemed to be known when it began. */
static void test_a_lookup_nobody_waits_for(void **state) {
    (void)state;
    struct hfi_attempt first, slow, next;
    assert_true(enter(&first, "http://peer.test/"));
    hfi_hosts_resolved(&first); /* libcurl knew it: so do we for a moment */
    hfi_hosts_settle(&engine);
    hfi_hosts_leave(&first, CURLE_OK);
    assert_false(enter(&slow, "http://peer.test/"));
    hfi_virtual_advance(engine.scheduler, 60000);
    visit_many();
    look_up(&slow);
    assert_false(enter(&next, "http://peer.test/"));
    hfi_hosts_leave(&next, CURLE_OK);
    hfi_hosts_leave(&slow, CURLE_OK);
}

/* Those that nobody uses go when there are too many. */
static void test_forgotten(void **state) {
    (void)state;
    struct hfi_attempt attempt;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            char url[64];
            snprintf(url, sizeof url, "http://round%d-%d.test/", round, i);
            assert_true(enter(&attempt, url));
            look_up(&attempt);
            hfi_hosts_leave(&attempt, CURLE_OK);
            hfi_virtual_advance(engine.scheduler, 60000);
        }
        assert_true(engine.host_count <= KEPT);
    }
    assert_false(enter(&attempt, "http://127.0.0.1/"));
    assert_null(attempt.host);
}

/* With the engine libcurl's addresses go: somebody has to look them up again, and one for all. */
static void test_nothing_is_known_after_a_rebuild(void **state) {
    (void)state;
    struct hfi_attempt before, after;
    assert_true(enter(&before, "http://peer.test/"));
    look_up(&before);
    hfi_hosts_leave(&before, CURLE_OK);
    assert_false(enter(&after, "http://peer.test/"));
    hfi_hosts_leave(&after, CURLE_OK);
    hfi_hosts_forget(&engine);
    assert_true(enter(&after, "http://peer.test/"));
    hfi_hosts_leave(&after, CURLE_OK);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(test_a_late_send), T(test_a_lookup_nobody_waits_for), T(test_forgotten),
                                       T(test_nothing_is_known_after_a_rebuild)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
