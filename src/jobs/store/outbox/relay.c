/* SPDX-License-Identifier: MIT */
/*
 * The relay of one outbox: batch after batch, put, buried, deleted, in this order, because only what the store has
 * committed may be deleted [S2.33]. Must never hold the application's locks while it waits for the store, nor let a row
 * keep the ones behind it (I33). A thread of its own.
 */
#include "jobs/store/outbox/relay.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "jobs/failure.h"
#include "jobs/store/outbox/outbox.h"

#define BATCH 256          /* rows of one commit, and of one hold of the application's write lock */
#define SELF_MS 10         /* news that come right after a look that found nothing wait so long */
#define REFUSED_MAX_MS 5000
#define SAY_AGAIN 60       /* failures of one kind between two Warnings */

struct hfi_relay {
    struct hfi_relay_options options;
    char *name, *path, *source;
    int64_t poll_ms;
    pthread_t thread;
    bool started;
    int stop_fd;
    _Atomic bool stopping;
    pthread_mutex_t lock;       /* of book */
    struct hfi_rulebook *book;  /* one reference; NULL none */
    /* its thread's: */
    struct hfi_rulebook *rules; /* the book of the batch at hand */
    struct hfi_outbox_file file;
    int watch_fd;           /* -1: polling alone */
    struct hfi_outbox_row *rows;
    struct hfi_put *puts;   /* room for a batch */
    struct hfi_op_poison *letters;
    size_t *places;         /* whose each of these is */
    size_t count;
    int64_t after;          /* the last row that stays: the next batch is read behind it */
    int64_t stuck_to;       /* the last row that was said to stay */
    int64_t seen_us;        /* when the first row that waits was seen first; 0 none waits */
    char said[200];         /* the last failure in the log */
    unsigned failures;      /* in a row */
    int64_t wait_ms;        /* before the next look, unless there is news */
    /* any thread's: */
    _Atomic uint64_t relayed, poisoned;
    _Atomic int64_t oldest_us;
    _Atomic bool busy;
    struct hfi_pulse pulse;
};

/* ------------------------------------------------------------------ made and freed */

int hfi_relay_new(const struct hfi_relay_options *options, struct hfi_relay **out, struct hf_error *error) {
    const struct hf_outbox_options *outbox = options->outbox;
    *out = NULL;
    int code = hfi_name_check("outbox", outbox->name, HFI_NAME_MAX, error);
    if (code == 0 && (!outbox->file || !*hfi_outbox_path(outbox->file)))
        code = hfi_fail(error, HF_EINVAL, outbox->name, "name the application's file", "the outbox has no file");
    if (code == 0 && outbox->source)
        code = hfi_name_check("outbox source", outbox->source, HFI_NAME_MAX, error);
    if (code == 0 && outbox->poll_ms < 1)
        code = hfi_fail(error, HF_EINVAL, outbox->name, "1 ms at least", "poll_ms is %lld", (long long)outbox->poll_ms);
    if (code != 0)
        return code;
    struct hfi_relay *relay = hfi_alloc(sizeof *relay);
    if (!relay)
        return hfi_fail(error, HF_ENOMEM, "outbox", NULL, "no memory");
    relay->options = *options;
    relay->options.outbox = NULL;
    pthread_mutex_init(&relay->lock, NULL);
    relay->book = options->book ? hfi_rulebook_hold(options->book) : NULL;
    relay->poll_ms = outbox->poll_ms < INT32_MAX ? outbox->poll_ms : INT32_MAX;
    relay->watch_fd = -1;
    relay->wait_ms = relay->poll_ms;
    relay->busy = true;
    relay->after = relay->stuck_to = INT64_MIN;
    relay->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    relay->name = hfi_strdup(outbox->name);
    relay->path = hfi_strdup(hfi_outbox_path(outbox->file));
    relay->source = hfi_strdup(outbox->source ? outbox->source : outbox->name);
    relay->rows = hfi_alloc_array(BATCH, sizeof *relay->rows);
    relay->puts = hfi_alloc_array(BATCH, sizeof *relay->puts);
    relay->letters = hfi_alloc_array(BATCH, sizeof *relay->letters);
    relay->places = hfi_alloc_array(BATCH, sizeof *relay->places);
    if (relay->stop_fd < 0 || !relay->name || !relay->path || !relay->source || !relay->rows || !relay->puts || !relay->letters || !relay->places) {
        hfi_relay_free(relay);
        return hfi_fail(error, HF_ENOMEM, "outbox", NULL, "no memory or descriptor");
    }
    relay->file.path = relay->path;
    *out = relay;
    return 0;
}

void hfi_relay_stop(struct hfi_relay *relay) {
    uint64_t one = 1;
    atomic_store(&relay->stopping, true);
    ssize_t written = write(relay->stop_fd, &one, sizeof one);
    (void)written; /* full means that it is readable, which is all we want */
}

void hfi_relay_join(struct hfi_relay *relay) {
    if (!relay->started)
        return;
    hfi_relay_stop(relay);
    pthread_join(relay->thread, NULL);
    relay->started = false;
}

void hfi_relay_free(struct hfi_relay *relay) {
    if (!relay)
        return;
    hfi_relay_join(relay);
    if (relay->stop_fd >= 0)
        close(relay->stop_fd);
    hfi_rulebook_free(relay->book);
    pthread_mutex_destroy(&relay->lock);
    hfi_free(relay->places);
    hfi_free(relay->letters);
    hfi_free(relay->puts);
    hfi_free(relay->rows);
    hfi_free(relay->source);
    hfi_free(relay->path);
    hfi_free(relay->name);
    hfi_free(relay);
}

void hfi_relay_renew(struct hfi_relay *relay, struct hfi_rulebook *book) {
    pthread_mutex_lock(&relay->lock);
    struct hfi_rulebook *before = relay->book;
    relay->book = hfi_rulebook_hold(book);
    pthread_mutex_unlock(&relay->lock);
    hfi_rulebook_free(before);
}

static void take_rules(struct hfi_relay *relay) {
    pthread_mutex_lock(&relay->lock);
    relay->rules = relay->book ? hfi_rulebook_hold(relay->book) : NULL;
    pthread_mutex_unlock(&relay->lock);
}

void hfi_relay_look(const struct hfi_relay *relay, struct hfi_relay_view *view) {
    view->relayed = atomic_load(&relay->relayed);
    view->poisoned = atomic_load(&relay->poisoned);
    view->oldest_us = atomic_load(&relay->oldest_us);
    view->busy = atomic_load(&relay->busy);
}

const struct hfi_pulse *hfi_relay_pulse(const struct hfi_relay *relay, const char **name) {
    *name = relay->name;
    return &relay->pulse;
}

/* ------------------------------------------------------------------ one batch */

static void step(struct hfi_relay *relay, enum hfi_relay_step step) {
    hfi_pulse_beat(&relay->pulse);
    if (relay->options.at)
        relay->options.at(step, relay->options.user);
}

static void tell(struct hfi_relay *relay) {
    if (relay->options.changed)
        relay->options.changed(relay->options.user);
}

static void drop_batch(struct hfi_relay *relay) {
    for (size_t i = 0; i < relay->count; i++)
        hfi_outbox_row_free(&relay->rows[i]);
    relay->count = 0;
}

/* It would be refused at every try; all else may pass. */
static bool for_good(int code) {
    return code == HF_EINVAL || code == HF_ETEXT || code == HF_ETOOBIG || code == HF_EEXIST;
}

/* A row alone; refused for good it becomes poison. 0, or why it cannot be now. */
static int put_alone(struct hfi_relay *relay, struct hfi_outbox_row *row, struct hf_error *error) {
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT, .error = error}, .items = &row->put, .count = 1};
    hf_error_init(error);
    int code = hfi_writer_do(relay->options.writer, &op.op);
    if (!for_good(code))
        return code;
    if (error->code == 0)
        hfi_fail(error, code, relay->name, NULL, "%s", hf_strerror(code));
    return hfi_outbox_condemn(row, error);
}

static int put_jobs(struct hfi_relay *relay, struct hf_error *error) {
    size_t count = 0;
    for (size_t i = 0; i < relay->count; i++) {
        if (relay->rows[i].poison)
            continue;
        relay->places[count] = i;
        relay->puts[count++] = relay->rows[i].put;
    }
    struct hfi_op_put op = {.op = {.kind = HFI_OP_PUT, .error = error}, .items = relay->puts, .count = count};
    int code = count > 0 ? hfi_writer_do(relay->options.writer, &op.op) : 0;
    bool apart = for_good(code);
    if (code != 0 && !apart)
        return code;
    for (size_t i = 0; i < count && apart; i++) {
        code = put_alone(relay, &relay->rows[relay->places[i]], error);
        if (code != 0)
            return code;
    }
    for (size_t i = 0; i < count; i++)
        if (!relay->rows[relay->places[i]].poison)
            atomic_fetch_add(&relay->relayed, 1);
    step(relay, HFI_RELAY_PUT);
    return 0;
}

static void log_death(const struct hfi_relay *relay, const struct hfi_outbox_row *row, int64_t dead_id) {
    const struct hfi_job *job = &row->put.job;
    hfi_log(HF_LOG_ERROR, "job.dead", HFI_I("dead_letter", dead_id), HFI_S("type", job->type),
            HFI_S("class", hf_death_class_name(HF_DEATH_POISON)), HFI_S("error_type", row->poison->death.error_type),
            HFI_S("outbox", relay->name), HFI_S("source", job->source), HFI_S("source_message_id", job->source_message_id),
            HFI_S("correlation_id", job->correlation_id), NULL);
}

static void nothing(struct hfi_op *op, void *user) {
    (void)op;
    (void)user;
}

static void prepare_letter(struct hfi_relay *relay, struct hfi_outbox_row *row, struct hfi_op_poison *op) {
    memset(op, 0, sizeof *op);
    op->op.kind = HFI_OP_POISON;
    op->op.done = nothing;
    op->job = &row->put.job;
    op->death = &row->poison->death;
    op->sink_count = relay->rules ? hfi_rulebook_sinks(relay->rules, &op->sinks) : 0;
    op->forwards = relay->rules ? hfi_rulebook_forwards(relay->rules) : NULL;
    op->now = hfi_writer_wall(relay->options.writer);
    row->poison->death.fingerprint = hfi_fingerprint(&row->put.job, &row->poison->death);
}

/* What became of a letter. One that is refused for good stays in the outbox, and those behind it go on (I33). */
static int letter_ended(struct hfi_relay *relay, struct hfi_outbox_row *row, const struct hfi_op_poison *op) {
    row->stuck = for_good(op->op.code);
    bool told = row->stuck && row->rowid <= relay->stuck_to; /* at an earlier look */
    if (row->stuck && !told)
        relay->stuck_to = row->rowid;
    if (row->stuck && !told)
        hfi_log(HF_LOG_ERROR, "outbox.stuck", HFI_S("outbox", relay->name), HFI_I("row", row->rowid),
                HFI_S("error", hf_error_name(op->op.code)), HFI_S("type", row->put.job.type),
                HFI_S("message", row->poison->death.message), NULL);
    if (op->op.code != 0)
        return row->stuck ? 0 : op->op.code;
    atomic_fetch_add(&relay->poisoned, 1);
    if (!op->existed)
        log_death(relay, row, op->dead_id);
    return 0;
}

/* One group for all letters: the writer takes them in order, so the last one is the end of all. */
static int bury(struct hfi_relay *relay, struct hf_error *error) {
    size_t count = 0;
    int code = 0;
    for (size_t i = 0; i < relay->count; i++)
        if (relay->rows[i].poison)
            relay->places[count++] = i;
    for (size_t i = 0; i < count; i++) {
        prepare_letter(relay, &relay->rows[relay->places[i]], &relay->letters[i]);
        if (i + 1 < count)
            hfi_writer_submit(relay->options.writer, &relay->letters[i].op);
    }
    if (count > 0)
        hfi_writer_do(relay->options.writer, &relay->letters[count - 1].op);
    for (size_t i = 0; i < count; i++) {
        int ended = letter_ended(relay, &relay->rows[relay->places[i]], &relay->letters[i]);
        code = code != 0 ? code : ended;
    }
    if (count > 0)
        tell(relay);
    if (code != 0)
        return hfi_fail(error, code, "dead letters", NULL, "the store refuses them: %s", hf_strerror(code));
    step(relay, HFI_RELAY_BURIED);
    return 0;
}

/* Reads a batch; nameless rows are named and read again. */
static int read_batch(struct hfi_relay *relay, struct hf_error *error) {
    const struct hfi_outbox_judge judge = {.book = relay->rules,
                                           .source = relay->source,
                                           .payload_max = relay->options.payload_max,
                                           .now = hfi_writer_wall(relay->options.writer)};
    int64_t oldest = 0;
    for (int try = 0; try < 2; try++) {
        bool nameless = false;
        int code = hfi_outbox_open(&relay->file, error);
        if (code == 0)
            code = hfi_outbox_read(&relay->file, &judge, relay->after, relay->rows, BATCH, &relay->count, &oldest, error);
        if (code != 0)
            return code;
        for (size_t i = 0; i < relay->count; i++)
            nameless = nameless || relay->rows[i].nameless;
        if (!nameless)
            break;
        code = hfi_outbox_name(&relay->file, relay->rows, relay->count, error);
        drop_batch(relay);
        if (code != 0)
            return code;
    }
    if (relay->after != INT64_MIN)
        return 0; /* one that stays is older */
    if (relay->count == 0)
        relay->seen_us = 0;
    else if (relay->seen_us == 0)
        relay->seen_us = judge.now.us;
    bool told = oldest > 0 && oldest <= judge.now.us; /* a clock that is ahead tells nothing */
    atomic_store(&relay->oldest_us, relay->count == 0 ? 0 : told ? oldest : relay->seen_us);
    return 0;
}

/* Those that stay are passed over until the end, so that they keep nobody (I33); then it begins with them again. */
static void pass_stuck(struct hfi_relay *relay, size_t *gone) {
    for (size_t i = 0; i < relay->count; i++) {
        *gone += !relay->rows[i].stuck;
        if (relay->rows[i].stuck)
            relay->after = relay->rows[i].rowid;
    }
    hfi_log(HF_LOG_DEBUG, "outbox.relayed", HFI_S("outbox", relay->name), HFI_I("rows", *gone), NULL);
}

/* 0 and whether there may be more, or why it did not get on. */
static int relay_batch(struct hfi_relay *relay, bool *more, struct hf_error *error) {
    size_t gone = 0;
    take_rules(relay);
    int code = read_batch(relay, error);
    if (code == 0 && relay->count > 0) {
        atomic_store(&relay->busy, true);
        step(relay, HFI_RELAY_READ);
        code = put_jobs(relay, error);
        if (code == 0)
            code = bury(relay, error);
        if (code == 0)
            code = hfi_outbox_delete(&relay->file, relay->rows, relay->count, error);
        if (code == 0) {
            step(relay, HFI_RELAY_DELETED);
            pass_stuck(relay, &gone);
        }
    }
    *more = code == 0 && relay->count > 0;
    if (!*more)
        relay->after = INT64_MIN;
    drop_batch(relay);
    hfi_rulebook_free(relay->rules);
    return code;
}

/* ------------------------------------------------------------------ waiting */

static void forget_watch(struct hfi_relay *relay) {
    if (relay->watch_fd >= 0)
        close(relay->watch_fd);
    relay->watch_fd = -1;
}

/* The folder is watched: the file, its log and its journal come and go there. Nothing of the database is opened for it. */
static void begin_watch(struct hfi_relay *relay) {
    char folder[4096];
    if (relay->watch_fd >= 0)
        return;
    const char *slash = strrchr(relay->path, '/');
    size_t length = slash ? (size_t)(slash - relay->path) : 0;
    if (length >= sizeof folder)
        return;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(length > 0 ? length : 1) : 1, slash ? relay->path : ".");
    relay->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (relay->watch_fd >= 0 && inotify_add_watch(relay->watch_fd, folder, IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE) < 0)
        forget_watch(relay);
}

/* Takes what was told; is any of it about the file? */
static bool heard(struct hfi_relay *relay) {
    _Alignas(struct inotify_event) char events[4096];
    const char *slash = strrchr(relay->path, '/');
    const char *base = slash ? slash + 1 : relay->path;
    bool ours = false;
    ssize_t length;
    while (relay->watch_fd >= 0 && (length = read(relay->watch_fd, events, sizeof events)) > 0) {
        for (char *at = events; at < events + length;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
            ours = ours || event->mask & IN_Q_OVERFLOW || (event->len > 0 && strncmp(event->name, base, strlen(base)) == 0);
            if (event->mask & IN_IGNORED) { /* the folder is gone */
                forget_watch(relay);
                return true;
            }
            at += sizeof *event + event->len;
        }
    }
    return ours;
}

/* Sleeps up to `ms`, less when the end is near, or with `listen` when the file is written: then it is true. */
static bool wait_for_news(struct hfi_relay *relay, int64_t ms, bool listen) {
    struct pollfd files[2] = {{.fd = relay->stop_fd, .events = POLLIN}, {.fd = relay->watch_fd, .events = POLLIN}};
    int count = listen && relay->watch_fd >= 0 ? 2 : 1;
    hfi_pulse_rest(&relay->pulse);
    int64_t end_us = hfi_add(hfi_mono_now().us, hfi_ms_to_us(ms));
    int ready = poll(files, (nfds_t)count, (int)ms);
    while (ready > 0 && count == 2 && files[1].revents != 0 && files[0].revents == 0 && !heard(relay)) {
        files[1].fd = relay->watch_fd;
        if (relay->watch_fd < 0)
            return true;
        int64_t left_us = hfi_sub(end_us, hfi_mono_now().us); /* a neighbour's: the sleep is as long as it was to be */
        ready = left_us > 0 ? poll(files, (nfds_t)count, (int)hfi_us_to_ms_up(left_us)) : 0;
    }
    return ready > 0 && count == 2 && files[1].revents != 0;
}

/* A write is told before its transaction can be seen, and syncing takes what it takes: after news it looks again soon,
 * then ever later. */
static void wait_for_rows(struct hfi_relay *relay) {
    if (wait_for_news(relay, SELF_MS, false) || atomic_load(&relay->stopping))
        return;
    bool news = wait_for_news(relay, relay->wait_ms, true);
    relay->wait_ms = news ? SELF_MS : relay->wait_ms * 2;
    if (relay->wait_ms > relay->poll_ms)
        relay->wait_ms = relay->poll_ms;
}

static int64_t refused_wait(const struct hfi_relay *relay) {
    int64_t wait = relay->poll_ms;
    for (unsigned i = 1; i < relay->failures && wait < REFUSED_MAX_MS; i++)
        wait *= 2;
    int64_t most = relay->poll_ms > REFUSED_MAX_MS ? relay->poll_ms : REFUSED_MAX_MS;
    return wait < most ? wait : most;
}

/* A Warning when it is another reason than before, and now and then while it lasts. A short wait for locks is none. */
static void failed(struct hfi_relay *relay, int code, const struct hf_error *error) {
    char text[sizeof relay->said];
    hf_error_print(error, text, sizeof text);
    relay->failures += relay->failures < UINT32_MAX;
    if (code == HF_EBUSY && relay->failures < 4)
        return;
    if (strcmp(text, relay->said) != 0 || relay->failures % SAY_AGAIN == 0)
        hfi_log(HF_LOG_WARNING, "outbox.failed", HFI_S("outbox", relay->name), HFI_S("error", hf_error_name(code)),
                HFI_S("why", text), HFI_I("failures", relay->failures), NULL);
    memcpy(relay->said, text, sizeof text);
}

static void recovered(struct hfi_relay *relay) {
    if (relay->said[0])
        hfi_log(HF_LOG_INFO, "outbox.recovered", HFI_S("outbox", relay->name), HFI_I("failures", relay->failures), NULL);
    relay->failures = 0;
    relay->said[0] = '\0';
}

static void become_idle(struct hfi_relay *relay) {
    if (atomic_exchange(&relay->busy, false))
        tell(relay);
}

static void *run(void *user) {
    struct hfi_relay *relay = user;
    struct hf_error error;
    bool more;
    while (!atomic_load(&relay->stopping)) {
        hf_error_init(&error);
        hfi_pulse_beat(&relay->pulse);
        begin_watch(relay);
        int code = relay_batch(relay, &more, &error);
        if (code != 0)
            failed(relay, code, &error);
        else
            recovered(relay);
        if (more)
            continue;
        if (code == 0 || code == HF_ENOENT || code == HF_EINVAL) /* no outbox, or none that can be read */
            become_idle(relay);
        if (code == 0)
            wait_for_rows(relay);
        else
            wait_for_news(relay, refused_wait(relay), false);
    }
    hfi_outbox_close(&relay->file);
    forget_watch(relay);
    hfi_pulse_rest(&relay->pulse); /* it is over: no beat is due */
    return NULL;
}

int hfi_relay_start(struct hfi_relay *relay) {
    sigset_t all, before;
    if (relay->started)
        return 0;
    atomic_store(&relay->busy, true);
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&relay->thread, NULL, run, relay);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    relay->started = failed == 0;
    if (failed != 0)
        atomic_store(&relay->busy, false); /* nobody would ever say that it is idle */
    return failed == 0 ? 0 : HF_ENOMEM;
}
