#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`holdfast alert test` against scripted SMTP and HTTP servers and a command [S0.25 S0.26 S0.27]: what goes out, word by word,
each answer of the dialogue refused, cut and hung, STARTTLS and AUTH, a hostile configuration refused; one sink down while
another one is up [S2.35]; and `holdfast alert list`."""
import http.server
import json
import os
import quopri
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from smtp import Smtp
from watch import Watch

program = os.path.abspath(sys.argv[1])


def run(text, *words):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'holdfast.yaml'), 'w') as file:
            file.write('store: sqlite:jobs.db\n' + text)
        began = time.monotonic()
        done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr, time.monotonic() - began


def mail(port, more=''):
    return ('alerts: {ops: {mail: {server: "smtp://127.0.0.1:%d", from: holdfast@example.org, to: [a@example.org, b@example.org], '
            'tls: none, timeout: 1s%s}}}\n' % (port, more))


def expect(what, good):
    if not good:
        sys.exit('wrong: %s' % (what,))


def mails():
    server = Smtp()
    code, out, err, _ = run(mail(server.port), 'alert', 'test', 'ops')
    expect((code, out, err), code == 0 and 'took the test alert' in out)
    expect(server.heard, [line.split(' ')[0] for line in server.heard] == ['EHLO', 'MAIL', 'RCPT', 'RCPT', 'DATA', 'QUIT'])
    head, body = server.mail.split('\r\n\r\n', 1)
    for line in ('From: holdfast@example.org', 'To: a@example.org,\r\n b@example.org', 'Subject: ', 'Date: ', 'MIME-Version: 1.0',
                 'Message-ID: <alert-0.', 'Content-Transfer-Encoding: quoted-printable'):
        expect(head, line in head)
    expect(body, 'This is a test' in body and all(len(line) <= 78 for line in server.mail.split('\r\n')))
    expect(server.mail, '\n' not in server.mail.replace('\r\n', ''))
    # a template of several lines cannot become a header, nor end the mail
    server = Smtp()
    code, out, err, _ = run(mail(server.port, ', subject: "a\\r\\nBcc: x@example.org \u00fc {type}", text: ".\\n.\\nfine {message} ="'),
                            'alert', 'test', 'ops')
    expect((code, err), code == 0)
    expect(server.mail, 'Bcc' not in server.mail.split('\r\n\r\n')[0] and '=2E\r\n=2E\r\nfine' in server.mail and '=3D' in server.mail)
    # QUIT that is never answered costs nothing: it was delivered
    server = Smtp({'QUIT': 'hang'})
    code, out, err, took = run(mail(server.port), 'alert', 'test', 'ops')
    expect(('quit', code, err, took), code == 0)


def refusals():
    for stage in ('greeting', 'EHLO', 'MAIL', 'DATA', 'body'):
        for odd, word in (('451 later', 'smtp.451'), ('554 never', 'smtp.554'), ('hang', 'timeout.alert'), ('cut', None)):
            if stage == 'EHLO' and odd not in ('hang', 'cut'):
                continue  # libcurl says HELO then, and goes on
            server = Smtp({stage: odd})
            code, out, err, _ = run(mail(server.port), 'alert', 'test', 'ops')
            expect((stage, odd, code, out, err), code == 1 and 'was not delivered' in err and (word is None or word in err))
    # one of two recipients: for good is a Warning, for now (greylisting) is to be tried again
    for answers, code, word in ((['250 ok', '550 nobody here'], 0, 'alert.recipient_refused'), (['550 nobody here'], 0, '550'),
                                (['250 ok', '450 come back'], 1, 'smtp.450'), (['451-not\r\n451 now'], 1, 'smtp.451'),
                                (['550 nobody here', '450 come back'], 1, 'smtp.4'), (['450 come back', '550 nobody here'], 1, 'smtp.'),
                                (['550 nobody', '551 nobody'], 1, 'smtp.55')):
        server = Smtp({'RCPT': list(answers)})
        got, out, err, _ = run(mail(server.port), 'alert', 'test', 'ops')
        expect((answers, got, out, err), got == code and word in err)
    code, out, err, _ = run(mail(Smtp().port).replace('tls: none', 'tls: required'), 'alert', 'test', 'ops')
    expect((code, err), code == 1 and 'smtp.no_starttls' in err)


def openssl(*words):
    subprocess.run(['openssl', *words], check=True, capture_output=True)


def certificate(folder, name):
    """One that signs itself: also the authority that it is checked by."""
    openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=' + name,
            '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', '%s/%s.key' % (folder, name), '-out', '%s/%s.pem' % (folder, name))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain('%s/%s.pem' % (folder, name), '%s/%s.key' % (folder, name))
    return context


def protected():
    """STARTTLS, certificates and AUTH; a password never goes before TLS."""
    with tempfile.TemporaryDirectory() as folder:
        good, other = certificate(folder, 'good'), certificate(folder, 'other')
        login = ', user: holdfast, password: hush-7'

        def send(server, tls, more=login):
            text = mail(server.port, '%s, ca_file: %s/good.pem' % (more, folder)).replace('tls: none', 'tls: ' + tls)
            code, out, err, _ = run(text.replace('timeout: 1s', 'timeout: 10s'), 'alert', 'test', 'ops')
            expect(out + err, 'hush-7' not in out + err)
            expect(server.heard, not any(line.startswith(('AUTH', 'MAIL')) for line in server.heard))
            return code, err

        def words(lines):
            return [line.split(' ')[0] for line in lines]
        secret, offers = ['holdfast', 'hush-7'], ('STARTTLS', 'AUTH PLAIN')
        server = Smtp(tls=good, offers=offers, secret=secret)
        expect(server.heard, send(server, 'required')[0] == 0)
        expect(server.heard, words(server.heard) == ['EHLO', 'STARTTLS'])
        expect(server.safe, words(server.safe)[:6] == ['EHLO', 'AUTH', 'MAIL', 'RCPT', 'RCPT', 'DATA'] and 'This is a test' in server.mail)
        server = Smtp(tls=good, offers=offers, secret=['holdfast', 'another'])
        code, err = send(server, 'required')
        expect((code, err), code == 1 and server.mail is None and 'MAIL' not in words(server.safe) and 'was not delivered' in err)
        server = Smtp(tls=other, offers=offers, secret=secret)
        code, err = send(server, 'required')
        expect((code, err), code == 1 and server.safe == [] and 'peer_failed_verification' in err)
        for answer in ('454 not now', '220 go on'):  # refused; and taken by one who then speaks no TLS
            server = Smtp({'STARTTLS': '454 not now'} if answer[0] == '4' else {'STARTTLS': '220 go on\r\n220 junk'}, tls=good, offers=offers)
            code, err = send(server, 'required')
            expect((answer, code, err), code == 1 and server.mail is None)
        server = Smtp(offers=('AUTH PLAIN',), secret=secret)  # somebody took STARTTLS out of what is offered
        code, err = send(server, 'required')
        expect((code, err), code == 1 and 'smtp.no_starttls' in err)


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        self.server.got.append(body)
        self.send_response(self.server.answer)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *words):
        pass


def one_of_two():
    """S0.27 S2.35: a job that SMTP's failure killed is told by webhook at once, and the other way round; what failed stays unsent."""
    for down in ('mail', 'hook'):
        server = Smtp({'greeting': '421 down'} if down == 'mail' else None)
        hook = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Hook)
        hook.got, hook.answer = [], 503 if down == 'hook' else 204
        threading.Thread(target=hook.serve_forever, daemon=True).start()
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, 'holdfast.yaml'), 'w') as file:
                file.write('store: sqlite:jobs.db\ndefaults: {max_executions: 1}\njobs: {bad: {kind: exec, command: [/bin/false]}}\n' +
                           mail(server.port).replace('timeout: 1s}}}', 'timeout: 10s}}, hook: {webhook: {url: "http://127.0.0.1:%d/"}}}'
                                                     % hook.server_port))

            def call(*words):
                done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, timeout=60)
                expect((words, done.stderr), done.returncode == 0)
                return done.stdout, done.stderr
            call('enqueue', 'bad')
            _, err = call('run', '--until-idle')
            states = {row['sink']: row for row in json.loads(call('alert', 'list', '--json')[0])['items']}
        hook.shutdown()
        up, sick = ('hook', 'ops') if down == 'mail' else ('ops', 'hook')
        expect((down, states), states[up]['state'] == 'sent' and states[sick]['state'] == 'unsent')
        expect((down, states), states[up]['tries'] == 1 and ('smtp.421' if down == 'mail' else 'http.503') in str(states[sick]))
        expect((down, err), 'alert.failed' in err)
        expect((down, hook.got), len(hook.got) >= 1 and hook.got[0]['event'] == 'job.dead')
        expect((down, server.mail), (server.mail is None) == (down == 'mail'))


def each_for_itself():
    """S0.26 S0.27: all sinks hang, and two of three; jobs go on all the same, and each sink's rows are what its own sink made of them."""
    silent, rest = socket.create_server(('127.0.0.1', 0), backlog=64), 'timeout: 60s}, collapse: none'
    for up in ((), ('hook',), ('ops',), ('file',)):
        server = Smtp(None if 'ops' in up else {'greeting': 'hang'})
        hook = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Hook)
        hook.got, hook.answer = [], 204
        threading.Thread(target=hook.serve_forever, daemon=True).start()
        port = hook.server_port if 'hook' in up else silent.getsockname()[1]
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, 'holdfast.yaml'), 'w') as file:
                file.write('store: sqlite:jobs.db\nnode: {drain_timeout: 100ms}\n'
                           'jobs: {bad: {kind: exec, command: [/bin/false], max_executions: 1}, ok: {kind: noop}}\n' +
                           'alerts: {ops: {mail: {server: "smtp://127.0.0.1:%d", from: a@example.org, to: [b@example.org], tls: none, %s}, '
                           'hook: {webhook: {url: "http://127.0.0.1:%d/", %s}, file: {command: {run: [%s], %s}}\n'
                           % (server.port, rest, port, rest, '/bin/true' if 'file' in up else '/bin/sleep, "1000"', rest))

            def ask(sql):
                with sqlite3.connect(os.path.join(folder, 'jobs.db'), timeout=20) as db:
                    return dict(db.execute(sql).fetchall())

            def sent():
                return ask('SELECT sink, count(*) FROM alerts WHERE state = 1 GROUP BY sink')
            jobs = '{"type":"bad"}\n' * 20 + '{"type":"ok"}\n' * 300
            subprocess.run([program, 'enqueue', '--ndjson', '-'], cwd=folder, input=jobs, text=True, capture_output=True, check=True)
            with open(os.path.join(folder, 'log'), 'w') as log:
                node = subprocess.Popen([program, 'run'], cwd=folder, stdout=log, stderr=log)
            watch = Watch(folder, node)
            watch.until('jobs', lambda: ask('SELECT state, count(*) FROM jobs GROUP BY state') == {3: 300, 4: 20})
            watch.until('sinks', lambda: sent() == {name: 20 for name in up})
            tried = ask('SELECT sink, count(*) FROM alerts WHERE state = 0 AND tries = 1 AND error_type IS NULL GROUP BY sink')
            expect((up, tried), set(tried) <= {'ops', 'hook', 'file'} - set(up))
            node.terminate()
            expect('end', node.wait(60) == 0)
            with open(os.path.join(folder, 'log')) as log:
                expect('no try has ended', 'alert.failed' not in log.read())
        hook.shutdown()
        expect((up, len(hook.got)), len(hook.got) == (20 if 'hook' in up else 0))


class Node:
    """A folder with a configuration, in which commands are run."""

    def __init__(self, folder, text):
        self.folder = folder
        with open(os.path.join(folder, 'holdfast.yaml'), 'w') as file:
            file.write('store: sqlite:jobs.db\ndefaults: {max_executions: 1}\n' + text)

    def call(self, *words):
        done = subprocess.run([program, *words], cwd=self.folder, capture_output=True, timeout=60)
        expect((words, done.stderr), done.returncode == 0)
        return done.stdout

    def no_waiting(self):
        """What failed is due at once."""
        with sqlite3.connect(os.path.join(self.folder, 'jobs.db')) as db:
            db.execute('UPDATE alerts SET next_at_us = 0 WHERE state = 0')
        db.close()


def put_off():
    """One of two recipients took the mail, the other one is greylisted: the next try asks that one alone."""
    server = Smtp({'RCPT': ['250 ok', '450 come back']})
    with tempfile.TemporaryDirectory() as folder:
        node = Node(folder, 'jobs: {bad: {kind: exec, command: [/bin/false]}}\n' + mail(server.port).replace('timeout: 1s', 'timeout: 10s'))
        node.call('enqueue', 'bad')
        node.call('run', '--until-idle')
        expect(server.heard, [line for line in server.heard if line.startswith('RCPT')] == ['RCPT TO:<a@example.org>', 'RCPT TO:<b@example.org>'])
        first, server.heard[:] = server.mail, []
        node.no_waiting()
        node.call('run', '--until-idle')
        expect(server.heard, [line for line in server.heard if line.startswith('RCPT')] == ['RCPT TO:<b@example.org>'])
        names = [[line for line in text.split('\r\n') if line.startswith('Message-ID')] for text in (first, server.mail)]
        expect(names, names[0] == names[1] and len(names[0]) == 1)
        row = json.loads(node.call('alert', 'list', '--json'))['items'][0]
        expect(row, row['state'] == 'sent' and row['tries'] == 2)


def stormy():
    """R7: on the SQLite store with real sinks: every death has its row and its Error line, each sink two messages."""
    deaths = 10000 if os.environ.get('HF_FULL') else 200
    server = Smtp()
    hook = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Hook)
    hook.got, hook.answer = [], 204
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        take, taken = os.path.join(folder, 'take'), os.path.join(folder, 'taken')
        with open(take, 'w') as file:
            file.write('#!/bin/sh\ncat >> %s\n' % taken)
        os.chmod(take, 0o755)
        node = Node(folder, 'jobs: {bad: {kind: exec, command: [/bin/false]}}\n' + mail(server.port).replace(
            'timeout: 1s}}}', 'timeout: 60s}}, hook: {webhook: {url: "http://127.0.0.1:%d/", timeout: 60s}}, '
            'page: {command: {run: [%s], timeout: 60s}}}' % (hook.server_port, take)))
        subprocess.run([program, 'enqueue', '--ndjson', '-'], cwd=folder, input='{"type":"bad"}\n' * deaths, text=True,
                       capture_output=True, check=True)
        done = subprocess.run([program, 'run', '--until-idle'], cwd=folder, capture_output=True, text=True, timeout=600)
        expect(done.stderr[-2000:], done.returncode == 0 and done.stderr.count('job.dead') == deaths)

        def heard():
            with open(taken) as file:
                return [len([line for line in server.heard if line.startswith('MAIL')]), len(hook.got), len(file.read().splitlines())]
        expect(heard(), heard() == [1, 1, 1])
        node.no_waiting()  # the window is over
        node.call('run', '--until-idle')
        node.call('run', '--until-idle')
        expect(heard(), heard() == [2, 2, 2])
        told = '%d more jobs (bad) died' % (deaths - 1)
        with open(taken) as file:
            expect(hook.got, told in hook.got[1]['text'] and ('"deaths":%d' % (deaths - 1)) in file.read().splitlines()[1])
        expect(server.mail, told in server.mail)
        with sqlite3.connect(os.path.join(folder, 'jobs.db')) as db:
            rows = db.execute('SELECT (SELECT count(*) FROM dead_letters), (SELECT count(*) FROM alerts), '
                              '(SELECT count(*) FROM alerts WHERE state = 0)').fetchone()
        db.close()
        expect(rows, rows == (deaths, 3 * deaths, 0))
    hook.shutdown()


HOSTILE = (b'<script>alert(1)</script>\r\nBcc: evil@example.org\r\n\r\n.\r\nQUIT\r\n\x00nul \x1b[2J\x1b]0;title\x07 \xff\xfe\xed\xa0\x80 '
           b'\xe2\x80\xaegpj \x9b31m {message} $(reboot) `id` \x7f\x08 \xc2\x9b31m end ')


class Rude(http.server.BaseHTTPRequestHandler):
    """Refuses every call with ten megabytes of what nobody should print."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get('Content-Length') or 0))
        self.send_response(422)
        self.send_header('X-Error', 'a<b>\x1b[31m'.replace('\x1b', ''))
        self.end_headers()
        try:
            self.wfile.write(HOSTILE + '\u20ac'.encode() * 3500000)
        except OSError:
            pass

    def log_message(self, *words):
        pass


def clean(what, text, lines=True):
    """What a terminal may be given: UTF-8 without controls."""
    try:
        shown = text.decode()
    except UnicodeDecodeError as why:
        sys.exit("wrong: %s %s %r" % (what, why, text[max(0, why.start - 200):why.start + 100]))
    bad = [char for char in shown if (ord(char) < 32 and char not in ('\n', '\t') ) or 127 <= ord(char) < 160]
    expect((what, bad[:5], shown[:2000]), not bad)
    return shown


def hostile():
    """S0.25 S0.27 I65 I66: error texts of every kind through the three sinks, the terminal and JSON, of exec and http jobs."""
    server = Smtp()
    servers = [http.server.ThreadingHTTPServer(('127.0.0.1', 0), kind) for kind in (Hook, Rude)]
    hook, rude = servers
    hook.got, hook.answer = [], 204
    for one in servers:
        threading.Thread(target=one.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        script, take, taken = (os.path.join(folder, name) for name in ('shout', 'take', 'taken'))
        with open(os.path.join(folder, 'noise'), 'wb') as file:
            file.write(HOSTILE + '\u20ac'.encode() * 3500000 + HOSTILE)
        for path, text in ((script, 'cat "$(dirname "$0")/noise" >&2; exit 3'), (take, '(echo "$1"; cat; echo) >> %s' % taken)):
            with open(path, 'w') as file:
                file.write('#!/bin/sh\n' + text + '\n')
            os.chmod(path, 0o755)
        node = Node(folder, 'downstreams: {shop: {url: "http://127.0.0.1:%d"}}\n'
                    'jobs: {loud: {kind: exec, command: [%s]}, rude: {kind: http, downstream: shop, path: /}}\n' % (rude.server_port, script) +
                    mail(server.port).replace('timeout: 1s}}}', 'timeout: 10s, subject: "{type} {message}"}, collapse: none}, '
                                              'hook: {webhook: {url: "http://127.0.0.1:%d/"}, collapse: none}, '
                                              'page: {command: {run: [%s, "{message}"], detail: true}, collapse: none}}'
                                              % (hook.server_port, take)))
        mails = []
        for count, (kind, letter) in enumerate((('loud', '1'), ('rude', '2')), 1):
            node.call('enqueue', kind)
            node.call('run', '--until-idle')
            mails.append(server.mail)
            shown = clean(kind, node.call('dead', 'show', letter))
            expect(shown, kind in shown)
            clean(kind, node.call('dead', 'list'))
            clean(kind, node.call('alert', 'list'))
            clean(kind, node.call('job', 'show', letter))
            listed = node.call('dead', 'list', '--json')
            clean(kind, listed)
            row = json.loads(listed)['items'][0]
            expect(row, len(json.dumps(row).encode()) < 200000 and row['type'] == kind)
            whole = json.loads(clean(kind, node.call('dead', 'show', letter, '--json')))
            expect(str(whole)[:2000], '\ud800' not in str(whole) and '\x00' not in str(whole))
            alerts = json.loads(clean(kind, node.call('alert', 'list', '--json')))['items']
            expect(alerts, len(alerts) == 3 * count and all(row['state'] == 'sent' for row in alerts))
        for kind, text in zip(('loud', 'rude'), mails):
            head, body = text.split('\r\n\r\n', 1)
            expect(head, not any(line.startswith(('Bcc', 'QUIT')) for line in head.split('\r\n')))
            expect(text[:3000], all(len(line) <= 78 and line.isascii() and line.isprintable() for line in text.split('\r\n')))
            clean(kind, quopri.decodestring(body.encode()).replace(b'\r', b''))
            expect(len(text), len(text) < 100000)
        expect(server.heard, len([line for line in server.heard if line.startswith('MAIL')]) == 2)
        told = json.dumps(hook.got)
        expect(told, len(hook.got) == 2 and 'script' not in told and 'evil' not in told)
        with open(taken, 'rb') as file:
            clean('command', file.read())
    for one in servers:
        one.shutdown()


def commands():
    with tempfile.TemporaryDirectory() as folder:
        script, found = os.path.join(folder, 'take'), os.path.join(folder, 'found')
        with open(script, 'w') as file:
            file.write('#!/bin/sh\nprintf "%%s\\n" "$@" > %s; cat >> %s; exit ${1#code}\n' % (found, found))
        os.chmod(script, 0o755)
        line = 'alerts: {hook: {command: {run: [%s, code%d, "{error_type}", "x {class}"], timeout: 5s}}}\n'
        code, out, err, _ = run(line % (script, 0), 'alert', 'test', 'hook')
        expect((code, out, err), code == 0)
        words = open(found).read().split('\n', 3)
        expect(words, words[:3] == ['code0', 'test.alert', 'x permanent'])
        alert = json.loads(words[3])
        expect(alert, alert['error_type'] == 'test.alert' and 'message' not in alert)
        code, out, err, _ = run(line % (script, 3), 'alert', 'test', 'hook')
        expect((code, err), code == 1 and 'exit.3' in err)


def refused():
    for text, why in (('alerts: {a: {collapse: 5m}}\n', 'it says nowhere'),
                      ('alerts: {a: {mail: {server: "smtp://m", from: "x\\r\\n@y", to: [a@b]}}}\n', 'from is no address'),
                      ('alerts: {a: {mail: {server: "smtp://m", from: x@y, to: []}}}\n', 'to has 0'),
                      ('alerts: {a: {mail: {server: "http://m", from: x@y, to: [a@b]}}}\n', 'server is no smtp'),
                      ('alerts: {a: {command: {run: [/no/such]}}}\n', '/no/such is none'),
                      ('alerts: {a: {command: {run: [/bin/true, "{message}"]}}}\n', '{message}'),
                      ('alerts: {a: {command: {run: [/bin/true, "{nothing}"]}}}\n', '{nothing} is no field')):
        code, out, err, _ = run(text, 'check')
        expect((text, code, out, err), code == 2 and why in out + err)
    code, out, err, _ = run('', 'alert', 'test', 'nobody')
    expect((code, err), code == 3 and 'nobody' in err)


def listed():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'holdfast.yaml'), 'w') as file:
            file.write('store: sqlite:jobs.db\ndefaults: {max_executions: 1}\njobs: {bad: {kind: exec, command: [/bin/false]}}\n'
                       'alerts: {hook: {command: {run: [/bin/true]}}}\n')

        def call(*words):
            done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, timeout=60)
            expect((words, done.stderr), done.returncode == 0)
            return done.stdout
        for _ in range(3):
            call('enqueue', 'bad')
        call('run', '--until-idle')
        rows = json.loads(call('alert', 'list', '--json'))['items']
        expect(rows, [row['kind'] if row['state'] != 'attached' else 'attached' for row in rows] == ['attached', 'summary', 'one'])
        expect(rows, [row['state'] for row in rows] == ['attached', 'unsent', 'sent'] and rows[0]['message'] == rows[1]['id'])
        expect(rows, rows[1]['deaths'] == 2)
        page = json.loads(call('alert', 'list', '--json', '--limit', '2'))
        expect(page, len(page['items']) == 2 and page['next'] == rows[1]['id'])
        expect('table', 'with %d, unsent' % rows[1]['id'] in call('alert', 'list'))
        expect('filter', len(json.loads(call('alert', 'list', '--json', '--state', 'sent'))['items']) == 1)


for part in (mails, refusals, put_off, stormy, hostile, protected, one_of_two, each_for_itself, commands, refused, listed):
    part()
print('ok')
