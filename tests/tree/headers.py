# SPDX-License-Identifier: MIT
"""Every public header compiles alone, and twice, as strict C11 and as C++, and is installed.

headers.py ROOT CC... -- CXX...
"""
import os
import subprocess
import sys
import tempfile

import common

STRICT = ['-pedantic', '-Wall', '-Wextra', '-Werror', '-fsyntax-only']


def compile_alone(root, compiler, flags, suffix, name):
    with tempfile.TemporaryDirectory() as folder:
        unit = os.path.join(folder, 'unit' + suffix)
        with open(unit, 'w') as file:
            file.write('#include <holdfast/%s>\n#include <holdfast/%s>\nint unit;\n' % (name, name))
        command = compiler + flags + STRICT + ['-I' + os.path.join(root, 'include'), unit]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 0:
        return []
    return ['include/holdfast/%s: does not compile alone as %s:\n%s' % (name, flags[0][5:], done.stdout)]


def check(root, cc, cxx):
    faults = []
    folder = os.path.join(root, 'include', 'holdfast')
    listed = common.read(root, 'include/holdfast/meson.build')
    for name in sorted(os.listdir(folder)):
        if not name.endswith('.h'):
            continue
        if "'%s'" % name not in listed:
            faults.append('include/holdfast/%s: not installed by its meson.build' % name)
        if name != 'holdfast.h' and '#include "%s"' % name not in common.read(root, 'include/holdfast/holdfast.h'):
            faults.append('include/holdfast/%s: not in the umbrella header' % name)
        faults += compile_alone(root, cc, ['-std=c11'], '.c', name)
        faults += compile_alone(root, cxx, ['-std=c++11'], '.cpp', name)
    return faults


GOOD = {
    'include/holdfast/meson.build': "files('holdfast.h', 'a.h')",
    'include/holdfast/holdfast.h': '#include "a.h"\n',
    'include/holdfast/a.h': '#ifndef A_H\n#define A_H\n#include <stdint.h>\nstruct a {\n    int64_t b;\n};\n#endif\n',
}


def broken(text):
    return {'include/holdfast/a.h': '#ifndef A_H\n#define A_H\n%s\n#endif\n' % text}


BAD = [
    (broken('size_t f(void);'), 'alone as c11'),
    (broken('enum { A = 1, B = ({ 2; }) };'), 'alone as c11'),
    (broken('struct a { int class; };'), 'alone as c++11'),
    (broken('static inline char *f(void) { return (char *)0; }\nstatic inline int *g(void *p) { return p; }'), 'as c++11'),
    ({'include/holdfast/a.h': 'struct a {\n    int b;\n};\n'}, 'alone as c11'),
    ({'include/holdfast/b.h': ''}, 'not installed'),
    ({'include/holdfast/b.h': ''}, 'not in the umbrella'),
]

if __name__ == '__main__':
    root, rest = sys.argv[1], sys.argv[2:]
    split = rest.index('--')
    compilers = rest[:split], rest[split + 1:]
    if root == '--self-test':
        sys.exit(1 if common.self_test(lambda tree: check(tree, *compilers), GOOD, BAD) else 0)
    common.report(check(root, *compilers))
