# SPDX-License-Identifier: MIT
"""`holdfast run` as a process: signals, two nodes on one file, kill -9, a configuration with errors. Waits for events (a
log line, a child that opens a pipe), never for time."""
import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])


class Place:
    """A folder with a configuration whose job `hang` says in a pipe that it runs."""

    def __init__(self, folder, node='drain_timeout: 10m', jobs=''):
        self.folder = folder
        self.pipe = os.path.join(folder, 'pipe')
        os.mkfifo(self.pipe)
        self.write('store: sqlite:jobs.db\nnode: {%s}\njobs:\n  hang: {kind: exec, command: [/bin/sh, -c, "echo running > %s; '
                   'exec sleep 600"], execution_timeout: 1h}\n  nop: {kind: noop}\n  other: {kind: noop, queue: b}\n%s' %
                   (node, self.pipe, jobs))

    def write(self, text):
        with open(os.path.join(self.folder, 'holdfast.yaml'), 'w', encoding='utf-8') as file:
            file.write(text)

    def run(self, *arguments, code=0, stdin=''):
        done = subprocess.run([PROGRAM, *arguments], cwd=self.folder, capture_output=True, timeout=120, check=False,
                              input=stdin.encode())
        assert done.returncode == code, (arguments, done)
        return done.stdout.decode()

    def job(self, job):
        return json.loads(self.run('job', 'show', str(job), '--json'))

    def start(self, *arguments):
        """A node that has joined: its log says so."""
        node = subprocess.Popen([PROGRAM, 'run', *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in node.stderr:
            if b'node.joined' in line:
                return node
        raise AssertionError('the node ended before it joined')

    def wait_running(self):
        with open(self.pipe, encoding='ascii') as pipe:
            assert pipe.read() == 'running\n'


def end(node, code=0):
    out, err = node.communicate(timeout=120)
    assert node.returncode == code, (node.returncode, out, err)
    return out.decode()


class Watch:
    """Waits until a file of the folder is opened, or made."""
    OPEN = 0x20

    def __init__(self, folder):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_CLOEXEC)
        assert self.fd >= 0 and libc.inotify_add_watch(self.fd, folder.encode(), self.OPEN | 0x100) > 0

    def wait(self, name):
        while True:
            told = os.read(self.fd, 65536)
            while told:
                _, _, _, length = struct.unpack_from('iIII', told)
                if told[16:16 + length].rstrip(b'\0').decode() == name:
                    return
                told = told[16 + length:]

    def close(self):
        os.close(self.fd)


def sigterm_in_the_first_moments(folder):
    """A signal before the node runs drains it as any other does: the process ends with 0, and nothing is lost or counted.
    SIGHUP that early is a reload, not the end."""
    place = Place(folder, node='drain_timeout: 1ms')
    place.run('enqueue', 'hang')
    for point in ('holdfast.yaml', 'jobs.db', 'jobs.db-wal', 'jobs.db-shm', None):
        watch = Watch(folder)
        node = subprocess.Popen([PROGRAM, 'run'], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if point:
            watch.wait(point)
        else:
            node.stderr.readline()
        node.send_signal(signal.SIGHUP)
        node.send_signal(signal.SIGTERM)
        watch.close()
        end(node)
        job = place.job(1)
        assert job['state'] == 'pending' and job['executions'] == 0, (point, job)


def sigterm_gives_back(folder):
    """A drain whose time is over signals the child and gives the job back, its execution not counted [S2.10]."""
    place = Place(folder, node='drain_timeout: 100ms')
    place.run('enqueue', 'hang')
    node = place.start()
    place.wait_running()
    node.send_signal(signal.SIGTERM)
    end(node)
    job = place.job(1)
    assert job['state'] == 'pending' and job['executions'] == 0 and job['give_backs'] == 1, job


def sigint_twice_hurries(folder):
    """One SIGINT would wait ten minutes for the job; the second one does not."""
    place = Place(folder)
    place.run('enqueue', 'hang')
    node = place.start()
    place.wait_running()
    node.send_signal(signal.SIGINT)
    for line in node.stderr:
        if b'node.drain' in line:
            break
    node.send_signal(signal.SIGINT)
    end(node)
    assert place.job(1)['state'] == 'pending', place.job(1)


def two_nodes_share_a_file(folder):
    place = Place(folder)
    first = place.start()
    for _ in range(20):
        place.run('enqueue', 'nop')
    place.run('run', '--until-idle', '--quiet', '--node', 'second')
    first.send_signal(signal.SIGTERM)
    end(first)
    counts = [json.loads(place.run('job', 'list', '--state', state, '--json')) for state in ('succeeded', 'pending', 'running')]
    assert [len(count['items']) for count in counts] == [20, 0, 0], counts


def killed_node_loses_nothing(folder):
    """After kill -9 another node on the host takes the job up at once (3.5)."""
    marker = os.path.join(folder, 'marker')
    place = Place(folder, jobs='  once: {kind: exec, command: [/bin/sh, -c, "test -e %s && exit 0; echo $$ > %s; echo running > %s; '
                               'exec sleep 600"], curve: [1ms]}\n' % (marker, marker, os.path.join(folder, 'pipe')))
    place.run('enqueue', 'once')
    node = place.start()
    place.wait_running()
    node.kill()
    node.communicate(timeout=60)
    assert place.job(1)['state'] == 'running', place.job(1)
    place.run('run', '--until-idle', '--quiet')
    job = place.job(1)
    with open(marker, encoding='ascii') as pid, contextlib.suppress(ProcessLookupError):
        os.kill(int(pid.read()), signal.SIGKILL)  # nobody's child any more, if the second node has left it
    assert job['state'] == 'succeeded' and job['executions'] == 2, job


def errors_stop_the_start(folder):
    place = Place(folder)
    place.write('node: {lease: 1s}\n')
    place.run('run', code=2)
    assert not os.path.exists(os.path.join(folder, 'holdfast.db'))
    place.run('run', '--queues', 'a,,b', code=2)
    place.run('run', '--workers', '0', code=2)
    place.write('jobs: {nop: {kind: noop, curve: {base: 1s}}}\n')
    done = subprocess.run([PROGRAM, 'run', '--node', 'n' * 5000], cwd=folder, capture_output=True, timeout=120, check=False)
    assert done.returncode == 2 and b'node.name: 5000 bytes, at most 120 fit' in done.stderr, done
    types = json.loads(place.run('check', '--json'))['types']
    assert types[0]['max_executions'] == 6 and types[0]['time_to_death_ms'] >= 31000, types


def queues_are_filtered(folder):
    place = Place(folder)
    place.run('enqueue', 'nop')
    place.run('enqueue', 'other')
    counts = json.loads(place.run('run', '--until-idle', '--queues', 'b', '--json'))
    assert counts['succeeded'] == 1, counts
    assert (place.job(1)['state'], place.job(2)['state']) == ('pending', 'succeeded')


def open_breaker_is_shown(folder):
    """What the node knew of a breaker is in the store when it is gone."""
    place = Place(folder)
    place.write('store: sqlite:jobs.db\ndownstreams: {pay: {url: "http://127.0.0.1:9", retry: {base: 1ms}, '
                'breaker: {min_calls: 1, break: 1h, max_break: 1h}}}\njobs: {charge: {kind: http, downstream: pay}}\n')
    place.run('enqueue', 'charge')
    node = place.start()
    for line in node.stderr:
        if b'"downstream.state"' in line:
            break
    shown = {'state': 'closed'}
    while shown['state'] == 'closed':  # the row follows within a poll; the test's own limit bounds this
        shown = json.loads(place.run('downstream', 'show', 'pay', '--json'))
    node.send_signal(signal.SIGTERM)
    end(node)
    shown = json.loads(place.run('downstream', 'show', 'pay', '--json'))
    assert shown['state'] == 'open' and shown['trips'] == 1 and shown['open_until'], shown
    assert 'then probes test it' in shown['explanation'], shown
    assert shown['reason'], shown
    place.run('downstream', 'isolate', 'pay', '--reason', 'r')
    assert 'isolated' in place.run('downstream', 'list')
    place.run('downstream', 'close', 'pay')
    assert json.loads(place.run('downstream', 'show', 'pay', '--json'))['state'] == 'closed'


def until(node, event):
    """The next log line of that event."""
    for line in node.stderr:
        if b'"event":"%s"' % event.encode() in line:
            return json.loads(line)
    raise AssertionError('the node ended without ' + event)


def sighup_reloads(folder):
    """V15, F2: a broken file keeps the old configuration and says so, with its place; a good one changes the downstreams while
    a breaker is open, whose end it does not touch, and names what needs a restart."""
    place = Place(folder)
    text = ('store: sqlite:jobs.db\nnode: {workers: 4}\ndownstreams:\n  pay: {url: "http://127.0.0.1:9", retry: {base: 1ms}, '
            'breaker: {min_calls: %d, break: 1h, max_break: 1h}}\n%sjobs: {charge: {kind: http, downstream: pay}, nop: {kind: noop}}\n')
    place.write(text % (1, ''))
    place.run('enqueue', 'charge')
    node = place.start()
    trip = until(node, 'downstream.state')
    assert trip['to'] == 'open', trip
    shown = {'state': 'closed'}
    while shown['state'] == 'closed':
        shown = json.loads(place.run('downstream', 'show', 'pay', '--json'))

    place.write((text % (1, '')).replace('min_calls: 1', 'min_calls: 0'))
    node.send_signal(signal.SIGHUP)
    refused = until(node, 'config.reload_refused')
    assert refused['line'] == 4 and 'min_calls' in refused['what'] and refused['why'] and refused['file'] == 'holdfast.yaml', refused
    place.write('downstreams: {pay: {url: "http://127.0.0.1:9", total_timeout: 1s}}\n')  # the ladder is proved, too
    node.send_signal(signal.SIGHUP)
    refused = until(node, 'config.reload_refused')
    assert refused['what'].startswith('downstreams.pay.') and 'attempt may take' in refused['why'], refused
    place.write('jobs: {charge: {kind: http, downstream: pay}}\n')  # the type charge would lose its downstream
    node.send_signal(signal.SIGHUP)
    refused = until(node, 'config.reload_refused')
    while 'charge' not in refused['what']:  # the ladder may have had more to say
        refused = until(node, 'config.reload_refused')
    assert 'pay' in refused['why'], refused

    place.write((text % (2, '  new: {url: "http://127.0.0.1:9"}\n')).replace('workers: 4', 'workers: 5'))
    node.send_signal(signal.SIGHUP)
    done = until(node, 'config.reloaded')
    assert done['downstreams'] == 2 and done['needs_restart'] == ['node'], done
    again = json.loads(place.run('downstream', 'show', 'pay', '--json'))
    assert (again['state'], again['open_until'], again['trips']) == ('open', shown['open_until'], 1), (shown, again)
    place.run('enqueue', 'nop')  # it goes on running jobs
    while place.job(2)['state'] != 'succeeded':
        pass
    file = os.path.join(folder, 'holdfast.yaml')
    place.write('')  # a full disk, or half of a copy
    node.send_signal(signal.SIGHUP)
    refused = until(node, 'config.reload_refused')
    assert refused['file'] == 'holdfast.yaml' and 'empty' in refused['why'], refused
    os.remove(file)  # gone is not empty
    node.send_signal(signal.SIGHUP)
    refused = until(node, 'config.reload_refused')
    assert refused['file'] == 'holdfast.yaml' and 'No such file' in refused['why'], refused
    os.mkfifo(file)  # nobody writes into it: neither the reload nor the end waits for that
    node.send_signal(signal.SIGHUP)
    refused = until(node, 'config.reload_refused')
    assert refused['file'] == 'holdfast.yaml' and 'no regular file' in refused['why'], refused
    node.send_signal(signal.SIGTERM)
    end(node)


def sighup_changes_numbers(folder):
    """A node that would drain for ten minutes is told 100 ms; queues with their curves, drain and retention need no restart,
    workers do."""
    place = Place(folder)
    with open(os.path.join(folder, 'holdfast.yaml'), encoding='utf-8') as file:
        text = file.read()
    place.run('enqueue', 'hang')
    node = place.start()
    place.wait_running()
    more = 'retention: {succeeded: 1d}\nqueues: {b: {order: 1, weight: 3, concurrency: 2, aging: 1m}}\n'
    place.write(text.replace('10m', '100ms') + more)
    node.send_signal(signal.SIGHUP)
    assert until(node, 'config.reloaded')['needs_restart'] == []
    place.write(text.replace('10m', '100ms').replace('{drain', '{workers: 3, drain') + more.replace('order: 1', 'curve: [1s]'))
    node.send_signal(signal.SIGHUP)
    assert until(node, 'config.reloaded')['needs_restart'] == ['node']
    node.send_signal(signal.SIGTERM)
    end(node)
    assert place.job(1)['give_backs'] == 1


def sighup_takes_job_types(folder):
    """While a job runs: its type goes, another one comes and changes its command line, curves, error lists and limits are
    others. What runs goes on to its end; a file with an error changes nothing of it; what a job got at its enqueue stays."""
    place = Place(folder)

    def say(word):
        return 'talk: {kind: exec, command: [/bin/sh, -c, "echo %s > %s"]}' % (word, place.pipe)

    def reload(text):
        place.write(text)
        node.send_signal(signal.SIGHUP)
        return until(node, 'config.reloaded')

    def heard(word):
        place.run('enqueue', 'talk')
        with open(place.pipe, encoding='ascii') as pipe:
            assert pipe.read() == word + '\n'

    text = 'store: sqlite:jobs.db\nnode: {drain_timeout: 100ms}\n'
    place.run('enqueue', 'hang')
    place.run('enqueue', 'nop', '--in', '1h')
    node = place.start()
    place.wait_running()
    done = reload(text + 'limits: {tenant: {concurrency: 1}}\ndefaults: {curve: [7s], never_retry: [exit]}\njobs: {%s}\n' % say('one'))
    assert done['needs_restart'] == [] and done['jobs'] == 1, done
    heard('one')
    place.write(text + 'jobs: {%s}\nlimits: {tenant: {rate: 0/s}}\n' % say('never'))
    node.send_signal(signal.SIGHUP)
    assert 'limits.tenant' in until(node, 'config.reload_refused')['what']
    place.write(text + 'jobs: {%s}\n' % say('unread'))
    heard('one')
    reload(text + 'jobs: {fails: {kind: exec, command: [/bin/false]}, %s}\ndefaults: {curve: [1h], never_retry: []}\n' % say('two'))
    heard('two')
    place.run('enqueue', 'hang')
    assert until(node, 'job.dead')['error_type'] == 'unknown_type'
    assert place.job(1)['state'] == 'running', place.job(1)
    failing = place.run('enqueue', 'fails').strip()
    until(node, 'job.retry')
    assert place.job(failing)['state'] == 'pending', place.job(failing)
    done = reload(text + 'jobs: {fails: {kind: exec, command: [/bin/false]}}\nalerts: {a: {webhook: {url: "http://127.0.0.1:9"}}}\n'
                         'defaults: {never_retry: [exit]}\n')
    assert done['needs_restart'] == ['alerts'], done
    failing = place.run('enqueue', 'fails').strip()
    assert until(node, 'job.dead')['job'] == int(failing)
    node.send_signal(signal.SIGTERM)
    end(node)
    assert place.job(1)['give_backs'] == 1, place.job(1)


def isolation_survives_a_restart(folder):
    """F6: list, show, isolate and close one downstream; what is isolated stays so over a restart, and nothing probes it."""
    place = Place(folder)
    place.write('store: sqlite:jobs.db\ndownstreams: {pay: {url: "http://127.0.0.1:9", probe: {path: /healthz}, '
                'breaker: {break: 1ms, max_break: 1ms}}}\njobs: {charge: {kind: http, downstream: pay}, nop: {kind: noop}}\n')
    place.run('enqueue', 'charge')
    place.run('downstream', 'isolate', 'pay', '--reason', 'ticket 4711')
    for _ in range(2):
        node = place.start()
        assert until(node, 'downstream.state')['to'] == 'isolated'
        place.run('enqueue', 'nop')
        node.send_signal(signal.SIGTERM)
        out, err = node.communicate(timeout=120)
        assert node.returncode == 0 and b'downstream.probe' not in err, (out, err)
        shown = json.loads(place.run('downstream', 'show', 'pay', '--json'))
        assert shown['state'] == 'isolated' and shown['reason'] == 'ticket 4711', shown
        assert place.job(1)['state'] == 'pending' and place.job(1)['executions'] == 0, place.job(1)
    assert 'isolated' in place.run('downstream', 'list')
    place.run('downstream', 'close', 'pay')
    assert json.loads(place.run('downstream', 'show', 'pay', '--json'))['state'] == 'closed'


def systemd_is_told(folder):
    """READY when it has joined, RELOADING and READY around a SIGHUP, WATCHDOG while it is healthy, STOPPING at the drain."""
    place = Place(folder)
    for name in (os.path.join(folder, 'notify'), '\0holdfast-test-%d' % os.getpid()):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(name)
            manager.settimeout(120)
            environment = dict(os.environ, NOTIFY_SOCKET=name.replace('\0', '@'), WATCHDOG_USEC='20000')

            def told(wanted):
                while not manager.recv(4096).decode().startswith(wanted):
                    pass
            node = subprocess.Popen([PROGRAM, 'run'], cwd=place.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    env=environment)
            for wanted in ('READY=1', 'WATCHDOG=1', 'WATCHDOG=1'):
                told(wanted)
            node.send_signal(signal.SIGHUP)
            told('RELOADING=1')
            told('READY=1')
            node.send_signal(signal.SIGTERM)
            told('STOPPING=1')
            end(node)


def a_hung_loop_ends_the_process(folder):
    """S4.7: nobody reads its log, so its loop hangs in a line of it: the watchdog, which must not hang with it, ends the
    process with 1, and the next one finds its jobs."""
    place = Place(folder, node='watchdog: {deadline: 1s, grace: 1s}')
    for _ in range(3):
        place.run('enqueue', '--ndjson', '-', stdin=''.join('{"type":"nobodys","payload":"%d"}\n' % n for n in range(100)))
    node = subprocess.Popen([PROGRAM, 'run'], cwd=place.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    fcntl.fcntl(node.stderr, fcntl.F_SETPIPE_SZ, 4096)  # full after a dozen lines
    assert node.wait(timeout=120) == 1
    node.stdout.close()
    node.stderr.close()
    place.run('run', '--until-idle', '--quiet')
    assert len(json.loads(place.run('job', 'list', '--state', 'quarantined', '--limit', '500', '--json'))['items']) == 300


for case in (sigterm_in_the_first_moments, sigterm_gives_back, sigint_twice_hurries, two_nodes_share_a_file, killed_node_loses_nothing, errors_stop_the_start,
             queues_are_filtered, open_breaker_is_shown, sighup_reloads, isolation_survives_a_restart,
             sighup_changes_numbers, sighup_takes_job_types, systemd_is_told, a_hung_loop_ends_the_process):
    with tempfile.TemporaryDirectory() as temporary:
        case(temporary)
        print('ok', case.__name__)
