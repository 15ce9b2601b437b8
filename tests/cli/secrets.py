# SPDX-License-Identifier: MIT
"""Plants a secret wherever one may stand, lets calls, jobs and alerts fail in every way, and looks for it in everything that
comes out: texts, JSON, logs and the bytes of the store."""
import base64
import http.server
import os
import socket
import subprocess
import sys
import tempfile
import threading

PROGRAM = os.path.abspath(sys.argv[1])
SECRETS = {name: 'ZQ%sZQ%d' % (name, number * 7919 + 1234567) for number, name in enumerate(
    ('HEADER', 'PASSWORD', 'USER', 'QUERY', 'JOBQUERY', 'JOBHEADER', 'SIGNING', 'HOOKPATH', 'HOOKQUERY', 'HOOKUSER', 'FILE',
     'CALLHEADER', 'CALLBEARER', 'PROXY'))}
outputs = {}


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """Clients that give up are what this is about."""


class Handler(http.server.BaseHTTPRequestHandler):
    """Refuses by the path, and says back in headers and body all that it was told."""
    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        self.rfile.read(int(self.headers.get('Content-Length', 0)))
        said = ('%s %s' % (self.path, self.headers)).replace('\n', ' ').replace('\r', ' ')
        if self.path.startswith('/cut'):
            self.close_connection = True
            return
        if self.path.startswith('/slow'):
            threading.Event().wait(1)
        self.send_response(int(self.path[1:4]) if self.path[1:4].isdigit() else 503, said[:200])
        self.send_header('X-Echo', said)
        self.send_header('Location', 'http://u:%s@127.0.0.1:1/?%s' % (SECRETS['PASSWORD'], SECRETS['QUERY']))
        self.send_header('Retry-After', '1' if self.path.startswith('/429') else 'never')
        self.send_header('Content-Length', str(len(said)))
        self.end_headers()
        try:
            self.wfile.write(said.encode())
        except OSError:
            pass  # it gave up on us

    do_GET = do_POST

    def log_message(self, *_):
        pass


def run(folder, *arguments):
    """Whatever the exit code, nothing of a secret comes out."""
    environment = dict(os.environ, HOLDFAST_LOG='debug', **{'S_' + name: value for name, value in SECRETS.items()})
    environment['S_SIGNING'] = 'whsec_' + base64.b64encode(SECRETS['SIGNING'].encode()).decode()
    done = subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, timeout=120, check=False, env=environment)
    outputs[' '.join(arguments)] = done.stdout + done.stderr
    return done


def forms():
    """Each secret as it is, and as it goes over the wire."""
    for name, value in SECRETS.items():
        yield name, value.encode()
        for shift in range(3):
            yield name + ' in base64', base64.b64encode(b' ' * shift + value.encode())[4:20]
    yield 'the signing key', base64.b64encode(SECRETS['SIGNING'].encode())


def search(where, data):
    for name, form in forms():
        assert form not in data, '%s was found in %s: %r' % (name, where, data[max(0, data.find(form) - 200):][:500])


def free_port():
    """One that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        return taken.getsockname()[1]


def write(folder, text):
    with open(os.path.join(folder, 'holdfast.yaml'), 'w', encoding='utf-8') as file:
        file.write(text)


WAYS = ('503', '404', '429', '302', 'cut', 'slow', 'refused', 'tls', 'proxy', 'noproxy')


def configure(folder, port, dead):
    """One downstream, one job type and one alert sink for each way to fail."""
    text = 'store: sqlite:jobs.db\ndownstreams:\n'
    for way in WAYS:
        scheme, where = 'https' if way == 'tls' else 'http', dead if way == 'refused' else port
        text += ('  %s:\n    url: "%s://${S_USER}:${S_PASSWORD}@127.0.0.1:%d/%s"\n'
                 '    headers: {x-api-key: "${S_HEADER}", x-file: "file:secret"}\n    signing: {secret: "${S_SIGNING}"}\n'
                 '    connect_timeout: 200ms\n    attempt_timeout: 200ms\n    total_timeout: 1s\n'
                 '    retry: {max: 1, base: 1ms, cap: 2ms}\n    breaker: {min_calls: 2, break: 10ms, max_break: 10ms}\n'
                 '    on_open: fail\n' % ('d' + way, scheme, where, way))
        if way.endswith('proxy'):
            text += '    proxy: "http://proxy:${S_PROXY}@127.0.0.1:%d"\n' % (port if way == 'proxy' else dead)
    text += 'defaults: {max_executions: 1}\njobs:\n'
    for way in WAYS:
        text += ('  j%s: {kind: http, downstream: d%s, path: /job, query: "token=${S_JOBQUERY}", execution_timeout: 2m,\n'
                 '       headers: {x-job: "${S_JOBHEADER}"}}\n' % (way, way))
    text += 'alerts:\n'
    for way, where in (('503', port), ('cut', port), ('refused', dead)):
        text += ('  a%s: {webhook: {url: "http://u:${S_HOOKUSER}@127.0.0.1:%d/%s/${S_HOOKPATH}?key=${S_HOOKQUERY}", '
                 'timeout: 1s}}\n' % (way, where, way))
    write(folder, text)


def check_all(folder):
    run(folder, 'check')
    assert run(folder, 'check', '--json').returncode == 0, outputs['check --json']
    run(folder, 'check', '--explain')
    for way in WAYS:
        for more in ((), ('--verbose', '--json')):
            done = run(folder, 'call', 'd' + way, '/x?token=' + SECRETS['QUERY'], '--header', 'X-Mine: ' + SECRETS['CALLHEADER'],
                       '--method', 'POST', *more)
            assert done.returncode == 1, (way, done)
        run(folder, 'enqueue', 'j' + way, '{}', '--verbose')
    done = run(folder, 'run', '--until-idle', '--verbose')
    assert done.stderr.count(b'job.dead') == len(WAYS), done.stderr
    run(folder, 'run', '--until-idle', '--json')
    for listed in ('job', 'dead', 'queue', 'downstream'):
        run(folder, listed, 'list', '--json')
        run(folder, listed, 'list')
    for number, way in enumerate(WAYS, 1):
        for shown in (('job', str(number)), ('dead', str(number)), ('downstream', 'd' + way)):
            assert run(folder, shown[0], 'show', shown[1]).returncode == 0, outputs
            run(folder, shown[0], 'show', shown[1], '--json')
    run(folder, 'doctor', '--verbose')


def check_complaints(folder):
    """What is wrong with a secret is told without it."""
    secret = SECRETS['PASSWORD']
    for line in ('url: "ftp://u:%s@a.test/"', 'url: "http://u:%s@a.test:x/"', 'url: "http://a.test/?token=%s"',
                 'url: "http://u:%s@"', 'url: "http://u:%s/x@a.test"', 'url: "http://u:%s @a.test"',
                 'url: "http://a.test", headers: {x: "%s\\nx"}', 'url: "http://a.test", headers: {"x y": "%s"}',
                 'url: "http://a.test", headers: {host: "%s", content-length: "%s"}',
                 'url: "http://u:%s@a.test", headers: {authorization: "%s"}',
                 'url: "http://a.test", proxy: "http://u:%s@a.test"', 'url: "http://a.test", proxy: "ftp://u:%s@a.test:1"',
                 'url: "http://a.test", private_networks: deny, proxy: "http://u:%s@a.test:1"',
                 'url: "http://a.test", signing: {secret: "whsec_%s"}', 'url: "http://a.test", signing: {secret: [short, "%s"]}'):
        write(folder, 'downstreams: {d: {%s}}\n' % line.replace('%s', secret))
        assert run(folder, 'check').returncode == 2, (line, outputs['check'])
        search('the complaint about ' + line, outputs['check'])
        run(folder, 'call', 'd')
        run(folder, 'downstream', 'show', 'd', '--json')
        search('downstream show of ' + line, outputs['downstream show d --json'])
    write(folder, 'jobs: {j: {kind: http, downstream: d, path: "/a?token=%s"}}\ndownstreams: {d: {url: "http://a.test"}}\n' % secret)
    assert run(folder, 'check').returncode == 2
    search('the complaint about a query', outputs['check'])
    write(folder, 'downstreams: {d: {url: "http://127.0.0.1:1"}}\n')
    for header in (SECRETS['CALLBEARER'], 'X: a\n' + SECRETS['CALLBEARER'], ': ' + SECRETS['CALLBEARER'],
                   'Content-Length: ' + SECRETS['CALLBEARER']):
        done = run(folder, 'call', 'd', '--header', header)
        assert done.returncode == 2, done
        search('the complaint about a header', done.stdout + done.stderr)
    done = run(folder, 'job', 'list', '--store', 'postgres://u:%s@a.test/x?password=%s' % (secret, secret))
    search('the complaint about a store', done.stdout + done.stderr)


def main():
    server = Server(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'secret'), 'w', encoding='utf-8') as file:
            file.write(SECRETS['FILE'] + '\n')
        configure(folder, server.server_port, free_port())
        check_all(folder)
        for command, output in outputs.items():
            search(command, output)
        names = [name for name in os.listdir(folder) if name.startswith('jobs.db')]
        assert names, os.listdir(folder)
        for name in names:
            with open(os.path.join(folder, name), 'rb') as file:
                search(name, file.read())
        check_complaints(folder)
    server.shutdown()


main()
