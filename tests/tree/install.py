# SPDX-License-Identifier: MIT
"""`meson install` gives the program, the library with its soname, every header, holdfast.pc, the man pages and a systemd
unit; the README's way to build a program works on what was installed, and the program starts.

install.py SOURCE_ROOT BUILD_ROOT MESON CC...
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

root, build, meson = sys.argv[1:4]
cc = sys.argv[4:]
faults = []


def one(pattern):
    found = glob.glob(os.path.join(stage, '**', pattern), recursive=True)
    if len(found) != 1:
        faults.append('%d files %s were installed, not one' % (len(found), pattern))
    return found[0] if found else None


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        faults.append('%s: exit %d: %s' % (' '.join(command), done.returncode, done.stdout))
    return done.stdout


with tempfile.TemporaryDirectory() as stage:
    run([meson, 'install', '-C', build, '--no-rebuild', '--quiet', '--destdir', stage])
    program, library, unit = one('bin/holdfast'), one('libholdfast.so.0'), one('system/holdfast.service')
    for page in ('man1/holdfast.1', 'man5/holdfast.yaml.5'):
        one(page)
    for header in os.listdir(os.path.join(root, 'include', 'holdfast')):
        if header.endswith('.h'):
            one('include/holdfast/' + header)
    pc = one('holdfast.pc')
    if program and library:
        environment = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(library))
        if 'holdfast' not in run([program, '--version'], env=environment):
            faults.append('the installed program does not tell its version')
    if unit:
        text = open(unit, encoding='utf-8').read()
        start = [line[10:].split() for line in text.split('\n') if line.startswith('ExecStart=')]
        if len(start) != 1 or stage + start[0][0] != program or '@' in text:
            faults.append('the unit does not start the installed program: %s' % start)
        # systemd must not kill before a drain of 25s, and 6s for handlers that were told, are over.
        for line in ('Type=notify', 'KillMode=mixed', 'TimeoutStopSec=45s', 'RestartPreventExitStatus=2'):
            if line not in text.split('\n'):
                faults.append('the unit lacks ' + line)
        if not faults and program and library:
            run([program, *start[0][1:], '--help'], env=environment)
    if pc and shutil.which('pkg-config'):
        environment = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(pc), PKG_CONFIG_SYSROOT_DIR=stage)
        flags = run(['pkg-config', '--cflags', '--libs', 'holdfast'], env=environment).split()
        run([*cc, '-o', os.path.join(stage, 'greet'), os.path.join(root, 'examples', 'greet.c'), *flags])
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
