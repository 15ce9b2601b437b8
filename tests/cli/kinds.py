# SPDX-License-Identifier: MIT
"""Kinds of jobs as a node runs them: plugins, isolated ones, and what takes a node down with it.

kinds.py PROGRAM EXAMPLE_PLUGIN INCLUDE CC..."""
import json
import os
import signal
import subprocess
import sys
import tempfile

PROGRAM, EXAMPLE, INCLUDE = (os.path.abspath(path) for path in sys.argv[1:4])
CC = sys.argv[4:]

PLUGIN = r'''
#include <holdfast/plugin.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum hf_result run(struct hf_work *work, void *user) {
    size_t length;
    char what[64] = "", big[65536], pid[32];
    const char *payload = hf_work_payload(work, &length);
    memcpy(what, payload, length < 63 ? length : 63);
    (void)user;
    if (strcmp(what, "segv") == 0)
        raise(SIGSEGV);
    if (strcmp(what, "exit3") == 0)
        exit(3);
    if (strcmp(what, "exit0") == 0)
        exit(0);
    if (strcmp(what, "nothing") == 0)
        return (enum hf_result)0;
    if (strcmp(what, "permanent") == 0)
        return hf_work_permanent(work, "test.permanent", "for good");
    if (strcmp(what, "cancel") == 0)
        return hf_work_cancel(work, "no need");
    if (strcmp(what, "big") == 0)
        return memset(big, 'x', sizeof big), hf_work_ok(work, big, sizeof big);
    if (strcmp(what, "noise") == 0) {
        for (int i = 0; i < 100000; i++)
            puts("this is no end");
        for (int i = 0; i < 2000; i++)
            hf_work_progress(work, i, "on its way");
        return hf_work_ok(work, "quiet", 5);
    }
    if (strcmp(what, "key") == 0)
        return snprintf(big, sizeof big, "%s|%u|%u|%d|%d", hf_work_key(work), hf_work_execution(work),
                        hf_work_max_executions(work), hf_work_checkpoint(work, "x", 1), hf_work_client(work) == NULL),
               hf_work_ok(work, big, strlen(big));
    if (strncmp(what, "hang", 4) == 0) {
        signal(SIGTERM, SIG_IGN);
        int fd = open(what + 5, O_WRONLY | O_CREAT, 0600);
        dprintf(fd, "%d", (int)getpid());
        close(fd);
        for (;;)
            pause();
    }
    if (strncmp(what, "hold", 4) == 0) {
        char path[512] = "";
        memcpy(path, payload + 5, length - 5 < sizeof path ? length - 5 : 0);
        dprintf(open(path, O_WRONLY), "\n");
        for (;;)
            pause();
    }
    if (strncmp(what, "listen", 6) == 0) {
        while (!hf_work_is_cancelled(work))
            sched_yield();
        return hf_work_permanent(work, "test.listened", "it was told");
    }
    return hf_work_ok(work, payload, length);
}

static const struct hf_plugin plugin = {.version = VERSION, .name = "test", .run = RUN, .init = INIT};
const struct hf_plugin *ENTRY(uint32_t host) {
    (void)host;
    return PLUGIN;
}
'''


class Place:
    def __init__(self, folder, text):
        self.folder = folder
        with open(os.path.join(folder, 'holdfast.yaml'), 'w', encoding='utf-8') as file:
            file.write('store: sqlite:jobs.db\n' + text)

    def run(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, *arguments], cwd=self.folder, capture_output=True, timeout=120, check=False)
        assert code is None or done.returncode == code, (arguments, done)
        self.code, self.err = done.returncode, done.stderr.decode()
        return done.stdout.decode()

    def put(self, kind, payload):
        return int(self.run('enqueue', kind, payload))

    def job(self, job):
        return json.loads(self.run('job', 'show', str(job), '--json'))


def compile_plugin(folder, name, version='HF_PLUGIN_VERSION', entry='hf_plugin_entry', init='NULL', handler='run',
                   plugin='&plugin'):
    source, library = os.path.join(folder, name + '.c'), os.path.join(folder, name + '.so')
    with open(source, 'w', encoding='utf-8') as file:
        file.write(PLUGIN.replace('static const struct hf_plugin plugin',
                                  'static inline int refuse(const char *type, void **user, struct hf_error *error) {\n'
                                  '    (void)type; (void)user; strcpy(error->why, "no licence"); return HF_ECONFIG;\n}\n'
                                  'static const struct hf_plugin plugin'))
    subprocess.run([*CC, '-shared', '-fPIC', '-I' + INCLUDE, '-D_GNU_SOURCE', '-DVERSION=' + version, '-DENTRY=' + entry,
                    '-DINIT=' + init, '-DRUN=' + handler, '-DPLUGIN=' + plugin, '-o', library, source], check=True)
    return library


def example_runs(folder):
    """The example, on a thread and in a process of its own."""
    place = Place(folder, 'jobs:\n  greet: {kind: plugin, library: %s}\n'
                          '  risky: {kind: plugin, library: %s, isolate: process, max_executions: 1}\n' % (EXAMPLE, EXAMPLE))
    place.run('check')
    jobs = [place.put('greet', 'Anna'), place.put('risky', 'Bob'), place.put('risky', 'crash'), place.put('greet', 'Eve')]
    place.run('run', '--until-idle')
    assert place.job(jobs[0])['result'] == 'Hello by greet, Anna', place.job(jobs[0])
    assert place.job(jobs[1])['result'] == 'Hello by risky, Bob' and place.job(jobs[1])['progress'] == 3
    assert place.job(jobs[3])['state'] == 'succeeded'
    dead = place.job(jobs[2])
    assert dead['state'] == 'dead' and dead['error_type'] == 'signal.SIGABRT' and dead['crashes'] == 0, dead


def isolated_ends(folder):
    """Every end of a handler comes back as it was said; a process that says none is a failure [S0.1]."""
    library, pid = compile_plugin(folder, 'test'), os.path.join(folder, 'pid')
    place = Place(folder, 'jobs:\n  t: {kind: plugin, library: %s, isolate: process, max_executions: 1, environment: [A=b]}\n'
                          '  limited: {kind: plugin, library: %s, isolate: process, max_executions: 1, execution_timeout: 3s, '
                          'kill_grace: 100ms}\n  patient: {kind: plugin, library: %s, isolate: process, max_executions: 1, '
                          'execution_timeout: 500ms, kill_grace: 1h}\n' % (library, library, library))
    expected = {'segv': 'signal.SIGSEGV', 'exit3': 'exit.3', 'exit0': 'isolated.no_end', 'nothing': 'handler.unknown_result',
                'permanent': 'test.permanent', 'cancel': None, 'big': None, 'noise': None, 'key': None, '': None}
    jobs = {what: place.put('t', what) for what in expected}
    hang, listen = place.put('limited', 'hang ' + pid), place.put('patient', 'listen')
    place.run('run', '--until-idle')
    assert place.err.count('node.joined') == 1, place.err
    for what, error_type in expected.items():
        job = place.job(jobs[what])
        state = 'dead' if error_type else 'cancelled' if what == 'cancel' else 'succeeded'
        assert job['state'] == state and (what == 'cancel' or job['error_type'] == error_type), (what, job)
    assert place.job(jobs['big'])['result'] == 'x' * 65536
    noise = place.job(jobs['noise'])
    assert noise['result'] == 'quiet' and noise['progress'] == 1999, noise
    key = place.job(jobs['key'])['result'].split('|')
    assert key[0].endswith('-%d' % jobs['key']) and key[1:3] == ['1', '1'] and key[3:] == ['0', '1'], key # the checkpoint is stored
    # Killed for real at its limit [S2.7]; one that listens says its own end.
    job = place.job(hang)
    assert job['state'] == 'dead' and job['error_type'].startswith('timeout'), job
    if os.path.exists(pid): # on a slow machine it was ended before it said who it is
        with open(pid, encoding='ascii') as file:
            assert not os.path.exists('/proc/' + (file.read() or 'none'))
    assert place.job(listen)['state'] == 'dead', place.job(listen)


def children_die_with_their_node(folder):
    """A node that was killed: its processes are gone at once, without another node."""
    fifo = os.path.join(folder, 'alive')
    library = compile_plugin(folder, 'test')
    for job, payload in (('held', ''), ('isolated', 'hold ' + fifo)):
        place = Place(folder, 'jobs:\n  held: {kind: exec, command: [/bin/sh, -c, "exec 7>%s; echo >&7; trap : TERM; exec sleep 600"]}\n'
                              '  isolated: {kind: plugin, library: %s, isolate: process}\n' % (fifo, library))
        os.mkfifo(fifo)
        place.put(job, payload)
        node = subprocess.Popen([PROGRAM, 'run'], cwd=folder, stderr=subprocess.DEVNULL)
        with open(fifo, 'rb', buffering=0) as alive: # waits for the one that writes
            assert alive.read(1) == b'\n'
            node.kill()
            node.wait()
            assert alive.read(1) == b'' # comes when nobody holds it any more
        os.unlink(fifo)


def declared_payloads(folder):
    """S3.14: what its type cannot be is quarantined unstarted, and so is what a command says it cannot read."""
    place = Place(folder, 'jobs:\n  form: {kind: exec, payload: json, command: [/bin/sh, -c, "grep -q known || exit 65"]}\n'
                          '  plain: {kind: exec, max_executions: 1, command: [/bin/sh, -c, "exit 65"]}\n')
    good, broken, strange, plain = (place.put(*job) for job in (('form', '{"known": 1}'), ('form', '{"known'), ('form', '{"a": 1}'), ('plain', '')))
    counts = json.loads(place.run('run', '--until-idle', '--json'))
    assert (counts['succeeded'], counts['quarantined'], counts['died']) == (1, 2, 1), counts # S1.14
    assert place.job(good)['state'] == 'succeeded'
    for job, error_type in (broken, 'payload.json'), (strange, 'payload.unreadable'):
        shown = place.job(job)
        assert (shown['state'], shown['executions'], shown['error_type']) == ('quarantined', 0, error_type), shown
    assert (place.job(plain)['state'], place.job(plain)['error_type']) == ('dead', 'exit.65')


def silence_is_checked(folder):
    library = compile_plugin(folder, 'test')
    for keys, why in (('heartbeat_timeout: 5s, execution_timeout: 5s', '5s of silence do not fit into an execution_timeout of 5s'),
                      ('heartbeat_timeout: 2m', '2m of silence'), ('heartbeat_timeout: 0s', 'heartbeat_timeout'),
                      ('isolate: process, abandon_after: 1m', 'only kind plugin without isolate has this key')):
        place = Place(folder, 'jobs:\n  t: {kind: plugin, library: %s, %s}\n' % (library, keys))
        out = place.run('check', code=2) + place.err
        assert why in out and 'holdfast.yaml:3' in out, (keys, out)
    place = Place(folder, 'jobs:\n  t: {kind: noop, heartbeat_timeout: 1s}\n')
    assert 'only kind plugin has this key' in place.run('check', code=2) + place.err, place.err
    place = Place(folder, 'jobs:\n  t: {kind: plugin, library: %s, isolate: process, heartbeat_timeout: 5s}\n' % library)
    place.run('check')


def crash(folder, text, payload, victim):
    """Runs nodes until none is killed any more; the job is poison, the others ran [S3.5 I13]."""
    place = Place(folder, 'node: {lease: 1s, heartbeat: 300ms}\ndefaults: {curve: [1ms], max_executions: 9}\njobs:\n  nop: {kind: noop}\n' + text)
    job = place.put('victim', payload)
    others = [place.put('nop', '') for _ in range(20)]
    deaths = 0
    for _ in range(50):
        place.run('run', '--until-idle', code=None)
        assert place.code in (0, victim), (place.code, place.err)
        deaths += place.code == victim
        if place.job(job)['state'] == 'dead': # a node that found the next execution not due yet ends, too
            break
    shown = place.job(job)
    assert shown['state'] == 'dead' and shown['history'][-1]['rule'] == 'job.crash_ceiling', shown
    assert deaths == shown['executions'] == 4, (deaths, shown) # more than max_crashes, 3
    assert all(place.job(other)['state'] == 'succeeded' for other in others)


def crashing_handler_is_poison(folder):
    crash(folder, '  victim: {kind: plugin, library: %s}\n' % EXAMPLE, 'crash', -signal.SIGABRT)


def child_that_kills_its_parent_is_poison(folder):
    crash(folder, '  victim: {kind: exec, command: [/bin/sh, -c, "kill -9 $PPID"]}\n', '', -signal.SIGKILL)


def bad_plugins(folder):
    """Each is refused by `check` and by `run`, with its place and a fix."""
    text = os.path.join(folder, 'text.so')
    with open(text, 'w', encoding='ascii') as file:
        file.write('not a shared object\n')
    cases = (('/nonexistent/it.so', 'No such file'), (text, 'text.so'), (folder, 'is no file'),
             ('it.so', 'is not absolute'),
             (compile_plugin(folder, 'stranger', entry='something_else'), 'exports no hf_plugin_entry'),
             (compile_plugin(folder, 'old', version='7'), 'the plugin has version 7, the host 1'),
             (compile_plugin(folder, 'unwilling', plugin='NULL'), 'cannot work with version 1'),
             (compile_plugin(folder, 'empty', handler='NULL'), 'has no handler'))
    for library, why in cases:
        for isolate in 'none', 'process':
            place = Place(folder, 'jobs:\n  t: {kind: plugin, library: %s, isolate: %s}\n' % (library, isolate))
            out = place.run('check', code=2) + place.err
            assert why in out and 'holdfast.yaml:3' in out and 'jobs.t.library' in out, (library, out)
            place.run('run', '--until-idle', code=2)
    place = Place(folder, 'jobs:\n  t: {kind: plugin, library: %s}\n' % compile_plugin(folder, 'closed', init='refuse'))
    place.run('check') # which begins nothing
    place.run('run', '--until-idle', code=None)
    assert place.code != 0 and 'no licence' in place.err, place.err
    open_to_all = compile_plugin(folder, 'open')
    os.chmod(open_to_all, 0o777)
    place = Place(folder, 'jobs:\n  t: {kind: plugin, library: %s}\n' % open_to_all)
    out = place.run('check', code=None) + place.err
    assert 'W ' in out and 'everybody may write' in out, out


def main():
    for test in (example_runs, isolated_ends, children_die_with_their_node, declared_payloads, silence_is_checked,
                 crashing_handler_is_poison, child_that_kills_its_parent_is_poison, bad_plugins):
        with tempfile.TemporaryDirectory() as folder:
            test(folder)
            print('ok', test.__name__)


main()
