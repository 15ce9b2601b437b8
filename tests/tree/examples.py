#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The programs of examples/ have the effect they promise, against peers that fail first.

usage: examples.py CALL GUARD_SQLITE GUARD_SOCKET GUARD_SMTP STEPS
"""
import http.server
import os
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


class Bank(http.server.BaseHTTPRequestHandler):
    seen = 0

    def do_GET(self):
        Bank.seen += 1
        self.send_response(503 if Bank.seen == 1 else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def check_call(program):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bank)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    code, shown = run(program, f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    assert (code, Bank.seen) == (0, 2), (code, Bank.seen, shown)
    assert "success" in shown and "2 attempts" in shown, shown


def check_sqlite(program):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bank.db")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("CREATE TABLE account (balance INTEGER)")
        other.execute("INSERT INTO account VALUES (100)")
        other.execute("BEGIN IMMEDIATE")
        example = subprocess.Popen([program, path], stdout=subprocess.PIPE, text=True)
        first = example.stdout.readline()
        assert first == "try: database is locked\n", first
        other.execute("COMMIT")
        rest = example.stdout.read()
        assert example.wait() == 0, rest
        assert "success" in rest and "2 attempts" in rest, rest
        assert other.execute("SELECT balance FROM account").fetchone() == (90,)
        other.close()


def serve(answers):
    """A TCP server whose n-th connection is answered by answers[n]; returns its port and the threads' joiner."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        for answer in answers:
            peer, _ = listener.accept()
            answer(peer)
            peer.close()
        listener.close()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    return listener.getsockname()[1], thread


def reset(peer):
    peer.recv(5)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def check_socket(program):
    asked = []

    def pong(peer):
        asked.append(peer.recv(5))
        peer.sendall(b"PONG\n")

    port, thread = serve([reset, pong])
    code, shown = run(program, port)
    thread.join()
    assert (code, asked) == (0, [b"PING\n"]), (code, asked, shown)
    assert shown == "success after 2 attempts: PONG\n", shown


def check_smtp(program):
    mails = []

    def busy(peer):
        peer.sendall(b"421 come back later\r\n")

    def accept(peer):
        stream = peer.makefile("rwb")

        def reply(text):
            stream.write(text + b"\r\n")
            stream.flush()

        reply(b"220 mail.example.org")
        for line in stream:
            if line.startswith(b"EHLO"):
                reply(b"250-mail.example.org\r\n250 8BITMIME")
            elif line.startswith(b"DATA"):
                reply(b"354 go on")
                text = b""
                while not text.endswith(b"\r\n.\r\n"):
                    text += stream.readline()
                mails.append(text)
                reply(b"250 queued")
                return
            else:
                reply(b"250 ok")

    port, thread = serve([busy, accept])
    code, shown = run(program, port)
    thread.join()
    assert code == 0 and len(mails) == 1, (code, mails, shown)
    assert mails[0].endswith(b"It held fast.\r\n.\r\n"), mails
    assert "2 attempts" in shown, shown


def check_steps(program):
    """Killed in the middle, run again: each step was taken once."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "steps.db")
        gate = sqlite3.connect(path, isolation_level=None)
        gate.execute("CREATE TABLE steps(step)")
        gate.execute("CREATE TRIGGER in_the_middle BEFORE INSERT ON steps WHEN NEW.step = 5 AND "
                     "NOT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'mended') BEGIN SELECT RAISE(ABORT, 'no'); END")
        first = subprocess.run([program], cwd=folder, capture_output=True, text=True, timeout=60)
        assert first.returncode == 0, first.stderr
        assert gate.execute("SELECT count(*) FROM steps").fetchone() == (5,)
        gate.execute("CREATE TABLE mended(yes)")
        jobs = sqlite3.connect(os.path.join(folder, "jobs.db"), isolation_level=None)
        assert jobs.execute("SELECT progress, length(c.bytes) FROM jobs j JOIN checkpoints c ON c.job_id = j.id").fetchone() == (5, 4)
        jobs.execute("UPDATE jobs SET run_at_us = 0 WHERE state = 0")
        jobs.execute("UPDATE lanes SET next_due_us = 0")
        jobs.close()
        second = subprocess.run([program], cwd=folder, capture_output=True, text=True, timeout=60)
        assert second.returncode == 0, second.stderr
        assert gate.execute("SELECT count(*), count(DISTINCT step) FROM steps WHERE step < 10").fetchone() == (20, 10)
        gate.close()


def main():
    call, in_sqlite, plain, smtp, steps = map(os.path.abspath, sys.argv[1:6])
    check_call(call)
    check_sqlite(in_sqlite)
    check_socket(plain)
    check_smtp(smtp)
    check_steps(steps)


if __name__ == "__main__":
    main()
