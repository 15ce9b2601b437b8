# SPDX-License-Identifier: MIT
"""Every path of the tree that README, CONTRIBUTING or a guide names is there."""
import glob
import os
import re

import common

NAMED = re.compile(r'(?<![\w./-])(?:bench|docs|examples|include|scripts|src|tests)/[\w./*-]*')


def check(root):
    faults = []
    for path in common.files(root, folders=('docs',), suffixes=('.md', '.txt'), top=True):
        if not path.endswith(('.md', '.txt')):
            continue
        for number, line in enumerate(common.read(root, path).split('\n'), 1):
            for name in NAMED.findall(line):
                name = name.rstrip('.')
                if 'NAME' not in name and not glob.glob(os.path.join(root, name)):
                    faults.append('%s:%d: there is no %s' % (path, number, name))
    return faults


GOOD = {
    'README.md': 'See `src/a/b.c`, `src/a/*.c` and src/a/NAME.c. Build it with cc x.c; see https://example.org/src/none.\n',
    'docs/life.txt': 'In src/a/b.c.\n',
    'src/a/b.c': '',
}
BAD = [
    ({'README.md': 'a\n`src/a/c.c`\n'}, 'README.md:2: there is no src/a/c.c'),
    ({'CONTRIBUTING.md': '| x | `src/b/*.c` |\n'}, 'there is no src/b/*.c'),
    ({'docs/life.txt': 'In docs/none.md\n'}, 'docs/life.txt:1: there is no docs/none.md'),
]

if __name__ == '__main__':
    common.main(check, GOOD, BAD)
