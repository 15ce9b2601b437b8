# SPDX-License-Identifier: MIT
"""W4: one source of time. Only src/base reads a clock; whoever else needs the time is handed it, by a scheduler or as an
argument, so that a break and its window never run on two clocks."""
import re

import common

READS = re.compile(r'\b(clock_gettime|clock_getres|gettimeofday|timespec_get|ftime|uv_hrtime|uv_gettimeofday|'
                   r'__rdtscp?|_rdtsc|time(?=\s*\(\s*(NULL|0|&)))\s*\(')
HERE = ('src/base/clock.c', 'src/base/ticks.c')
# The demonstration is a play on its own stage: the clock it shows decides nothing.
ALSO = ('src/program/commands/demo_story.c',)
# Who may ask base for the time: loops and virtual schedulers, callers without a scheduler, and the program's own face.
NOW = re.compile(r'\bhfi_(mono|wall)_now(_coarse|_quick)?\s*\(')
PURE = re.compile(r'src/(resilience/(backoff|breaker|budget|bulkhead|cause|classify|decide|downstream|effect|histogram|'
                  r'outcome|policy|rate|retry_after|shards|window)|jobs/(transition|curve|lease|failure|lane))\w*\.[ch]$')


def check(root):
    faults = []
    for path in common.files(root, suffixes=('.c', '.h')):
        if not path.startswith('src/'):
            continue
        code = common.without_comments(common.read(root, path))
        for number, line in enumerate(code.split('\n'), 1):
            if path not in HERE + ALSO and READS.search(line):
                faults.append('%s:%d: reads a clock: %s' % (path, number, READS.search(line).group(1)))
            if PURE.match(path) and NOW.search(line):
                faults.append('%s:%d: asks for the time; it has to be handed in' % (path, number))
    return faults


GOOD = {
    'src/base/clock.c': 'int64_t f(void) { clock_gettime(CLOCK_MONOTONIC, &now); }\n',
    'src/resilience/breaker.c': '/* clock_gettime(…) */ int uptime(int); int f(struct hf_mono now) { return uptime(1); }\n',
    'src/resilience/guard.c': 'int f(void) { return hfi_mono_now().us; }\n',
}
BAD = [
    ({'src/resilience/x.c': 'int f(void) { clock_gettime(CLOCK_REALTIME, &t); }\n'}, 'x.c:1: reads a clock'),
    ({'src/jobs/x.c': 'int f(void) {\n return time(NULL); }\n'}, 'x.c:2: reads a clock'),
    ({'src/resilience/window.c': 'int f(void) { return hfi_mono_now().us; }\n'}, 'window.c:1: asks for the time'),
    ({'src/resilience/x.c': 'int f(void) { return __rdtsc(); }\n'}, 'reads a clock'),
]

if __name__ == '__main__':
    common.main(check, GOOD, BAD)
