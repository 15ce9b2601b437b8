#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What an idle runner costs: share of one core and resident memory over a while. One JSON line.

usage: idle.py HOLDFAST [SECONDS]
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
    with tempfile.TemporaryDirectory(prefix="holdfast-idle-") as folder:
        config = os.path.join(folder, "holdfast.yaml")
        with open(config, "w", encoding="utf-8") as out:
            out.write(f"store: sqlite:{folder}/jobs.db\ndownstreams:\n  hooks: {{url: \"http://127.0.0.1:9\"}}\n"
                      "jobs:\n  deliver: {kind: http, downstream: hooks}\n")
        runner = subprocess.Popen([os.path.abspath(sys.argv[1]), "--config", config, "--quiet", "run"])
        try:
            time.sleep(2)
            before = cpu_seconds(runner.pid)
            time.sleep(seconds)
            used = cpu_seconds(runner.pid) - before
            print(json.dumps({"bench": "idle", "seconds": seconds, "core_percent": round(100 * used / seconds, 3),
                              "rss_mib": round(resident_mib(runner.pid), 1)}))
        finally:
            runner.send_signal(signal.SIGTERM)
            runner.wait(30)


if __name__ == "__main__":
    main()
