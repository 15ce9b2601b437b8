#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/outbox.c and the table and the Python of docs/outbox.md do what they promise.

usage: outbox_example.py OUTBOX
"""
import os
import re
import sqlite3
import subprocess
import sys
import tempfile


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def check_outbox(program):
    """The order and its job are there or neither; docs/outbox.md has the same table, and its Python writes it."""
    guide = open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "outbox.md"), encoding="utf-8").read()
    table = re.search(r"^```sql\n(.*?);\n```", guide, re.S | re.M).group(1)
    snippet = re.search(r"^```python\n(.*?)^```", guide, re.S | re.M).group(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "shop.db")
        assert run(program, path, "17", "17", "18")[0] == 1  # the second 17 is refused
        shop = sqlite3.connect(path, isolation_level=None)
        assert shop.execute("SELECT id FROM orders").fetchall() == [("17",), ("18",)]
        rows = shop.execute("SELECT type, payload, source, message_id FROM holdfast_outbox ORDER BY id").fetchall()
        assert rows == [("charge", b"17", "shop", "17"), ("charge", b"18", "shop", "18")], rows
        made = shop.execute("SELECT sql FROM sqlite_schema WHERE name = 'holdfast_outbox'").fetchone()[0]
        assert made == table.replace("IF NOT EXISTS ", ""), (made, table)
        shop.execute("DELETE FROM orders")
        done = subprocess.run([sys.executable, "-c", snippet], cwd=folder, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        last = shop.execute("SELECT type, payload, message_id, created_at > 0 FROM holdfast_outbox ORDER BY id DESC").fetchone()
        assert last == ("charge", '{"order": 17}', "order-17", 1), last
        shop.close()


if __name__ == "__main__":
    check_outbox(os.path.abspath(sys.argv[1]))
