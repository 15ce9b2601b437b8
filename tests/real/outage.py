#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real input: many webhook deliveries from an NDJSON file to nginx, which is stopped in the middle, while the runner is
killed with -9 once and started again. Every job must end succeeded, nothing may be lost or die, executions must equal
real tries, and the requests nginx logged must be explained by the attempts reported.

usage: outage.py HOLDFAST [JOBS] [OUTAGE_SECONDS]     (exit 77: nginx is not there)
"""
import base64
import collections
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from watch import Watch

SCRIPTS = ["deliver 配達 доставка تسليم παράδοση डिलीवरी 배달 משלוח 🚚", "naïve café — “quotes” \\ / \u2028 \u0001", "e\u0301\u200d🧑‍🚀"]
EXEC_JOBS = 20


def payload(rng, index):
    """0 bytes to 64 KiB: mostly small, some large; text of many scripts, some raw bytes."""
    kind = index % 10
    if kind == 0:
        return b""
    if kind == 1:
        return rng.choice(SCRIPTS).encode()
    if kind == 2:
        return rng.randbytes(rng.choice([1, 255, 256, 4096]))
    if kind == 3 and index % 100 == 3:
        return rng.randbytes(65536)
    return json.dumps({"order": index, "text": rng.choice(SCRIPTS)}).encode()


def write_jobs(path, count, rng):
    """The NDJSON file; returns the bytes each exec job must see, by its position among them."""
    every_byte = bytes(range(256))
    with open(path, "w", encoding="utf-8") as out:
        for index in range(count):
            line = {"type": "deliver"}
            if index % (count // EXEC_JOBS) == 7:
                line = {"type": "keep", "payload_base64": base64.b64encode(every_byte * (1 + index % 3)).decode()}
            else:
                line["payload_base64"] = base64.b64encode(payload(rng, index)).decode()
            out.write(json.dumps(line) + "\n")


NGINX = """daemon off; master_process off; pid {dir}/nginx.pid; error_log {dir}/error.log warn;
events {{ worker_connections 1024; }}
http {{ access_log {dir}/access.log seen; log_format seen '$http_holdfast_job $status $request_length';
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  client_max_body_size 1m; keepalive_requests 1000;
  server {{ listen 127.0.0.1:{port}; location / {{ return 200 "ok"; }} }} }}
"""
# The log format must stand before its use.
NGINX = NGINX.replace("access_log {dir}/access.log seen; log_format seen '$http_holdfast_job $status $request_length';",
                      "log_format seen '$http_holdfast_job $status $request_length'; access_log {dir}/access.log seen;")

CONFIG = """store: sqlite:{dir}/jobs.db
node: {{poll: 100ms}}
downstreams:
  hooks:
    url: http://127.0.0.1:{port}
    connect_timeout: 500ms
    attempt_timeout: 2s
    total_timeout: 10s
    retry: {{max: 2, base: 100ms, cap: 500ms}}
    breaker: {{window: 5s, min_calls: 10, break: 500ms, max_break: 2s, ramp: 2s}}
jobs:
  deliver: {{kind: http, downstream: hooks, path: /deliver, curve: [500ms, 1s, 2s], max_executions: 30}}
  keep: {{kind: exec, command: [/bin/sh, -c, 'cat > {dir}/kept.$HOLDFAST_JOB'], curve: [1s], max_executions: 10}}
"""


class Bench:
    def __init__(self, program, folder):
        self.program, self.dir = program, folder
        self.port = free_port()
        for name in "bpfus":
            os.mkdir(os.path.join(folder, name))
        self.write("nginx.conf", NGINX)
        self.write("holdfast.yaml", CONFIG)
        self.nginx = None
        self.watch = Watch(folder)

    def write(self, name, text):
        with open(os.path.join(self.dir, name), "w", encoding="utf-8") as out:
            out.write(text.format(dir=self.dir, port=self.port))

    def start_nginx(self):
        self.nginx = subprocess.Popen(["nginx", "-c", self.dir + "/nginx.conf", "-p", self.dir], stderr=subprocess.DEVNULL)
        self.watch.until("nginx to listen", lambda: can_connect(self.port), 10)

    def stop_nginx(self):
        """SIGQUIT: it closes its door at once, and logs what it answered. SIGTERM would exit with requests that were
        answered before their body was read and never logged, and the log would not be evidence."""
        self.nginx.send_signal(signal.SIGQUIT)
        self.nginx.wait(20)

    def holdfast(self, *words):
        return [self.program, "--config", self.dir + "/holdfast.yaml", *words]

    def start_runner(self, *words):
        log = open(self.dir + "/runner.log", "ab")
        return subprocess.Popen(self.holdfast("run", *words), stdout=log, stderr=log)

    def wait_for(self, what, condition, runner, seconds=120):
        """Looks again whenever the runner has written something, or nginx."""
        def met():
            if runner.poll() is not None:
                raise SystemExit(f"outage: the runner ended with {runner.returncode} while it was waited for {what}")
            return condition()
        self.watch.until(what, met, seconds)

    def query(self, sql):
        with sqlite3.connect(f"file:{self.dir}/jobs.db?mode=ro", uri=True, timeout=10) as db:
            return db.execute(sql).fetchall()

    def logged(self):
        with open(self.dir + "/access.log", encoding="utf-8") as log:
            return [line.split() for line in log]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def read(path):
    with open(path, "rb") as file:
        return file.read()


def can_connect(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def play(bench, count, outage):
    """The story; returns what was in flight when the runner was killed."""
    bench.start_nginx()
    runner = bench.start_runner()
    bench.wait_for("the first eighth", lambda: len(bench.logged()) > count // 8, runner)
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    killed = bench.query("SELECT count(*) FROM jobs WHERE state = 2")[0][0]
    runner = bench.start_runner()
    bench.wait_for("the first third", lambda: len(bench.logged()) > count // 3, runner)
    bench.stop_nginx()
    down = time.monotonic()
    bench.wait_for("the outage to last", lambda: time.monotonic() - down >= outage, runner)
    bench.start_nginx()
    bench.wait_for("the end", lambda: all_ended(bench), runner, 600)
    runner.send_signal(signal.SIGTERM)
    if runner.wait(60) != 0:
        raise SystemExit(f"outage: the runner ended with {runner.returncode}")
    runner = bench.start_runner("--until-idle")  # and there is nothing left
    if runner.wait(60) != 0:
        raise SystemExit(f"outage: the last runner ended with {runner.returncode}")
    return killed


def all_ended(bench):
    return bench.query("SELECT count(*) FROM jobs WHERE state < 3")[0][0] == 0


def check(bench, count, killed, slots):
    faults = []

    def hold(truth, text):
        print(("ok    " if truth else "FAULT ") + text)
        if not truth:
            faults.append(text)

    states = dict(bench.query("SELECT state, count(*) FROM jobs GROUP BY state"))
    hold(states == {3: count}, f"all {count} jobs succeeded: {states}")
    dead = bench.query("SELECT count(*) FROM dead_letters")[0][0]
    hold(dead == 0, f"no dead letters: {dead}")
    # Tries: ended as succeeded, failed or lapsed (2, 3, 9); what was refused before the wire or given back is not one.
    off = bench.query("SELECT count(*) FROM jobs j WHERE executions != "
                      "(SELECT count(*) FROM history h WHERE h.job_id = j.id AND h.event IN (2, 3, 9))")[0][0]
    hold(off == 0, f"executions equal the tries in the history: {off} differ")
    attempts = bench.query("SELECT coalesce(sum(attempts), 0) FROM history")[0][0]
    lines = bench.logged()
    per_job = collections.Counter(line[0] for line in lines)
    delivered = {str(row[0]) for row in bench.query("SELECT j.id FROM jobs j JOIN lanes l ON l.id = j.lane WHERE l.type = 'deliver'")}
    hold(set(per_job) == delivered, f"nginx saw every delivery, and nothing else: {len(per_job)} of {len(delivered)}")
    hold(len(delivered) <= len(lines) <= attempts + killed, f"requests logged {len(lines)} <= attempts reported {attempts} + in flight at the kill {killed}")
    hold(killed <= slots, f"in flight at the kill: {killed}")
    bytes_of = ("SELECT j.id, coalesce(j.payload, s.payload) FROM jobs j JOIN lanes l ON l.id = j.lane "
                "LEFT JOIN job_specs s ON s.id = j.id WHERE l.type = 'keep'")
    kept = bench.query(bytes_of)
    wrong = [job for job, data in kept if read(f"{bench.dir}/kept.{job}") != data]
    hold(len(kept) >= EXEC_JOBS and not wrong, f"{len(kept)} commands got every byte value: wrong {wrong}")
    return not faults


def main():
    if shutil.which("nginx") is None:
        sys.exit(77)
    program = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else (20000 if os.environ.get("HF_FULL") else 4000)
    outage = float(sys.argv[3]) if len(sys.argv) > 3 else (10.0 if os.environ.get("HF_FULL") else 3.0)
    seed = int(os.environ.get("HF_SEED") or random.randrange(2**31))
    print(f"seed {seed}, {count} jobs, nginx away for {outage} s")
    with tempfile.TemporaryDirectory(prefix="holdfast-outage-") as folder:
        bench = Bench(program, folder)
        write_jobs(folder + "/jobs.ndjson", count, random.Random(seed))
        subprocess.run(bench.holdfast("--quiet", "enqueue", "--ndjson", folder + "/jobs.ndjson"), check=True, stdout=subprocess.DEVNULL)
        started = time.monotonic()
        try:
            killed = play(bench, count, outage)
            good = check(bench, count, killed, 512)
        finally:
            if bench.nginx is not None and bench.nginx.poll() is None:
                bench.stop_nginx()
        print(f"took {time.monotonic() - started:.1f} s")
        if not good:
            shutil.copytree(folder, "outage-evidence", dirs_exist_ok=True)
        sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
