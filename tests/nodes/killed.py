# SPDX-License-Identifier: MIT
"""kill -9 at every call of the store (S3.2, S3.5, I3, I28, I70, I95): enqueue, cancel, claim, start, finish, fail, die,
alert, requeue; after a restart nothing that was acknowledged is lost and nothing is finished twice. Some of the calls by
HF_SEED, all of them with HF_FULL=1."""
import os, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kills, reader
from kills import told


# A death and what it sets off are one transaction: each has its handler's job and its copy, once, and all have run.
FORWARDS = [
    ("deaths without their two jobs", "SELECT count(*) FROM dead_letters d WHERE d.type = 'bad' AND "
     "(SELECT count(*) FROM forwards f JOIN jobs j ON j.id = f.job_id WHERE f.dead_id = d.id) <> 2"),
    ("jobs of no death", "SELECT count(*) FROM job_specs s WHERE s.source = 'holdfast.dead' AND s.id NOT IN "
     "(SELECT job_id FROM forwards)"),
    ("copies that have not succeeded", "SELECT count(*) FROM forwards WHERE outcome IS NOT 'succeeded'"),
    ("counts that are off", "SELECT count(*) FROM forward_counts c WHERE taken <> forwarded + failed OR taken <> "
     "(SELECT count(*) FROM forwards f WHERE f.name = c.name)"),
]


def check(path, first, second):
    """What must hold after the restart, beside the rules of every file."""
    wrong = reader.broken(path)
    jobs = reader.jobs(path)
    for identity, kind, priority in told(first, "put"):
        job = jobs.get(int(identity))
        if job is None:
            wrong.append("job %s was acknowledged and is lost" % identity)
        elif (job[2], job[3]) != (kind, int(priority)):
            wrong.append("job %s has another type or priority: %s" % (identity, job))
    for (identity,) in told(first, "cancelled"):
        if jobs[int(identity)][1] != reader.CANCELLED:
            wrong.append("job %s was cancelled and is not" % identity)
    for (identity,) in told(first, "requeued"):
        if jobs[int(identity)][1] != reader.SUCCEEDED:
            wrong.append("job %s was requeued, and then?" % identity)
    ran = {}
    for identity, _ in told(first, "ran") + told(second, "ran"):
        ran[int(identity)] = ran.get(int(identity), 0) + 1
    for identity, job in jobs.items():
        if job[1] == reader.RUNNING:
            wrong.append("job %d still runs" % identity)
        elif job[2] == "ok" and job[1] == reader.SUCCEEDED and ran.get(identity, 0) not in (job[4], job[4] - 1):
            wrong.append("job %d has %d executions, %d ran" % (identity, job[4], ran.get(identity, 0)))
    for name, sql in FORWARDS:
        rows = reader.ask(path, sql)
        if rows:
            wrong.append("%s: %d" % (name, rows))
    due = reader.ask(path, "SELECT count(*) FROM jobs WHERE state = 0 AND run_at_us <= unixepoch('subsec') * 1000000")
    if due:
        wrong.append("%d due jobs are left" % due)
    return wrong


def main():
    sink = kills.Hook()

    def again(path, first):
        code, second = kills.run("again", path, sink.url)
        return check(path, first, second) if code == 0 else ["the restart ended with %d: %s" % (code, second[-3:])]

    wrong = 0
    for prefetch in None, "8":  # a slot for each job; one slot, and the others reserved ahead
        if prefetch:
            os.environ["NODE_PREFETCH"] = prefetch
        wrong += kills.sweep(lambda path, nth: kills.run("scenario", path, sink.url, nth), again, 8)
    return 1 if wrong else 0


sys.exit(main())
