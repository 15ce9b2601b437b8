# SPDX-License-Identifier: MIT
"""A reader of a store's tables that shares no code with it, and what must hold of them whatever happened."""
import sqlite3

PENDING, RUNNING, SUCCEEDED, DEAD, QUARANTINED, CANCELLED = 0, 2, 3, 4, 5, 6
RULES = [
    ("damaged", "SELECT * FROM pragma_integrity_check(1) WHERE integrity_check <> 'ok'"),
    ("running without an owner", "SELECT id FROM jobs WHERE state = 2 AND ifnull(owner, 0) = 0"),
    ("owned, but not running", "SELECT id FROM jobs WHERE state <> 2 AND ifnull(owner, 0) <> 0"),
    ("a job whose letters are not its deaths", "SELECT j.id FROM jobs j WHERE ifnull(j.deaths, 0) <> "
     "(SELECT count(*) FROM dead_letters d WHERE d.job_id = j.id)"),
    ("dead without an open letter of its last death", "SELECT j.id FROM jobs j WHERE j.state IN (4, 5) AND NOT EXISTS "
     "(SELECT 1 FROM dead_letters d WHERE d.job_id = j.id AND d.death_no = j.deaths AND (d.status <> 1 OR d.new_job_id <> j.id))"),
    ("an open letter of a job that lives", "SELECT d.id FROM dead_letters d JOIN jobs j ON j.id = d.job_id "
     "WHERE d.status = 0 AND j.state NOT IN (4, 5)"),
    ("not one alert per letter and sink", "SELECT d.id FROM dead_letters d WHERE "
     "(SELECT count(*) FROM alerts a WHERE a.dead_id = d.id) <> iif(d.origin IS NULL, %d, 0)"),
    ("not one success", "SELECT j.id FROM jobs j WHERE (j.state = 3) <> "
     "(SELECT count(*) FROM history h WHERE h.job_id = j.id AND h.event = 2)"),
    ("a count that is off", "SELECT state FROM counts c WHERE c.jobs <> (SELECT count(*) FROM jobs j WHERE j.state = c.state)"),
    ("a state without its count", "SELECT state FROM jobs WHERE state NOT IN (SELECT state FROM counts) LIMIT 1"),
    ("a lane that sleeps too long", "SELECT l.id FROM lanes l WHERE l.next_due_us > "
     "(SELECT min(run_at_us) FROM jobs j WHERE j.state = 0 AND j.lane = l.id)"),
    ("a job without its lane", "SELECT id FROM jobs WHERE lane NOT IN (SELECT id FROM lanes)"),
    ("a job or letter without its policy", "SELECT id FROM jobs WHERE policy_id NOT IN (SELECT id FROM policies) "
     "UNION SELECT id FROM dead_letters WHERE policy_id NOT IN (SELECT id FROM policies)"),
    ("an id that will be given twice", "SELECT 1 WHERE (SELECT value FROM meta WHERE key = 'next_job') <= "
     "(SELECT ifnull(max(id), 0) FROM jobs)"),
    ("more executions than starts on record", "SELECT id FROM jobs j WHERE j.executions > 0 AND j.deaths IS NULL AND "
     "j.executions <> (SELECT count(*) FROM history h WHERE h.job_id = j.id AND h.started_at_us IS NOT NULL AND h.event NOT IN (4, 8)) + (j.state = 2)"),
]


def broken(path, sinks=1):
    """What does not hold, as a list of texts, where each death has so many alerts."""
    found = []
    with sqlite3.connect(path, timeout=20) as db:
        db.execute("BEGIN")
        for name, sql in RULES:
            rows = db.execute(sql.replace("%d", str(sinks))).fetchmany(5)
            if rows:
                found.append("%s: %s" % (name, rows))
    return found


def jobs(path):
    with sqlite3.connect(path, timeout=20) as db:
        return {row[0]: row for row in db.execute(
            "SELECT j.id, j.state, l.type, j.priority, j.executions, ifnull(j.crashes, 0), j.epoch, j.owner "
            "FROM jobs j JOIN lanes l ON l.id = j.lane")}


def ask(path, sql):
    with sqlite3.connect(path, timeout=20) as db:
        return db.execute(sql).fetchone()[0]
