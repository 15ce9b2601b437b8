# SPDX-License-Identifier: MIT
"""Signed calls and jobs: a server recomputes every signature with Python's own hmac, as a receiver would."""
import base64
import hashlib
import hmac
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = os.path.abspath(sys.argv[1])
OLD = b'the plain secret of before'
NEW = bytes(range(24))
seen, lock = [], threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        with lock:
            seen.append((self.path, dict(self.headers), body, time.time()))
            tries = sum(1 for call in seen if call[0] == self.path)
        self.send_response(503 if self.path.startswith('/flaky') and tries < 3 else 200)
        self.send_header('Content-Length', '0')
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *_):
        pass


def verify(call, *secrets):
    """As a receiver: the time is near, and each secret has its signature, in order."""
    _, headers, body, at = call
    names = {name.lower(): value for name, value in headers.items()}
    message, stamp = names['webhook-id'], names['webhook-timestamp']
    assert abs(int(stamp) - at) < 60, (stamp, at)
    wanted = [b'v1,' + base64.b64encode(hmac.new(secret, b'%s.%s.%s' % (message.encode(), stamp.encode(), body),
                                                 hashlib.sha256).digest()) for secret in secrets]
    assert names['webhook-signature'].encode() == b' '.join(wanted), (names, wanted)
    return message


def run(folder, *arguments, code=0, stdin=b''):
    done = subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, input=stdin, timeout=60, check=False)
    assert done.returncode == code, (arguments, done)
    return done.stdout.decode(), done.stderr.decode()


def configure(folder, port, signing):
    with open(os.path.join(folder, 'holdfast.yaml'), 'w', encoding='utf-8') as file:
        file.write('store: sqlite:jobs.db\n'
                   'downstreams: {d: {url: "http://127.0.0.1:%d", retry: {base: 1ms, max: 1}, signing: %s}}\n'
                   'jobs: {hook: {kind: http, downstream: d, path: /flaky-job, curve: [1ms]}}\n' % (port, signing))


def check_calls(folder):
    run(folder, 'call', 'd', '/a', '--data', '{"n":1}')
    first = verify(seen[-1], OLD)
    run(folder, 'call', 'd', '/a', '--data', '@-', stdin=bytes(range(256)))
    second = verify(seen[-1], OLD)
    assert first != second and re.fullmatch('[0-9a-f-]{36}', first), (first, second)
    run(folder, 'call', 'd', '/get')
    verify(seen[-1], OLD)
    run(folder, 'call', 'd', '/flaky', '--data', 'x', '--idempotency-key', 'key-17', code=1)
    assert [verify(call, OLD) for call in seen if call[0] == '/flaky'] == ['key-17'] * 2
    # What signing sets itself cannot be given.
    assert 'webhook-id' not in run(folder, 'call', 'd', '/a', '--header', 'Webhook-Id: mine', code=2)[0]


def check_job(folder):
    """Three requests in two executions are one message."""
    run(folder, 'enqueue', 'hook', '{"paid":true}')
    for _ in range(50): # a node may find the next execution not due yet, and end
        run(folder, 'run', '--until-idle')
        if json.loads(run(folder, 'job', 'show', '1', '--json')[0])['state'] == 'succeeded':
            break
    ids = [verify(call, NEW, OLD) for call in seen if call[0] == '/flaky-job']
    assert len(ids) == 3 and len(set(ids)) == 1, ids


def check_refused(folder, port):
    """Every wrong secret is named with its place, and never shown."""
    secret = 'hidden-and-secret-value'
    os.environ.update(SHORT='hidden', EMPTY='', BASE64='whsec_' + secret, LINES=secret + '\nx')
    with open(os.path.join(folder, 'empty'), 'wb') as file:
        file.write(b'\n')
    for signing, why in (('{secret: "${SHORT}"}', 'has 6 bytes'), ('{secret: "${BASE64}"}', 'is not base64'),
                         ('{secret: "${EMPTY}"}', 'it is empty'), ('{secret: "${LINES}"}', 'one line'),
                         ('{secret: "${NOT_THERE}"}', 'NOT_THERE is not set'), ('{secret: "file:nowhere"}', 'cannot be read'),
                         ('{secret: "file:empty"}', 'it is empty'), ('{secret: []}', 'the list is empty'),
                         ('{secret: {a: b}}', 'a single value'), ('{}', 'secret'), ('{key: x}', 'unknown key')):
        configure(folder, port, signing)
        text = ''.join(run(folder, 'check', code=2))
        assert why in text and 'holdfast.yaml:2' in text and 'signing' in text, (signing, text)
        assert 'hidden' not in text and secret not in text, text


def main():
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'old'), 'wb') as file:
            file.write(OLD + b'\n')
        os.environ['NEW'] = 'whsec_' + base64.b64encode(NEW).decode()
        configure(folder, server.server_port, '{secret: "file:old"}')
        check_calls(folder)
        configure(folder, server.server_port, '{secret: ["${NEW}", "file:old"]}')
        run(folder, 'check')
        check_job(folder)
        check_refused(folder, server.server_port)
    server.shutdown()
    assert json.dumps(len(seen)) == '8', len(seen)


main()
