# SPDX-License-Identifier: MIT
"""Calls of http jobs whose payload gives their values, and jobs at a per_host downstream, seen by the server.

templates.py PROGRAM"""
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading

PROGRAM = os.path.abspath(sys.argv[1])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def answer(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        self.server.seen.append((self.command, self.path, dict(self.headers.items()), body))
        self.send_response(self.server.status)
        self.send_header('Content-Length', '0')
        self.end_headers()

    do_POST = do_PUT = answer

    def log_message(self, *_):
        pass


def serve(status):
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    server.seen, server.status = [], status
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def run(folder, *arguments, code=0, stdin=b''):
    done = subprocess.run([PROGRAM, *arguments], cwd=folder, input=stdin, capture_output=True, timeout=120, check=False)
    assert code is None or done.returncode == code, (arguments, done)
    return done.stdout.decode() + done.stderr.decode()


def put(folder, kind, payload, *flags):
    payload = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return int(run(folder, 'enqueue', kind, '-', *flags, stdin=payload))


def show(folder, job):
    return json.loads(run(folder, 'job', 'show', str(job), '--json'))


def configure(folder, text):
    with open(os.path.join(folder, 'holdfast.yaml'), 'w', encoding='utf-8') as file:
        file.write('store: sqlite:jobs.db\n' + text)


def values_in_their_places(folder):
    server = serve(200)
    configure(folder, 'downstreams: {api: {url: "http://127.0.0.1:%d/v1"}}\njobs:\n'
                      '  mail: {kind: http, downstream: api, method: PUT, path: "/users/{user}/mail", query: "lang={lang}&x=1", '
                      'headers: {X-User: "u-{user}", X-Fixed: "{}"}, body_field: text, max_executions: 1}\n'
                      '  raw: {kind: http, downstream: api, path: /raw}\n' % server.server_port)
    run(folder, 'check')
    good = put(folder, 'mail', {'user': 'a/../b', 'lang': 'de&x=2', 'text': 'Hi é'})
    number = put(folder, 'mail', {'user': 7, 'lang': True, 'text': {'a': 1}})
    bad = [put(folder, 'mail', payload) for payload in (b'\xff\x00', {'user': 'u'}, {'user': '..', 'lang': 'x', 'text': ''},
                                                        {'user': 'a\r\nX-Evil: 1', 'lang': 'x', 'text': ''})]
    everything = bytes(range(256)) * 16
    raw = put(folder, 'raw', everything) # I65: without fields any bytes, as they are
    braces = put(folder, 'raw', b'{"user": ')
    run(folder, 'run', '--until-idle')
    assert all(show(folder, job)['state'] == 'succeeded' for job in (good, number, raw, braces))
    for job in bad:
        shown = show(folder, job)
        assert shown['state'] == 'quarantined' and shown['error_class'] == 'poison' and shown['executions'] == 0, shown # S3.14
        assert shown['error_type'] in ('payload.field', 'payload.json') and 'Evil' not in json.dumps(shown['error_message']), shown
    phases = json.loads(run(folder, 'downstream', 'show', 'api', '--json'))['phases'] # of the four calls; nobody spoke TLS
    assert phases['total']['count'] == phases['first_byte']['count'] == 4 and phases['tls'] is None, phases
    assert 0 < phases['first_byte']['p50_us'] <= phases['total']['p99_us'], phases
    assert ' of 4' in [line for line in run(folder, 'downstream', 'show', 'api').splitlines() if line.startswith('whole attempt')][0]
    seen = {path: (method, headers, body) for method, path, headers, body in server.seen}
    assert len(server.seen) == 4, server.seen
    method, headers, body = seen['/v1/users/a%2F..%2Fb/mail?lang=de%26x%3D2&x=1']
    assert method == 'PUT' and headers['X-User'] == 'u-a/../b' and headers['X-Fixed'] == '{}' and body == 'Hi é'.encode()
    assert headers['Idempotency-Key'] == show(folder, good)['idempotency_key'] or headers['Idempotency-Key'].endswith('-%d' % good)
    assert seen['/v1/users/7/mail?lang=true&x=1'][2] == b'{"a":1}'
    assert [body for _, path, _, body in server.seen if path == '/v1/raw'] in ([everything, b'{"user": '], [b'{"user": ', everything])
    server.shutdown()


def not_repeatable_is_tried_once(folder):
    """`repeatable: false` forbids short retries and another execution; the default sends a key and retries."""
    server = serve(503)
    configure(folder, 'downstreams: {api: {url: "http://127.0.0.1:%d", retry: {max: 2, base: 1ms}}}\njobs:\n'
                      '  once: {kind: http, downstream: api, path: /once, repeatable: false}\n'
                      '  again: {kind: http, downstream: api, path: /again, max_executions: 1}\n' % server.server_port)
    put(folder, 'once', {})
    put(folder, 'again', {})
    run(folder, 'run', '--until-idle')
    paths = [path for _, path, _, _ in server.seen]
    assert paths.count('/once') == 1 and paths.count('/again') == 3, paths
    keys = {headers.get('Idempotency-Key') for _, path, headers, _ in server.seen if path == '/again'}
    assert len(keys) == 1 and None not in keys, keys
    server.shutdown()


def wait(folder, jobs, done):
    for job in jobs:
        for _ in range(1000):
            shown = show(folder, job)
            if done(shown):
                break
        else:
            raise AssertionError(shown)


def hosts_of_strangers(folder):
    """Each host has its own breaker: a dead one keeps nobody else back [B30]."""
    good, bad = serve(200), serve(500)
    configure(folder, 'downstreams:\n  hooks: {per_host: true, retry: {max: 0}, breaker: {min_calls: 5, break: 10m, max_break: 10m}}\n'
                      '  public: {per_host: true, private_networks: deny, retry: {max: 0}}\njobs:\n'
                      '  hook: {kind: http, downstream: hooks, url: "{url}", curve: [1h]}\n'
                      '  tenant: {kind: http, downstream: hooks, url: "http://127.0.0.1:{port}/t/{name}"}\n'
                      '  safe: {kind: http, downstream: public, url: "{url}", max_executions: 1}\n')
    run(folder, 'check')
    node = subprocess.Popen([PROGRAM, 'run'], cwd=folder, stderr=subprocess.DEVNULL)
    to_bad = {'url': 'http://127.0.0.1:%d/b' % bad.server_port}
    wait(folder, [put(folder, 'hook', to_bad) for _ in range(5)], lambda job: job['failures'] == 1)
    for _ in range(10):
        put(folder, 'hook', to_bad)
    goods = [put(folder, 'hook', {'url': 'http://127.0.0.1:%d/g?n=%d' % (good.server_port, n)}) for n in range(10)]
    tenant = put(folder, 'tenant', {'port': good.server_port, 'name': 'a b'})
    private = put(folder, 'safe', {'url': 'http://127.0.0.1:%d/s' % good.server_port})
    wrong = [put(folder, 'hook', payload) for payload in ({'url': 'ftp://a/b'}, {'url': 'http://u:hush@a/'}, {}, {'url': 'http://a/\nb'})]
    wait(folder, goods + [tenant, private] + wrong, lambda job: job['state'] not in ('pending', 'running'))
    node.terminate()
    node.wait(timeout=60)
    assert all(show(folder, job)['state'] == 'succeeded' for job in goods + [tenant])
    assert len(good.seen) == 11 and any(path == '/t/a%20b' for _, path, _, _ in good.seen), good.seen
    assert len(bad.seen) == 5, len(bad.seen) # its breaker opened
    shown = show(folder, private)
    assert shown['state'] == 'dead' and shown['error_type'] == 'local.private_network', shown
    for job in wrong:
        shown = show(folder, job)
        assert shown['state'] == 'quarantined' and shown['error_type'] == 'payload.field' and 'hush' not in shown['error_message'], shown
    good.shutdown()
    bad.shutdown()


def what_check_refuses(folder):
    downstreams = 'downstreams: {api: {url: "http://localhost"}, hooks: {per_host: true}}\njobs:\n'
    for job, why in (('downstream: hooks', 'the job has no url'), ('downstream: api, url: "{url}"', 'has a url of its own'),
                     ('downstream: api, path: "/{a"', 'a brace that is part of no field'),
                     ('downstream: api, query: "a={}"', 'a brace that is part of no field'),
                     ('downstream: hooks, url: "{url}", path: /a', 'no path or query'),
                     ('downstream: api, body_field: ""', 'body_field')):
        configure(folder, downstreams + '  t: {kind: http, %s}\n' % job)
        out = run(folder, 'check', code=2)
        assert why in out and 'holdfast.yaml:4' in out, (job, out)
        run(folder, 'run', '--until-idle', code=2)
    configure(folder, 'jobs: {t: {kind: noop, url: "{url}"}, u: {kind: noop, rlimits: {cpu: 1s}}, v: {kind: exec, command: [/a], '
                      'library: /b}, w: {kind: plugin, library: /c, directory: /}}\n')
    out = run(folder, 'check', code=2)
    assert out.count('[config.kind]') == 4, out


def main():
    for test in values_in_their_places, not_repeatable_is_tried_once, hosts_of_strangers, what_check_refuses:
        with tempfile.TemporaryDirectory() as folder:
            test(folder)
            print('ok', test.__name__)


main()
