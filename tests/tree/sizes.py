# SPDX-License-Identifier: MIT
"""Files and functions stay small enough to read: over 600 lines a file, over 60 a function is a fault. Over 400 is told."""
import re
import sys

import common

FILE_MAX, FILE_AIM, FUNCTION_MAX = 600, 400, 60

# Data tables only: file -> why. `file:function` for a function that is one table, such as a switch of names.
ALLOWED = {}

SOURCES = ('.c', '.h', '.py', '.sh')


def functions(text):
    """(name, first line, lines) of every function body; the opening line counts, the head above it does not, and a
    table `= {...}` in it counts as its first line."""
    code = common.without_directives(common.without_comments(text, strings=False))
    depth, head, start, name, table, saved = 0, 0, 0, None, None, 0
    for match in re.finditer(r'[{};]', code):
        at = match.start()
        if match.group(0) == '{':
            if depth == 0:
                before = code[head:at].strip()
                named = re.search(r'(\w+)\s*\(', before)
                name = named.group(1) if named and before.endswith(')') else None
                start, saved = at, 0
            elif table is None and code[start:at].rstrip().endswith('='):
                table = depth, at
            depth += 1
        elif match.group(0) == '}':
            depth -= 1
            if table and depth == table[0]:
                saved += code.count('\n', table[1], at)
                table = None
            if depth == 0:
                if name:
                    first = code.count('\n', 0, start) + 1
                    yield name, first, code.count('\n', start, at) + 1 - saved
                head = at + 1
        elif depth == 0:
            head = at + 1


def exempt(path, name):
    # `main` of a suite is the list of its tests.
    return '%s:%s' % (path, name) in ALLOWED or (name == 'main' and path.startswith('tests/'))


def check(root):
    faults = []
    for path in common.files(root, suffixes=SOURCES):
        text = common.read(root, path)
        lines = text.count('\n')
        if path not in ALLOWED and lines > FILE_MAX:
            faults.append('%s: %d lines, more than %d' % (path, lines, FILE_MAX))
        elif path not in ALLOWED and lines > FILE_AIM:
            print('%s: %d lines, aim for %d' % (path, lines, FILE_AIM), file=sys.stderr)
        if not path.endswith(('.c', '.h')):
            continue
        for name, first, length in functions(text):
            if length > FUNCTION_MAX and not exempt(path, name):
                faults.append('%s:%d: %s has %d lines, more than %d' % (path, first, name, length, FUNCTION_MAX))
    return faults


def function_of(lines, head='int f(void)'):
    return head + ' {\n' + '    x();\n' * (lines - 2) + '}\n'


GOOD = {
    'src/base/a.c': function_of(60) + 'static const int table[] = {\n' + '    1,\n' * 100 + '};\n',
    'src/base/b.c': '// x\n' * 600,
    'src/base/c.c': 'struct s {\n' + '    int a;\n' * 80 + '};\n#define M(x) do { \\\n' + '  x; \\\n' * 80 + '} while (0)\n',
    'src/base/d.c': function_of(40) + function_of(40),
    'src/base/e.c': 'int f(void) {\n    char c = \'{\';\n    g("{{{");\n    /* { */\n}\n' + function_of(50),
    'src/base/f.c': 'int t(void) {\n    static const int a[][2] = {\n' + '        {1, 2},\n' * 80 + '    };\n' + function_of(55)[20:],
    'tests/unit/test_a.c': function_of(100, 'int main(void)'),
}
BAD = [
    ({'src/base/x.c': '// x\n' * 601}, 'x.c: 601 lines'),
    ({'tests/unit/x.c': '// x\n' * 601}, 'x.c: 601 lines'),
    ({'src/base/x.c': function_of(61)}, 'x.c:1: f has 61 lines'),
    ({'src/base/x.c': '\n\n' + function_of(61, 'static struct s *\ng(int a,\n  int b)')}, 'x.c:5: g has 61 lines'),
    ({'src/base/x.c': 'int v = 1;\n' + function_of(10) + function_of(61, 'void h(void)')}, 'h has 61 lines'),
    ({'src/base/x.h': function_of(61, 'static inline int i(void)')}, 'i has 61 lines'),
    ({'src/base/x.c': 'int t(void) {\n    int a[] = {\n        1,\n    };\n' + '    x();\n' * 58 + '}\n'}, 't has 61 lines'),
    ({'src/base/x.c': 'int t(void) {\n    if (x) {\n' + '        x();\n' * 60 + '    }\n}\n'}, 't has 64 lines'),
    ({'src/program/main.c': function_of(61, 'int main(void)')}, 'main has 61 lines'),
]

if __name__ == '__main__':
    common.main(check, GOOD, BAD)
