# SPDX-License-Identifier: MIT
"""Runs a transcript: commands of a shell with what they have to print. Each transcript has an empty folder of its own.

    file NAME            the lines up to a lone `end` become that file
    setenv NAME VALUE    for the commands that follow
    $ COMMAND            run by sh; then come the lines it has to print on stdout
    ! LINE               a line it has to print on stderr
    [N]                  its exit code, when it is not 0
    ~ REGEX, ~! REGEX    a line of stdout, of stderr, that has to match as a whole
    ...  and  ! ...      any number of lines on stdout, on stderr

Times become TIME, uuids UUID, the folder DIR. `#` begins a comment."""
import contextlib
import difflib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile

NORMAL = [
    (re.compile(r'\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z'), 'TIME'),
    (re.compile(r'\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b'), 'UUID'),
]


class Step:
    def __init__(self, line, command):
        self.line, self.command, self.out, self.err, self.code = line, command, [], [], 0


def parse(lines):
    """Yields ('file', name, text), ('setenv', name, value) and ('run', Step)."""
    step, at = None, 0
    while at < len(lines):
        line, at = lines[at], at + 1
        if line.startswith(('file ', 'setenv ', '$ ')) and step:
            yield 'run', step
            step = None
        if line.startswith('file '):
            end = lines.index('end', at)
            yield 'file', line[5:], '\n'.join(lines[at:end] + [''])
            at = end + 1
        elif line.startswith('setenv '):
            yield ('setenv', *line[7:].split(' ', 1))
        elif line.startswith('$ '):
            step = Step(at, line[2:])
        elif line.startswith('#') or (not line and not step):
            continue
        elif line.startswith(('! ', '~! ')):
            step.err.append(line.replace('~! ', '~ ', 1) if line.startswith('~') else line[2:])
        elif re.fullmatch(r'\[\d+\]', line):
            step.code = int(line[1:-1])
        elif line:
            step.out.append(line)
    if step:
        yield 'run', step


def normal(text, folder):
    text = text.replace(folder, 'DIR')
    for pattern, word in NORMAL:
        text = pattern.sub(word, text)
    return [line for line in text.split('\n') if line]


def same(wanted, got):
    """Do the lines fit, with `...` for any number of lines and `~ ` for a regular expression?"""
    if not wanted:
        return not got
    if wanted[0] == '...':
        return any(same(wanted[1:], got[at:]) for at in range(len(got) + 1))
    if not got:
        return False
    fits = re.fullmatch(wanted[0][2:], got[0]) if wanted[0].startswith('~ ') else wanted[0] == got[0]
    return bool(fits) and same(wanted[1:], got[1:])


def play(path, program):
    folder, faults = tempfile.mkdtemp(prefix='holdfast-cli-'), 0
    environment = {key: value for key, value in os.environ.items() if key in ('LD_LIBRARY_PATH', 'ASAN_OPTIONS', 'UBSAN_OPTIONS')}
    environment.update(PATH=os.path.dirname(program) + ':/usr/bin:/bin', HOME=folder, TZ='UTC', LC_ALL='C.UTF-8', TERM='dumb')
    try:
        with open(path, encoding='utf-8') as file:
            lines = file.read().split('\n')
        for kind, *rest in parse(lines):
            if kind == 'file':
                with open(os.path.join(folder, rest[0]), 'w', encoding='utf-8') as file:
                    file.write(rest[1])
            elif kind == 'setenv':
                environment[rest[0]] = rest[1]
            else:
                faults += check(path, rest[0], folder, environment)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return faults


def check(path, step, folder, environment):
    done = subprocess.run(['sh', '-c', step.command], cwd=folder, env=environment, capture_output=True, timeout=60, check=False,
                          stdin=subprocess.DEVNULL)
    out = normal(done.stdout.decode('utf-8', 'backslashreplace'), folder)
    err = normal(done.stderr.decode('utf-8', 'backslashreplace'), folder)
    if done.returncode == step.code and same(step.out, out) and same(step.err, err):
        return 0
    print('%s:%d: $ %s' % (path, step.line, step.command))
    if done.returncode != step.code:
        print('  exit code %d, wanted %d' % (done.returncode, step.code))
    for name, wanted, got in (('stdout', step.out, out), ('stderr', step.err, err)):
        if not same(wanted, got):
            print('\n'.join(difflib.unified_diff(wanted, got, name + ' wanted', name, lineterm='', n=100)))
    return 1


def self_test():
    assert same(['a', '...', 'c'], ['a', 'b', 'b', 'c']) and not same(['a', '...', 'c'], ['a', 'b'])
    assert same(['~ x\\d'], ['x1']) and not same(['~ x\\d'], ['x12']) and not same([], ['x']) and not same(['x'], [])
    assert normal('2026-11-30T10:05:00.123456Z /d/x', '/d') == ['TIME DIR/x']
    with tempfile.NamedTemporaryFile('w', suffix='.t') as file:
        for text, faults in (('$ echo a; echo b >&2; exit 3\na\n! b\n[3]\n', 0), ('$ echo a\n', 1), ('$ true\n[1]\n', 1),
                             ('file x\n1\nend\n$ cat x\n1\n', 0), ('$ echo b >&2\n', 1)):
            file.seek(0)
            file.truncate()
            file.write(text)
            file.flush()
            with contextlib.redirect_stdout(io.StringIO()):
                found = play(file.name, '/usr/bin/true')
            assert found == faults, text


if __name__ == '__main__':
    if sys.argv[1] == '--self-test':
        self_test()
    else:
        sys.exit(1 if sum(play(path, os.path.abspath(sys.argv[1])) for path in sys.argv[2:]) else 0)
