# SPDX-License-Identifier: MIT
"""What the built library shows.

symbols.py exported LIBRARY           only hf_… of version HOLDFAST_0
symbols.py declared LIBRARY ROOT      exactly what the public headers declare
symbols.py globals ARCHIVE...         hf_… and hfi_… only, so that nothing collides in a static program
symbols.py --self-test CC...
"""
import os
import re
import subprocess
import sys
import tempfile

import common

VERSION = 'HOLDFAST_0'
# What sanitizers and coverage add to a global of ours.
INSTRUMENTATION = re.compile(r'__(odr_)?(asan|ubsan|tsan|gcov|llvm)[._]')


def nm(flags, path):
    output = subprocess.run(['nm', '--defined-only'] + flags + [path], stdout=subprocess.PIPE, text=True, check=True).stdout
    return sorted({line.split()[-1] for line in output.split('\n') if re.match(r'[0-9a-f]+ [A-Zuvw] ', line)})


def check_exported(library):
    wanted = re.compile(r'hf_\w+@@%s$' % VERSION)
    names = [name for name in nm(['-D'], library) if name not in (VERSION, VERSION + '@@' + VERSION)]
    faults = ['exported but not hf_…@@%s: %s' % (VERSION, name) for name in names if not wanted.match(name)]
    return faults if names else ['%s exports nothing' % library]


def declared(root):
    names = set()
    for path in common.files(root, ['include'], ('.h',)):
        text = common.without_directives(common.without_comments(common.read(root, path)))
        for match in re.finditer(r'\bHF_API\b([^;{]*)', text):
            function = re.search(r'\b(hf_\w+)\s*\(', match.group(1))
            names.add(function.group(1) if function else match.group(1).strip())
    return names


def check_declared(library, root):
    exported = {name.split('@')[0] for name in nm(['-D'], library)} - {VERSION}
    known = declared(root)
    return (['declared but not exported: %s' % name for name in sorted(known - exported)] +
            ['exported but not declared: %s' % name for name in sorted(exported - known)])


def check_globals(archives):
    faults = []
    for archive in archives:
        faults += ['%s: global without our prefix: %s' % (os.path.basename(archive), name) for name in nm(['-g'], archive)
                   if not re.match(r'hfi?_', name) and not INSTRUMENTATION.match(name)]
    return faults


def build(cc, folder, source, map_text='%s { global: *; };' % VERSION):
    """A library, an archive and a tree of one source and one header."""
    common.write_tree(folder, {'a.c': source, 'map': map_text, 'include/holdfast/a.h':
                               'HF_API int hf_a(int x);\n/* HF_API int hf_no(void); */\nHF_API const char *\nhf_b(void);\n'})
    path = {name: os.path.join(folder, name) for name in ('a.c', 'map', 'a.so', 'a.o', 'a.a')}
    subprocess.run(cc + ['-w', '-shared', '-fPIC', '-Wl,--version-script=' + path['map'], path['a.c'], '-o', path['a.so']],
                   check=True)
    subprocess.run(cc + ['-w', '-c', path['a.c'], '-o', path['a.o']], check=True)
    subprocess.run(['ar', 'rcs', path['a.a'], path['a.o']], check=True)
    return path['a.so'], path['a.a']


BOTH = 'int hf_a(int x) { return x; }\nconst char *hf_b(void) { return ""; }\nstatic int mine;\n'
SAMPLES = [  # source, version script, words of the fault or None: of exported, declared, globals
    (BOTH, None, (None, None, None)),
    (BOTH + 'int hfi_c;\n', None, ('hfi_c', 'exported but not declared: hfi_c', None)),
    (BOTH + 'int helper(void) { return 1; }\n', None, ('helper', 'not declared: helper', 'prefix: helper')),
    (BOTH + 'int counter = 1;\n', None, ('counter', 'not declared: counter', 'prefix: counter')),
    (BOTH + 'int hf_extra(void) { return 1; }\n', None, (None, 'exported but not declared: hf_extra', None)),
    ('int hf_a(int x) { return x; }\n', None, (None, 'declared but not exported: hf_b', None)),
    (BOTH, 'OTHER { global: *; };', ('hf_a', 'OTHER', None)),
    (BOTH, '%s { local: *; };' % VERSION, ('exports nothing', 'declared but not exported: hf_a', None)),
]


def self_test(cc):
    missed = 0
    for number, (source, script, expected) in enumerate(SAMPLES):
        with tempfile.TemporaryDirectory() as folder:
            library, archive = build(cc, folder, source, *([script] if script else []))
            results = check_exported(library), check_declared(library, folder), check_globals([archive])
        for words, faults in zip(expected, results):
            if (words is None and faults) or (words and not any(words in fault for fault in faults)):
                print('sample %d: expected %s, got %s' % (number, words, faults))
                missed += 1
    print('%d samples, %d missed' % (len(SAMPLES), missed))
    return missed


if __name__ == '__main__':
    what, rest = sys.argv[1], sys.argv[2:]
    if what == '--self-test':
        sys.exit(1 if self_test(rest) else 0)
    common.report({'exported': lambda: check_exported(rest[0]), 'declared': lambda: check_declared(*rest),
                   'globals': lambda: check_globals(rest)}[what]())
