#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs bench_http against an nginx of its own on the other core. Usage: http.py BENCH_HTTP [SECONDS] [ROUNDS] [CONCURRENCY ...]"""
import os
import pathlib
import socket
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


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        (pathlib.Path(folder) / 'nginx.conf').write_text(CONF.format(port=port))
        user = 'user root;' if os.geteuid() == 0 else ''
        nginx = subprocess.Popen(pinned(0, ['nginx', '-p', folder, '-c', 'nginx.conf', '-g', user]))
        try:
            wait_for(port)
            code = subprocess.call(pinned(-1, [sys.argv[1], f'http://127.0.0.1:{port}/', *sys.argv[2:]]))
        finally:
            nginx.terminate()
            nginx.wait()
    sys.exit(code)


if __name__ == '__main__':
    main()
