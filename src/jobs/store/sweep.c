/* SPDX-License-Identifier: MIT */
/*
 * What other hands do to many jobs, a page at a time: lapse those of a dead owner, end those past their time,
 * quarantine those nobody can run, and cancel one. Each goes through hfi_transition and the fence. Must never take more
 * than its limit in one transaction. Writer thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "jobs/hands.h"
#include "jobs/store/internal.h"

/* A page of rows, each one block: read whole before any of them changes. */
struct page {
    struct hfi_job **jobs;
    size_t count;
};

static void free_page(struct page *page) {
    for (size_t i = 0; i < page->count; i++)
        hfi_free(page->jobs[i]);
    hfi_free(page->jobs);
}

/* Reads what the bound statement finds, `limit` rows at most. 0 or a fault. */
static int read_page(struct hfi_sqlite *store, sqlite3_stmt *statement, uint32_t limit, struct page *page) {
    struct hfi_job row;
    *page = (struct page){.jobs = hfi_alloc_array((size_t)limit + 1, sizeof *page->jobs)};
    if (!page->jobs)
        hfi_sqlite_no_memory(store);
    while (store->fault == 0 && page->count < limit && hfi_sql_row(store, statement)) {
        if (hfi_sqlite_read_job(store, statement, &row) != 0)
            break;
        if (!(page->jobs[page->count] = hfi_job_copy(&row)))
            hfi_sqlite_no_memory(store);
        else
            page->count++;
    }
    hfi_sql_done(statement);
    return store->fault;
}

/* One job through `hand`; a death leaves a note. True: it changed. */
static bool change_one(struct hfi_sqlite *store, const struct hfi_rulebook *book, struct hfi_hand *hand,
                       const struct hfi_job *job, struct hfi_dead_note *notes, size_t *note_count) {
    const char *const *sinks = NULL;
    struct hfi_change change;
    int64_t dead_id;
    size_t sink_count = book ? hfi_rulebook_sinks(book, &sinks) : 0;
    if (book)
        hfi_hand_rules(hand, book, job);
    int code = hfi_sqlite_change(store, job, &hand->event, &hand->rules, sinks, sink_count, &change, &dead_id);
    if (code == 0 && change.has_death && !store->same_death)
        hfi_dead_note_fill(&notes[(*note_count)++], dead_id, &change);
    return code == 0; /* HF_ESTATE: a state this program does not know; left alone */
}

/* A lost job that is not what its node took it for any more is left alone. */
static bool is_meant(const struct hfi_op_sweep *op, const struct hfi_job *job) {
    return op->only == 0 || (job->id == op->only && job->epoch == op->epoch);
}

/* It was heard of since it was judged: what it has now it may have claimed anew, and run. */
static bool has_beaten(struct hfi_sqlite *store, const struct hfi_op_sweep *op) {
    sqlite3_stmt *statement = op->only == 0 ? hfi_sql(store, HFI_SQL_NODE_BEAT_MOVED) : NULL;
    if (!statement)
        return false;
    sqlite3_bind_int64(statement, 1, op->owner);
    sqlite3_bind_int64(statement, 2, op->beat);
    bool beaten = hfi_sql_row(store, statement);
    hfi_sql_done(statement);
    return beaten;
}

int hfi_sqlite_op_sweep(struct hfi_sqlite *store, struct hfi_op_sweep *op) {
    struct page page;
    struct hfi_hand hand;
    op->lapsed = 0;
    op->finished = false;
    op->notes = NULL;
    op->note_count = 0;
    op->lives = has_beaten(store, op);
    if (op->lives || store->fault != 0)
        return store->fault;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_RUNNING_OF);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->owner);
    sqlite3_bind_int64(statement, 2, op->only != 0 ? op->only - 1 : op->after_id);
    sqlite3_bind_int64(statement, 3, op->limit);
    if (read_page(store, statement, op->limit, &page) == 0 && page.count > 0 &&
        !(op->notes = hfi_alloc_array(page.count, sizeof *op->notes)))
        hfi_sqlite_no_memory(store);
    hfi_hand_lapse(&hand, op);
    for (size_t i = 0; i < page.count && store->fault == 0 && is_meant(op, page.jobs[i]); i++) {
        op->after_id = page.jobs[i]->id;
        op->lapsed += change_one(store, op->book, &hand, page.jobs[i], op->notes, &op->note_count);
    }
    if (store->fault == 0 && page.count < op->limit && op->only == 0) {
        op->finished = true;
        hfi_sqlite_node_gone(store, op->owner);
    }
    free_page(&page);
    return store->fault;
}

int hfi_sqlite_op_expire(struct hfi_sqlite *store, struct hfi_op_expire *op) {
    struct page page;
    struct hfi_hand hand;
    size_t none = 0;
    op->ended = 0;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_EXPIRED);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->now.us);
    sqlite3_bind_int64(statement, 2, op->limit);
    read_page(store, statement, op->limit, &page);
    hfi_hand_expire(&hand, op);
    for (size_t i = 0; i < page.count && store->fault == 0; i++)
        op->ended += change_one(store, NULL, &hand, page.jobs[i], NULL, &none);
    free_page(&page);
    return store->fault;
}

/* One lane, one type: has another node got it by now? */
static bool type_is_had(struct hfi_sqlite *store, const struct hfi_op_quarantine *op) {
    const struct hfi_lane_texts *lane = hfi_sqlite_lane_texts(store, op->lane);
    sqlite3_stmt *statement = lane ? hfi_sql(store, HFI_SQL_NODE_TYPE_HAD) : NULL;
    if (!statement)
        return false;
    sqlite3_bind_text(statement, 1, lane->type, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, op->node);
    bool had = hfi_sql_row(store, statement);
    hfi_sql_done(statement);
    return had;
}

int hfi_sqlite_op_quarantine(struct hfi_sqlite *store, struct hfi_op_quarantine *op) {
    struct page page;
    struct hfi_hand hand;
    op->ended = 0;
    op->notes = NULL;
    op->note_count = 0;
    if (type_is_had(store, op) || store->fault != 0)
        return store->fault;
    sqlite3_stmt *statement = hfi_sql(store, HFI_SQL_LANE_DUE);
    if (!statement)
        return store->fault;
    sqlite3_bind_int64(statement, 1, op->lane);
    sqlite3_bind_int64(statement, 2, op->now.us);
    sqlite3_bind_int64(statement, 3, op->limit);
    if (read_page(store, statement, op->limit, &page) == 0 && page.count > 0 &&
        !(op->notes = hfi_alloc_array(page.count, sizeof *op->notes)))
        hfi_sqlite_no_memory(store);
    hfi_hand_quarantine(&hand, op);
    for (size_t i = 0; i < page.count && store->fault == 0; i++)
        op->ended += change_one(store, op->book, &hand, page.jobs[i], op->notes, &op->note_count);
    if (store->fault == 0 && page.count < op->limit)
        hfi_sqlite_lane_exhausted(store, op->lane);
    free_page(&page);
    return store->fault;
}

static int cancel(struct hfi_sqlite *store, struct hfi_op_cancel *op, const struct hfi_job *job) {
    struct hfi_hand hand;
    size_t none = 0;
    hfi_hand_cancel(&hand, op, job);
    op->requested = hand.event.kind == HFI_EVENT_CANCEL_ASKED; /* its node hears of it at its next beat */
    if (!change_one(store, NULL, &hand, job, NULL, &none) && store->fault == 0)
        return hfi_fail(op->op.error, HF_ESTATE, "job", NULL, "%lld is %s already", (long long)op->id,
                        hf_job_state_name(job->state));
    if (store->fault == 0)
        hfi_sqlite_audit(store, op->now, op->actor, "job.cancel", "job", op->id, op->reason, NULL);
    return store->fault;
}

int hfi_sqlite_op_cancel(struct hfi_sqlite *store, struct hfi_op_cancel *op) {
    struct hfi_job *job;
    op->requested = false;
    int code = hfi_sqlite_load(store, op->id, &job);
    if (code == HF_ENOENT)
        return hfi_fail(op->op.error, code, "job", NULL, "%lld does not exist", (long long)op->id);
    if (code == 0)
        code = cancel(store, op, job);
    hfi_free(job);
    return code;
}
