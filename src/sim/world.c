/* SPDX-License-Identifier: MIT */
/*
 * The engine of the simulator: puts scheduler, downstream, node, store and loads together, lets the time of the scenario
 * pass, and takes all down again. Must never decide anything that production decides: it only calls, enqueues, steps the
 * clock and kills nodes. One thread.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/record.h"
#include "resilience/downstream.h"
#include "sim/load.h"
#include "sim/memory_store.h"
#include "sim/node.h"
#include "sim/report.h"
#include "sim/virtual.h"

#define SECOND INT64_C(1000000)
#define START_MONO (1000 * SECOND)
#define START_WALL (INT64_C(1767225600) * SECOND) /* 2026-01-01T00:00:00Z */
#define PATIENCE_S (7 * 86400)                    /* for what still runs at the end: limits are shorter */

struct world;

/* A direct call on its way. */
struct ticket {
    struct world *world;
    struct ticket *next; /* of the free ones */
    int64_t started_us;
};

/* A load and its clock. */
struct source {
    struct world *world;
    struct hfi_load load;
    struct hfi_timer timer;
};

/* A step of the clock or a crash, at its time. */
struct happening {
    struct world *world;
    struct hfi_timer timer;
    size_t index;
};

struct world {
    const struct hf_scenario *scenario;
    struct hfi_cast cast;
    struct hfi_scheduler *scheduler;
    struct hfi_server *server;
    struct hfi_store *store;
    struct hfi_writer *writer; /* of who enqueues */
    struct hfi_node *node;     /* NULL: it is down */
    struct hfi_node **dead;    /* that were killed */
    size_t dead_count;
    uint64_t starts;           /* of nodes */
    struct source *sources;
    struct happening *steps, *crashes, *restarts;
    struct ticket *tickets;
    struct hf_request request;
    struct hf_simulation *report;
    int code; /* of what went wrong inside */
    struct hf_error *error;
};

static int64_t elapsed_us(const struct world *world) {
    return hfi_now(world->scheduler).us - START_MONO;
}

static void fail(struct world *world, int code) {
    if (world->code == 0 && code != 0)
        world->code = code;
}

/* ------------------------------------------------------------------ calls and jobs */

static void call_ended(struct hf_response *response, void *user) {
    struct ticket *ticket = user;
    struct world *world = ticket->world;
    hfi_report_call_ended(world->report, &response->outcome, elapsed_us(world) - ticket->started_us);
    hf_response_free(response);
    ticket->next = world->tickets;
    world->tickets = ticket;
}

static void make_call(struct world *world) {
    struct ticket *ticket = world->tickets;
    struct hfi_call *call;
    if (world->node == NULL) {
        hfi_report_never_made(world->report);
        return;
    }
    if (ticket != NULL)
        world->tickets = ticket->next;
    else if ((ticket = hfi_alloc(sizeof *ticket)) == NULL) {
        fail(world, HF_ENOMEM);
        return;
    }
    *ticket = (struct ticket){.world = world, .started_us = elapsed_us(world)};
    int code = hfi_call_start(hfi_node_caller(world->node), &world->request, call_ended, ticket, &call, world->error);
    if (code == 0) {
        hfi_report_call_began(world->report);
        return;
    }
    fail(world, code);
    ticket->next = world->tickets;
    world->tickets = ticket;
}

static void put_job(struct world *world, const char *type) {
    struct hf_job_spec spec = hf_job_of(type, "");
    const struct hf_type_options *types = world->cast.types;
    struct hfi_spec_room room;
    struct hfi_put item;
    struct hfi_op_put op;
    memset(&item, 0, sizeof item);
    memset(&op, 0, sizeof op);
    for (size_t i = 0; i < world->cast.options.type_count; i++)
        if (strcmp(types[i].name, type) == 0)
            spec.queue = types[i].queue;
    int code = hfi_spec_check(&spec, world->scheduler->ops->wall(world->scheduler), HF_PAYLOAD_MAX_DEFAULT, &item.job, &room,
                              world->error);
    if (code == 0) {
        op.op.kind = HFI_OP_PUT;
        op.items = &item;
        op.count = 1;
        code = hfi_writer_do(world->writer, &op.op);
    }
    if (code == 0)
        hfi_report_job_put(world->report);
    fail(world, code);
}

static void source_fired(struct hfi_timer *timer, void *user) {
    struct source *source = user;
    struct world *world = source->world;
    int64_t next_us;
    do {
        if (source->load.options->job != NULL)
            put_job(world, source->load.options->job);
        else
            make_call(world);
        next_us = hfi_load_next(&source->load);
    } while (next_us <= elapsed_us(world) && world->code == 0);
    if (next_us != HFI_FOREVER_US && world->code == 0)
        fail(world, world->scheduler->ops->arm(world->scheduler, timer, (struct hf_mono){START_MONO + next_us}));
}

/* ------------------------------------------------------------------ the node */

static void breaker_changed(const struct hf_downstream_event *event, void *user) {
    struct world *world = user;
    hfi_report_change(world->report, event, elapsed_us(world));
}

static void job_moved(const struct hf_transition_view *transition, void *user) {
    struct world *world = user;
    hfi_report_job_moved(world->report, transition, elapsed_us(world));
}

static int start_node(struct world *world, struct hf_error *error) {
    struct hfi_node_parts parts = {.scheduler = world->scheduler, .transport = hfi_server_transport(world->server),
                                   .store = world->cast.jobs ? world->store : NULL, .cast = &world->cast,
                                   .seed = (world->scenario->seed + ++world->starts) | 1, .changed = breaker_changed,
                                   .moved = job_moved, .user = world};
    return hfi_node_new(&parts, &world->node, error);
}

static void crash(struct hfi_timer *timer, void *user) {
    struct happening *happening = user;
    struct world *world = happening->world;
    struct hfi_node *node = world->node;
    (void)timer;
    world->node = NULL;
    world->dead[world->dead_count++] = node;
    hfi_node_kill(node);
    struct hf_mono at = hfi_mono_after_ms(hfi_now(world->scheduler), world->scenario->crashes[happening->index].down_ms);
    fail(world, world->scheduler->ops->arm(world->scheduler, &world->restarts[happening->index].timer, at));
}

static void restart(struct hfi_timer *timer, void *user) {
    struct world *world = ((struct happening *)user)->world;
    (void)timer;
    struct hf_downstream_event fresh = {.from = world->report->state, .to = HF_BREAKER_CLOSED, .reason = "node started"};
    if (fresh.from != fresh.to)
        hfi_report_change(world->report, &fresh, elapsed_us(world));
    fail(world, start_node(world, world->error));
}

static void step_clock(struct hfi_timer *timer, void *user) {
    struct happening *happening = user;
    (void)timer;
    hfi_virtual_step_wall(happening->world->scheduler,
                          hfi_ms_to_us(happening->world->scenario->clock_steps[happening->index].by_ms));
}

/* ------------------------------------------------------------------ to look at it */

static void attempt_began(void *user) {
    hfi_report_attempt_began(((struct world *)user)->report);
}

static void attempt_ended(enum hfi_served how, int64_t took_us, void *user) {
    hfi_report_attempt_ended(((struct world *)user)->report, how, took_us);
}

static struct hfi_report_look look_at(struct world *world) {
    struct hfi_report_look look = {.server = hfi_server_counts(world->server), .phase = hfi_server_phase(world->server),
                                   .retries_refused = world->report->summary.retries_refused, .budget_left = 1};
    struct hf_runner_counts counts;
    if (world->node == NULL)
        return look;
    struct hf_downstream *downstream = hfi_node_downstream(world->node);
    struct hf_downstream_view view = {.size = (uint32_t)sizeof view};
    hfi_downstream_view(downstream, hfi_now(world->scheduler), &view);
    look.in_flight = view.in_flight;
    look.retries_refused = hfi_budget_counted(&downstream->budget, HFI_BUDGET_REFUSED);
    look.budget_left = hfi_budget_left(&downstream->budget, hfi_now(world->scheduler));
    hfi_node_counts(world->node, &counts);
    look.parked = counts.parked;
    look.running = counts.running;
    return look;
}

/* ------------------------------------------------------------------ from beginning to end */

static int arm_all(struct world *world, struct happening **list, size_t count, hfi_timer_fn fire) {
    *list = hfi_alloc_array(count > 0 ? count : 1, sizeof **list);
    for (size_t i = 0; *list != NULL && i < count; i++) {
        (*list)[i] = (struct happening){.world = world, .index = i};
        hfi_timer_init(&(*list)[i].timer, fire, &(*list)[i]);
    }
    return *list != NULL ? 0 : HF_ENOMEM;
}

static int arm_at(struct world *world, struct hfi_timer *timer, int64_t ms) {
    return world->scheduler->ops->arm(world->scheduler, timer, (struct hf_mono){START_MONO + hfi_ms_to_us(ms)});
}

static int open_happenings(struct world *world) {
    const struct hf_scenario *scenario = world->scenario;
    int code = arm_all(world, &world->steps, scenario->clock_step_count, step_clock);
    if (code == 0)
        code = arm_all(world, &world->crashes, scenario->crash_count, crash);
    if (code == 0)
        code = arm_all(world, &world->restarts, scenario->crash_count, restart);
    world->dead = hfi_alloc_array(scenario->crash_count + 1, sizeof *world->dead);
    if (world->dead == NULL)
        code = HF_ENOMEM;
    for (size_t i = 0; i < scenario->clock_step_count && code == 0; i++)
        code = arm_at(world, &world->steps[i].timer, scenario->clock_steps[i].at_ms);
    for (size_t i = 0; i < scenario->crash_count && code == 0; i++)
        code = arm_at(world, &world->crashes[i].timer, scenario->crashes[i].at_ms);
    return code;
}

static int open_sources(struct world *world) {
    const struct hf_scenario *scenario = world->scenario;
    int code = 0;
    world->sources = hfi_alloc_array(scenario->load_count, sizeof *world->sources);
    if (world->sources == NULL)
        return HF_ENOMEM;
    for (size_t i = 0; i < scenario->load_count && code == 0; i++) {
        struct source *source = &world->sources[i];
        source->world = world;
        hfi_load_init(&source->load, &scenario->loads[i], scenario->duration_ms,
                      scenario->seed * UINT64_C(0x9e3779b97f4a7c15) + i + 1);
        hfi_timer_init(&source->timer, source_fired, source);
        int64_t at_us = hfi_load_next(&source->load);
        if (at_us != HFI_FOREVER_US)
            code = world->scheduler->ops->arm(world->scheduler, &source->timer, (struct hf_mono){START_MONO + at_us});
    }
    return code;
}

static int open_store(struct world *world) {
    struct hf_store_options options;
    hf_store_options_init(&options);
    int code = hfi_memory_store_new(&options, &world->store);
    if (code != 0)
        return code;
    hfi_memory_store_clock(world->store, world->scheduler);
    snprintf(world->store->uuid, sizeof world->store->uuid, "00000000-0000-4000-8000-%012llx",
             (unsigned long long)(world->scenario->seed & 0xffffffffffff)); /* part of the jobs' keys */
    return hfi_writer_new_on(world->store, world->scheduler, &world->writer);
}

static int open_world(struct world *world, const struct hf_scenario *scenario) {
    struct hfi_server_ear ear = {.began = attempt_began, .ended = attempt_ended, .user = world};
    int code = hfi_report_new(scenario, &world->report);
    if (code == 0)
        code = hfi_virtual_new((struct hf_mono){START_MONO}, (struct hf_wall){START_WALL}, &world->scheduler);
    if (code == 0)
        code = hfi_server_new(scenario, world->scheduler, &ear, &world->server);
    if (code == 0)
        code = open_store(world);
    if (code == 0)
        code = open_happenings(world);
    if (code == 0)
        code = start_node(world, world->error);
    if (code == 0)
        code = open_sources(world);
    world->request = hf_request_to(world->cast.downstream.name, scenario->method, "/");
    return code;
}

static int let_time_pass(struct world *world) {
    const struct hf_scenario *scenario = world->scenario;
    for (int64_t at_ms = 1000; at_ms < scenario->duration_ms + 1000 && world->code == 0; at_ms += 1000) {
        bool last = at_ms >= scenario->duration_ms;
        int64_t until_us = hfi_ms_to_us(last ? scenario->duration_ms : at_ms) - 1; /* what comes at its end is of the next */
        hfi_virtual_run_until(world->scheduler, (struct hf_mono){START_MONO + until_us});
        struct hfi_report_look look = look_at(world);
        if (!last)
            hfi_report_tick(world->report, &look);
        else
            hfi_report_close(world->report, &look);
        if (scenario->progress != NULL && !scenario->progress(last ? scenario->duration_ms : at_ms, scenario->progress_user))
            fail(world, HF_ECANCELED);
    }
    if (world->report->failed)
        fail(world, HF_ENOMEM);
    return world->code;
}

static void count_ends(struct world *world) {
    struct hf_simulation_summary *summary = &world->report->summary;
    struct hf_job_counts counts;
    hf_job_counts_init(&counts);
    if (world->store->ops->count_jobs(world->store, &counts, NULL) != 0)
        return;
    summary->deaths = counts.dead;
    summary->quarantined = counts.quarantined;
    summary->jobs_succeeded = counts.succeeded;
    summary->jobs_open = counts.pending + counts.waiting + counts.running;
}

static void still(struct world *world) {
    const struct hf_scenario *scenario = world->scenario;
    for (size_t i = 0; world->sources != NULL && i < scenario->load_count; i++)
        world->scheduler->ops->disarm(world->scheduler, &world->sources[i].timer);
    for (size_t i = 0; world->restarts != NULL && i < scenario->crash_count; i++) {
        world->scheduler->ops->disarm(world->scheduler, &world->crashes[i].timer);
        world->scheduler->ops->disarm(world->scheduler, &world->restarts[i].timer);
    }
}

/* Nodes that run need some time to let go. */
static void end_node(struct world *world, struct hfi_node *node) {
    for (int i = 0; node != NULL && !hfi_node_end(node) && i < PATIENCE_S; i++)
        hfi_virtual_advance(world->scheduler, 1000);
    hfi_node_free(node);
}

static void close_world(struct world *world) {
    if (world->report != NULL)
        world->report->closed = true;
    if (world->scheduler != NULL)
        still(world);
    end_node(world, world->node);
    for (size_t i = 0; i < world->dead_count; i++)
        end_node(world, world->dead[i]);
    hfi_writer_close(world->writer);
    if (world->store != NULL)
        world->store->ops->close(world->store);
    if (world->server != NULL)
        hfi_server_transport(world->server)->ops->close(hfi_server_transport(world->server));
    if (world->scheduler != NULL)
        world->scheduler->ops->close(world->scheduler);
    while (world->tickets != NULL) {
        struct ticket *ticket = world->tickets;
        world->tickets = ticket->next;
        hfi_free(ticket);
    }
    hfi_free(world->sources);
    hfi_free(world->steps);
    hfi_free(world->crashes);
    hfi_free(world->restarts);
    hfi_free(world->dead);
}

int hf_scenario_check(const struct hf_scenario *scenario, struct hf_error *error) {
    struct hfi_cast cast;
    int code = hfi_scenario_check(scenario, error);
    if (code == 0)
        code = hfi_cast_init(&cast, scenario, error);
    if (code == 0)
        hfi_cast_end(&cast);
    return code;
}

int hf_simulate(const struct hf_scenario *scenario, struct hf_simulation **simulation, struct hf_error *error) {
    struct world world = {.scenario = scenario};
    struct hf_error inner = hf_error_none();
    world.error = &inner;
    if (simulation == NULL)
        return hfi_fail(error, HF_EINVAL, "simulation", "give a place for it", "it is NULL");
    *simulation = NULL;
    int code = hfi_scenario_check(scenario, error);
    if (code == 0)
        code = hfi_cast_init(&world.cast, scenario, error);
    if (code != 0)
        return code;
    code = open_world(&world, scenario);
    if (code == 0)
        code = let_time_pass(&world);
    if (code == 0)
        count_ends(&world);
    close_world(&world);
    hfi_cast_end(&world.cast);
    if (code == 0) {
        *simulation = world.report;
        return 0;
    }
    hf_simulation_free(world.report);
    if (error != NULL && inner.code == code)
        *error = inner;
    else
        hfi_fail(error, code, "simulation", NULL, "%s", hf_strerror(code));
    return code;
}
