#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A downstream that accepts and never answers, and commands that never end, on one queue: jobs of another queue must not
wait for them. 500 hanging jobs are queued first, then quick ones one by one: the 95th percentile from enqueue to start
stays under 2 s [S3.3, S3.15].

usage: hostage.py HOLDFAST
"""
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from watch import Watch

HANGING = 500
QUICK = 60
LIMIT_S = 2.0

CONFIG = """store: sqlite:{dir}/jobs.db
node: {{workers: 8, drain_timeout: 1s}}
defaults: {{curve: [60s], max_executions: 3}}
downstreams:
  tarpit: {{url: "http://127.0.0.1:{port}", attempt_timeout: 20s, total_timeout: 90s}}
queues:
  slow: {{order: 1}}
  quick: {{order: 2}}
jobs:
  hang-http: {{kind: http, downstream: tarpit, path: /, queue: slow}}
  hang-exec: {{kind: exec, command: [/bin/sleep, "600"], queue: slow, kill_grace: 100ms}}
  quick-noop: {{kind: noop, queue: quick}}
  quick-exec: {{kind: exec, command: [/bin/true], queue: quick}}
"""


def tarpit():
    """Accepts for ever, answers never."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(1024)
    kept = []

    def accept():
        while True:
            try:
                kept.append(server.accept()[0])
            except OSError:
                return

    threading.Thread(target=accept, daemon=True).start()
    return server


def run(program, folder, port, hanging, quick):
    config = os.path.join(folder, "holdfast.yaml")
    with open(config, "w", encoding="utf-8") as out:
        out.write(CONFIG.format(dir=folder, port=port))

    def holdfast(*words, **rest):
        return subprocess.run([program, "--config", config, "--quiet", *words], check=True, stdout=subprocess.DEVNULL, **rest)

    lines = "".join('{"type":"%s","payload":""}\n' % hanging for _ in range(HANGING))
    holdfast("enqueue", "--ndjson", "-", input=lines.encode())
    log, watch = open(os.path.join(folder, "runner.log"), "wb"), Watch(folder)
    runner = subprocess.Popen([program, "--config", config, "run"], stdout=log, stderr=log)
    try:
        with sqlite3.connect(f"file:{folder}/jobs.db?mode=ro", uri=True, timeout=10) as db:
            watch.until("seven of them to run", lambda: db.execute("SELECT count(*) FROM jobs WHERE state = 2").fetchone()[0] >= 7, 20)
            for _ in range(QUICK):
                holdfast("enqueue", quick, "")
            of_type = " FROM jobs j JOIN lanes l ON l.id = j.lane WHERE l.type = ?"
            ended = "SELECT count(*)" + of_type + " AND j.state = 3"
            watch.until("the quick ones", lambda: db.execute(ended, (quick,)).fetchone()[0] == QUICK, 60)
            waits = sorted(row[0] / 1e6 for row in db.execute("SELECT j.started_at_us - j.created_at_us" + of_type, (quick,)))
            still = db.execute("SELECT count(*)" + of_type + " AND j.state IN (0, 2)", (hanging,)).fetchone()[0]
    finally:
        runner.send_signal(signal.SIGTERM)
        try:
            runner.wait(20)
        except subprocess.TimeoutExpired:
            runner.kill()
            runner.wait()
    p95 = waits[int(len(waits) * 0.95)]
    print(f"{hanging} before {quick}: p50 {waits[len(waits) // 2]:.3f} s, p95 {p95:.3f} s, {still} still hanging")
    return p95 < LIMIT_S and still == HANGING


def main():
    server = tarpit()
    good = True
    for hanging in ("hang-http", "hang-exec"):
        for quick in ("quick-noop", "quick-exec"):
            with tempfile.TemporaryDirectory(prefix="holdfast-hostage-") as folder:
                good = run(os.path.abspath(sys.argv[1]), folder, server.getsockname()[1], hanging, quick) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
