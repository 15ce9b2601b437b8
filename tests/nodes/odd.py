# SPDX-License-Identifier: MIT
"""Rows that no program of ours writes, or that another one left behind (I20, I28, I47), and a writer that holds the lock for
longer than SQLite waits for it (I18): a node starts, every row that may run is reached, and its beats go on."""
import os, sqlite3, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nodes, reader
from nodes import Node, job, put, until

NOW = int(time.time() * 1e6)
DAY = 86400 * 10**6


def odd_rows(path):
    """Every state at every time, whoever owns it: each is in somebody's sight."""
    put(path, "ok")
    with sqlite3.connect(path) as db:
        lane = db.execute("SELECT id FROM lanes").fetchone()[0]
        number = 100
        for state in range(32):
            for run_at in (0, NOW - DAY, NOW + 400 * DAY):
                for owner in (None, 1, 777, -5) if state == 2 else (None,):
                    for started in (None, 1, NOW + DAY) if state == 2 else (None,):
                        for payload in (None, b""):
                            number += 1
                            db.execute("INSERT INTO jobs(id, state, priority, lane, run_at_us, epoch, owner, executions, failures, "
                                       "started_at_us, created_at_us, has_spec, payload, crashes) VALUES (?, ?, 3, ?, ?, 7, ?, ?, 0, ?, 5, 0, ?, 1)",
                                       (number, state, lane, run_at, owner, 1 if started else 0, started, payload))
        db.execute("UPDATE meta SET value = ? WHERE key = 'next_job'", (number + 1,))
        db.execute("UPDATE lanes SET next_due_us = 0")
        db.execute("INSERT INTO nodes(name, host, boot, pid, beat, joined_at_us, seen_at_us, gone) VALUES ('x', 'x', 'x', 1, 0, 0, 0, 1)")
    node = Node(path, 60000)
    until("the due ones", lambda: reader.ask(path, "SELECT count(*) FROM jobs WHERE state = 2 AND owner IS NOT NULL OR state = 0 AND run_at_us < %d" % (NOW + DAY)) == 0)
    node.stop()
    assert reader.ask(path, "SELECT count(*) FROM jobs WHERE state = 0") > 0  # what is due in a year waits
    assert reader.ask(path, "SELECT count(*) FROM jobs WHERE state > 6") == 25 * 6  # nobody touched what nobody knows


def a_locked_file(path):
    node = Node(path, 30000)
    identity = put(path, "burn")
    node.wait("burns")
    beat = reader.ask(path, "SELECT max(beat) FROM nodes")
    with sqlite3.connect(path, timeout=20, isolation_level=None) as db:
        db.execute("BEGIN IMMEDIATE")
        until("a beat that the store did not take", lambda: any("node.beat_failed" in line for line in node.log))
        db.execute("COMMIT")
    until("beats", lambda: reader.ask(path, "SELECT max(beat) FROM nodes") > beat + 1)
    assert job(path, identity)["executions"] == 1 and job(path, identity)["state"] == reader.RUNNING
    open(path + ".go", "w").close()
    until("its end", lambda: job(path, identity)["state"] == reader.SUCCEEDED)
    assert node.stop()["lapsed"] == 0
    assert not any("lease_lost" in line for line in node.log), node.log


sys.exit(nodes.run((odd_rows, a_locked_file), rules=False))
