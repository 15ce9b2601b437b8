# SPDX-License-Identifier: MIT
"""Nothing unfinished and no path of somebody's machine is left in the tree. The words are put together here, so that
this file, too, is checked."""
import re

import common

FORBIDDEN = [
    ('unfinished', re.compile(r'\b(TO' r'DO|FIX' r'ME|XX' r'X|TB' r'D)\b')),
    ('unfinished', re.compile(r'\bst' r'ub(s|bed)?\b', re.I)),
    ('unfinished', re.compile(r'\bnot (yet )?imple' r'mented\b', re.I)),
    ('a path of one machine', re.compile(r'(?<![\w.~}\])])/(ho' r'me|ro' r'ot|wo' r'rk|Us' r'ers)/')),
]
TEXT = ('.c', '.h', '.py', '.sh', '.build', '.txt', '.md', '.yaml', '.yml', '.map', '.sql', '.json', '.in', '.run', '.1',
        '.5', '.html', '.js', '.css', '.supp')


def is_text(path):
    return path.endswith(TEXT) or '.' not in path.rsplit('/', 1)[-1]


def check(root):
    faults = []
    for path in filter(is_text, common.files(root, top=True)):
        for number, line in enumerate(common.read(root, path).split('\n'), 1):
            for why, pattern in FORBIDDEN:
                match = pattern.search(line)
                if match:
                    faults.append('%s:%d: %s: %s' % (path, number, why, match.group(0)))
        if path.endswith('.c') and not path.startswith('examples/') and not common.read(root, path).startswith('/* SPDX-License-Identifier: MIT */\n'):
            faults.append('%s:1: no licence line' % path)
        if path.endswith('.c') and path.startswith('src/'):
            second = common.read(root, path).split('\n')[1:2]
            if not second or not second[0].startswith('/*'):
                faults.append('%s:2: no comment on what it does' % path)
    return faults


LICENCE = '/* SPDX-License-Identifier: MIT */\n'
GOOD = {
    'src/base/a.c': LICENCE + '/* Does it. */\nchar path[] = "/tmp/x-XXXXXX"; int stubborn; // mastodon, /networking/\n',
    'examples/printed.c': 'int main(void) {}\n',
    'README.md': 'See https://example.org/work/x and ./home/ and /usr/bin.\n',
}
BAD = [
    ({'src/base/x.c': LICENCE + '/* TO' 'DO: all */\n'}, 'x.c:2: unfinished'),
    ({'docs/x.md': 'a\n\nFIX' 'ME\n'}, 'x.md:3: unfinished'),
    ({'src/base/x.h': '/* a St' 'ub. */\n'}, 'unfinished'),
    ({'scripts/x.sh': 'echo not imple' 'mented\n'}, 'unfinished'),
    ({'.ci/run': 'cd /wo' 'rk/main\n'}, '.ci/run:1: a path of one machine'),
    ({'README.md': 'in /ho' 'me/me/x\n'}, 'README.md:1: a path of one machine'),
    ({'src/base/x.c': '/* Does it. */\n'}, 'no licence line'),
    ({'src/base/x.c': LICENCE + 'int x;\n'}, 'no comment on what it does'),
]

if __name__ == '__main__':
    common.main(check, GOOD, BAD)
