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
# Who may ask base for the time, and why; everybody else is handed it.
NOW = re.compile(r'\b(hfi_(?:mono|wall)_now(?:_coarse|_quick)?|hf_time_now)\s*\(')
ASK = {
    'src/base/': 'the clocks themselves, the lines of the log, hf_time_now for callers',
    'src/loop/': 'the scheduler of real time',
    'src/resilience/guard.c': 'public functions for callers that have no scheduler; what they call takes `now`',
    'src/resilience/guard_run.c': 'the same, and it waits on its caller\'s thread',
    'src/resilience/saved.c': 'the same',
    'src/jobs/store/outbox/relay.c': 'its thread sleeps in real time, it has no scheduler',
    'src/jobs/kinds/isolated_talk.c': 'a process of its own whose scheduler it is, for one handler',
    'src/jobs/writer.c': 'its thread waits in real time where it has no scheduler',
    'src/jobs/store/deadline.c': 'what takes long in reality is ended; asked from inside SQLite',
    'src/jobs/store/once.c': 'a public function on the database of a caller that has no scheduler',
    'src/jobs/store/read_control.c': 'what is forced by hand comes from processes without a scheduler',
    'src/sim/memory_look.c': 'the same, of the store in memory',
    'src/program/': 'the program itself',
}


def may_ask(path):
    return any(path == place or (place.endswith('/') and path.startswith(place)) for place in ASK)


def check(root):
    faults = []
    for path in common.files(root, suffixes=('.c', '.h')):
        if not path.startswith('src/'):
            continue
        code = common.without_comments(common.read(root, path))
        for number, line in enumerate(code.split('\n'), 1):
            if path not in HERE + ALSO and READS.search(line):
                faults.append('%s:%d: reads a clock: %s' % (path, number, READS.search(line).group(1)))
            if not may_ask(path) and NOW.search(line):
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
    ({'src/resilience/call.c': 'int f(void) { return hfi_wall_now().us; }\n'}, 'call.c:1: asks for the time'),
    ({'src/assembly/x.c': 'int f(void) { return hf_time_now(); }\n'}, 'x.c:1: asks for the time'),
    ({'src/resilience/x.c': 'int f(void) { return __rdtsc(); }\n'}, 'reads a clock'),
]

if __name__ == '__main__':
    common.main(check, GOOD, BAD)
