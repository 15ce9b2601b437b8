/* SPDX-License-Identifier: MIT */
/*
 * The webhook sink: one POST per alert, straight through the transport, with a budget of its own. Carries the error type
 * and never its message [S0.25]; the address is a secret and never appears in logs or errors. Loop thread.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/deaths/render.h"
#include "jobs/deaths/sink.h"
#include "jobs/deaths/wording.h"
#include "resilience/classify.h"

#define BODY_MAX ((size_t)4 << 20) /* a digest of a thousand long names fits many times */
#define TEXT_ROOM 30000
#define CONTENT_ROOM 1900
#define ANSWER_MAX 4096

struct webhook {
    struct hfi_sink sink;
    struct hfi_scheduler *scheduler;
    struct hfi_transport *transport;
    const struct hf_sink_options *options;
    struct hfi_signing *signing; /* NULL: unsigned */
};

struct hfi_sink_try {
    struct webhook *webhook;
    struct hfi_attempt *attempt;
    struct hfi_timer timer;
    struct hfi_bytes body;
    char id[32]; /* what it is signed under */
    hfi_sink_fn done;
    void *user;
};

static void shorten(struct hfi_bytes *text, size_t room) {
    if (text->failed || text->length <= room)
        return;
    while (room > 0 && ((unsigned char)text->data[room] & 0xc0) == 0x80)
        room--; /* no half character */
    text->data[room] = '\0';
}

/* A chat's limit on `content` is 2,000 characters; `text` may be longer, and `causes` is whole. */
static void fill_text(const struct hf_sink_options *options, const struct hfi_alert *alert, const char *name,
                      size_t room, struct hfi_bytes *body) {
    struct hfi_bytes text;
    hfi_bytes_init(&text, BODY_MAX);
    if (hfi_render_fits(options->text, alert)) {
        hfi_render(&text, options->text, alert, HFI_PLACE_TEXT);
        shorten(&text, room);
    } else {
        hfi_alert_summary(&text, alert, room);
    }
    hfi_alert_json_field(body, name, text.data == NULL ? "" : text.data);
    body->failed = body->failed || text.failed;
    hfi_bytes_free(&text);
}

static void fill_body(const struct hf_sink_options *options, const struct hfi_alert *alert, struct hfi_bytes *body) {
    hfi_alert_json(body, alert);
    fill_text(options, alert, "text", TEXT_ROOM, body);
    fill_text(options, alert, "content", CONTENT_ROOM, body);
    hfi_bytes_text(body, "}");
}

static void free_try(struct hfi_sink_try *try) {
    try->webhook->scheduler->ops->disarm(try->webhook->scheduler, &try->timer);
    hfi_bytes_free(&try->body);
    hfi_free(try);
}

static void finish(struct hfi_sink_try *try, const char *error_type) {
    hfi_sink_fn done = try->done;
    void *user = try->user;
    free_try(try);
    done(error_type, NULL, user);
}

static void answered(const struct hfi_attempt_facts *facts, void *user) {
    struct hfi_sink_try *try = user;
    struct hfi_scheduler *scheduler = try->webhook->scheduler;
    struct hf_outcome outcome;
    hfi_classify_attempt(facts, scheduler->ops->wall(scheduler), false, &outcome);
    finish(try, outcome.kind == HF_OUTCOME_SUCCESS ? NULL : outcome.error_type);
}

static void out_of_time(struct hfi_timer *timer, void *user) {
    (void)timer;
    struct hfi_sink_try *try = user;
    struct hfi_transport *transport = try->webhook->transport;
    enum hf_stage stage;
    struct hfi_phases phases;
    transport->ops->cancel(transport, try->attempt, &stage, &phases);
    finish(try, "timeout.alert");
}

static int begin(struct webhook *webhook, struct hfi_sink_try *try) {
    static const struct hf_header headers[] = {{"Content-Type", "application/json"}, {"User-Agent", "holdfast"}};
    struct hfi_attempt_spec spec = {
        .url = webhook->options->url,
        .method = "POST",
        .headers = headers,
        .header_count = sizeof headers / sizeof *headers,
        .body = try->body.data,
        .body_length = try->body.length,
        .connect_timeout_ms = webhook->sink.budget_ms,
        .backstop_ms = webhook->sink.budget_ms + 30000,
        .response_limit = ANSWER_MAX,
        .deny_private = webhook->options->deny_private_networks,
        .signing = webhook->signing,
        .message_id = try->id,
    };
    struct hfi_scheduler *scheduler = webhook->scheduler;
    struct hf_mono until = hfi_mono_after_ms(scheduler->ops->mono(scheduler), webhook->sink.budget_ms);
    int code = scheduler->ops->arm(scheduler, &try->timer, until);
    return code != 0 ? code : webhook->transport->ops->start(webhook->transport, &spec, answered, try, &try->attempt);
}

static int send(struct hfi_sink *self, const struct hfi_alert *alert, hfi_sink_fn done, void *user,
                struct hfi_sink_try **out) {
    struct webhook *webhook = (struct webhook *)(void *)self;
    struct hfi_sink_try *try = hfi_alloc(sizeof *try);
    if (try == NULL)
        return HF_ENOMEM;
    try->webhook = webhook;
    try->done = done;
    try->user = user;
    hfi_timer_init(&try->timer, out_of_time, try);
    snprintf(try->id, sizeof try->id, "alert-%lld", (long long)alert->id);
    hfi_bytes_init(&try->body, BODY_MAX);
    fill_body(webhook->options, alert, &try->body);
    int code = try->body.failed ? HF_ENOMEM : begin(webhook, try);
    if (code != 0) {
        free_try(try);
        return code;
    }
    *out = try;
    return 0;
}

static void cancel(struct hfi_sink *self, struct hfi_sink_try *try) {
    struct webhook *webhook = (struct webhook *)(void *)self;
    enum hf_stage stage;
    struct hfi_phases phases;
    webhook->transport->ops->cancel(webhook->transport, try->attempt, &stage, &phases);
    free_try(try);
}

static void close_sink(struct hfi_sink *self) {
    struct webhook *webhook = (struct webhook *)(void *)self;
    hfi_signing_free(webhook->signing);
    hfi_free(webhook);
}

static const struct hfi_sink_ops webhook_ops = {send, cancel, close_sink};

int hfi_webhook_new(struct hfi_scheduler *scheduler, struct hfi_transport *transport,
                    const struct hf_sink_options *options, struct hfi_sink **sink, struct hf_error *error) {
    struct webhook *webhook = hfi_alloc(sizeof *webhook);
    if (webhook == NULL)
        return hfi_fail(error, HF_ENOMEM, options->name, NULL, "no memory");
    int code = options->signing_secret_count == 0 ? 0
                                                  : hfi_signing_new(options->signing_secrets, options->signing_secret_count,
                                                                    options->name, &webhook->signing, error);
    if (code != 0) {
        hfi_free(webhook);
        return code;
    }
    webhook->sink.ops = &webhook_ops;
    webhook->sink.at_once = HFI_SINK_AT_ONCE;
    webhook->scheduler = scheduler;
    webhook->transport = transport;
    webhook->options = options;
    *sink = &webhook->sink;
    return 0;
}
