#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The demo, short: every count adds up, the table and the timeline are there, and nothing is left behind.

usage: story.py HOLDFAST
"""
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="holdfast-story-") as folder:
        place = os.path.join(folder, "tmp")
        os.mkdir(place)
        run = subprocess.run([program, "demo", "--json", "--seconds", "12", "--svg", "outage.svg"], cwd=folder, timeout=280,
                             capture_output=True, text=True, env=dict(os.environ, TMPDIR=place))
        print(run.stdout, run.stderr)
        assert run.returncode == 0, run.returncode
        story = json.loads(run.stdout)
        assert story["ok"] and all(check["ok"] for check in story["checks"]) and len(story["checks"]) == 6
        assert story["dead"] > 0 and story["quarantined"] > 0 and story["succeeded"] > 500
        assert story["breaker_opened"] > 0 and story["peak_parked"] > 0
        xml.etree.ElementTree.parse(os.path.join(folder, "outage.svg"))
        assert os.listdir(place) == [], os.listdir(place)
        refused = subprocess.run([program, "demo", "--seconds", "5", "--svg", "no/such/folder.svg"], cwd=folder, timeout=280,
                                 capture_output=True, text=True, env=dict(os.environ, TMPDIR=place))
        assert refused.returncode == 2 and "no/such/folder.svg" in refused.stderr, refused
        assert os.listdir(place) == [], os.listdir(place)


if __name__ == "__main__":
    main()
