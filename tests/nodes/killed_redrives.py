# SPDX-License-Identifier: MIT
"""kill -9 at every call of the store while letters are imported and redriven, one by itself and many by tasks with a canary
and a rate (S0.22, S0.32, I41, I75, I89): each letter that was redriven has one job, its own; the counts of the tasks are
those of the rows; what was imported is there once; nothing that was acknowledged is lost."""
import os, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kills, reader
from kills import told

BASE, IMPORTED = 8, 5
# Numbers that have to be 0, once all is done.
WRONG = [
    ("imported letters that are not there once", "SELECT count(*) <> %d OR count(DISTINCT origin) <> %d FROM dead_letters "
     "WHERE origin IS NOT NULL" % (IMPORTED, IMPORTED)),
    ("redriven letters without a job of their own", "SELECT count(*) FROM dead_letters d WHERE status = 1 AND NOT EXISTS "
     "(SELECT 1 FROM jobs j WHERE j.id = d.new_job_id)"),
    ("letters that share a job", "SELECT count(*) - count(DISTINCT new_job_id) FROM dead_letters WHERE status = 1"),
    ("jobs of no letter, or of two", "SELECT count(*) FROM jobs j WHERE j.id > %d AND "
     "(SELECT count(*) FROM dead_letters d WHERE d.new_job_id = j.id) <> 1" % BASE),
    ("open letters with a job", "SELECT count(*) FROM dead_letters WHERE status <> 1 AND new_job_id IS NOT NULL"),
    ("jobs that do not come from their letter's", "SELECT count(*) FROM dead_letters d JOIN jobs j ON j.id = d.new_job_id "
     "WHERE d.job_id IS NOT NULL AND (j.parent_id IS NOT d.job_id OR j.root_id IS NOT ifnull(d.root_id, d.job_id))"),
    ("letters that did not learn the end", "SELECT count(*) FROM dead_letters d JOIN jobs j ON j.id = d.new_job_id WHERE "
     "d.new_job_outcome IS NOT CASE j.state WHEN 3 THEN 'succeeded' WHEN 4 THEN 'dead' END"),
    ("letters nobody redrove", "SELECT count(*) FROM dead_letters d WHERE status <> 1 AND payload IS NOT CAST('always' AS BLOB)"),
    ("other payloads than before", "SELECT count(*) FROM dead_letters d JOIN jobs j ON j.id = d.new_job_id WHERE j.payload IS NOT d.payload"),
    ("jobs that did not succeed", "SELECT count(*) FROM jobs WHERE id > %d AND state <> 3 AND payload IS NOT CAST('always' AS BLOB)" % BASE),
    ("tasks that are not two", "SELECT count(*) <> 2 FROM redrives"),
    ("tasks that are not done", "SELECT count(*) FROM redrives WHERE state <> 1 OR refused <> 0 OR cancelled <> 0"),
    ("tasks whose counts are not their rows'", "SELECT count(*) FROM redrives r WHERE "
     "r.redriven <> (SELECT count(*) FROM dead_letters d WHERE d.task_id = r.id) OR "
     "r.succeeded <> (SELECT count(*) FROM dead_letters d JOIN jobs j ON j.id = d.new_job_id WHERE d.task_id = r.id AND j.state = 3) OR "
     "r.failed <> (SELECT count(*) FROM dead_letters d JOIN jobs j ON j.id = d.new_job_id WHERE d.task_id = r.id AND j.state = 4) OR "
     "r.redriven <> r.succeeded + r.failed"),
    ("redrives that are not on the record once", "SELECT count(*) FROM audit WHERE action = 'redrive.start' HAVING count(*) <> 2 "
     "UNION ALL SELECT 0"),
]
PER_LETTER = "SELECT new_job_id FROM dead_letters WHERE id = %d"


def check(path, first, second):
    wrong = reader.broken(path)
    for name, sql in WRONG:
        number = reader.ask(path, sql)
        if number:
            wrong.append("%s: %d" % (name, number))
    for identity, made in told(first, "redriven") + told(second, "redriven"):
        if reader.ask(path, PER_LETTER % int(identity)) != int(made):
            wrong.append("letter %s was redriven as job %s, it was said" % (identity, made))
    known = {origin: identity for identity, origin, _ in told(first, "letter")}
    for identity, origin, how in told(second, "letter"):
        if known.get(origin, identity) != identity or (origin in known and how != "known"):
            wrong.append("%s was letter %s and is %s, %s" % (origin, known[origin], identity, how))
    ran = {}
    for identity, _ in told(first, "ran") + told(second, "ran"):
        ran[int(identity)] = ran.get(int(identity), 0) + 1
    for identity, job in reader.jobs(path).items():
        if job[1] == reader.SUCCEEDED and ran.get(identity, 0) not in (job[4], job[4] - 1):
            wrong.append("job %d has %d executions, %d ran" % (identity, job[4], ran.get(identity, 0)))
    return wrong


def main():
    sink = kills.Hook()

    def again(path, first):
        code, second = kills.run("redrives-again", path, sink.url)
        return check(path, first, second) if code == 0 else ["the restart ended with %d: %s" % (code, second[-3:])]
    with tempfile.TemporaryDirectory(prefix="holdfast-killed-") as folder:
        base = folder + "/base.db"
        if kills.run("letters", base, sink.url)[0] != 0:
            return 1
        return 1 if kills.sweep(lambda path, nth: kills.run("redrives", path, sink.url, nth), again, 8, base) else 0


sys.exit(main())
