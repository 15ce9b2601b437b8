/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_CALL_WORLD_H
#define TESTS_SUPPORT_CALL_WORLD_H

#include "resilience/call.h"
#include "sim/scripted.h"
#include "sim/virtual.h"

/* One caller with one downstream `d` on virtual time and a scripted transport, for the tests of the call. */
struct call_world {
    struct hfi_scheduler *s;
    struct hfi_scripted *script;
    struct hfi_caller *caller;
    struct hf_downstream *d;
    struct hf_downstream_options options;
    struct hf_policy_options policy; /* shape it before call_world_open */
    bool inside;                     /* start or cancel is on the stack: no callback may run */
    unsigned ends;
};
extern struct call_world *world;

/* How one call ended. */
struct call_end {
    unsigned count; /* times `done` ran: 1, or something is very wrong */
    unsigned order;
    struct hf_outcome outcome;
    int status;
    char body[64];
    char header[64]; /* X-Test */
    int64_t at_ms;   /* since the world began */
    struct hfi_call *call;
};

int call_world_set_up(void **state);
int call_world_tear_down(void **state);
/* Opens the caller with the options as they are. */
void call_world_open(const struct hfi_script_step *steps, size_t count);
void call_world_open_with(hfi_script_fn decide, void *user);
#define CALL_WORLD_OPEN(...)                                                                                           \
    call_world_open((struct hfi_script_step[]){__VA_ARGS__},                                                           \
                    sizeof(struct hfi_script_step[]){__VA_ARGS__} / sizeof(struct hfi_script_step))

/* What a caller has, as given and without hosts: how many, and the one at `index` (borrowed, NULL: none). */
size_t call_count_of(struct hfi_caller *caller);
struct hf_downstream *call_downstream_of(struct hfi_caller *caller, size_t index);

int64_t call_now_ms(void); /* since the world began */
struct hf_request call_get(void);
struct hf_request call_post(const char *key);
int call_start(struct call_end *end, const struct hf_request *request);
void call_cancel(struct call_end *end);
/* Runs until nothing is left to do. */
void call_run(void);
struct call_end call_once(const struct hf_request *request);

#endif
