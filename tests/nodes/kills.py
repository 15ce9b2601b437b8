# SPDX-License-Identifier: MIT
"""kill -9 at each call of the store in turn: the frame of the scripts `killed*`. Some of the calls by HF_SEED, all of them
with HF_FULL=1."""
import ctypes, http.server, os, random, shutil, subprocess, sys, tempfile, threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]

PROGRAM = sys.argv[1]
# What a killed node leaves behind becomes ours, so that we can wait for it.
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


class Hook(http.server.ThreadingHTTPServer):
    """A webhook that hands what it is told, whole, to `took`, and knows when nobody is talking to it any more."""
    daemon_threads = True

    def __init__(self, took=lambda body: None):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length)
                if len(body) == length:
                    took(body)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.open, self.talks = 0, threading.Condition()
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/" % self.server_port
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def process_request(self, request, client_address):
        with self.talks:
            self.open += 1
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self.talks:
                self.open -= 1
                self.talks.notify_all()

    def handle_error(self, request, client_address):
        pass  # it was killed in the middle

    def quiet(self):
        with self.talks:
            self.talks.wait_for(lambda: self.open == 0, timeout=60)


def run(*arguments):
    """Runs a node to its end: its exit code and what it said. Whatever it began has ended then, too."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120)
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass
    return done.returncode, [line.split() for line in done.stdout.splitlines()]


def told(lines, word):
    return [line[1:] for line in lines if line[0] == word]


def copy(base, path):
    """A store that nobody has open, with what its WAL holds."""
    for tail in ("", "-wal"):
        if os.path.exists(base + tail):
            shutil.copy(base + tail, path + tail)


def sweep(scenario, check, sample, base=None):
    """`scenario(path, nth)` is a run that is killed at its nth call, (code, lines); `check(path, lines)` runs it to its end
    unkilled and says what is wrong then. `base` is a store to begin from. The number of calls that went wrong."""
    full = "--full" in sys.argv or "HF_FULL" in os.environ
    seed = int(os.environ.get("HF_SEED", "0"), 0) or random.SystemRandom().randrange(1, 1 << 32)
    failures = killed = 0
    with tempfile.TemporaryDirectory(prefix="holdfast-killed-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        def attempt(nth):
            path = "%s/%d.db" % (folder, nth)
            if base:
                copy(base, path)
            code, lines = scenario(path, nth)
            wrong = ["exit %d: %s" % (code, lines[-3:])] if code not in (0, -9 if nth else 0) else check(path, lines)
            for text in wrong:
                print("call %d: %s" % (nth, text), flush=True)
            for name in os.listdir(folder):
                os.unlink(folder + "/" + name)
            return code, lines, wrong

        code, lines, wrong = attempt(0)
        if wrong:
            return 1
        calls = int(told(lines, "calls")[0][0])
        points = range(1, calls + 1) if full else sorted(random.Random(seed).sample(range(1, calls + 1), min(sample, calls)))
        print("HF_SEED=%#x: %d calls, killed at %s" % (seed, calls, "all" if full else list(points)), flush=True)
        for point in points:
            code, _, wrong = attempt(point)
            killed += code == -9
            failures += bool(wrong)
    print("%d runs, %d killed, %d wrong" % (len(points), killed, failures), flush=True)
    return failures + (killed < len(points) * 3 // 4)
