# SPDX-License-Identifier: MIT
"""`holdfast call` against a server of its own: what is sent, what is printed, exit codes, many calls at once."""
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading

PROGRAM = os.path.abspath(sys.argv[1])
seen, lock = [], threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def answer(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        with lock:
            seen.append((self.command, self.path, dict(self.headers), body))
            first = sum(1 for call in seen if call[1] == self.path) == 1
        status = 503 if self.path == '/flaky' and first else 404 if self.path == '/missing' else 200
        text = b'the answer'
        self.send_response(status)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *_):
        pass


def run(folder, *arguments, code=0, stdin=b''):
    done = subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, input=stdin, timeout=60, check=False)
    assert done.returncode == code, (arguments, done)
    return done.stdout.decode()


def main():
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'holdfast.yaml'), 'w', encoding='utf-8') as file:
            file.write('downstreams: {d: {url: "http://127.0.0.1:%d", headers: {x-token: "${TOKEN}"}, retry: {base: 1ms}}}\n' %
                       server.server_port)
        os.environ['TOKEN'] = 'secret-4711'

        one = json.loads(run(folder, 'call', 'd', '/a?x=1', '--json'))
        assert one['outcome'] == 'success' and one['status'] == 200 and one['attempts'] == 1, one
        assert one['phases']['total_ms'] >= one['phases']['first_byte_ms'] >= one['phases']['connect_ms'], one
        assert seen[-1][:2] == ('GET', '/a?x=1') and seen[-1][2]['x-token'] == 'secret-4711', seen[-1]

        # The tries are told, and the server saw as many.
        flaky = json.loads(run(folder, 'call', 'd', '/flaky', '--json'))
        assert flaky['attempts'] == 2 == sum(1 for call in seen if call[1] == '/flaky') and flaky['retries'] == 1, flaky

        # Every byte value as a body; the method follows.
        with open(os.path.join(folder, 'bytes'), 'wb') as file:
            file.write(bytes(range(256)))
        run(folder, 'call', 'd', '/b', '--data', '@bytes', '--header', 'X-One: 1', '--idempotency-key', 'k1')
        assert seen[-1][0] == 'POST' and seen[-1][3] == bytes(range(256)) and seen[-1][2]['X-One'] == '1', seen[-1]
        assert seen[-1][2]['Idempotency-Key'] == 'k1', seen[-1]
        run(folder, 'call', 'd', '/b', '--data', '@-', '--method', 'PUT', stdin=b'piped')
        assert seen[-1][0] == 'PUT' and seen[-1][3] == b'piped', seen[-1]
        assert run(folder, 'call', 'd', '/c', '--body') == 'the answer'

        text = run(folder, 'call', 'd', '/missing', code=1)
        assert 'http.404' in text and 'secret-4711' not in text, text
        many = json.loads(run(folder, 'call', 'd', '/many', '--repeat', '50', '--parallel', '8', '--json'))
        assert len(many['items']) == 50 and all(item['status'] == 200 for item in many['items']), many
        # The phases of all attempts, in ms: no name lookup or connect on a connection that was there, no TLS without TLS.
        latency = many['latency']
        assert list(latency) == ['resolve', 'connect', 'tls', 'first_byte', 'total'] and many['next'] is None, latency
        assert latency['total']['attempts'] == latency['first_byte']['attempts'] == 50, latency
        assert 1 <= latency['connect']['attempts'] == sum(i['phases']['connect_ms'] is not None for i in many['items']), latency
        assert latency['tls'] == {'attempts': 0, 'p50_ms': None, 'p95_ms': None, 'p99_ms': None}, latency
        for phase in ('connect', 'first_byte', 'total'):
            assert 0 <= latency[phase]['p50_ms'] <= latency[phase]['p95_ms'] <= latency[phase]['p99_ms'], latency
        assert latency['first_byte']['p50_ms'] <= latency['total']['p99_ms'] < 60000, latency
        table = run(folder, 'call', 'd', '/table', '--repeat', '5')
        assert 'success' in table and 'p95' in table, table
        rows = {line[:14].strip(): line.split() for line in table.splitlines()}
        assert rows['PHASE'][-6:] == ['P50', 'MS', 'P95', 'MS', 'P99', 'MS'] and 'TLS' not in rows, table
        assert rows['connect'][1] == '1' and rows['first byte'][2] == rows['whole attempt'][2] == '5', table

        # With per_host the whole URL comes with the call; what is no target is refused, and no password is shown.
        with open(os.path.join(folder, 'hosts.yaml'), 'w', encoding='utf-8') as file:
            file.write('downstreams: {hooks: {per_host: true, headers: {x-token: "${TOKEN}"}, retry: {base: 1ms}}}\n')
        url = 'http://127.0.0.1:%d/hook?a=b' % server.server_port
        one = json.loads(run(folder, 'call', 'hooks', url, '--data', 'x', '--json', '--config', 'hosts.yaml'))
        assert one['status'] == 200 and seen[-1][:2] == ('POST', '/hook?a=b') and seen[-1][2]['x-token'] == 'secret-4711', one
        hosts = json.loads(run(folder, 'call', 'hooks', url, '--repeat', '2', '--json', '--config', 'hosts.yaml'))
        assert hosts['latency']['first_byte']['attempts'] == 2 == hosts['latency']['total']['attempts'], hosts
        count = len(seen)
        for bad in (None, '/hook', 'ftp://h/', 'http://user:secret-4712@127.0.0.1:%d/' % server.server_port, 'http://2130706433/'):
            done = subprocess.run([PROGRAM, 'call', 'hooks', *([bad] if bad else []), '--config', 'hosts.yaml'], cwd=folder,
                                  capture_output=True, timeout=60, check=False)
            assert done.returncode == 2 and b'url: ' in done.stderr and b'4712' not in done.stderr, (bad, done)
        assert len(seen) == count

        run(folder, 'call', 'nobody', code=3)
        run(folder, 'call', 'd', 'no-slash', code=2)
        run(folder, 'call', 'd', '--header', 'nonsense', code=2)
        run(folder, 'call', 'd', '--header', 'a: b\nc: d', code=2)
        run(folder, 'call', 'd', '--body', '--json', code=2)
        del os.environ['TOKEN']
        run(folder, 'call', 'd', code=2)
    server.shutdown()


main()
