# SPDX-License-Identifier: MIT
"""docs/classification.md is what `holdfast classify --table` prints (after a change: holdfast classify --table >
docs/classification.md), and the tables know every code of the headers that are installed here."""
import json
import re
import subprocess
import sys

program, page, *compiler = sys.argv[1:]
faults = []


def run(*arguments):
    return subprocess.run([program, 'classify', *arguments], capture_output=True, check=True, encoding='utf-8').stdout


def rows(table):
    return json.loads(run('--table', table, '--json'))['items']


def preprocessed(header, *flags):
    return subprocess.run([*compiler, '-E', *flags, '-'], input='#include <%s>\n' % header, capture_output=True, check=True,
                          encoding='utf-8').stdout


def lacking(what, wanted, known):
    if not wanted:
        faults.append('no %s was found in the headers: the test sees nothing' % what)
    faults.extend('%s: no row for %s' % (what, name) for name in sorted(set(wanted) - set(known)))


def curl_codes():
    body = re.search(r'CURLE_OK = 0,(.*?)CURL_LAST', preprocessed('curl/curl.h'), re.S).group(1)
    return ['CURLE_OK'] + re.findall(r'CURLE_\w+', body)


def sqlite_codes():
    path = re.search(r'^# \d+ "(\S*/sqlite3\.h)"', preprocessed('sqlite3.h'), re.M).group(1)
    with open(path, encoding='utf-8') as file:
        text = re.search(r'Result Codes\n(.*?)Flags For File Open', file.read(), re.S).group(1)
    values = {}
    for name, value in re.findall(r'^#define SQLITE_(\w+)\s+(\d+|\(SQLITE_\w+ \| \(\d+<<8\)\))', text, re.M):
        parts = re.findall(r'\w+', value)
        values[name] = int(value) if len(parts) == 1 else values[parts[0][len('SQLITE_'):]] | int(parts[1]) << 8
    return {str(value) for value in values.values()}


def errno_names():
    aliases = {'EWOULDBLOCK', 'EDEADLOCK', 'EOPNOTSUPP'}
    return set(re.findall(r'^#define (E[A-Z0-9]+) \d+$', preprocessed('errno.h', '-dM'), re.M)) - aliases


with open(page, encoding='utf-8') as file:
    if file.read() != run('--table'):
        faults.append('%s is not what `holdfast classify --table` prints' % page)
first = [row['match'].split()[0] for row in rows('sqlite')]
lacking('curl', curl_codes(), [row['match'].split()[-1] for row in rows('curl')])
lacking('sqlite', sqlite_codes(), first)
lacking('errno', errno_names(), [row['match'] for row in rows('errno')])
print('\n'.join(faults))
sys.exit(1 if faults else 0)
