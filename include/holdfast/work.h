/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_WORK_H
#define HOLDFAST_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"
#include "error.h"
#include "http.h"
#include "outcome.h"

#define HF_CHECKPOINT_MAX 65536    /* bytes */
#define HF_PROGRESS_TEXT_MAX 200   /* bytes; longer is cut on a code point */

HF_BEGIN

/* One execution of a job, as its handler sees it: a fresh one each time [S1.18]. Lives until the handler ended it. */
struct hf_work;

/*
 * What a handler returns: only what one of the hf_work_ok … functions gave it. Anything else, 0 included, is a
 * failure of type `handler.unknown_result` [S0.1].
 */
enum hf_result {
    HF_RESULT_OK = 0x4801,
    HF_RESULT_FAILED = 0x4802,
    HF_RESULT_PERMANENT = 0x4803,
    HF_RESULT_SNOOZE = 0x4804,
    HF_RESULT_CANCEL = 0x4805,
    HF_RESULT_UNREADABLE = 0x4806
};

/*
 * Runs on a worker thread (sync) with all signals blocked, never twice at once for one execution. It must return: a
 * pthread_exit is a failure of type `handler.thread_exit`, and a C++ exception that leaves it ends the process through
 * std::terminate, so its jobs lapse as crashes; catch it and say hf_work_failed.
 */
typedef enum hf_result (*hf_handler_fn)(struct hf_work *work, void *user);

/*
 * Begins the work on the loop thread and returns at once; no blocking function may be called in it. Later any thread, or
 * the handler itself, ends it with hf_work_finish. One that never does is treated like a sync handler that never returns.
 */
typedef void (*hf_async_handler_fn)(struct hf_work *work, void *user);

/* ------------------------------------------------------------------ what it is about: any thread while the work lives */

/* Texts and bytes belong to the work; texts are never NULL. */
HF_API int64_t hf_work_job(const struct hf_work *work);
HF_API const char *hf_work_type(const struct hf_work *work);
HF_API const char *hf_work_queue(const struct hf_work *work);
HF_API const char *hf_work_labels(const struct hf_work *work); /* of the type */
HF_API const char *hf_work_key(const struct hf_work *work); /* stable over executions, requeue and redrive [S1.17] */
/* `<job>.<epoch>`: another one for each execution. For logs; never a key for a downstream [S3.17]. Since 0.1. */
HF_API const char *hf_work_execution_id(const struct hf_work *work);
HF_API uint32_t hf_work_execution(const struct hf_work *work); /* 1 first [S1.7] */
HF_API uint32_t hf_work_max_executions(const struct hf_work *work); /* in force [S2.11] */
HF_API const void *hf_work_payload(const struct hf_work *work, size_t *length);
/* What the payload is, as enqueued: old and new versions of one type are told apart by it [S1.29]. Since 0.1. */
HF_API const char *hf_work_content_type(const struct hf_work *work);
HF_API const char *hf_work_tags(const struct hf_work *work);
HF_API const char *hf_work_correlation_id(const struct hf_work *work);
HF_API const char *hf_work_trace_context(const struct hf_work *work);
/* The last checkpoint of the executions before this one; NULL and 0: none. Since 0.1. */
HF_API const void *hf_work_last_checkpoint(const struct hf_work *work, size_t *length);
HF_API int64_t hf_work_remaining_ms(const struct hf_work *work); /* of the execution timeout; INT64_MAX without one */
/* When it is over, on the monotonic clock (CLOCK_MONOTONIC), ms; INT64_MAX without a limit. Since 0.1. */
HF_API int64_t hf_work_deadline_ms(const struct hf_work *work);
/* It should end soon: its limit is over, somebody cancelled it, the node drains, or the job is not its own any more. */
HF_API bool hf_work_is_cancelled(const struct hf_work *work);
/*
 * In a job that a death made: that dead letter, with detail; its payload is also the work's. Free it. Blocks for a read of the
 * store. HF_ENOENT: the job tells of no death, or of one that was pruned; HF_EDEADLK: on the loop thread. Since 0.1.
 */
struct hf_dead;
HF_API int hf_work_death(const struct hf_work *work, struct hf_dead **dead, struct hf_error *error);
HF_API struct hf_client *hf_work_client(const struct hf_work *work);

/* ------------------------------------------------------------------ what it says meanwhile: any thread until it ended */

/* Feeds the type's heartbeat_timeout; costs an atomic store. So do hf_work_progress and hf_work_checkpoint. Since 0.1. */
HF_API void hf_work_heartbeat(struct hf_work *work);
/*
 * How far it is: a number of its own choice and a text (NULL: none), sanitised and cut. Shown by `holdfast job show`. Never
 * waits: several in a row become one write, the last one is written with the end. 0, or HF_ESTALE: the job is not its
 * own any more. Since 0.1.
 */
HF_API int hf_work_progress(struct hf_work *work, int64_t n, const char *text);
/*
 * What the next execution begins with, should this one not end well: durable when it returns 0. Replaces the one before;
 * length 0: none. Blocks for a commit. HF_ETOOBIG: more than HF_CHECKPOINT_MAX; HF_ESTALE: the job is not its own any
 * more, so stop; HF_EDEADLK: on the loop thread; HF_EIO, HF_EBUSY, HF_ENOSPC: not stored. Since 0.1.
 */
HF_API int hf_work_checkpoint(struct hf_work *work, const void *bytes, size_t length);

/*
 * The same without waiting, for asynchronous handlers: `bytes` are copied, and `done` (NULL: nobody asks) hears once on the loop
 * thread what became of them, as hf_work_checkpoint says it, perhaps after the work has ended: so it gets no work. Several are
 * stored in their order, and before the end that follows them. 0: begun, `done` will come; HF_ETOOBIG, HF_ESTALE, HF_ENOMEM:
 * not begun, it will not. Since 0.1.
 */
typedef void (*hf_checkpoint_fn)(int code, void *user);
HF_API int hf_work_checkpoint_start(struct hf_work *work, const void *bytes, size_t length, hf_checkpoint_fn done, void *user);

/* Why an execution should end. */
enum hf_stop { HF_STOP_TIMEOUT = 1, HF_STOP_CANCEL, HF_STOP_DRAIN, HF_STOP_LOST };
typedef void (*hf_stop_fn)(struct hf_work *work, enum hf_stop why, void *user);
/*
 * Tells once, on the loop thread, that the work should end soon; at once if that is so already. It may call
 * hf_work_finish. Replaces the one before; NULL: none. Not called after the work has ended: hf_work_finish, and the
 * return of a sync handler, wait for one that runs on another thread, so hold no lock there that it takes. Since 0.1.
 */
HF_API void hf_work_on_stop(struct hf_work *work, hf_stop_fn stop, void *user);

/* hf_call with the job's idempotency key and the total cut to what is left of the execution timeout. */
HF_API int hf_work_call(struct hf_work *work, const struct hf_request *request, struct hf_response **response,
                        struct hf_error *error);

/* One such call, whose outcome becomes that of the execution, as it is: what most handlers return. */
HF_API enum hf_result hf_work_forward(struct hf_work *work, const struct hf_request *request);

/* ------------------------------------------------------------------ how it ended */

/* Each returns what the handler has to return, or to finish with; the last one before that counts. */
/* `result` is copied, at most 64 KiB: more is a permanent failure `result.too_big`. */
HF_API enum hf_result hf_work_ok(struct hf_work *work, const void *result, size_t length);
HF_API enum hf_result hf_work_end_as(struct hf_work *work, const struct hf_outcome *outcome); /* success, failure, rejected: as it is */
HF_API enum hf_result hf_work_failed(struct hf_work *work, const char *error_type, const char *message);
HF_API enum hf_result hf_work_permanent(struct hf_work *work, const char *error_type, const char *message);
/*
 * It cannot read the payload, and nothing was done: this job alone is quarantined, with a dead letter of class poison and
 * type `payload.unreadable`, as if it had never run (the execution is not counted); it runs again only when a person lets it.
 * Once a call of this execution has reached the wire it did run, and is dead, class poison, instead. Since 0.1.
 */
HF_API enum hf_result hf_work_unreadable(struct hf_work *work, const char *message);
/*
 * After one of the failures above: an error inside it. never_retry also looks at the type of a single cause; two are
 * ambiguous and match nothing [S2.14]. Returns the result again. Since 0.1.
 */
HF_API enum hf_result hf_work_cause(struct hf_work *work, const char *error_type);
HF_API enum hf_result hf_work_snooze(struct hf_work *work, int64_t for_ms); /* no failure counted; 0 = now */
HF_API enum hf_result hf_work_snooze_until(struct hf_work *work, int64_t at_us); /* µs UTC; past = now. Since 0.1. */
HF_API enum hf_result hf_work_cancel(struct hf_work *work, const char *reason);

/*
 * Ends the work of an asynchronous handler, from any thread; it is gone afterwards, its texts and bytes too. 0; HF_ESTALE:
 * its job was lapsed before, so nothing of it was recorded; HF_ESTATE: finished before, nothing changed (this is only
 * told for the last 256 works of a runner: later the pointer may be another one's); HF_EINVAL: not asynchronous. Since 0.1.
 */
HF_API int hf_work_finish(struct hf_work *work, enum hf_result result);

HF_END

#endif
