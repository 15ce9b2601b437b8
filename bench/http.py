#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs bench_http against an nginx of its own on the other core.
Usage: http.py [--processes N] BENCH_HTTP [SECONDS] [ROUNDS] [CONCURRENCY ...]

How the memory of a process happens to lie moves the ratio by up to 3 %, up or down, for as long as it lives. So with
--processes the bench runs in N of them one after the other, and the median of what they found is printed last."""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

CONF = """worker_processes 1;
daemon off;
pid nginx.pid;
error_log error.log crit;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    keepalive_requests 100000000;
    keepalive_timeout 300;
    server {{ listen 127.0.0.1:{port} backlog=2048; location / {{ default_type text/plain; return 200 "ok\\n"; }} }}
}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def pinned(core, command):
    """On one core of its own where there are two or more."""
    cores = sorted(os.sched_getaffinity(0))
    return ['taskset', '-c', str(cores[core]), *command] if len(cores) > 1 else command


def wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(('127.0.0.1', port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    sys.exit('nginx did not start')


def run(command):
    """One process of the bench with its own nginx: what it printed, line by line."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        (pathlib.Path(folder) / 'nginx.conf').write_text(CONF.format(port=port))
        user = 'user root;' if os.geteuid() == 0 else ''
        nginx = subprocess.Popen(pinned(0, ['nginx', '-p', folder, '-c', 'nginx.conf', '-g', user]))
        try:
            wait_for(port)
            url = f'http://127.0.0.1:{port}/'
            done = subprocess.run(pinned(-1, [command[0], url, *command[1:]]), stdout=subprocess.PIPE, text=True)
        finally:
            nginx.terminate()
            nginx.wait()
    print(done.stdout, end='', flush=True)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--processes', type=int, default=1)
    parser.add_argument('command', nargs='+')
    options = parser.parse_args()
    found = {}
    for _ in range(options.processes):
        for line in run(options.command):
            if 'ratio' in line:
                found.setdefault(line['concurrency'], []).append(line)
    for concurrency, lines in found.items() if options.processes > 1 else ():
        figures = {}
        for figure in ('ratio', 'cpu_more_us'):
            values = sorted(line[figure] for line in lines)
            figures[figure] = {'median': round(statistics.median(values), 3), 'least': values[0], 'most': values[-1]}
        print(json.dumps({'bench': 'http', 'concurrency': concurrency, 'processes': len(lines), **figures}))


if __name__ == '__main__':
    main()
