# SPDX-License-Identifier: MIT
"""Every command has help with its usage, its flags and an example; the example's flags are the command's own."""
import os
import re
import subprocess
import sys

PROGRAM = os.path.abspath(sys.argv[1])
WANTED = '''run enqueue check classify retry-after call doctor migrate demo
job list|show|cancel|requeue; dead list|show|redrive|resolve|discard; queue list|pause|resume
downstream list|show|isolate|close'''


def text(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, encoding='utf-8', timeout=60, check=False)
    assert done.returncode == 0 and not done.stderr, (arguments, done)
    return done.stdout


def names():
    yield from WANTED.split('\n', maxsplit=1)[0].split()
    for group in re.split('[;\n]', WANTED.split('\n', 1)[1]):
        word, verbs = group.split()
        for verb in verbs.split('|'):
            yield word + ' ' + verb


everything = text('--help')
listed = re.findall(r'^  ([a-z-]+(?: [a-z]+)?)  +\S', everything.split('Flags of every command')[0], re.M)
assert set(names()) <= set(listed), set(names()) - set(listed)
assert len(listed) == len(set(listed)), listed
for name in listed:
    page = text(*name.split(), '--help')
    assert page.startswith('Usage: holdfast ' + name), page
    assert text('help', *name.split()) == page
    assert text('--help', *name.split()) == page
    example = page.split('Example:\n')[1]
    assert example.strip().startswith('holdfast '), page
    for line in example.strip().split('\n'):
        if 'holdfast ' + name in line:
            for flag in re.findall(r' (--[a-z-]+)', line):
                assert re.search(r'^  %s\b' % flag, page, re.M), (name, flag)
for group in ('job', 'dead', 'queue', 'downstream'):
    assert group + ' list' in text(group, '--help')
