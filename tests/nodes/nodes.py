# SPDX-License-Identifier: MIT
"""Nodes as processes, what they say, and waiting for it."""
import fcntl, os, queue, signal, sqlite3, subprocess, sys, tempfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
import reader
from watch import Watch

PROGRAM = sys.argv[1]
LEASE_MS = 4000
PATIENCE = 120


class Node:
    def __init__(self, path, lease_ms=LEASE_MS):
        self.process = subprocess.Popen([PROGRAM, "serve", path, str(lease_ms)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
        self.lines, self.log = queue.Queue(), []
        threading.Thread(target=self.listen, daemon=True).start()
        threading.Thread(target=self.read_log, daemon=True).start()
        self.wait("serves")

    def listen(self):
        for line in self.process.stdout:
            self.lines.put(line.split())
        self.lines.put(["ended"])

    def read_log(self):
        for line in self.process.stderr:
            self.log.append(line)
            watch.tell()

    def wait(self, word):
        """The next line that begins with the word."""
        until = time.monotonic() + PATIENCE
        while True:
            line = self.lines.get(timeout=max(0.1, until - time.monotonic()))
            if line[0] == word:
                return line[1:]
            assert line[0] != "ended", "it ended before it said %s" % word

    def stop(self):
        self.process.stdin.close()
        counts = self.wait("counts")
        assert self.process.wait(PATIENCE) == 0
        return dict(zip(counts[::2], map(int, counts[1::2])))

    def pause(self, path):
        """SIGSTOP, but never within a transaction or a checkpoint: with its lock everybody would stand still."""
        for _ in range(1000):
            self.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)
            db = sqlite3.connect(path, timeout=5, isolation_level=None)
            try:
                with open(path + ".ckpt", "rb") as gate:
                    db.execute("BEGIN IMMEDIATE")
                    fcntl.lockf(gate, fcntl.LOCK_SH | fcntl.LOCK_NB, 2)  # its door and its turns stand before the lock on the whole
                    fcntl.flock(gate, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return
            except (sqlite3.OperationalError, OSError):
                self.resume()
            finally:
                db.close()
        raise AssertionError("never found outside a transaction")

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()


def until(what, condition):
    """Looks again at each commit, at each line of a node's log, at each other file beside the store."""
    watch.until(what, condition, PATIENCE)


def put(path, kind):
    done = subprocess.run([PROGRAM, "put", path, kind], stdout=subprocess.PIPE, text=True, timeout=PATIENCE, check=True)
    return int(done.stdout.split()[1])


def job(path, identity):
    names = ("id", "state", "type", "priority", "executions", "crashes", "epoch", "owner")
    return dict(zip(names, reader.jobs(path)[identity]))


def go(path):
    open(path + ".go", "w").close()


def run(tests, rules=True):
    """Each with a store of its own; the number of those that failed."""
    global watch
    failed = 0
    for test in tests:
        with tempfile.TemporaryDirectory(prefix="holdfast-nodes-") as folder:
            path, watch = folder + "/store.db", Watch(folder)
            try:
                subprocess.run([PROGRAM, "put", path, "none"], check=True, stdout=subprocess.DEVNULL)
                test(path)
                wrong = [text for text in reader.broken(path) if "alert" not in text] if rules else []
                assert not wrong, wrong
                print("ok", test.__name__, flush=True)
            except (AssertionError, queue.Empty) as error:
                failed += 1
                print("FAILED %s: %r at line %s" % (test.__name__, error, error.__traceback__.tb_next.tb_lineno
                                                    if error.__traceback__.tb_next else 0), flush=True)
    return failed
