# SPDX-License-Identifier: MIT
"""The bar of a long bulk enqueue: drawn on a terminal and taken away in the end; --quiet draws none."""
import json
import os
import pty
import select
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
LINE = b'{"type":"nop"}\n'


def enqueue(folder, wanted, *more, most=200000):
    """Feeds lines until stderr, a terminal, has shown what is wanted; what it showed, and how many jobs were read."""
    seen, lines = b'', 0
    master, slave = pty.openpty()
    process = subprocess.Popen([PROGRAM, 'enqueue', '--ndjson', '-', '--json', *more], cwd=folder, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=slave, env={**os.environ, 'TERM': 'xterm'})
    os.close(slave)
    while wanted not in seen and lines < most:
        process.stdin.write(LINE * 500)
        lines += 500
        if select.select([master], [], [], 0)[0]:
            seen += os.read(master, 65536)
    process.stdin.close()
    out = json.loads(process.stdout.read())
    assert process.wait(60) == 0
    try:
        while True:
            seen += os.read(master, 65536)
    except OSError:  # the other end is closed
        os.close(master)
    return seen, lines, out


def main():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'holdfast.yaml'), 'w', encoding='utf-8') as file:
            file.write('store: sqlite:jobs.db\njobs: {nop: {kind: noop}}\n')
        seen, lines, out = enqueue(folder, b'/s')
        assert b'\r' in seen and b'jobs, ' in seen and b'/s\x1b[K' in seen, seen[-200:]
        assert seen.rstrip(b'\n').endswith(b'\r\x1b[K'), seen[-200:]  # nothing of it is left
        assert out['enqueued'] == lines, (out, lines)
        seen, lines, out = enqueue(folder, b'never', '--quiet', most=20000)
        assert seen == b'' and out['enqueued'] == lines == 20000, (seen, out)


main()
