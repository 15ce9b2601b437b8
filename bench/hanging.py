#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What sinks that hang cost a node: no-op jobs a second, from the first start to the last end by the rows, of a node whose mail,
webhook and command sinks all hang with deaths to tell, and of one without sinks and the same deaths, in turn.

usage: hanging.py HOLDFAST [JOBS] [ROUNDS] [FOLDER]     (FOLDER: on the disk to measure; default here)
"""
import json
import os
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile

DEATHS = 8  # as many as a webhook sink tries at once
SINKS = """alerts:
  mail: {mail: {server: "smtp://127.0.0.1:%(port)d", from: a@example.org, to: [b@example.org], tls: none, timeout: 3s}, collapse: none}
  hook: {webhook: {url: "http://127.0.0.1:%(port)d/", timeout: 3s}, collapse: none}
  file: {command: {run: [/bin/sleep, "1000"], timeout: 3s}, collapse: none}
"""
JOBS = "SELECT count(*), max(finished_at_us) - min(started_at_us) FROM jobs JOIN lanes ON lanes.id = jobs.lane WHERE type = 'nothing' AND state = 3"


def measure(program, folder, jobs, port):
    with open(folder + "/holdfast.yaml", "w", encoding="utf-8") as out:
        out.write(f"store: sqlite:{folder}/jobs.db\njobs:\n  nothing: {{kind: noop}}\n"
                  f"  dies: {{kind: exec, command: [/bin/false], max_executions: 1}}\n" + (SINKS % {"port": port} if port else ""))

    def run(*words, text=b""):
        subprocess.run([program, "--config", folder + "/holdfast.yaml", "--quiet", *words], input=text, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run("enqueue", "--ndjson", "-", text=b'{"type":"dies","priority":9}\n' * DEATHS + b'{"type":"nothing"}\n' * jobs)
    run("run", "--until-idle")
    with sqlite3.connect(folder + "/jobs.db") as db:
        done, took_us = db.execute(JOBS).fetchone()
        unsent = db.execute("SELECT count(*) FROM alerts WHERE state = 0").fetchone()[0]
    assert done == jobs and unsent == (3 * DEATHS if port else 0), (done, unsent)
    return {"bench": "hanging", "sinks": 3 if port else 0, "jobs": jobs, "unsent": unsent, "per_second": round(jobs / took_us * 1e6)}


def main():
    program = os.path.abspath(sys.argv[1])
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 60000
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    place = sys.argv[4] if len(sys.argv) > 4 else "."
    silent = socket.create_server(("127.0.0.1", 0), backlog=256)  # takes connections, and never says a word
    figures = {0: [], 3: []}
    for _ in range(rounds):
        for port in (0, silent.getsockname()[1]):
            with tempfile.TemporaryDirectory(prefix="holdfast-hanging-", dir=place) as folder:
                result = measure(program, os.path.abspath(folder), jobs, port)
            figures[result["sinks"]].append(result["per_second"])
            print(json.dumps(result), flush=True)
    without, hanging = statistics.median(figures[0]), statistics.median(figures[3])
    print(json.dumps({"bench": "hanging_median", "without": without, "hanging": hanging, "ratio": round(hanging / without, 3)}))


if __name__ == "__main__":
    main()
