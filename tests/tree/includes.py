# SPDX-License-Identifier: MIT
"""The include law: which folder may include which, and where foreign headers may stand."""
import os
import re

import common

# folder: the folders it may include besides itself and the public headers. The longest matching folder counts.
LAW = {
    'base': [],
    'resilience': ['base'],
    'loop': ['base'],
    'resilience/http': ['resilience', 'loop', 'base'],
    'jobs': ['resilience', 'base'],
    'jobs/runner': ['jobs', 'resilience', 'base'],
    'jobs/store': ['jobs', 'base'],
    'sim': ['jobs/runner', 'jobs', 'resilience', 'base'],
    'assembly': ['sim', 'jobs/store', 'jobs/runner', 'jobs', 'resilience/http', 'loop', 'resilience', 'base'],
    'program': [],
}

# foreign header (a prefix of its name): where under src it may be included
FOREIGN = {
    'uv.h': ['loop/'],
    'uv/': ['loop/'],
    'curl/': ['resilience/http/', 'jobs/deaths/mail.c'],
    'openssl/': ['resilience/http/sign.c', 'resilience/pem_decode.c'],
    'zlib.h': ['resilience/http/unpack.c'],
    'sqlite3.h': ['jobs/store/'],
    'sqlite3ext.h': [],
    'libpq-fe.h': ['jobs/store/'],
    'glib.h': ['jobs/schedules/zone.c'],
    'glib/': ['jobs/schedules/zone.c'],
    'microhttpd.h': ['program/web/', 'program/web.c'],
    'yaml.h': ['program/config/', 'program/config.c'],
    # Not named by the law, but base takes no third-party header at all.
    'dlfcn.h': ['jobs/kinds/plugin.c', 'base/stack.c'],
    'jansson.h': ['resilience/', 'jobs/', 'sim/', 'assembly/', 'program/'],
    'uthash.h': ['resilience/', 'jobs/', 'loop/', 'sim/', 'assembly/', 'program/'],
    'utlist.h': ['resilience/', 'jobs/', 'loop/', 'sim/', 'assembly/', 'program/'],
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)


def folder_of(path):
    """`jobs/store/sqlite.c` -> `jobs/store`; None when no folder of the law holds it."""
    fitting = [folder for folder in LAW if path.startswith(folder + '/')]
    return max(fitting, key=len) if fitting else None


def foreign_fault(path, name):
    for prefix, places in FOREIGN.items():
        if name == prefix or (prefix.endswith('/') and name.startswith(prefix)):
            if not any(path == place or (place.endswith('/') and path.startswith(place)) for place in places):
                return '<%s> may not be included here' % name
    return None


def includes(root, path):
    text = common.without_comments(common.read(root, path))
    for match in INCLUDE.finditer(text):
        yield text.count('\n', 0, match.start()) + 1, match.group(1) == '"', match.group(2)


def resolve(root, path, name):
    """The included file below src, None if it is not one of them. A file beside the includer wins, as in C; the program
    is compiled with its own folder as a root, too."""
    own = ['program/' + name] if path.startswith('program/') else []
    for candidate in [os.path.join(os.path.dirname(path), name), name] + own:
        candidate = os.path.normpath(candidate)
        if os.path.exists(os.path.join(root, 'src', candidate)):
            return candidate
    return None


def source_fault(root, path, quoted, name):
    home = folder_of(path)
    fault = foreign_fault(path, name)
    if fault or name.startswith('holdfast/'):
        return fault
    target = resolve(root, path, name) if quoted or name.split('/')[0] in LAW else None
    if target is None:
        return '"%s" is no file of the tree' % name if quoted else None
    there = folder_of(target)
    if there != home and there not in LAW[home]:
        return '%s may not include %s' % (home, target)
    return None


def check(root):
    faults = []
    for path in common.files(root, ['src'], ('.c', '.h')):
        inner = path[len('src/'):]
        if folder_of(inner) is None:
            faults.append('%s: its folder is not in the include law' % path)
            continue
        for line, quoted, name in includes(root, path):
            fault = source_fault(root, inner, quoted, name)
            if fault:
                faults.append('%s:%d: %s' % (path, line, fault))
    for path in common.files(root, ['include'], ('.h',)):
        for line, quoted, name in includes(root, path):
            beside = os.path.exists(os.path.join(root, os.path.dirname(path), name))
            if quoted != beside or (not quoted and not re.fullmatch(r'(std\w+|string|time)\.h', name)):
                faults.append('%s:%d: a public header may not include %s' % (path, line, name))
    for path in common.files(root, ['examples'], ('.c', '.h')):
        for line, quoted, name in includes(root, path):
            if quoted and not os.path.exists(os.path.join(root, os.path.dirname(path), name)):
                faults.append('%s:%d: an example may not include "%s"' % (path, line, name))
    return faults


GOOD = {
    'include/holdfast/a.h': '#include <stdint.h>\n#include "b.h"\n',
    'include/holdfast/b.h': '',
    'src/base/a.h': '#include "holdfast/a.h"\n',
    'src/base/a.c': '#include "base/a.h"\n#include <pthread.h>\n/* #include "jobs/j.h" */\n',
    'src/resilience/r.h': '#include "base/a.h"\n',
    'src/loop/l.c': '#include <uv.h>\n#include "base/a.h"\n',
    'src/loop/l.h': '',
    'src/resilience/http/h.c': '#include <curl/curl.h>\n#include "resilience/r.h"\n#include "loop/l.h"\n',
    'src/jobs/j.h': '#include "resilience/r.h"\n',
    'src/jobs/deaths/mail.c': '#include <curl/curl.h>\n#include "jobs/j.h"\n',
    'src/jobs/store/s.c': '#include <sqlite3.h>\n#include "jobs/j.h"\n#include "jobs/store/s.h"\n',
    'src/jobs/store/s.h': '',
    'src/sim/v.h': '#include "jobs/j.h"\n',
    'src/assembly/c.c': '#include "sim/v.h"\n#include "jobs/store/s.h"\n#include "assembly/c.h"\n',
    'src/assembly/c.h': '',
    'src/program/main.c': '#include <holdfast/a.h>\n#include "own.h"\n#include "program/own.h"\n#include <jansson.h>\n',
    'src/program/own.h': '',
    'src/program/config/yaml.c': '#include <yaml.h>\n#include "commands/run.h"\n',
    'src/program/commands/run.h': '',
    'examples/e.c': '#include <holdfast/a.h>\n',
}
BAD = [
    ({'src/base/x.c': '#include "resilience/r.h"\n'}, 'base may not include resilience/r.h'),
    ({'src/base/x.c': '#include <jansson.h>\n'}, '<jansson.h> may not'),
    ({'src/base/x.c': '\n  # include <base/../jobs/j.h>\n'}, 'src/base/x.c:2: base may not include jobs/j.h'),
    ({'src/resilience/x.c': '#include "jobs/j.h"\n'}, 'resilience may not include jobs/j.h'),
    ({'src/resilience/x.c': '#include "loop/l.h"\n'}, 'resilience may not include loop/l.h'),
    ({'src/resilience/x.c': '#include <curl/curl.h>\n'}, '<curl/curl.h> may not'),
    ({'src/resilience/http/x.c': '#include <openssl/evp.h>\n'}, '<openssl/evp.h> may not'),
    ({'src/resilience/http/x.c': '#include <uv.h>\n'}, '<uv.h> may not'),
    ({'src/resilience/http/x.c': '#include "../../jobs/j.h"\n'}, 'resilience/http may not include jobs/j.h'),
    ({'src/loop/x.c': '#include "resilience/r.h"\n'}, 'loop may not include'),
    ({'src/jobs/x.c': '#include "jobs/store/s.h"\n'}, 'jobs may not include jobs/store/s.h'),
    ({'src/jobs/x.c': '#include "loop/l.h"\n'}, 'jobs may not include loop/l.h'),
    ({'src/jobs/x.c': '#include <sqlite3.h>\n'}, '<sqlite3.h> may not'),
    ({'src/jobs/deaths/x.c': '#include <curl/curl.h>\n'}, '<curl/curl.h> may not'),
    ({'src/jobs/store/x.c': '#include "resilience/r.h"\n'}, 'jobs/store may not include resilience/r.h'),
    ({'src/jobs/x.c': '#include <libpq-fe.h>\n'}, '<libpq-fe.h> may not'),
    ({'src/jobs/x.c': '#include <glib.h>\n'}, '<glib.h> may not'),
    ({'src/sim/x.c': '#include "loop/l.h"\n'}, 'sim may not include loop/l.h'),
    ({'src/jobs/x.c': '#include "assembly/c.h"\n'}, 'jobs may not include assembly/c.h'),
    ({'src/assembly/x.c': '#include <uv.h>\n'}, '<uv.h> may not'),
    ({'src/program/x.c': '#include "base/a.h"\n'}, 'program may not include base/a.h'),
    ({'src/program/x.c': '#include <microhttpd.h>\n'}, '<microhttpd.h> may not'),
    ({'src/program/x.c': '#include <yaml.h>\n'}, '<yaml.h> may not'),
    ({'src/program/x.c': '#include "nowhere.h"\n'}, 'no file of the tree'),
    ({'src/other/x.c': ''}, 'not in the include law'),
    ({'include/holdfast/x.h': '#include <sqlite3.h>\n'}, 'a public header may not include sqlite3.h'),
    ({'include/holdfast/x.h': '#include "base/a.h"\n'}, 'a public header may not include base/a.h'),
    ({'examples/x.c': '#include "base/a.h"\n'}, 'an example may not include'),
]

if __name__ == '__main__':
    common.main(check, GOOD, BAD)
