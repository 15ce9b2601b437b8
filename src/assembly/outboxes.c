/* SPDX-License-Identifier: MIT */
/*
 * The relays of a runner: one thread for each outbox, and their news brought to the loop. Must never post to a loop that
 * is closed: the relays are joined before. The loop thread, but for news and counts.
 */
#include "assembly/outboxes.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "jobs/store/outbox/outbox.h"
#include "jobs/store/outbox/relay.h"

#define START_AGAIN_MS 1000 /* a thread could not be made: there may be room for it later */
#define TRIES 10            /* so long its outbox is not taken for empty */

struct hfi_outboxes {
    struct hfi_scheduler *loop;
    struct hfi_runner *node;
    struct hfi_task task;
    struct hfi_timer again;
    _Atomic unsigned tries; /* of starting those that have no thread; 0 all have one */
    _Atomic bool posted, stopped;
    size_t count;
    struct hfi_relay *relays[];
};

static void told(struct hfi_task *task, void *user) {
    (void)task;
    struct hfi_outboxes *outboxes = user;
    atomic_store(&outboxes->posted, false);
    hfi_runner_relayed(outboxes->node);
}

static void changed(void *user) {
    struct hfi_outboxes *outboxes = user;
    if (!atomic_exchange(&outboxes->posted, true))
        outboxes->loop->ops->post(outboxes->loop, &outboxes->task);
}

/* The options at `index`. An older caller's are shorter, so are the steps from one to the next. */
static void take_options(const struct hf_runner_options *options, size_t index, struct hf_outbox_options *outbox) {
    uint32_t step = options->outboxes->size;
    hf_outbox_options_init(outbox);
    memcpy(outbox, (const char *)options->outboxes + index * step, step < sizeof *outbox ? step : sizeof *outbox);
}

/* Two relays on one file would each make a job of the same row, under the names of their sources. */
static int check_file(const struct hf_runner_options *options, size_t index, const char *store,
                      struct hf_error *error) {
    struct hf_outbox_options outbox, other;
    take_options(options, index, &outbox);
    if (outbox.file == NULL)
        return 0; /* said by the relay */
    const char *path = hfi_outbox_path(outbox.file);
    if (*store != '\0' && hf_outbox_same_file(path, store))
        return hfi_fail(error, HF_EEXIST, outbox.name, "name the application's own file", "%s is the store's file", path);
    for (size_t i = 0; i < index; i++) {
        take_options(options, i, &other);
        if (other.file != NULL && hf_outbox_same_file(path, other.file))
            return hfi_fail(error, HF_EEXIST, outbox.name, "one outbox is enough for a file",
                            "%s is the file of the outbox %s", path, other.name != NULL ? other.name : "before it");
    }
    return 0;
}

static int make(struct hfi_outboxes *outboxes, const struct hf_runner_options *options, struct hf_store *store,
                struct hfi_rulebook *book, struct hf_error *error) {
    struct hf_store_info info;
    hf_store_info_init(&info);
    int code = store->port->ops->look(store->port, &info);
    for (size_t i = 0; code == 0 && i < options->outbox_count; i++) {
        struct hf_outbox_options outbox;
        take_options(options, i, &outbox);
        struct hfi_relay_options relay = {.outbox = &outbox,
                                          .writer = store->writer,
                                          .book = book,
                                          .payload_max = store->port->options.payload_max,
                                          .changed = changed,
                                          .user = outboxes};
        code = hfi_relay_new(&relay, &outboxes->relays[i], error);
        outboxes->count += code == 0;
        if (code == 0)
            code = check_file(options, i, info.path, error);
    }
    return code;
}

int hfi_outboxes_new(const struct hf_runner_options *options, struct hf_store *store, struct hfi_rulebook *book,
                     struct hfi_outboxes **out, struct hf_error *error) {
    *out = NULL;
    if (options->outbox_count == 0)
        return 0;
    if (options->outboxes == NULL || options->outboxes->size < sizeof options->outboxes->size)
        return hfi_fail(error, HF_EINVAL, "outboxes", "call hf_outbox_options_init first", "their size is not set");
    struct hfi_outboxes *outboxes = hfi_alloc(sizeof *outboxes + options->outbox_count * sizeof(struct hfi_relay *));
    if (outboxes == NULL)
        return hfi_fail(error, HF_ENOMEM, "outboxes", NULL, "no memory");
    outboxes->task.run = told;
    outboxes->task.user = outboxes;
    int code = make(outboxes, options, store, book, error);
    if (code != 0) {
        hfi_outboxes_free(outboxes);
        return code;
    }
    *out = outboxes;
    return 0;
}

/* Each that has no thread yet; one that gets none keeps nobody else from it, and is tried again. */
static void start_all(struct hfi_timer *timer, void *user) {
    struct hfi_outboxes *outboxes = user;
    struct hfi_scheduler *loop = outboxes->loop;
    size_t missing = 0;
    for (size_t i = 0; i < outboxes->count && !atomic_load(&outboxes->stopped); i++) {
        const char *name;
        hfi_relay_pulse(outboxes->relays[i], &name);
        int code = hfi_relay_start(outboxes->relays[i]);
        missing += code != 0;
        if (code != 0)
            hfi_log(HF_LOG_ERROR, "outbox.no_thread", HFI_S("outbox", name), HFI_S("why", hf_strerror(code)), NULL);
    }
    atomic_store(&outboxes->tries, missing > 0 ? atomic_load(&outboxes->tries) + 1 : 0);
    if (atomic_load(&outboxes->tries) == TRIES)
        hfi_runner_relayed(outboxes->node); /* it may be idle now */
    if (missing > 0 && loop->ops->arm(loop, timer, hfi_mono_after_ms(loop->ops->mono(loop), START_AGAIN_MS)) != 0)
        hfi_log(HF_LOG_ERROR, "outbox.not_started", HFI_I("outboxes", missing), NULL);
}

void hfi_outboxes_start(struct hfi_outboxes *outboxes, struct hfi_scheduler *loop, struct hfi_runner *node) {
    if (outboxes == NULL)
        return;
    outboxes->loop = loop;
    outboxes->node = node;
    hfi_timer_init(&outboxes->again, start_all, outboxes);
    start_all(&outboxes->again, outboxes);
}

int hfi_outboxes_watch(const struct hfi_outboxes *outboxes, struct hfi_watchdog *dog) {
    int code = 0;
    for (size_t i = 0; outboxes != NULL && i < outboxes->count && code == 0; i++) {
        const char *name;
        const struct hfi_pulse *pulse = hfi_relay_pulse(outboxes->relays[i], &name);
        code = hfi_watchdog_add(dog, name, pulse);
    }
    return code;
}

void hfi_outboxes_renew(struct hfi_outboxes *outboxes, struct hfi_rulebook *book) {
    for (size_t i = 0; outboxes != NULL && i < outboxes->count; i++)
        hfi_relay_renew(outboxes->relays[i], book);
}

void hfi_outboxes_stop(struct hfi_outboxes *outboxes) {
    if (outboxes == NULL)
        return;
    atomic_store(&outboxes->stopped, true);
    for (size_t i = 0; i < outboxes->count; i++)
        hfi_relay_stop(outboxes->relays[i]);
}

void hfi_outboxes_join(struct hfi_outboxes *outboxes) {
    hfi_outboxes_stop(outboxes); /* all of them before the first is waited for */
    if (outboxes != NULL && outboxes->loop != NULL)
        outboxes->loop->ops->disarm(outboxes->loop, &outboxes->again);
    for (size_t i = 0; outboxes != NULL && i < outboxes->count; i++)
        hfi_relay_join(outboxes->relays[i]);
}

void hfi_outboxes_free(struct hfi_outboxes *outboxes) {
    if (outboxes == NULL)
        return;
    hfi_outboxes_join(outboxes);
    for (size_t i = 0; i < outboxes->count; i++)
        hfi_relay_free(outboxes->relays[i]);
    hfi_free(outboxes);
}

bool hfi_outboxes_busy(void *user) {
    const struct hfi_outboxes *outboxes = user;
    struct hfi_relay_view view;
    unsigned tries = outboxes != NULL && !atomic_load(&outboxes->stopped) ? atomic_load(&outboxes->tries) : 0;
    if (tries > 0 && tries < TRIES)
        return true;
    for (size_t i = 0; outboxes != NULL && !atomic_load(&outboxes->stopped) && i < outboxes->count; i++) {
        hfi_relay_look(outboxes->relays[i], &view);
        if (view.busy)
            return true;
    }
    return false;
}

void hfi_outboxes_count(const struct hfi_outboxes *outboxes, int64_t now_us, struct hf_runner_counts *counts) {
    struct hfi_relay_view view;
    for (size_t i = 0; outboxes != NULL && i < outboxes->count; i++) {
        hfi_relay_look(outboxes->relays[i], &view);
        counts->relayed += view.relayed;
        counts->poisoned += view.poisoned;
        int64_t age = view.oldest_us > 0 && view.oldest_us < now_us ? (now_us - view.oldest_us) / 1000 : 0;
        if (age > counts->outbox_oldest_ms)
            counts->outbox_oldest_ms = age;
    }
}
