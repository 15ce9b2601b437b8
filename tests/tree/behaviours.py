# SPDX-License-Identifier: MIT
"""Each numbered behaviour is cited by a test: a name or comment in tests/ that holds its number. The lists stand here: bugs
and wishes met in this field (B breaker, W windows and clocks, R retries, A Retry-After, L the libraries below, F wishes, V
what the configuration check proves; I bugs of job runners), and the behaviours of the reference systems that the resilience
half and the runner answer for."""
import re

import common

COUNTS = {'B': 33, 'W': 12, 'R': 24, 'A': 8, 'L': 8, 'F': 9, 'V': 15}
SYSTEMS = {
    0: [*range(1, 33), 35, 36],
    1: [*range(1, 30)],
    2: [*range(1, 37)],
    3: [*range(2, 16), 17, 19, 20, 22, 23],
    4: [*range(1, 10), *range(11, 16)],
}
RUNNER = 96
# S4.10 (a user with the operator's token alone reads and replays, a viewer cannot) waits for the dashboard: without it whoever
# may read the store's file may do both. Its other half, hostile text read safely, is I65 and I66. S2.35's Grafana waits for /metrics.
# Lines I that belong to what is not there yet. I84 and I85 have their halves without a dashboard: pages are bounded and texts escaped in
# tests/unit/test_views.c; a bulk redrive refused without its number in tests/cli/cases/dead_task.t.
LATER = {
    'the store on PostgreSQL': [10, 22, 23, 71, 72],  # 10: a store that can stall
    'schedules': [31, 49, *range(52, 61), 94],
    'fuzzing of the parsers of schedules and protocols': [86],
}


def wanted():
    numbers = ['%s%d' % (letter, number) for letter, count in COUNTS.items() for number in range(1, count + 1)]
    later = [number for lines in LATER.values() for number in lines]
    numbers += ['I%d' % number for number in range(1, RUNNER + 1) if number not in later]
    return numbers + ['S%d.%d' % (system, number) for system, lines in SYSTEMS.items() for number in lines]


def check(root):
    cited = set()
    for path in common.files(root, folders=('tests',)):
        if path == 'tests/tree/behaviours.py':
            continue
        # A function's name spells S0.30 as s0_30 and B7 as b7.
        text = common.read(root, path)
        cited.update(re.findall(r'(?<![A-Za-z0-9.])(?:S\d+\.\d+|[BWRALFVI]\d+)(?![0-9])', text))
        cited.update('S%s.%s' % pair for pair in re.findall(r'(?<![A-Za-z0-9])[sS](\d)_(\d+)(?![0-9])', text))
        cited.update(name.upper() for name in re.findall(r'(?<![A-Za-z0-9])([bwralfvi]\d+)(?=_[a-z])', text))
    return ['no test cites %s' % number for number in wanted() if number not in cited]


GOOD = {'tests/unit/test_all.c': '/* %s S0.29, */ void s0_28_x(void); void b7_crowd(void);' % ' '.join(
    number for number in wanted() if number not in ('S0.28', 'S0.29', 'B7'))}
BAD = [({'tests/unit/test_all.c': GOOD['tests/unit/test_all.c'].replace(before, after)}, 'no test cites ' + words)
       for before, after, words in ((' B3 ', ' B33 ', 'B3'), ('S0.29', 'S0.290', 'S0.29'), ('s0_28', 's0_2', 'S0.28'),
                                    ('b7_crowd', 'crowd', 'B7'), (' L1 ', ' XL1 ', 'L1'))]

if __name__ == '__main__':
    common.main(check, GOOD, BAD)
