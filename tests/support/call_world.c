/* SPDX-License-Identifier: MIT */
/* The world of the call's tests: virtual time, a script instead of a network, and a check on every callback. */
#include "support/call_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "support/support.h"

#define START_US INT64_C(1000000000)

struct call_world *world;

int call_world_set_up(void **state) {
    (void)state;
    world = calloc(1, sizeof *world);
    if (!world || hfi_virtual_new((struct hf_mono){START_US}, (struct hf_wall){INT64_C(1700000000000000)}, &world->s))
        return -1;
    world->options = hf_downstream_at("d", "http://example.test/base/");
    hf_policy_options_init(&world->policy);
    world->options.policy = &world->policy;
    return 0;
}

int call_world_tear_down(void **state) {
    (void)state;
    hfi_caller_free(world->caller);
    if (world->script)
        hfi_scripted_transport(world->script)->ops->close(hfi_scripted_transport(world->script));
    world->s->ops->close(world->s);
    free(world);
    return 0;
}

static size_t list(struct hfi_caller *caller, size_t index, struct hf_downstream **at) {
    struct hfi_listed *all;
    size_t count;
    assert_int_equal(hfi_caller_list(caller, &all, &count), 0);
    *at = index < count ? all[index].downstream : NULL;
    for (size_t i = 0; i < count; i++)
        hf_downstream_unref(all[i].downstream); /* the caller has one */
    hfi_free(all);
    return count;
}

size_t call_count_of(struct hfi_caller *caller) {
    struct hf_downstream *first;
    return list(caller, 0, &first);
}

struct hf_downstream *call_downstream_of(struct hfi_caller *caller, size_t index) {
    struct hf_downstream *at;
    list(caller, index, &at);
    return at;
}

static void open_caller(void) {
    struct hfi_caller_options options = {world->s, hfi_scripted_transport(world->script), hf_test_seed()};
    struct hf_error error;
    char text[512];
    hf_error_init(&error);
    if (hfi_caller_new(&options, &world->options, 1, &world->caller, &error)) {
        hf_error_print(&error, text, sizeof text);
        fail_msg("%s", text);
    }
    world->d = call_downstream_of(world->caller, 0);
}

void call_world_open(const struct hfi_script_step *steps, size_t count) {
    assert_int_equal(hfi_scripted_new(world->s, steps, count, &world->script), 0);
    open_caller();
}

void call_world_open_with(hfi_script_fn decide, void *user) {
    assert_int_equal(hfi_scripted_new_with(world->s, decide, user, &world->script), 0);
    open_caller();
}

int64_t call_now_ms(void) {
    return (world->s->ops->mono(world->s).us - START_US) / 1000;
}

struct hf_request call_get(void) {
    return hf_request_to("d", "GET", "/x");
}

struct hf_request call_post(const char *key) {
    struct hf_request request = hf_request_to("d", "POST", "/x");
    request.idempotency_key = key;
    request.body = "pay";
    request.body_length = 3;
    return request;
}

static void on_done(struct hf_response *response, void *user) {
    struct call_end *end = user;
    size_t length;
    assert_false(world->inside);
    const char *body = hf_response_body(response, &length);
    const char *header = hf_response_header(response, "x-test");
    end->count++;
    end->order = ++world->ends;
    end->outcome = *hf_response_outcome(response);
    end->status = hf_response_status(response);
    end->at_ms = call_now_ms();
    snprintf(end->body, sizeof end->body, "%.*s", (int)length, body);
    snprintf(end->header, sizeof end->header, "%s", header ? header : "");
    hf_response_free(response);
}

int call_start(struct call_end *end, const struct hf_request *request) {
    memset(end, 0, sizeof *end);
    world->inside = true;
    int rc = hfi_call_start(world->caller, request, on_done, end, &end->call, NULL);
    world->inside = false;
    return rc;
}

void call_cancel(struct call_end *end) {
    world->inside = true;
    hfi_call_cancel(end->call);
    world->inside = false;
}

void call_run(void) {
    world->s->ops->run(world->s);
}

struct call_end call_once(const struct hf_request *request) {
    struct call_end end;
    assert_int_equal(call_start(&end, request), 0);
    call_run();
    assert_int_equal(end.count, 1);
    assert_int_equal(hfi_scripted_open(world->script), 0);
    return end;
}
