/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_ALERT_H
#define HOLDFAST_ALERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "store.h"

HF_BEGIN

enum hf_sink_kind {
    HF_SINK_WEBHOOK = 0, /* one POST of JSON with `text` and `content`, error type only [S0.25] */
    HF_SINK_MAIL = 1,    /* one message by SMTP, with the error's message */
    HF_SINK_COMMAND = 2  /* a process with the alert as JSON on stdin, error type only unless `detail` */
};
HF_API const char *hf_sink_kind_name(int kind); /* never NULL */
enum hf_mail_tls {
    HF_MAIL_TLS_REQUIRED = 0,      /* smtp:// only with STARTTLS */
    HF_MAIL_TLS_OPPORTUNISTIC = 1, /* STARTTLS where it is offered; never with a password */
    HF_MAIL_TLS_NONE = 2
};

/*
 * Somebody who hears of every death. Copied. Storms collapse: the first death of a cause (fingerprint) is told at once,
 * those of the next collapse_ms in one summary at the end, and so on; at most 20 tries go out in a minute, and what had
 * to wait goes out in one digest. With collapse_ms 0 each death is a message of its own, without a pace.
 *
 * `subject`, `text` and the arguments of `command` may hold {type} {queue} {downstream} {error_type} {class} {job}
 * {dead_letter} {death_no} {executions} {correlation_id} {dead_at} {sink} {id} {deaths} and {summary}, the built-in text; mail, and
 * a command with `detail`, also {message}. A digest has its own text. A value cannot leave its place: no line break in a
 * header, no dash at the start of an argument, no quote in JSON. Since 0.1.
 */
struct hf_sink_options {
    uint32_t size;
    const char *name;       /* required: the sink's name in the store */
    int32_t kind;           /* hf_sink_kind */
    int64_t timeout_ms;     /* 10 s per try [S0.26] */
    int64_t collapse_ms;    /* 10 m */
    const char *text;       /* of webhooks and mails; NULL = built in */
    /* webhook */
    const char *url;        /* required; secret: never in logs, errors or the store */
    const char *const *signing_secrets; /* as of a downstream: signs as Standard Webhooks do */
    size_t signing_secret_count;
    bool deny_private_networks; /* connect to public addresses only */
    /* mail */
    const char *server;     /* required; smtp:// or smtps://, host and port */
    const char *from;       /* required; one plain address */
    const char *const *to;  /* required; plain addresses */
    size_t to_count;
    const char *user, *password; /* NULL: no AUTH; the password is secret */
    const char *subject;    /* NULL = built in */
    const char *ca_file;    /* NULL = the system's */
    int32_t tls;            /* hf_mail_tls */
    /* command */
    const char *const *command; /* required; absolute path and arguments, no shell */
    size_t command_length;
    bool detail;            /* may carry the error's message */
};
static inline void hf_sink_options_init(struct hf_sink_options *options) {
    memset(options, 0, sizeof *options);
    options->size = (uint32_t)sizeof *options;
    options->timeout_ms = 10000;
    options->collapse_ms = 600000;
}
/* Would a runner take it? 0, or HF_ECONFIG with what, why and how to mend it. Any thread. */
HF_API int hf_sink_check(const struct hf_sink_options *options, struct hf_error *error);
/*
 * Sends one alert that says it is a test, and waits for what comes of it: 0, or HF_EIO with the error type of the try.
 * No store is asked, nothing is retried. Blocks up to timeout_ms. Any thread but a loop's. Since 0.1.
 */
HF_API int hf_sink_test(const struct hf_sink_options *options, struct hf_error *error);

enum hf_alert_kind {
    HF_ALERT_ONE = 0,     /* tells of one death */
    HF_ALERT_SUMMARY = 1, /* of those that came of one cause in a window */
    HF_ALERT_DIGEST = 2   /* of all causes that had to wait for the pace */
};
enum hf_alert_state {
    HF_ALERT_UNSENT = 0,
    HF_ALERT_SENT = 1,
    HF_ALERT_UNDELIVERED = 2, /* given up after 7 days of trying, or of nodes without its sink */
    HF_ALERT_ATTACHED = 3,    /* goes out with another one */
    HF_ALERT_GONE = 4         /* of a message only: it ended, and went with its settled dead letter */
};
HF_API const char *hf_alert_kind_name(int kind);   /* never NULL */
HF_API const char *hf_alert_state_name(int state); /* never NULL */

/* One row: of one death and one sink. */
struct hf_alert_view {
    uint32_t size;
    int32_t state, kind;
    int32_t message_state; /* of the message that it goes out with: its own state unless it is attached */
    int64_t id, dead_id, job_id;
    int64_t message_id;    /* the row that it goes out with, or its own id */
    uint64_t deaths;       /* that its message tells of; 1 of an attached one. Of a digest: its own storm's alone */
    uint32_t tries;
    int64_t next_at_us;    /* of an unsent one: when it is tried; its lease while it is */
    int64_t ended_at_us;   /* 0: not yet */
    int64_t dead_at_us;
    const char *sink, *type, *error_type;
    const char *last_error; /* of the last try; "" none */
};
struct hf_alert_filter {
    uint32_t size;
    int32_t state;        /* -1 = any, the default */
    const char *sink;     /* NULL = any */
    int64_t dead_id;      /* 0 = any */
    int64_t after_id;     /* keyset cursor: ids below it (newest first); 0 = from the newest */
    uint32_t limit;       /* 100, at most 1000 */
};
static inline void hf_alert_filter_init(struct hf_alert_filter *filter) {
    memset(filter, 0, sizeof *filter);
    filter->size = (uint32_t)sizeof *filter;
    filter->state = -1;
    filter->limit = 100;
}
struct hf_alert_list;
/* Reads one page. Any thread but the loop's. Since 0.1. */
HF_API int hf_alert_list_open(struct hf_store *store, const struct hf_alert_filter *filter, struct hf_alert_list **list,
                              struct hf_error *error);
HF_API size_t hf_alert_list_count(const struct hf_alert_list *list);
HF_API const struct hf_alert_view *hf_alert_list_at(const struct hf_alert_list *list, size_t index);
HF_API int64_t hf_alert_list_next(const struct hf_alert_list *list); /* cursor; 0 at the end */
HF_API void hf_alert_list_free(struct hf_alert_list *list);

HF_END

#endif
