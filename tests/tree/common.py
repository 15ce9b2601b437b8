# SPDX-License-Identifier: MIT
"""What the checks of the tree share: walking it, reading C without comments, reporting, and proving themselves.

Every check is a script `NAME.py ROOT [arguments]` that prints one line per fault and exits 1 if there was one. With
`--self-test` it builds small bad trees and fails unless it finds each fault, and nothing in a good one.
"""
import os
import re
import sys
import tempfile

FOLDERS = ('.ci', 'bench', 'docs', 'examples', 'include', 'scripts', 'src', 'tests')


def files(root, folders=FOLDERS, suffixes=None, top=False):
    """Relative paths, sorted. `top`: also the files of the root itself."""
    found = []
    for folder in folders:
        for base, inner, names in os.walk(os.path.join(root, folder)):
            inner[:] = [name for name in inner if name != '__pycache__']
            found += [os.path.relpath(os.path.join(base, name), root) for name in names]
    if top:
        found += [name for name in os.listdir(root) if os.path.isfile(os.path.join(root, name)) and name != '.git']
    return sorted(path for path in found if not suffixes or path.endswith(suffixes))


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8', errors='replace') as file:
        return file.read()


TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def without_comments(text, strings=True):
    """The same text with comments (and unless `strings`, the inside of strings) blanked; lines stay where they are."""

    def blank(match):
        piece = match.group(0)
        if piece[0] in '"\'':
            return piece if strings else piece[0] + ' ' * (len(piece) - 2) + piece[-1]
        return re.sub(r'[^\n]', ' ', piece)

    return TOKENS.sub(blank, text)


def without_directives(text):
    """The same text with preprocessor lines, continued ones too, blanked."""
    return re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', lambda match: re.sub(r'[^\n]', ' ', match.group(0)), text, flags=re.M)


def write_tree(root, tree):
    for path, text in tree.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, 'w', encoding='utf-8') as file:
            file.write(text)


def self_test(check, good, bad):
    """`check(root)` returns faults. `good`: a tree without any. `bad`: (files that change it, words of the fault)."""
    failures = 0
    for number, (tree, words) in enumerate([({}, None)] + bad):
        with tempfile.TemporaryDirectory() as root:
            write_tree(root, {**good, **tree})
            faults = check(root)
            if words is None and faults:
                print('the good tree has faults: %s' % faults)
                failures += 1
            if words is not None and not any(words in fault for fault in faults):
                print('bad tree %d: no fault says "%s": %s' % (number, words, faults))
                failures += 1
    print('%d bad trees, %d missed' % (len(bad), failures))
    return failures


def main(check, good, bad):
    """For checks that need nothing but the tree."""
    if sys.argv[1:] == ['--self-test']:
        sys.exit(1 if self_test(check, good, bad) else 0)
    report(check(sys.argv[1]))


def report(faults):
    for fault in faults:
        print(fault)
    print('%d faults' % len(faults))
    sys.exit(1 if faults else 0)
