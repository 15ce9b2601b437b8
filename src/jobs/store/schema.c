/* SPDX-License-Identifier: MIT */
/*
 * The tables of the SQLite store. A step that was released is never edited: a change is a new step. Times are int64 µs
 * UTC; 0 or NULL = none. State names live in code only.
 */
#include "jobs/store/schema.h"

#include <stddef.h>

/*
 * `jobs` holds what changes, narrow, because a claim and an outcome each rewrite the row; what never changes (payload,
 * keys, context) is in `job_specs`, with a row only when there is something to say. Short payloads stay in `jobs`.
 * Job ids come from meta.next_job, never reused (I88): one write per transaction, where AUTOINCREMENT is one per row.
 */
static const char version_1_jobs[] =
    "CREATE TABLE meta(key TEXT NOT NULL PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;"
    "CREATE TABLE counts(state INTEGER PRIMARY KEY, jobs INTEGER NOT NULL) STRICT;"
    "CREATE TABLE policies("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, max_executions INTEGER NOT NULL, jitter_permille INTEGER NOT NULL,"
    " waits_ms TEXT NOT NULL, walk INTEGER NOT NULL,"
    " UNIQUE(max_executions, jitter_permille, waits_ms)) STRICT;"
    /* walk: the last one that found it in use. Ids are never used again: runners and caches may know an old one. */
    "CREATE TABLE lanes("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, type TEXT NOT NULL, downstream TEXT NOT NULL,"
    " breaker_key TEXT NOT NULL, limit_key TEXT NOT NULL, alone INTEGER NOT NULL, next_due_us INTEGER NOT NULL,"
    " top_priority INTEGER NOT NULL, walk INTEGER NOT NULL," /* top_priority: of what is pending, at least; see lane.h */
    " UNIQUE(queue, type, downstream, breaker_key, limit_key, alone)) STRICT;"
    "CREATE INDEX lanes_due ON lanes(next_due_us);"
    "CREATE TABLE jobs("
    " id INTEGER PRIMARY KEY,"
    " state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 31),"
    " priority INTEGER NOT NULL, lane INTEGER NOT NULL, run_at_us INTEGER NOT NULL, epoch INTEGER NOT NULL,"
    " owner INTEGER, executions INTEGER NOT NULL, failures INTEGER NOT NULL, started_at_us INTEGER,"
    " finished_at_us INTEGER, snoozes INTEGER, crashes INTEGER, give_backs INTEGER, deaths INTEGER,"
    " created_at_us INTEGER NOT NULL, expires_at_us INTEGER, max_executions INTEGER, execution_timeout_ms INTEGER,"
    " policy_id INTEGER, marks INTEGER, root_id INTEGER, parent_id INTEGER, cancel_requested_at_us INTEGER, crash_window_us INTEGER,"
    " waiting_since_us INTEGER, progress INTEGER, unique_states INTEGER, unique_scope TEXT, reason TEXT, error_class TEXT, error_type TEXT,"
    " error_message TEXT, cancel_by TEXT, cancel_reason TEXT, has_spec INTEGER NOT NULL, payload BLOB,"
    " progress_text TEXT, result BLOB) STRICT;"
    "CREATE INDEX jobs_due ON jobs(lane, priority DESC, run_at_us) WHERE state = 0;"
    /* with its lane: what runs is counted by limit key and by queue from this index alone */
    "CREATE INDEX jobs_running ON jobs(owner, id, lane) WHERE state = 2;"
   "CREATE UNIQUE INDEX jobs_unique ON jobs(unique_scope) WHERE unique_scope IS NOT NULL AND (unique_states >> state) & 1;"
    "CREATE INDEX jobs_expires ON jobs(expires_at_us) WHERE state < 2 AND expires_at_us > 0;"
    "CREATE INDEX jobs_odd ON jobs(state) WHERE state = 1 OR state > 3;"
    "CREATE TABLE job_specs("
    " id INTEGER PRIMARY KEY, idempotency_key TEXT, source TEXT, source_message_id TEXT, correlation_id TEXT,"
    " trace_context TEXT, tags TEXT, content_type TEXT, payload BLOB) STRICT;"
    /* Apart, because an UPDATE of `jobs` would rewrite it. Only rows that were claimed before can have one. */
    "CREATE TABLE checkpoints(job_id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;"
    "CREATE INDEX specs_correlation ON job_specs(correlation_id) WHERE correlation_id IS NOT NULL;"
    "CREATE INDEX specs_message ON job_specs(source_message_id) WHERE source_message_id IS NOT NULL;"
    "CREATE TABLE job_tags(tag TEXT NOT NULL, job_id INTEGER NOT NULL, PRIMARY KEY(tag, job_id)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE deps(parent INTEGER NOT NULL, child INTEGER NOT NULL, on_end INTEGER NOT NULL,"
    " PRIMARY KEY(parent, child)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX deps_child ON deps(child);"
    /* Jobs that ended, or began anew, whose children with ids above after_child are still to be looked at. */
    "CREATE TABLE releases(parent INTEGER PRIMARY KEY, after_child INTEGER NOT NULL) STRICT;"
    /* One row per ownership of a job that ended; epoch orders them whatever the clocks did. Error text apart. */
    "CREATE TABLE history("
    " job_id INTEGER NOT NULL, epoch INTEGER NOT NULL, ended_at_us INTEGER NOT NULL, event INTEGER NOT NULL,"
    " execution INTEGER NOT NULL, started_at_us INTEGER, next_run_at_us INTEGER, node INTEGER, attempts INTEGER,"
    " retries INTEGER, resolve_us INTEGER, connect_us INTEGER, tls_us INTEGER, first_byte_us INTEGER, total_us INTEGER,"
    " breaker INTEGER, state INTEGER, PRIMARY KEY(job_id, epoch, ended_at_us, event)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE history_errors("
    " job_id INTEGER NOT NULL, epoch INTEGER NOT NULL, ended_at_us INTEGER NOT NULL, event INTEGER NOT NULL,"
    " error_class TEXT, error_type TEXT, rule TEXT, message TEXT,"
    " PRIMARY KEY(job_id, epoch, ended_at_us, event)) STRICT, WITHOUT ROWID;";

static const char version_1_deaths[] =
    "CREATE TABLE dead_letters("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, job_id INTEGER, death_no INTEGER NOT NULL DEFAULT 1,"
    " status INTEGER NOT NULL DEFAULT 0, death_class INTEGER NOT NULL DEFAULT 0, quarantined INTEGER NOT NULL DEFAULT 0,"
    " source TEXT, source_message_id TEXT, type TEXT NOT NULL, queue TEXT, downstream TEXT, breaker_key TEXT,"
    " limit_key TEXT, priority INTEGER NOT NULL DEFAULT 0, content_type TEXT, policy_id INTEGER, max_executions INTEGER,"
    " execution_timeout_ms INTEGER, executions INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0,"
    " executions_allowed INTEGER, root_id INTEGER, idempotency_key TEXT, unique_key TEXT, correlation_id TEXT,"
    " trace_context TEXT, tags TEXT, error_class TEXT, error_type TEXT, error_message TEXT, detail TEXT, rule TEXT,"
    " cause TEXT, node TEXT, fingerprint TEXT, job_created_at_us INTEGER, dead_at_us INTEGER NOT NULL, payload BLOB,"
    " settled_at_us INTEGER, settled_by TEXT, settled_reason TEXT, new_job_id INTEGER, new_job_outcome TEXT,"
    " payload_cut INTEGER NOT NULL DEFAULT 0, task_id INTEGER, origin TEXT, schema TEXT) STRICT;"
    "CREATE UNIQUE INDEX dead_once ON dead_letters(job_id, death_no) WHERE job_id IS NOT NULL;"
    "CREATE UNIQUE INDEX dead_message ON dead_letters(source, source_message_id) WHERE job_id IS NULL"
    " AND origin IS NULL;"
    /* Imported ones: `<store uuid>-<id>` of where they died. */
    "CREATE UNIQUE INDEX dead_origin ON dead_letters(origin) WHERE origin IS NOT NULL;"
    "CREATE INDEX dead_status ON dead_letters(status);"
    "CREATE INDEX dead_settled ON dead_letters(settled_at_us) WHERE status > 0;"
    "CREATE INDEX dead_fingerprint ON dead_letters(fingerprint, dead_at_us) WHERE status = 0;"
    "CREATE INDEX dead_task ON dead_letters(task_id) WHERE task_id IS NOT NULL;"
    "CREATE INDEX dead_successor ON dead_letters(new_job_id) WHERE new_job_id IS NOT NULL;"
    "CREATE TABLE redrives("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, state INTEGER NOT NULL, next_at_us INTEGER NOT NULL, after_id INTEGER NOT NULL,"
    " redriven INTEGER NOT NULL, refused INTEGER NOT NULL, full_at_us INTEGER NOT NULL, ended_at_us INTEGER, note TEXT,"
    " succeeded INTEGER NOT NULL, failed INTEGER NOT NULL, cancelled INTEGER NOT NULL, upper_id INTEGER NOT NULL,"
    " total INTEGER NOT NULL, canary INTEGER NOT NULL, stop_permille INTEGER NOT NULL, rate_per_s REAL NOT NULL,"
    " new_key INTEGER NOT NULL, death_class INTEGER NOT NULL, since_us INTEGER NOT NULL, type TEXT, queue TEXT,"
    " error_type TEXT, fingerprint TEXT, actor TEXT NOT NULL, reason TEXT, created_at_us INTEGER NOT NULL,"
    " force INTEGER NOT NULL) STRICT;"
    "CREATE INDEX redrives_ended ON redrives(ended_at_us) WHERE state > 0;"
    "CREATE INDEX redrives_running ON redrives(next_at_us) WHERE state = 0;"
    /* Where deaths went besides their alerts: handlers and forwarders. outcome: how that job ended; NULL: not yet. */
    "CREATE TABLE forwards("
    " dead_id INTEGER NOT NULL, name TEXT NOT NULL, job_id INTEGER NOT NULL, outcome TEXT, PRIMARY KEY(dead_id, name))"
    " STRICT, WITHOUT ROWID;"
    "CREATE INDEX forwards_job ON forwards(job_id);"
    "CREATE TABLE forward_counts("
    " name TEXT NOT NULL PRIMARY KEY, taken INTEGER NOT NULL, forwarded INTEGER NOT NULL, failed INTEGER NOT NULL)"
    " STRICT, WITHOUT ROWID;";

static const char version_1_alerts[] =
    /* One per death and sink. lead: its storm's summary, itself when it leads; digest: the same of a digest. */
    "CREATE TABLE alerts("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, dead_id INTEGER NOT NULL, sink TEXT NOT NULL,"
    " state INTEGER NOT NULL DEFAULT 0," /* 0 to be sent, 1 sent, 2 undelivered, 3 goes with another one */
    " next_at_us INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0, owner INTEGER, epoch INTEGER NOT NULL DEFAULT 0,"
    " ended_at_us INTEGER, error_type TEXT, lead INTEGER, digest INTEGER, others INTEGER NOT NULL DEFAULT 0,"
    " last_try_us INTEGER, tried_us INTEGER, had TEXT, UNIQUE(dead_id, sink)) STRICT;" /* deaths/patience.h; had: the sink's */
    "CREATE INDEX alerts_due ON alerts(sink, next_at_us) WHERE state = 0;"
    "CREATE INDEX alerts_fresh ON alerts(sink, next_at_us) WHERE state = 0 AND tries = 0;"
    "CREATE INDEX alerts_digest ON alerts(digest) WHERE digest IS NOT NULL;"
    "CREATE INDEX alerts_undelivered ON alerts(id) WHERE state = 2;"
    "CREATE TABLE alert_sinks("
    " sink TEXT NOT NULL PRIMARY KEY, collapse_us INTEGER NOT NULL, pace BLOB, held INTEGER NOT NULL DEFAULT 0,"
    " absent_us INTEGER, looked_us INTEGER)" /* while no live node has it: deaths/patience.h */
    " STRICT, WITHOUT ROWID;"
    "CREATE TABLE storms("
    " sink TEXT NOT NULL, fingerprint TEXT NOT NULL, until_us INTEGER NOT NULL, lead INTEGER,"
    " PRIMARY KEY(sink, fingerprint)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX storms_lead ON storms(lead) WHERE lead IS NOT NULL;"
    "CREATE INDEX storms_over ON storms(until_us) WHERE lead IS NULL;";

static const char version_1_nodes[] =
    /* Rows stay a while after the node is gone, for the names in histories. */
    "CREATE TABLE nodes("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, host TEXT NOT NULL, boot TEXT NOT NULL,"
    " pid INTEGER NOT NULL, beat INTEGER NOT NULL, joined_at_us INTEGER NOT NULL, seen_at_us INTEGER NOT NULL,"
    " gone INTEGER NOT NULL DEFAULT 0) STRICT;"
    "CREATE INDEX nodes_live ON nodes(id) WHERE gone = 0;"
    "CREATE INDEX nodes_gone ON nodes(seen_at_us) WHERE gone = 1;"
    "CREATE TABLE node_types(node INTEGER NOT NULL, type TEXT NOT NULL, PRIMARY KEY(node, type)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE node_sinks(node INTEGER NOT NULL, sink TEXT NOT NULL, PRIMARY KEY(node, sink)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE downstreams("
    " key TEXT NOT NULL PRIMARY KEY, forced INTEGER NOT NULL, forced_until_us INTEGER NOT NULL, phase INTEGER NOT NULL,"
    " open_until_us INTEGER NOT NULL, gate_until_us INTEGER NOT NULL, unhealthy_since_us INTEGER NOT NULL,"
    " trips INTEGER NOT NULL, version INTEGER NOT NULL, reason TEXT, ramp_from_us INTEGER NOT NULL,"
    " at_us INTEGER NOT NULL)"
    " STRICT, WITHOUT ROWID;"
    "CREATE INDEX downstreams_closed ON downstreams(at_us) WHERE phase = 0;"
    "CREATE TABLE shares(key TEXT NOT NULL, node INTEGER NOT NULL, held INTEGER NOT NULL, PRIMARY KEY(key, node))"
    " STRICT, WITHOUT ROWID;"
    "CREATE TABLE queues("
    " name TEXT NOT NULL PRIMARY KEY, paused INTEGER NOT NULL, until_us INTEGER NOT NULL, actor TEXT, at_us INTEGER)"
    " STRICT, WITHOUT ROWID;"
    /* The rates of limit keys: when the bucket is full again. No row: it is full. */
    "CREATE TABLE limit_rates(limit_key TEXT NOT NULL PRIMARY KEY, full_at_us INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE INDEX rates_full ON limit_rates(full_at_us);"
    "CREATE TABLE inbox("
    " source TEXT NOT NULL, message_id TEXT NOT NULL, job_id INTEGER NOT NULL, at_us INTEGER NOT NULL,"
    " PRIMARY KEY(source, message_id)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX inbox_at ON inbox(at_us);"
    "CREATE TABLE audit("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, at_us INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL,"
    " subject TEXT NOT NULL, subject_id INTEGER, reason TEXT, detail TEXT) STRICT;"
    "CREATE INDEX audit_subject ON audit(subject, subject_id);"
    "CREATE INDEX audit_at ON audit(at_us);"
    /* What attempts took, by the hour: a week of it. */
    "CREATE TABLE measured("
    " downstream TEXT NOT NULL, hour INTEGER NOT NULL, spreads BLOB NOT NULL, PRIMARY KEY(downstream, hour))"
    " STRICT, WITHOUT ROWID;"
    "CREATE INDEX measured_hour ON measured(hour);"
    "INSERT INTO meta VALUES ('schema', 1), ('min_reader', 1), ('min_writer', 1), ('next_job', 1), ('control', 0),"
    " ('walk', 1), ('walked_at', 0), ('pruner', 0), ('pruner_until', 0);";

#define PARTS_MAX 5
static const char *const steps[][PARTS_MAX] = {{version_1_jobs, version_1_deaths, version_1_alerts, version_1_nodes}};

const char *hfi_schema_step(int to, int part) {
    if (to < 1 || to > HFI_SCHEMA || part < 0 || part >= PARTS_MAX)
        return NULL;
    return steps[to - 1][part];
}
