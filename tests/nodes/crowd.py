# SPDX-License-Identifier: MIT
"""Eight processes on one SQLite file enqueue, claim, cancel, pause, prune (I73) and remove each other's lanes (I76, I78): no
BUSY comes out, no outcome is lost or there twice, every job has its lane, the log stays small. Five seconds, a minute with HF_FULL=1."""
import os, random, selectors, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reader

PROCESSES = 8
WAL_MAX = 64 << 20


def listen(crowd, log):
    """What each says until all have ended, and how long the log ever was when one of them had said something."""
    said, widest = [bytearray() for _ in crowd], 0
    with selectors.DefaultSelector() as pipes:
        for i, process in enumerate(crowd):
            pipes.register(process.stdout, selectors.EVENT_READ, i)
        while pipes.get_map():
            for key, _ in pipes.select():
                piece = os.read(key.fd, 65536)
                said[key.data] += piece
                if not piece:
                    pipes.unregister(key.fileobj)
            widest = max(widest, os.path.getsize(log) if os.path.exists(log) else 0)
    return said, widest


def main():
    program, seconds = sys.argv[1], 60 if "--full" in sys.argv or "HF_FULL" in os.environ else 5
    seed = int(os.environ.get("HF_SEED", "0"), 0) or random.SystemRandom().randrange(1, 1 << 32)
    print("HF_SEED=%#x, %d s" % (seed, seconds), flush=True)
    wrong = []
    with tempfile.TemporaryDirectory(prefix="holdfast-crowd-") as folder:
        path = folder + "/crowd.db"
        logs = [open("%s/%d.log" % (folder, i), "w+") for i in range(PROCESSES)]
        crowd = [subprocess.Popen([program, "crowd", path, str(seconds), str(seed + i)], stdout=subprocess.PIPE, stderr=logs[i])
                 for i in range(PROCESSES)]
        said, widest = listen(crowd, path + "-wal")
        put, cancelled, ran, pruned, forgotten = set(), set(), [], 0, 0
        for i, process in enumerate(crowd):
            lines = [line.split() for line in said[i].decode().splitlines()]
            if process.wait() != 0 or lines[-1:] != [["done"]]:
                wrong.append("process %d: exit %d: %s" % (i, process.wait(), lines[-1:]))
            put.update(int(line[1]) for line in lines if line[0] == "put")
            cancelled.update(int(line[1]) for line in lines if line[0] == "cancelled")
            ran.extend((int(line[1]), int(line[2])) for line in lines if line[0] == "ran")
            forgotten += sum(int(line[1]) for line in lines if line[0] == "forgot")
            pruned += sum(int(line[1]) for line in lines if line[0] == "pruned")
            logs[i].seek(0)
            wrong.extend("process %d: %s" % (i, line) for line in logs[i] if "BUSY" in line or '"error"' in line)
        wrong += reader.broken(path)
        jobs = reader.jobs(path)
        done = set(ran)
        if len(ran) != len(done):
            wrong.append("an execution ran twice: %s" % [run for run in done if ran.count(run) > 1][:5])
        if set(jobs) - put or len(put) - len(jobs) != pruned:
            wrong.append("%d jobs were put, %d are there, %d went by pruning" % (len(put), len(jobs), pruned))
        for identity, job in jobs.items():
            if (job[1] == reader.CANCELLED) != (identity in cancelled):
                wrong.append("job %d: %s, cancelled: %s" % (identity, job, identity in cancelled))
            if job[1] == reader.SUCCEEDED and (identity, job[4]) not in done:
                wrong.append("job %d succeeded and never ran" % identity)
            if job[1] == reader.RUNNING:
                wrong.append("job %d runs for nobody" % identity)
        if widest > WAL_MAX:
            wrong.append("the log grew to %d bytes" % widest)
        print("%d put, %d ran, %d cancelled, %d pruned, %d lanes removed, log at most %d KiB" %
              (len(put), len(ran), len(cancelled), pruned, forgotten, widest >> 10))
    for text in wrong[:20]:
        print(text)
    return 1 if wrong or not ran or not cancelled else 0


sys.exit(main())
