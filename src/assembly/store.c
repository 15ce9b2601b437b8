/* SPDX-License-Identifier: MIT */
/*
 * The public store: opened by its URL, closed, looked at. Must never choose a store by itself: no URL is an error
 * [S3.22]. Any thread but the loop's and the writer's.
 */
#include "holdfast/store.h"

#include <inttypes.h>
#include <string.h>

#include "assembly/store_calls.h"
#include "base/alloc.h"
#include "base/text.h"
#include "jobs/store/sqlite.h"
#include "sim/memory_store.h"

#define PAYLOAD_CEILING (64u << 20)

int hfi_given_options(const char *what, void *whole, uint32_t whole_size, const void *given, struct hf_error *error) {
    uint32_t size = whole_size;
    if (!given)
        return 0;
    memcpy(&size, given, sizeof size);
    if (size < sizeof size)
        return hfi_fail(error, HF_EINVAL, what, "call its init function first", "its size is not set");
    memcpy(whole, given, size < whole_size ? size : whole_size);
    memcpy(whole, &whole_size, sizeof whole_size);
    return 0;
}

int hfi_given_text(const char *what, const char **text, size_t max, bool required, struct hf_error *error) {
    if (!*text)
        *text = "";
    size_t length = strlen(*text);
    if (length == 0 && required)
        return hfi_fail(error, HF_EINVAL, what, "say who or why: it is kept on the record", "missing");
    if (length > max)
        return hfi_fail(error, HF_ETOOBIG, what, "shorten it", "%zu bytes, at most %zu fit", length, max);
    if (!hfi_text_valid(*text, length))
        return hfi_fail(error, HF_ETEXT, what, "send it as UTF-8", "not valid UTF-8");
    return 0;
}

int hfi_store_may_block(struct hf_store *store, const char *what, struct hf_error *error) {
    if (hfi_may_block() && !(store && hfi_writer_on_thread(store->writer)))
        return 0;
    return hfi_fail(error, HF_EDEADLK, what, "call it from a thread of your own",
                    "it waits for the disk, and this is the loop's or the writer's thread");
}

struct hf_wall hfi_store_now(const struct hf_store *store) {
    return hfi_writer_wall(store->writer);
}

int hfi_store_do(struct hf_store *store, struct hfi_op *op, const char *what, struct hf_error *error) {
    struct hf_error details;
    int code = hfi_store_may_block(store, what, error);
    if (code != 0)
        return code;
    hf_error_init(&details);
    op->error = &details;
    code = hfi_writer_do(store->writer, op);
    if (code == 0)
        return 0;
    if (details.code == 0)
        return hfi_fail(error, code, what, NULL, "%s", hf_strerror(code));
    hfi_fail(error, code, details.what, details.fix, "%s", details.why);
    if (error && error->size >= offsetof(struct hf_error, line))
        error->native = details.native;
    if (error && error->size >= offsetof(struct hf_error, column) && details.line != 0)
        error->line = details.line;
    return code;
}

static int open_port(const char *url, const struct hf_store_options *options, struct hfi_store **port,
                     struct hf_error *error) {
    static const char sqlite[] = "sqlite:", memory[] = "memory:";
    if (strcmp(url, memory) == 0) {
        int code = hfi_memory_store_new(options, port);
        return code == 0 ? 0 : hfi_fail(error, code, "store", NULL, "%s", hf_strerror(code));
    }
    if (strncmp(url, sqlite, sizeof sqlite - 1) != 0) {
        char shown[200]; /* it may hold a password */
        hf_url_redact(url, shown, sizeof shown);
        return hfi_fail(error, HF_EINVAL, "store URL", "use sqlite:PATH or memory:", "\"%s\" names no kind of store",
                        shown);
    }
    if (url[sizeof sqlite - 1] == '\0')
        return hfi_fail(error, HF_EINVAL, "store URL", "write sqlite:PATH", "the path of the file is missing");
    return hfi_sqlite_store_open(url + sizeof sqlite - 1, options, port, error);
}

static int check_options(const struct hf_store_options *given, struct hf_store_options *options,
                         struct hf_error *error) {
    hf_store_options_init(options);
    int code = hfi_given_options("store options", options, (uint32_t)sizeof *options, given, error);
    if (code == 0 && options->payload_max > PAYLOAD_CEILING)
        code = hfi_fail(error, HF_EINVAL, "payload_max", "store big things elsewhere and pass their id",
                        "%" PRIu32 " bytes, at most %u", options->payload_max, PAYLOAD_CEILING);
    return code;
}

int hf_store_open(const char *url, const struct hf_store_options *given, struct hf_store **store,
                  struct hf_error *error) {
    struct hf_store_options options;
    if (!store)
        return hfi_fail(error, HF_EINVAL, "store", NULL, "no place to put it");
    *store = NULL;
    if (!url || !url[0])
        return hfi_fail(error, HF_EINVAL, "store URL", "set it, as sqlite:PATH; no file is chosen for you", "empty");
    int code = hfi_store_may_block(NULL, "hf_store_open", error);
    if (code == 0)
        code = check_options(given, &options, error);
    if (code != 0)
        return code;
    struct hf_store *made = hfi_alloc(sizeof *made);
    if (!made)
        return hfi_fail(error, HF_ENOMEM, "store", NULL, "%s", hf_strerror(HF_ENOMEM));
    code = open_port(url, &options, &made->port, error);
    if (code == 0 && (code = hfi_writer_new(made->port, &made->writer)) != 0) {
        made->port->ops->close(made->port);
        hfi_fail(error, code, "store", "free some memory or threads", "its writer thread could not start");
    }
    if (code != 0) {
        hfi_free(made);
        return code;
    }
    *store = made;
    return 0;
}

void hf_store_close(struct hf_store *store) {
    if (!store)
        return;
    hfi_writer_close(store->writer);
    store->port->ops->close(store->port);
    hfi_free(store);
}

/* Gives the caller as much of `whole` as its struct has room for; it begins with its size. */
static void give(void *to, uint32_t size, const void *whole, uint32_t whole_size) {
    memcpy(to, whole, size < whole_size ? size : whole_size);
    memcpy(to, &size, sizeof size);
}

int hf_store_look(struct hf_store *store, struct hf_store_info *info) {
    struct hf_store_info whole;
    if (!store || !info || info->size < sizeof info->size)
        return HF_EINVAL;
    int code = hfi_store_may_block(store, "hf_store_look", NULL);
    if (code == 0)
        code = store->port->ops->look(store->port, &whole);
    if (code == 0)
        give(info, info->size, &whole, (uint32_t)sizeof whole);
    return code;
}

int hf_store_count_jobs(struct hf_store *store, struct hf_job_counts *counts, struct hf_error *error) {
    struct hf_job_counts whole;
    if (!store || !counts || counts->size < sizeof counts->size)
        return hfi_fail(error, HF_EINVAL, "job counts", "call hf_job_counts_init first", "its size is not set");
    int code = hfi_store_may_block(store, "hf_store_count_jobs", error);
    if (code == 0)
        code = store->port->ops->count_jobs(store->port, &whole, error);
    if (code == 0)
        give(counts, counts->size, &whole, (uint32_t)sizeof whole);
    return code;
}

static int check_filter(const struct hf_job_filter *filter, struct hf_error *error) {
    if (filter->after_id < 0)
        return hfi_fail(error, HF_EINVAL, "cursor", "take the one that an earlier page gave", "%lld is none",
                        (long long)filter->after_id);
    if (filter->limit > 1000)
        return hfi_fail(error, HF_EINVAL, "limit", "go on behind the page for more", "%" PRIu32 ", at most 1000",
                        filter->limit);
    if (filter->created_since_us < 0)
        return hfi_fail(error, HF_EINVAL, "created_since_us", "times are µs UTC since 1970", "negative");
    if (filter->shown > HF_JOB_SHOWN_READY || filter->shown < -1)
        return hfi_fail(error, HF_EINVAL, "shown", NULL, "%" PRId32 " is nothing a job is shown as", filter->shown);
    if (filter->shown >= 0 && filter->state >= 0 && filter->state != HF_JOB_PENDING)
        return hfi_fail(error, HF_EINVAL, "shown", "leave the state out", "only pending jobs are %s, but %s ones are asked for",
                        hf_job_shown_name(filter->shown), hf_job_state_name(filter->state));
    return 0;
}

int hf_store_list_jobs(struct hf_store *store, const struct hf_job_filter *given, struct hf_job_list **list,
                       struct hf_error *error) {
    struct hf_job_filter filter;
    *list = NULL;
    hf_job_filter_init(&filter);
    int code = hfi_store_may_block(store, "hf_store_list_jobs", error);
    if (code == 0)
        code = hfi_given_options("job filter", &filter, (uint32_t)sizeof filter, given, error);
    if (code == 0)
        code = check_filter(&filter, error);
    return code != 0 ? code : store->port->ops->list_jobs(store->port, &filter, list, error);
}

int hf_store_get_job(struct hf_store *store, int64_t id, struct hf_job **job, struct hf_error *error) {
    *job = NULL;
    int code = hfi_store_may_block(store, "hf_store_get_job", error);
    return code != 0 ? code : store->port->ops->get_job(store->port, id, job, error);
}

int hf_store_list_queues(struct hf_store *store, struct hf_queue_list **list, struct hf_error *error) {
    *list = NULL;
    int code = hfi_store_may_block(store, "hf_store_list_queues", error);
    return code != 0 ? code : store->port->ops->list_queues(store->port, list, error);
}

int hf_store_list_limits(struct hf_store *store, struct hf_limit_list **list, struct hf_error *error) {
    *list = NULL;
    int code = hfi_store_may_block(store, "hf_store_list_limits", error);
    return code != 0 ? code : store->port->ops->list_limits(store->port, list, error);
}

int hf_forward_list_open(struct hf_store *store, struct hf_forward_list **list, struct hf_error *error) {
    *list = NULL;
    int code = hfi_store_may_block(store, "hf_forward_list_open", error);
    return code != 0 ? code : store->port->ops->list_forwards(store->port, list, error);
}

int hf_store_list_downstreams(struct hf_store *store, struct hf_downstream_list **list, struct hf_error *error) {
    *list = NULL;
    int code = hfi_store_may_block(store, "hf_store_list_downstreams", error);
    return code != 0 ? code : store->port->ops->list_downstreams(store->port, list, error);
}

int hf_store_doctor(struct hf_store *store, hf_doctor_fn report, void *user, struct hf_error *error) {
    if (!report)
        return hfi_fail(error, HF_EINVAL, "report", NULL, "no function to tell");
    int code = hfi_store_may_block(store, "hf_store_doctor", error);
    return code != 0 ? code : store->port->ops->doctor(store->port, report, user, error);
}
