/* SPDX-License-Identifier: MIT */
/*
 * The scripted transport: answers attempts from a list or a function and records what was asked of it. Must obey the
 * port to the letter (`done` never inside start, exactly once, never after a cancel), because tests of the call stand
 * on it. On the scheduler's thread.
 */
#include "sim/scripted.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

struct hfi_attempt {
    struct hfi_scripted *scripted;
    struct hfi_timer timer;
    struct hfi_script_step step;
    struct hf_mono started;
    uint64_t number;
    hfi_attempt_fn done;
    void *user;
};

struct hfi_scripted {
    struct hfi_transport transport; /* first: the port */
    struct hfi_scheduler *scheduler;
    struct hfi_script_step *steps;
    size_t step_count;
    hfi_script_fn decide;
    void *user;
    uint64_t started;
    size_t open;
    struct hfi_script_record *records;
    size_t record_count, record_room;
    struct hfi_bytes headers; /* of the newest start: name NUL value NUL … */
};

struct hfi_script_step hfi_script_status(int64_t delay_ms, int status) {
    struct hfi_script_step step = {.delay_ms = delay_ms};
    step.facts.status = status;
    step.facts.stage = HF_STAGE_RECEIVE;
    step.facts.sent = HF_SENT_YES;
    return step;
}

struct hfi_script_step hfi_script_code(int64_t delay_ms, int code, enum hf_sent sent) {
    struct hfi_script_step step = {.delay_ms = delay_ms};
    step.facts.native = code;
    step.facts.stage = sent == HF_SENT_NO ? HF_STAGE_CONNECT : HF_STAGE_WAIT;
    step.facts.sent = sent;
    return step;
}

struct hfi_script_step hfi_script_hang(bool connected) {
    struct hfi_script_step step = {.delay_ms = HFI_SCRIPT_NEVER};
    step.connect_ms = connected ? 0 : HFI_SCRIPT_NEVER;
    step.facts.stage = HF_STAGE_WAIT;
    step.facts.sent = HF_SENT_MAYBE;
    return step;
}

static bool is_connected(const struct hfi_attempt *attempt) {
    int64_t spent = hfi_now(attempt->scripted->scheduler).us - attempt->started.us;
    return spent >= hfi_ms_to_us(attempt->step.connect_ms);
}

static void note_end(struct hfi_scripted *scripted, uint64_t number, enum hfi_script_end end) {
    if (number < scripted->record_count) {
        scripted->records[number].end = end;
        scripted->records[number].ended = hfi_now(scripted->scheduler);
    }
}

static int note_start(struct hfi_scripted *scripted, const struct hfi_attempt_spec *spec) {
    scripted->headers.length = 0;
    for (size_t i = 0; i < spec->header_count; i++) {
        hfi_bytes_add(&scripted->headers, spec->headers[i].name, strlen(spec->headers[i].name) + 1);
        hfi_bytes_add(&scripted->headers, spec->headers[i].value, strlen(spec->headers[i].value) + 1);
    }
    if (scripted->started >= HFI_SCRIPT_RECORDS)
        return 0;
    if (scripted->record_count == scripted->record_room) {
        size_t room = scripted->record_room ? scripted->record_room * 2 : 16;
        struct hfi_script_record *records = hfi_realloc(scripted->records, room * sizeof *records);
        if (!records)
            return HF_ENOMEM;
        scripted->records = records;
        scripted->record_room = room;
    }
    struct hfi_script_record *record = &scripted->records[scripted->record_count++];
    memset(record, 0, sizeof *record);
    record->started = hfi_now(scripted->scheduler);
    hfi_text_copy(record->method, sizeof record->method, spec->method);
    hfi_text_copy(record->url, sizeof record->url, spec->url);
    record->body_length = spec->body_length;
    record->connect_timeout_ms = spec->connect_timeout_ms;
    record->fresh_connection = spec->fresh_connection;
    record->repeatable = spec->repeatable;
    return 0;
}

static void answer(struct hfi_timer *timer, void *user) {
    struct hfi_attempt *attempt = user;
    struct hfi_scripted *scripted = attempt->scripted;
    struct hfi_attempt_facts facts = attempt->step.facts;
    hfi_attempt_fn done = attempt->done;
    void *done_user = attempt->user;
    (void)timer;
    facts.phases.resolve_us = -1;
    facts.phases.tls_us = -1;
    facts.phases.connect_us = facts.sent == HF_SENT_NO ? -1 : hfi_ms_to_us(attempt->step.connect_ms);
    facts.phases.total_us = hfi_now(scripted->scheduler).us - attempt->started.us;
    facts.phases.first_byte_us = facts.status ? facts.phases.total_us : -1;
    note_end(scripted, attempt->number, HFI_SCRIPT_ANSWERED);
    scripted->open--;
    hfi_free(attempt);
    done(&facts, done_user);
}

static int start(struct hfi_transport *self, const struct hfi_attempt_spec *spec, hfi_attempt_fn done, void *user,
                 struct hfi_attempt **out) {
    struct hfi_scripted *scripted = (struct hfi_scripted *)self;
    int rc = note_start(scripted, spec);
    if (rc)
        return rc;
    struct hfi_attempt *attempt = hfi_alloc(sizeof *attempt);
    uint64_t number = scripted->started++;
    if (!attempt) {
        note_end(scripted, number, HFI_SCRIPT_REFUSED);
        return HF_ENOMEM;
    }
    size_t index = number < scripted->step_count ? (size_t)number : scripted->step_count - 1;
    attempt->step = scripted->decide ? scripted->decide(spec, number, scripted->user) : scripted->steps[index];
    attempt->scripted = scripted;
    attempt->started = hfi_now(scripted->scheduler);
    attempt->number = number;
    attempt->done = done;
    attempt->user = user;
    hfi_timer_init(&attempt->timer, answer, attempt);
    rc = attempt->step.refuse;
    if (rc == 0 && attempt->step.delay_ms != HFI_SCRIPT_NEVER)
        rc = scripted->scheduler->ops->arm(scripted->scheduler, &attempt->timer,
                                           hfi_mono_after_ms(attempt->started, attempt->step.delay_ms));
    if (rc) {
        note_end(scripted, number, HFI_SCRIPT_REFUSED);
        hfi_free(attempt);
        return rc;
    }
    scripted->open++;
    *out = attempt;
    return 0;
}

static enum hf_stage stage(struct hfi_transport *self, struct hfi_attempt *attempt) {
    (void)self;
    return is_connected(attempt) ? attempt->step.facts.stage : HF_STAGE_CONNECT;
}

static uint32_t hops(struct hfi_transport *self, struct hfi_attempt *attempt) {
    (void)self;
    return is_connected(attempt) ? attempt->step.facts.hops : 0;
}

static enum hf_sent cancel(struct hfi_transport *self, struct hfi_attempt *attempt, enum hf_stage *reached,
                           struct hfi_phases *phases) {
    struct hfi_scripted *scripted = (struct hfi_scripted *)self;
    bool connected = is_connected(attempt);
    *reached = stage(self, attempt);
    memset(phases, 0xff, sizeof *phases); /* -1: not reached */
    phases->connect_us = connected ? hfi_ms_to_us(attempt->step.connect_ms) : -1;
    phases->total_us = hfi_now(scripted->scheduler).us - attempt->started.us;
    enum hf_sent sent = connected ? attempt->step.facts.sent : HF_SENT_NO;
    scripted->scheduler->ops->disarm(scripted->scheduler, &attempt->timer);
    note_end(scripted, attempt->number, HFI_SCRIPT_CANCELLED);
    scripted->open--;
    hfi_free(attempt);
    return sent;
}

static void end(struct hfi_transport *self) {
    struct hfi_scripted *scripted = (struct hfi_scripted *)self;
    hfi_bytes_free(&scripted->headers);
    hfi_free(scripted->records);
    hfi_free(scripted->steps);
    hfi_free(scripted);
}

static const struct hfi_transport_ops operations = {
    .version = HFI_TRANSPORT_VERSION,
    .start = start,
    .cancel = cancel,
    .stage = stage,
    .hops = hops,
    .close = end,
};

static struct hfi_scripted *make(struct hfi_scheduler *scheduler) {
    struct hfi_scripted *scripted = hfi_alloc(sizeof *scripted);
    if (!scripted)
        return NULL;
    scripted->transport.ops = &operations;
    scripted->scheduler = scheduler;
    hfi_bytes_init(&scripted->headers, 1 << 20);
    return scripted;
}

int hfi_scripted_new(struct hfi_scheduler *scheduler, const struct hfi_script_step *steps, size_t count,
                     struct hfi_scripted **out) {
    if (count == 0)
        return HF_EINVAL;
    struct hfi_scripted *scripted = make(scheduler);
    if (!scripted)
        return HF_ENOMEM;
    scripted->steps = hfi_memdup(steps, count * sizeof *steps);
    scripted->step_count = count;
    if (!scripted->steps) {
        end(&scripted->transport);
        return HF_ENOMEM;
    }
    *out = scripted;
    return 0;
}

int hfi_scripted_new_with(struct hfi_scheduler *scheduler, hfi_script_fn decide, void *user,
                          struct hfi_scripted **out) {
    struct hfi_scripted *scripted = make(scheduler);
    if (!scripted)
        return HF_ENOMEM;
    scripted->decide = decide;
    scripted->user = user;
    *out = scripted;
    return 0;
}

struct hfi_transport *hfi_scripted_transport(struct hfi_scripted *scripted) {
    return &scripted->transport;
}

uint64_t hfi_scripted_started(const struct hfi_scripted *scripted) {
    return scripted->started;
}

size_t hfi_scripted_open(const struct hfi_scripted *scripted) {
    return scripted->open;
}

const struct hfi_script_record *hfi_scripted_record(const struct hfi_scripted *scripted, uint64_t number) {
    return number < scripted->record_count ? &scripted->records[number] : NULL;
}

const char *hfi_scripted_header(const struct hfi_scripted *scripted, const char *name) {
    const char *at = scripted->headers.data, *end = at + scripted->headers.length;
    while (at < end) {
        const char *value = at + strlen(at) + 1;
        if (hfi_text_equal_nocase(at, name))
            return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}
