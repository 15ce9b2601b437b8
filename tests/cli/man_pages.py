# SPDX-License-Identifier: MIT
"""The man pages in docs/ are what the program makes of its own tables, so every command, flag, key and default is in them (F4). After a
change: `holdfast help --man > docs/holdfast.1` and `holdfast check --man > docs/holdfast.yaml.5`."""
import subprocess
import sys

program, commands, keys = sys.argv[1:4]
faults = 0
for path, arguments, least in ((commands, ['help', '--man'], '.SS holdfast check'), (keys, ['check', '--man'], 'downstreams.*.url')):
    made = subprocess.run([program, *arguments], capture_output=True, check=True, encoding='utf-8').stdout
    with open(path, encoding='utf-8') as file:
        if file.read() != made:
            print('%s is not what `holdfast %s` prints' % (path, ' '.join(arguments)))
            faults += 1
    if least not in made:
        print('`holdfast %s` lacks %s' % (' '.join(arguments), least))
        faults += 1
sys.exit(1 if faults else 0)
