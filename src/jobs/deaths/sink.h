/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_DEATHS_SINK_H
#define HFI_JOBS_DEATHS_SINK_H

#include <stdbool.h>

#include "base/scheduler.h"
#include "holdfast/alert.h"
#include "jobs/store.h"
#include "resilience/transport.h"

/*
 * Where an alert goes. Up to `at_once` tries may be on their way; each ends within its own budget of time. A sink passes
 * no breaker and never retries: the sender's durable rows do (J3). Loop thread.
 */
struct hfi_sink;
struct hfi_sink_try; /* of the sink */

/*
 * How a try ended: NULL = delivered, else a stable error type without secrets. `had`: what the next try finds in its alert;
 * NULL: as it was. Runs once, never inside send.
 */
typedef void (*hfi_sink_fn)(const char *error_type, const char *had, void *user);

struct hfi_sink_ops {
    /* 0, or HF_E… when nothing began (no callback). `alert` is borrowed for the call. */
    int (*send)(struct hfi_sink *self, const struct hfi_alert *alert, hfi_sink_fn done, void *user,
                struct hfi_sink_try **try);
    void (*cancel)(struct hfi_sink *self, struct hfi_sink_try *try); /* no callback after it */
    void (*close)(struct hfi_sink *self); /* no try is left */
};
#define HFI_SINK_AT_ONCE 8
struct hfi_sink {
    const struct hfi_sink_ops *ops;
    char name[64];
    int64_t budget_ms; /* of one try */
    size_t at_once;    /* at most HFI_SINK_AT_ONCE */
};

/* The options, whole, with what is wrong and how to mend it: HF_ECONFIG. */
int hfi_sink_check(const struct hf_sink_options *options, struct hf_error *error);
/* `options` live as long as the sink. `transport` is for webhooks alone. */
int hfi_sink_new(struct hfi_scheduler *scheduler, struct hfi_transport *transport, const struct hf_sink_options *options,
                 struct hfi_sink **sink, struct hf_error *error);

typedef int (*hfi_sink_new_fn)(struct hfi_scheduler *scheduler, struct hfi_transport *transport,
                               const struct hf_sink_options *options, struct hfi_sink **sink, struct hf_error *error);

/* One POST with `text` and `content`, error type only, never its message [S0.25]. */
int hfi_webhook_new(struct hfi_scheduler *scheduler, struct hfi_transport *transport,
                    const struct hf_sink_options *options, struct hfi_sink **sink, struct hf_error *error);
/* One message by SMTP, on a thread of its own. */
int hfi_mail_new(struct hfi_scheduler *scheduler, const struct hf_sink_options *options, struct hfi_sink **sink,
                 struct hf_error *error);
/* One process, with the alert on stdin. */
int hfi_command_new(struct hfi_scheduler *scheduler, const struct hf_sink_options *options, struct hfi_sink **sink,
                    struct hf_error *error);

#endif
