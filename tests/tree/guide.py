#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every C block of the guides in docs/ compiles by itself without a warning, and `holdfast check` accepts every YAML block.

usage: guide.py SOURCE_ROOT HOLDFAST COMPILER…
"""
import os
import re
import subprocess
import sys
import tempfile


def blocks(text):
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.S | re.M)


def compiles(compiler, include, code):
    command = [*compiler, "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", include, "-x", "c", "-"]
    return subprocess.run(command, input=code, text=True, capture_output=True)


def check(root, holdfast, compiler):
    found = {"c": 0, "yaml": 0, "sql": 0, "python": 0}
    for name in sorted(os.listdir(os.path.join(root, "docs"))):
        if not name.endswith(".md"):
            continue
        text = open(os.path.join(root, "docs", name), encoding="utf-8").read()
        for language, code in blocks(text):
            assert language in found, f"docs/{name}: a block of {language} is checked by nobody"
            found[language] += 1
            if language in ("sql", "python"):
                continue  # outbox_example.py runs them
            if language == "c":
                done = compiles(compiler, os.path.join(root, "include"), code)
            else:
                with tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, "holdfast.yaml")
                    open(path, "w", encoding="utf-8").write(code)
                    done = subprocess.run([holdfast, "--config", path, "check"], text=True, capture_output=True)
            assert done.returncode == 0, f"docs/{name}:\n{code}\n{done.stdout}{done.stderr}"
    assert found["c"] > 5 and found["yaml"] > 0, found


def self_test(compiler):
    with tempfile.TemporaryDirectory() as folder:
        assert compiles(compiler, folder, "int f(void) { return 1; }\n").returncode == 0
        assert compiles(compiler, folder, "int f(void) { return g(); }\n").returncode != 0
        assert compiles(compiler, folder, "int f(void) { int x; return 1; }\n").returncode != 0
    assert blocks("a\n```c\nint x;\n```\n```yaml\na: b\n```\n") == [("c", "int x;\n"), ("yaml", "a: b\n")]


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        self_test(sys.argv[2:])
    else:
        check(sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3:])
