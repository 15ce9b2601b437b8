# SPDX-License-Identifier: MIT
"""Every option a caller may fill has a row in the tests of bad input: a new field cannot come without one."""
import re

import common

# header, struct, the test whose rows are written ROW(field, …
STRUCTS = [
    ('include/holdfast/policy.h', 'hf_policy_options', 'tests/unit/test_bad_policy.c'),
    ('include/holdfast/http.h', 'hf_downstream_options', 'tests/unit/test_bad_downstream.c'),
    ('include/holdfast/http.h', 'hf_request', 'tests/unit/test_bad_request.c'),
]

# header, struct, the file that shows each of its fields in a line of JSON, and how it is named there
SHOWN = [('include/holdfast/policy.h', 'hf_policy_options', 'src/program/commands/downstream_limits.c', 'policy->')]
UNSHOWN = ('size', 'retry_table_length') # the length is that of the list


def fields(text, struct):
    """Names in order; `a, b` and `c[4]` too."""
    body = re.search(r'struct %s \{(.*?)\n\};' % struct, common.without_comments(text), re.S)
    names = []
    for line in body.group(1).split(';') if body else []:
        names += [re.search(r'(\w+)\s*(\[[^]]*\])?\s*$', part).group(1) for part in line.split(',') if part.strip()]
    return names


def check(root):
    faults = []
    for header, struct, test in STRUCTS:
        known = fields(common.read(root, header), struct)
        rows = re.findall(r'\bROW\(\s*(\w+)\s*,', common.without_comments(common.read(root, test)))
        if not known:
            faults.append('%s: struct %s was not found' % (header, struct))
        for name in known:
            if name not in rows:
                faults.append('%s: add a row for the field %s of struct %s' % (test, name, struct))
    for header, struct, source, before in SHOWN:
        text = common.without_comments(common.read(root, source))
        shown = ''.join(re.findall(r'\b(?:hfi_json_\w+|json_array_append_new)\((?:[^;]|\n)*;', text))
        for name in fields(common.read(root, header), struct):
            if name not in UNSHOWN and not re.search(re.escape(before + name) + r'\b', shown):
                faults.append('%s: show the field %s of struct %s' % (source, name, struct))
    return faults


def tree(header, test):
    other = 'struct hf_downstream_options {\n    int a;\n};\nstruct hf_request {\n    int b;\n};\n'
    return {'include/holdfast/policy.h': header, 'include/holdfast/http.h': other, 'tests/unit/test_bad_policy.c': test,
            'src/program/commands/downstream_limits.c': SOURCE,
            'tests/unit/test_bad_downstream.c': 'ROW(a, 1)', 'tests/unit/test_bad_request.c': 'ROW(b, 1)'}


SOURCE = 'hfi_json_number(o, "x", policy->x); hfi_json_text(o, "p", policy->p);\nhfi_json_text(o, "q",\n policy->q);\n' \
         'hfi_json_number(o, "z", policy->z);'
HEADER = '/* struct hf_policy_options { */\nstruct hf_policy_options {\n    int x; /* y; */\n    const char *p, *q;\n    int z[4];\n};\n'
GOOD = tree(HEADER, 'ROW(x, 1),\nROW(p, 1), ROW(q, 1),\nROW(\n    z, 1)')
BAD = [
    (tree(HEADER, 'ROW(x, 1), ROW(q, 1), ROW(z, 1)'), 'the field p of'),
    (tree(HEADER, 'ROW(x, 1), ROW(p, 1), ROW(q, 1) /* ROW(z, 1) */'), 'the field z of'),
    ({'src/program/commands/downstream_limits.c': SOURCE.replace('policy->q', 'policy->qq')}, 'show the field q of'),
    (tree('struct other {\n};\n', ''), 'struct hf_policy_options was not found'),
]

if __name__ == '__main__':
    common.main(check, GOOD, BAD)
