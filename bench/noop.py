#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How many no-op jobs a durable (synchronous FULL) SQLite file takes from claim to recorded outcome, beside the raw limit of
SQLite on the same disk in the same run, in turn. One JSON line per round, then the medians and the ratio.

usage: noop.py HOLDFAST SQLITE_LIMIT [JOBS] [ROUNDS] [FOLDER]     (FOLDER: on the disk to measure; default here)
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def holdfast_round(program, folder, jobs):
    config = os.path.join(folder, "holdfast.yaml")
    with open(config, "w", encoding="utf-8") as out:
        out.write(f"store: sqlite:{folder}/jobs.db\njobs:\n  nothing: {{kind: noop}}\n")
    started = time.monotonic()
    subprocess.run([program, "--config", config, "--quiet", "enqueue", "--ndjson", "-"], check=True, stdout=subprocess.DEVNULL,
                   input=b'{"type":"nothing","payload":"{}"}\n' * jobs)
    enqueued = time.monotonic() - started
    started = time.monotonic()
    subprocess.run([program, "--config", config, "--quiet", "run", "--until-idle"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    took = time.monotonic() - started
    return {"bench": "noop", "jobs": jobs, "enqueue_per_second": round(jobs / enqueued), "seconds": round(took, 3),
            "per_second": round(jobs / took)}


def limit_round(program, folder, jobs):
    out = subprocess.run([program, os.path.join(folder, "limit.db"), str(jobs), "1000"], check=True, capture_output=True)
    return json.loads(out.stdout)


def main():
    program, limit = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    jobs = int(sys.argv[3]) if len(sys.argv) > 3 else 100000
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    place = sys.argv[5] if len(sys.argv) > 5 else "."
    ours, theirs = [], []
    for _ in range(rounds):
        for measure, binary, results in ((holdfast_round, program, ours), (limit_round, limit, theirs)):
            with tempfile.TemporaryDirectory(prefix="holdfast-noop-", dir=place) as folder:
                result = measure(binary, os.path.abspath(folder), jobs)
            results.append(result["per_second"])
            print(json.dumps(result), flush=True)
    ours, theirs = statistics.median(ours), statistics.median(theirs)
    print(json.dumps({"bench": "noop_median", "holdfast_per_second": ours, "sqlite_per_second": theirs,
                      "ratio": round(ours / theirs, 3)}))


if __name__ == "__main__":
    main()
