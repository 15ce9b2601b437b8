#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The README's YAML and C are those of examples/, `holdfast check` accepts every example configuration, and the C program,
built as printed, does its job against a server.

usage: readme.py SOURCE_ROOT HOLDFAST GREET
"""
import http.server
import os
import re
import subprocess
import sys
import tempfile
import threading


def block(readme, language):
    return re.search(r"^```" + language + r"\n(.*?)^```", readme, re.S | re.M).group(1)


class Greeter(http.server.BaseHTTPRequestHandler):
    seen = []

    def do_GET(self):
        Greeter.seen.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"hi")

    def log_message(self, *_):
        pass


def main():
    root, holdfast, greet = sys.argv[1], os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3])
    readme = open(os.path.join(root, "README.md"), encoding="utf-8").read()
    for language, name, most in (("yaml", "holdfast.yaml", 20), ("c", "greet.c", 25)):
        text = open(os.path.join(root, "examples", name), encoding="utf-8").read()
        assert block(readme, language) == text, f"README.md and examples/{name} differ"
        assert text.count("\n") <= most, f"examples/{name} has more than {most} lines"
    for name in sorted(os.listdir(os.path.join(root, "examples"))):
        if name.endswith(".yaml"):
            subprocess.run([holdfast, "--config", os.path.join(root, "examples", name), "check"], check=True, stdout=subprocess.DEVNULL)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Greeter)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([greet, f"http://127.0.0.1:{server.server_port}"], check=True, cwd=folder)
        shown = subprocess.run([holdfast, "--store", "sqlite:greet.db", "job", "list", "--state", "succeeded"], check=True, cwd=folder,
                               capture_output=True, text=True).stdout
    server.shutdown()
    assert Greeter.seen == ["/hello"], Greeter.seen
    assert "greet" in shown, shown


if __name__ == "__main__":
    main()
