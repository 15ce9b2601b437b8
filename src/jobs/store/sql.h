/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_STORE_SQL_H
#define HFI_JOBS_STORE_SQL_H

/*
 * Every statement the writer prepares, once. Literals where a partial index needs them (`state = 0`). X(NAME, sql)
 */
#define HFI_JOB_COLUMNS                                                                                                \
    "j.id, j.state, j.priority, j.lane, j.run_at_us, j.epoch, j.owner, j.executions, j.failures, j.started_at_us, "    \
    "j.finished_at_us, j.snoozes, j.crashes, j.give_backs, j.deaths, j.created_at_us, j.expires_at_us, "               \
    "j.max_executions, j.execution_timeout_ms, j.policy_id, j.root_id, j.parent_id, j.cancel_requested_at_us, "        \
    "j.crash_window_us, j.waiting_since_us, j.progress, j.unique_scope, j.reason, j.error_class, j.error_type, "       \
    "j.error_message, j.cancel_by, j.cancel_reason, j.payload, j.result, j.has_spec, p.idempotency_key, p.source, "    \
    "p.source_message_id, p.correlation_id, p.trace_context, p.tags, p.content_type, p.payload, j.marks, j.progress_text"
#define HFI_JOB_COLUMN_COUNT 46
#define HFI_JOB_FROM " FROM jobs j LEFT JOIN job_specs p ON p.id = iif(j.has_spec, j.id, NULL) "

#define HFI_REDRIVE_COLUMNS                                                                                            \
    "id, state, next_at_us, after_id, redriven, refused, full_at_us, ended_at_us, note, succeeded, failed, cancelled, " \
    "upper_id, total, canary, stop_permille, rate_per_s, new_key, death_class, since_us, type, queue, error_type, "    \
    "fingerprint, actor, reason, created_at_us, force "

/* Beside them, for readers: what the writer has in its caches. */
#define HFI_VIEW_COLUMNS                                                                                               \
    ", l.queue, l.type, l.downstream, l.breaker_key, l.limit_key, o.max_executions, n.name, s.forced, "                \
    "s.forced_until_us, s.phase, s.gate_until_us "
#define HFI_VIEW_JOINS                                                                                                 \
    " LEFT JOIN job_specs p ON p.id = iif(j.has_spec, j.id, NULL) LEFT JOIN lanes l ON l.id = j.lane "                 \
    "LEFT JOIN policies o ON o.id = j.policy_id LEFT JOIN nodes n ON n.id = j.owner "                                  \
    "LEFT JOIN downstreams s ON s.key = l.breaker_key "

/* What every claim and every plain outcome changes; the rest of the row seldom changes. */
#define HFI_JOB_HOT                                                                                                    \
    "state = ?5, run_at_us = ?6, epoch = ?7, owner = ?8, executions = ?9, failures = ?10, started_at_us = ?11, "       \
    "finished_at_us = ?12, policy_id = ?13, marks = ?30"
#define HFI_JOB_COLD                                                                                                   \
    ", snoozes = ?14, crashes = ?15, give_backs = ?16, deaths = ?17, expires_at_us = ?18, "                            \
    "cancel_requested_at_us = ?19, crash_window_us = ?20, waiting_since_us = ?21, reason = ?23, "      \
    "error_class = ?24, error_type = ?25, error_message = ?26, cancel_by = ?27, cancel_reason = ?28, result = ?29, lane = ?31"
#define HFI_JOB_FENCE " WHERE id = ?1 AND epoch = ?2 AND state = ?3 AND ifnull(cancel_requested_at_us, 0) = ?4"

/* How the message that alert `a` goes out with stands: its own, or its summary's `l`, or that one's digest's `m`. One that
 * is gone has ended: the unsent are never pruned. */
#define HFI_ALERT_WITH                                                                                                 \
    "LEFT JOIN alerts l ON l.id = ifnull(a.digest, a.lead) AND a.state = 3 "                                           \
    "LEFT JOIN alerts m ON m.id = l.digest AND l.state = 3 "
#define HFI_ALERT_STATE                                                                                                \
    "CASE WHEN a.state <> 3 THEN a.state WHEN l.id IS NULL THEN 4 WHEN l.state <> 3 THEN l.state ELSE ifnull(m.state, 4) END"
#define HFI_SQL_MAP(X)                                                                                                 \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                                        \
    X(BEGIN_READ, "BEGIN")                                                                                             \
    X(COMMIT, "COMMIT")                                                                                                \
    X(META_GET, "SELECT value FROM meta WHERE key = ?1")                                                               \
    X(META_SET, "UPDATE meta SET value = ?2 WHERE key = ?1")                                                           \
    X(META_BUMP, "UPDATE meta SET value = value + 1 WHERE key = ?1")                                                   \
    X(COUNT_ADD, "INSERT INTO counts VALUES (?1, ?2) ON CONFLICT (state) DO UPDATE SET jobs = jobs + excluded.jobs")   \
    X(POLICY_FIND, "SELECT id FROM policies WHERE max_executions = ?1 AND jitter_permille = ?2 AND waits_ms = ?3")     \
    X(POLICY_ADD, "INSERT INTO policies(max_executions, jitter_permille, waits_ms, walk) VALUES (?1, ?2, ?3, ?4)")     \
    X(POLICY_USED, "UPDATE policies SET walk = max(walk, ?2) WHERE id = ?1")                                           \
    X(POLICY_FOUND, "UPDATE policies SET walk = ?2 WHERE id = ?1 AND walk < ?2")                                       \
    X(POLICY_GET, "SELECT max_executions, jitter_permille, waits_ms FROM policies WHERE id = ?1")                      \
    X(LANE_FIND, "SELECT id FROM lanes WHERE queue = ?1 AND type = ?2 AND downstream = ?3 AND breaker_key = ?4 "       \
                 "AND limit_key = ?5 AND alone = ?6")                                                                  \
    X(LANE_ADD, "INSERT INTO lanes(queue, type, downstream, breaker_key, limit_key, alone, next_due_us, walk, "        \
                "top_priority) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0)")                                            \
    X(LANE_USED, "UPDATE lanes SET walk = max(walk, ?2) WHERE id = ?1")                                                \
    X(LANE_FOUND, "UPDATE lanes SET walk = ?2 WHERE id = ?1 AND walk < ?2")                                            \
    X(LANE_GET, "SELECT queue, type, downstream, breaker_key, limit_key, alone FROM lanes WHERE id = ?1")              \
    X(LANE_MARK, "UPDATE lanes SET next_due_us = iif(?4, ?2, min(next_due_us, ?2)), "                                  \
                 "top_priority = iif(?5, ?3, max(top_priority, ?3)) WHERE id = ?1 "                                    \
                 "AND (iif(?4, next_due_us <> ?2, next_due_us > ?2) OR iif(?5, top_priority <> ?3, top_priority < ?3))") \
    X(LANES_LIST, "SELECT id, next_due_us, queue, type, breaker_key, limit_key, top_priority FROM lanes WHERE id > ?1 " \
                  "UNION ALL SELECT id, next_due_us, '', '', '', '', top_priority FROM lanes "                         \
                  "WHERE next_due_us <= ?2 AND id <= ?1")                                                              \
    X(RUNNING_LANES, "SELECT lane FROM jobs WHERE state = 2 AND owner > 0")                                            \
    X(DATA_VERSION, "PRAGMA data_version")                                                                             \
    X(QUEUES_PAUSED, "SELECT name FROM queues WHERE paused AND (until_us = 0 OR until_us > ?1)")                       \
    X(RATE_GET, "SELECT full_at_us FROM limit_rates WHERE limit_key = ?1")                                             \
    X(RATE_SET, "INSERT INTO limit_rates VALUES (?1, ?2) ON CONFLICT (limit_key) DO UPDATE SET "                       \
                "full_at_us = excluded.full_at_us")                                                                    \
    X(RATES_PRUNE, "DELETE FROM limit_rates WHERE limit_key IN (SELECT limit_key FROM limit_rates "                    \
                   "WHERE full_at_us <= ?1 LIMIT ?2)")                                                                 \
    X(LANE_KEPT, "SELECT count(*) FROM (SELECT 1 FROM jobs WHERE state = 0 AND lane = ?1 "                             \
                 "AND priority IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) AND run_at_us <= ?2 LIMIT ?3)")                       \
    X(LANES_NEXT, "SELECT next_due_us FROM lanes WHERE next_due_us > ?1 ORDER BY next_due_us LIMIT 1")                 \
    X(JOB_ADD, "INSERT INTO jobs(id, state, priority, lane, run_at_us, epoch, executions, failures, created_at_us, "   \
               "expires_at_us, max_executions, execution_timeout_ms, policy_id, root_id, parent_id, unique_states, "   \
               "unique_scope, reason, has_spec, payload) "                                                             \
               "VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, 0, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)")         \
    X(SPEC_ADD, "INSERT INTO job_specs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                   \
    X(SPEC_TAGS, "SELECT tags FROM job_specs WHERE id = ?1")                                                           \
    X(TAG_ADD, "INSERT OR IGNORE INTO job_tags VALUES (?1, ?2)")                                                       \
    X(TAG_DROP, "DELETE FROM job_tags WHERE tag = ?1 AND job_id = ?2")                                                 \
    X(SPEC_KEY, "INSERT INTO job_specs(id, idempotency_key) VALUES (?1, ?2) "                                          \
                "ON CONFLICT (id) DO UPDATE SET idempotency_key = excluded.idempotency_key")                           \
    X(JOB_HAS_SPEC, "UPDATE jobs SET has_spec = 1 WHERE id = ?1")                                                      \
    X(JOB_NO_PROGRESS, "UPDATE jobs SET progress = NULL, progress_text = NULL WHERE id = ?1")                          \
    X(NOTE_PROGRESS, "UPDATE jobs SET progress = ?3, progress_text = ?4 WHERE id = ?1 AND epoch = ?2 AND state = 2")   \
    X(NOTE_ALLOWED, "SELECT 1 FROM jobs WHERE id = ?1 AND epoch = ?2 AND state = 2")                                   \
    X(CHECKPOINT_SET, "INSERT INTO checkpoints VALUES (?1, ?2) ON CONFLICT (job_id) DO UPDATE "                        \
                      "SET bytes = excluded.bytes")                                                                    \
    X(CHECKPOINT_GET, "SELECT bytes FROM checkpoints WHERE job_id = ?1")                                               \
    X(CHECKPOINT_DROP, "DELETE FROM checkpoints WHERE job_id = ?1")                                                    \
    X(JOB_UNIQUE, "SELECT id FROM jobs WHERE unique_scope IS NOT NULL AND (unique_states >> state) & 1 "               \
                  "AND unique_scope = ?1")                                                                             \
    X(JOB_YIELD, "UPDATE jobs SET unique_scope = NULL, unique_states = NULL WHERE id = ?1")                            \
    X(JOB_BECOME, "UPDATE jobs SET priority = ?2, lane = ?3, run_at_us = ?4, expires_at_us = ?5, max_executions = ?6, " \
                  "execution_timeout_ms = ?7, policy_id = ?8, unique_states = ?9, reason = ?10, has_spec = ?11, "      \
                  "payload = ?12, executions = 0, failures = 0, snoozes = NULL, crashes = NULL, give_backs = NULL, "   \
                  "crash_window_us = NULL, waiting_since_us = NULL, started_at_us = NULL, marks = NULL, "     \
                  "progress = NULL, progress_text = NULL, error_class = NULL, error_type = NULL, error_message = NULL " \
                  "WHERE id = ?1")                                                                \
    X(JOB_EXISTS, "SELECT 1 FROM jobs WHERE id = ?1")                                                                  \
    X(INBOX_FIND, "SELECT job_id FROM inbox WHERE source = ?1 AND message_id = ?2")                                    \
    X(INBOX_ADD, "INSERT INTO inbox VALUES (?1, ?2, ?3, ?4)")                                                          \
    X(CLAIM_HEAD, "SELECT priority, run_at_us, id, expires_at_us > 0 AND expires_at_us <= ?3 FROM jobs "               \
                  "WHERE state = 0 AND lane = ?1 AND priority < ?2 ORDER BY priority DESC, run_at_us, id")             \
    X(CLAIM_DUE, "SELECT " HFI_JOB_COLUMNS HFI_JOB_FROM "WHERE j.state = 0 AND j.lane = ?1 AND j.priority = ?2 "       \
                 "AND j.run_at_us >= ?3 ORDER BY j.run_at_us, j.id")                                                   \
    X(LANE_DUE, "SELECT " HFI_JOB_COLUMNS HFI_JOB_FROM "WHERE j.state = 0 AND j.lane = ?1 AND j.run_at_us <= ?2 "      \
                "ORDER BY j.priority DESC, j.run_at_us, j.id LIMIT ?3")                                                \
    X(JOB_LOAD, "SELECT " HFI_JOB_COLUMNS HFI_JOB_FROM "WHERE j.id = ?1")                                              \
    X(JOB_HOT, "UPDATE jobs SET " HFI_JOB_HOT HFI_JOB_FENCE)                                                           \
    X(JOB_ALL, "UPDATE jobs SET " HFI_JOB_HOT HFI_JOB_COLD HFI_JOB_FENCE)                                              \
    X(HISTORY_ADD, "INSERT OR REPLACE INTO history(job_id, epoch, ended_at_us, event, execution, started_at_us, "      \
                   "next_run_at_us, node, attempts, retries, resolve_us, connect_us, tls_us, first_byte_us, "          \
                   "total_us, breaker, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "   \
                   "?15, ?16, ?17)")                                                                                   \
    X(HISTORY_ERROR_ADD, "INSERT OR REPLACE INTO history_errors VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")              \
    X(RUNNING_OF, "SELECT " HFI_JOB_COLUMNS HFI_JOB_FROM "WHERE j.state = 2 AND j.owner = ?1 AND j.id > ?2 "           \
                  "ORDER BY j.id LIMIT ?3")                                                                            \
    X(OWNED, "SELECT id, epoch, cancel_requested_at_us > 0 FROM jobs WHERE state = 2 AND owner = ?1 "                  \
             "ORDER BY id LIMIT ?2")                                                                                   \
    X(EXPIRED, "SELECT " HFI_JOB_COLUMNS HFI_JOB_FROM "WHERE j.state < 2 AND j.expires_at_us > 0 "                     \
               "AND j.expires_at_us <= ?1 ORDER BY j.expires_at_us LIMIT ?2")                                          \
    X(DEAD_ADD, "INSERT INTO dead_letters(job_id, death_no, death_class, quarantined, source, source_message_id, "     \
                "type, queue, downstream, breaker_key, limit_key, priority, content_type, policy_id, max_executions, " \
                "execution_timeout_ms, executions, failures, executions_allowed, root_id, idempotency_key, "           \
                "unique_key, correlation_id, trace_context, tags, error_class, error_type, error_message, detail, "    \
                "rule, cause, node, fingerprint, job_created_at_us, dead_at_us, payload, payload_cut, schema, origin) VALUES (?1, "    \
                "?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, "     \
                "?26, ?27, ?28, ?29, ?30, ?31, (SELECT name FROM nodes WHERE id = ?32), ?33, ?34, ?35, ?36, ?37, ?38, ?39)")     \
    X(DEAD_OF_JOB, "SELECT id, status, new_job_id FROM dead_letters WHERE job_id = ?1 AND death_no = ?2")              \
    X(DEAD_OF_MESSAGE, "SELECT id FROM dead_letters WHERE job_id IS NULL AND origin IS NULL "                           \
                       "AND source = ?1 AND source_message_id = ?2")                                                   \
    X(DEAD_LOAD, "SELECT status, new_job_id, job_id, type, queue, downstream, breaker_key, limit_key, priority, "      \
                 "content_type, policy_id, max_executions, execution_timeout_ms, root_id, idempotency_key, "           \
                 "unique_key, correlation_id, trace_context, tags, payload, payload_cut, source, source_message_id, origin "                               \
                 "FROM dead_letters WHERE id = ?1")                                                                    \
    X(DEAD_SETTLE, "UPDATE dead_letters SET status = ?2, settled_at_us = ?3, settled_by = ?4, settled_reason = ?5, "   \
                   "new_job_id = ?6, task_id = ?7 WHERE id = ?1 AND status = 0")                                                     \
    X(DEAD_SUCCESSOR, "UPDATE dead_letters SET new_job_outcome = ?2 WHERE new_job_id = ?1 "                             \
                      "AND new_job_outcome IS NULL RETURNING task_id")                                                 \
    X(DEAD_LOAD_ID, "SELECT id FROM dead_letters WHERE id = ?1")                                                       \
    X(DEAD_OF_ORIGIN, "SELECT id FROM dead_letters WHERE origin = ?1")                                                 \
    X(DEAD_IMPORTED, "UPDATE dead_letters SET node = ?2, status = ?3, settled_at_us = ?4, settled_by = ?5, "           \
                     "settled_reason = ?6, new_job_id = ?7, new_job_outcome = ?8 WHERE id = ?1")                       \
    X(DEAD_OPEN, "SELECT id, type, queue, death_class, error_type, fingerprint, dead_at_us FROM dead_letters "         \
                 "WHERE status = 0 AND id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3")                                     \
    X(REDRIVE_ADD, "INSERT INTO redrives(state, next_at_us, after_id, redriven, refused, full_at_us, succeeded, "      \
                   "failed, cancelled, upper_id, total, canary, stop_permille, rate_per_s, new_key, death_class, "     \
                   "since_us, type, queue, error_type, fingerprint, actor, reason, created_at_us, force) VALUES (0, ?1, 0, "  \
                   "0, 0, 0, 0, 0, 0, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?1, ?16)")         \
    X(REDRIVE_GET, "SELECT " HFI_REDRIVE_COLUMNS "FROM redrives WHERE id = ?1")                                        \
    X(REDRIVE_DUE, "SELECT " HFI_REDRIVE_COLUMNS "FROM redrives WHERE state = 0 AND next_at_us <= ?1 "                 \
                   "ORDER BY next_at_us LIMIT 1")                                                                      \
    X(REDRIVE_NEXT, "SELECT next_at_us FROM redrives WHERE state = 0 ORDER BY next_at_us LIMIT 1")                     \
    X(REDRIVE_SET, "UPDATE redrives SET state = ?2, next_at_us = ?3, after_id = ?4, redriven = ?5, refused = ?6, "     \
                   "full_at_us = ?7, ended_at_us = ?8, note = ?9, succeeded = ?10, failed = ?11, cancelled = ?12 "     \
                   "WHERE id = ?1")                                                                                    \
    X(AUDIT_ADD, "INSERT INTO audit(at_us, actor, action, subject, subject_id, reason, detail) "                       \
                 "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                                                \
    X(QUARANTINED_AFTER, "SELECT id FROM jobs WHERE (state = 1 OR state > 3) AND state = 5 AND id > ?1 "               \
                         "ORDER BY id LIMIT ?2")                                                                       \
    X(QUARANTINED_WHY, "SELECT d.type, d.cause, d.schema FROM jobs j JOIN dead_letters d ON d.job_id = j.id "          \
                       "AND d.death_no = j.deaths WHERE j.id = ?1 AND j.state = 5 AND d.status = 0")                   \
    X(FORWARD_FIND, "SELECT 1 FROM forwards WHERE dead_id = ?1 AND name = ?2")                                         \
    X(FORWARD_ADD, "INSERT INTO forwards(dead_id, name, job_id) VALUES (?1, ?2, ?3)")                                  \
    X(FORWARD_COUNT, "INSERT INTO forward_counts VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name) DO UPDATE SET "            \
                     "taken = taken + ?2, forwarded = forwarded + ?3, failed = failed + ?4")                           \
    X(FORWARD_ENDED, "UPDATE forwards SET outcome = ?2 WHERE job_id = ?1 RETURNING name")                              \
    X(FORWARD_AGAIN, "UPDATE forwards SET job_id = ?2, outcome = NULL WHERE job_id = ?1")                              \
    X(FORWARDED, "SELECT min(job_id) FROM forwards WHERE dead_id = ?1 AND name <> 'handler' "                               \
                 "AND (outcome IS NULL OR outcome = 'succeeded')")                                                     \
    X(PRUNE_FORWARDS, "DELETE FROM forwards WHERE dead_id = ?1")                                                       \
    X(ALERT_ADD, "INSERT INTO alerts(dead_id, sink, state, next_at_us, lead) VALUES (?1, ?2, ?3, ?4, ?5)")             \
    X(ALERT_LEADS, "UPDATE alerts SET lead = id WHERE id = ?1")                                                        \
    X(ALERT_JOINED, "UPDATE alerts SET others = others + 1 WHERE id = ?1 AND state = 0 AND tries = 0")                 \
    X(STORM_GET, "SELECT k.collapse_us, s.until_us, s.lead FROM alert_sinks k LEFT JOIN storms s ON s.sink = k.sink "  \
                 "AND s.fingerprint = ?2 WHERE k.sink = ?1")                                                           \
    X(STORM_SET, "INSERT INTO storms VALUES (?1, ?2, ?3, ?4) ON CONFLICT (sink, fingerprint) DO UPDATE SET "           \
                 "until_us = excluded.until_us, lead = excluded.lead")                                                 \
    X(STORM_SEAL, "UPDATE storms SET lead = NULL, until_us = ?2 WHERE lead = ?1")                                      \
    X(STORMS_PRUNE, "DELETE FROM storms WHERE (sink, fingerprint) IN (SELECT sink, fingerprint FROM storms "           \
                    "WHERE lead IS NULL AND until_us <= ?1 LIMIT ?2)")                                                 \
    X(SINK_RULE, "INSERT INTO alert_sinks(sink, collapse_us) VALUES (?1, ?2) ON CONFLICT (sink) DO UPDATE SET "        \
                 "collapse_us = excluded.collapse_us, absent_us = NULL, looked_us = NULL")                             \
    X(SINK_GET, "SELECT collapse_us, pace, held FROM alert_sinks WHERE sink = ?1")                                     \
    X(SINK_PACE, "UPDATE alert_sinks SET pace = ?2, held = ?3 WHERE sink = ?1")                                        \
    X(ALERTS_FRESH, "SELECT id FROM alerts WHERE state = 0 AND tries = 0 AND sink = ?1 AND next_at_us <= ?2 "          \
                    "ORDER BY next_at_us, id LIMIT ?3")                                                                \
    X(DIGEST_MAKE, "UPDATE alerts SET digest = id, next_at_us = 0 WHERE id = ?1")                                      \
    X(DIGEST_ADD, "UPDATE alerts SET digest = ?2, state = 3 WHERE id = ?1")                                            \
    X(DIGEST_CAUSES, "SELECT a.others + 1, a.dead_id, d.type, d.error_type, d.downstream FROM alerts a "               \
                     "JOIN dead_letters d ON d.id = a.dead_id WHERE a.digest = ?1 ORDER BY a.id")                      \
    X(ALERTS_DUE, "SELECT a.id, a.dead_id, d.job_id, a.epoch, d.dead_at_us, a.tries, d.death_class, d.executions, "    \
                  "d.death_no, d.quarantined, a.sink, d.type, d.queue, d.downstream, d.error_type, d.correlation_id, " \
                  "a.lead, a.digest, a.others, d.error_message, a.last_try_us, a.tried_us, a.had FROM alerts a "        \
                  "JOIN dead_letters d ON d.id = a.dead_id "                                                           \
                  "WHERE a.state = 0 AND a.sink = ?1 AND a.next_at_us <= ?2 ORDER BY a.next_at_us, a.id LIMIT ?3")     \
    X(ALERT_TAKE, "UPDATE alerts SET owner = ?2, epoch = epoch + 1, tries = tries + 1, next_at_us = ?3, "              \
                  "last_try_us = ?4, tried_us = ?5 WHERE id = ?1")                                                     \
    X(ALERTS_NEXT, "SELECT next_at_us FROM alerts WHERE state = 0 AND sink = ?1 ORDER BY next_at_us LIMIT 1")          \
    X(ALERT_END, "UPDATE alerts SET state = ?3, next_at_us = ?4, ended_at_us = ?5, error_type = ?6, owner = NULL, "     \
                 "had = ifnull(?7, had) WHERE id = ?1 AND epoch = ?2 AND state = 0")                                   \
    X(ABSENT_NEXT, "SELECT sink FROM alerts WHERE state = 0 AND sink > ?1 ORDER BY sink LIMIT 1")                      \
    X(NODE_SINK_HAD, "SELECT 1 FROM node_sinks WHERE sink = ?1 LIMIT 1")                                               \
    X(ABSENCE_GET, "SELECT absent_us, looked_us FROM alert_sinks WHERE sink = ?1")                                     \
    X(ABSENCE_SET, "INSERT INTO alert_sinks(sink, collapse_us, absent_us, looked_us) VALUES (?1, 0, ?2, ?3) "          \
                   "ON CONFLICT (sink) DO UPDATE SET absent_us = excluded.absent_us, looked_us = excluded.looked_us")  \
    X(ABSENT_ROWS, "SELECT id, dead_id FROM alerts WHERE state = 0 AND sink = ?1 ORDER BY next_at_us, id LIMIT ?2")    \
    X(ABSENT_END, "UPDATE alerts SET state = 2, ended_at_us = ?2, error_type = ?3, owner = NULL WHERE id = ?1")        \
    X(NODE_ADD, "INSERT INTO nodes(name, host, boot, pid, beat, joined_at_us, seen_at_us) "                            \
                "VALUES (?1, ?2, ?3, ?4, 0, ?5, ?5)")                                                                  \
    X(NODE_TYPE_ADD, "INSERT OR IGNORE INTO node_types VALUES (?1, ?2)")                                               \
    X(NODE_SINK_ADD, "INSERT OR IGNORE INTO node_sinks VALUES (?1, ?2)")                                               \
    X(NODE_SINKS_GONE, "DELETE FROM node_sinks WHERE node = ?1")                                                       \
    X(NODE_TYPE_HAD, "SELECT 1 FROM node_types WHERE type = ?1 AND node <> ?2 LIMIT 1")                                \
    X(NODE_BEAT, "UPDATE nodes SET beat = ?2, seen_at_us = ?3 WHERE id = ?1 AND gone = 0")                             \
    X(NODE_GONE, "UPDATE nodes SET gone = 1 WHERE id = ?1 AND gone = 0")                                               \
    X(NODE_TYPES_GONE, "DELETE FROM node_types WHERE node = ?1")                                                       \
    X(NODE_OWNS, "SELECT 1 FROM jobs WHERE state = 2 AND owner = ?1 LIMIT 1")                                          \
    X(NODES_LIVE, "SELECT id, beat, name FROM nodes WHERE gone = 0 AND id <> ?1 ORDER BY id")                          \
    X(NODE_BEAT_MOVED, "SELECT 1 FROM nodes WHERE id = ?1 AND gone = 0 AND beat <> ?2")                                \
    X(NODE_LIVE, "SELECT 1 FROM nodes WHERE id = ?1 AND gone = 0")                                                     \
    X(OWNER_NEXT, "SELECT owner FROM jobs WHERE state = 2 AND owner > ?1 ORDER BY owner LIMIT 1")                      \
    X(QUEUE_SET, "INSERT INTO queues VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (name) DO UPDATE SET "                    \
                 "paused = excluded.paused, until_us = excluded.until_us, actor = excluded.actor, "                    \
                 "at_us = excluded.at_us")                                                                             \
    X(QUEUE_GET, "SELECT paused AND (until_us = 0 OR until_us > ?2) FROM queues WHERE name = ?1")                      \
    X(DOWNSTREAM_GET, "SELECT forced, forced_until_us, phase, open_until_us, gate_until_us, unhealthy_since_us, "      \
                      "trips, version, reason, ramp_from_us FROM downstreams WHERE key = ?1")                          \
    X(DOWNSTREAM_SET, "INSERT OR REPLACE INTO downstreams VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)") \
    X(SHARES_OF_OTHERS, "SELECT ifnull(sum(s.held), 0), count(*) FROM shares s JOIN nodes n ON n.id = s.node "         \
                        "WHERE s.key = ?1 AND s.node <> ?2 AND n.gone = 0")                                            \
    X(DOWNSTREAM_VERSION, "SELECT version FROM downstreams WHERE key = ?1")                                            \
    X(SHARE_SET, "INSERT OR REPLACE INTO shares SELECT ?1, id, ?3 FROM nodes WHERE id = ?2 AND gone = 0")              \
    X(SHARE_GONE, "DELETE FROM shares WHERE key = ?1 AND node = ?2")                                                   \
    X(SHARES_GONE, "DELETE FROM shares WHERE node = ?1")                                                               \
    X(PRUNE_LOOK, "SELECT id, state, finished_at_us, has_spec, epoch FROM jobs WHERE id > ?1 ORDER BY id LIMIT ?2")    \
    X(PRUNE_JOB, "DELETE FROM jobs WHERE id = ?1")                                                                     \
    X(PRUNE_SPEC, "DELETE FROM job_specs WHERE id = ?1")                                                               \
    X(PRUNE_HISTORY, "DELETE FROM history WHERE job_id = ?1")                                                          \
    X(PRUNE_ERRORS, "DELETE FROM history_errors WHERE job_id = ?1")                                                    \
    X(PRUNE_SOME_HISTORY, "DELETE FROM history WHERE (job_id, epoch, ended_at_us, event) IN (SELECT job_id, epoch, "   \
                          "ended_at_us, event FROM history WHERE job_id = ?1 LIMIT ?2)")                               \
    X(PRUNE_SOME_ERRORS, "DELETE FROM history_errors WHERE (job_id, epoch, ended_at_us, event) IN (SELECT job_id, "    \
                         "epoch, ended_at_us, event FROM history_errors WHERE job_id = ?1 LIMIT ?2)")                  \
    X(PRUNE_AUDIT, "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at_us < ?1 LIMIT ?2)")                   \
    X(PRUNE_DOWNSTREAMS, "DELETE FROM downstreams WHERE key IN (SELECT key FROM downstreams WHERE phase = 0 AND "       \
                         "at_us < ?1 AND gate_until_us < ?1 AND (forced = 0 OR (forced_until_us <> 0 AND "             \
                         "forced_until_us < ?1)) LIMIT ?2)")                                                           \
    X(PRUNE_NODES_LOOK, "SELECT id FROM nodes n WHERE gone = 1 AND seen_at_us < ?1 "                                   \
                        "AND NOT EXISTS (SELECT 1 FROM jobs WHERE state = 2 AND owner = n.id) LIMIT ?2")               \
    X(PRUNE_NODE, "DELETE FROM nodes WHERE id = ?1 AND gone = 1")                                                      \
    X(WALK_JOBS, "SELECT id, lane, policy_id FROM jobs WHERE id > ?1 ORDER BY id LIMIT ?2")                            \
    X(WALK_LETTERS, "SELECT id, policy_id FROM dead_letters WHERE id > ?1 ORDER BY id LIMIT ?2")                       \
    X(WALK_LANES, "SELECT max(id) FROM (SELECT id FROM lanes WHERE id > ?1 ORDER BY id LIMIT ?2)")                     \
    X(WALK_POLICIES, "SELECT max(id) FROM (SELECT id FROM policies WHERE id > ?1 ORDER BY id LIMIT ?2)")               \
    X(WALK_LANES_DROP, "DELETE FROM lanes WHERE id > ?1 AND id <= ?2 AND walk < ?3")                                   \
    X(WALK_POLICIES_DROP, "DELETE FROM policies WHERE id > ?1 AND id <= ?2 AND walk < ?3")                             \
    X(LANE_EXISTS, "SELECT 1 FROM lanes WHERE id = ?1")                                                                \
    X(PRUNE_DEPS, "DELETE FROM deps WHERE child = ?1")                                                                 \
    X(PRUNE_PARENT, "DELETE FROM deps WHERE (parent, child) IN (SELECT parent, child FROM deps WHERE parent = ?1 "     \
                    "AND (on_end OR ?2) LIMIT ?3)")                                                                    \
    X(DEPS_ANY, "SELECT 1 FROM deps LIMIT 1")                                                                          \
    X(DEP_ADD, "INSERT OR IGNORE INTO deps(parent, child, on_end) VALUES (?1, ?2, ?3)")                                \
    X(DEPS_CHILDREN, "SELECT child FROM deps WHERE parent = ?1 AND child > ?2 ORDER BY child LIMIT ?3")                \
    X(DEPS_PARENTS, "SELECT d.parent, p.state, d.on_end FROM deps d LEFT JOIN jobs p ON p.id = d.parent "              \
                    "WHERE d.child = ?1 ORDER BY d.parent LIMIT ?2")                                                   \
    X(RELEASE_ADD, "INSERT INTO releases VALUES (?1, ?2) ON CONFLICT (parent) DO UPDATE "                              \
                   "SET after_child = min(after_child, excluded.after_child)")                                         \
    X(RELEASE_FIND, "SELECT 1 FROM releases WHERE parent = ?1")                                                        \
    X(RELEASE_NEXT, "SELECT parent, after_child FROM releases ORDER BY parent LIMIT 1")                                \
    X(RELEASE_DONE, "DELETE FROM releases WHERE parent = ?1")                                                          \
    X(WAITING_AFTER, "SELECT id FROM jobs WHERE state = 1 AND id > ?1 ORDER BY id LIMIT ?2")                           \
    X(PRUNE_DEAD_LOOK, "SELECT d.settled_at_us, d.id, EXISTS (SELECT 1 FROM alerts a " HFI_ALERT_WITH                  \
                       "WHERE a.dead_id = d.id AND " HFI_ALERT_STATE " = 0) FROM dead_letters d WHERE d.status > 0 "  \
                       "AND (d.settled_at_us, d.id) > (?1, ?2) AND d.settled_at_us < ?3 "                              \
                       "ORDER BY d.settled_at_us, d.id LIMIT ?4")                                                      \
    X(PRUNE_DEAD, "DELETE FROM dead_letters WHERE id = ?1")                                                            \
    X(PRUNE_ALERTS, "DELETE FROM alerts WHERE dead_id = ?1")                                                           \
    X(PRUNE_REDRIVES, "DELETE FROM redrives WHERE id IN (SELECT id FROM redrives WHERE state > 0 AND ended_at_us < ?1 " \
                      "LIMIT ?2)")                                                                                      \
    X(MEASURED_GET, "SELECT spreads FROM measured WHERE downstream = ?1 AND hour = ?2")                                \
    X(MEASURED_SET, "INSERT OR REPLACE INTO measured VALUES (?1, ?2, ?3)")                                             \
    X(MEASURED_FORGET, "DELETE FROM measured WHERE (downstream, hour) IN (SELECT downstream, hour FROM measured "      \
                       "WHERE hour < ?1 LIMIT ?2)")                                                                    \
    X(PRUNE_INBOX, "DELETE FROM inbox WHERE (source, message_id) IN (SELECT source, message_id FROM inbox "            \
                   "WHERE at_us < ?1 LIMIT ?2)")

enum hfi_sql {
#define HFI_SQL_MEMBER(name, text) HFI_SQL_##name,
    HFI_SQL_MAP(HFI_SQL_MEMBER)
#undef HFI_SQL_MEMBER
        HFI_SQL_COUNT
};
extern const char *const hfi_sql_texts[HFI_SQL_COUNT];

#endif
