# SPDX-License-Identifier: MIT
"""A node that is stopped (SIGSTOP) for longer than its lease and goes on: another one has its job by then, and its late
words are refused (I2, I46, I50, S1.11, S1.13, S1.16). One whose handlers burn the CPU for three leases keeps them (I24).
One that comes back under the same name does not make the dead one's jobs look alive (I30). Crashes are put down to who
crashed alone (I13, I15, S3.5)."""
import os, signal, sys, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nodes, reader
from nodes import Node, PATIENCE, go, job, put, until


def a_stopped_node(path):
    first = Node(path)
    identity = put(path, "burn")
    first.wait("burns")
    was = job(path, identity)
    first.pause(path)
    second = Node(path)
    assert second.wait("burns") == [str(identity), "2"]  # only after the lease: its lock is still held
    now = job(path, identity)
    assert now["epoch"] > was["epoch"] and now["owner"] != was["owner"] and now["crashes"] == 0, (was, now)
    go(path)
    second.wait("ran")
    until("the second's outcome", lambda: job(path, identity)["state"] == reader.SUCCEEDED)
    done = job(path, identity)
    first.resume()
    first.wait("ran")  # its handler ends well, too late
    until("the refusal", lambda: any("job.stale" in line for line in first.log))
    assert job(path, identity) == done, (done, job(path, identity))
    assert done["executions"] == 2
    assert reader.ask(path, "SELECT count(*) FROM history WHERE event = 2") == 1
    assert second.stop()["lapsed"] == 1
    other = put(path, "ok")  # the first has joined anew, and works
    until("a job of the first", lambda: job(path, other)["state"] == reader.SUCCEEDED)
    assert first.stop()["lost"] == 1
    assert reader.ask(path, "SELECT count(*) FROM nodes") == 3


def a_busy_node(path):
    node, watcher = Node(path, 1500), Node(path, 1500)
    jobs = [put(path, "burn"), put(path, "burn"), put(path, "burn"), put(path, "burn")]  # more threads than CPUs
    until("all to run", lambda: all(job(path, i)["state"] == reader.RUNNING for i in jobs))
    were = [job(path, i) for i in jobs]
    beats = lambda: [reader.ask(path, "SELECT beat FROM nodes WHERE id = %d" % i) for i in (1, 2)]
    before, began = beats(), time.monotonic()
    until("three leases of beats", lambda: time.monotonic() - began > 4.5 and min(beats()) - max(before) >= 10)
    assert [job(path, i) for i in jobs] == were
    go(path)
    until("their ends", lambda: all(job(path, i)["state"] == reader.SUCCEEDED for i in jobs))
    assert all(job(path, i)["executions"] == 1 for i in jobs)
    assert node.stop()["lapsed"] + watcher.stop()["lapsed"] == 0


def a_killed_node(path):
    first = Node(path, 60000)
    identity = put(path, "burn")
    first.wait("burns")
    first.kill()
    began = time.monotonic()
    second = Node(path, 60000)  # the same name, and it need not wait for a lease
    assert second.wait("burns") == [str(identity), "2"]
    assert time.monotonic() - began < 50
    assert job(path, identity)["crashes"] == 1
    assert reader.ask(path, "SELECT count(DISTINCT name) FROM nodes") == 1
    go(path)
    until("its end", lambda: job(path, identity)["state"] == reader.SUCCEEDED)
    second.stop()


def a_job_that_kills(path):
    """Two crashes beside others, two alone: then it is poison, and the others go on."""
    bad, good = put(path, "abort"), [put(path, "ok"), put(path, "flaky")]
    for run in range(1, 5):
        node = Node(path, 60000)
        node.wait("aborts")
        assert node.process.wait(PATIENCE) == -signal.SIGKILL
        until("the record", lambda: job(path, bad)["executions"] == run)
    node = Node(path, 60000)
    until("its death", lambda: job(path, bad)["state"] == reader.DEAD)
    assert reader.ask(path, "SELECT death_class FROM dead_letters WHERE job_id = %d" % bad) == 2
    until("the others", lambda: all(job(path, i)["state"] == reader.SUCCEEDED for i in good))
    node.stop()


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def numbers(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [int(line) for line in file.read().split("\n")[:-1]]


def processes_of_a_killed_node(path):
    """What its exec job left running, also what forked away, ends before the job runs again."""
    pids = lambda: numbers(path + ".pids")

    first = Node(path, 60000)
    identity = put(path, "forks")
    until("its processes", lambda: len(pids()) == 2)
    first.kill()
    left = pids()
    assert any(map(alive, left)), "the one that forked away does not die with the node"
    second = Node(path, 60000)
    until("the next execution", lambda: len(pids()) > 2)
    assert not any(map(alive, left)), "two executions at once"
    until("its other process", lambda: len(pids()) == 4)
    assert job(path, identity)["executions"] == 2
    left = pids()[2:]
    go(path)
    second.kill()
    third = Node(path, 60000)
    until("its end", lambda: job(path, identity)["state"] == reader.SUCCEEDED)
    assert not any(map(alive, left))
    third.stop()


def a_bound_holds_over_nodes_that_are_stopped(path):
    """global_concurrency 2 and three nodes on one host, some of which are stopped for longer than their lease while the
    processes of their jobs run on: those are ended before another node begins the jobs, so there are never three."""
    crowd = [Node(path, 1500) for _ in range(3)]
    jobs = [put(path, "bound") for _ in range(5)]
    for _ in range(3):
        begun = len(numbers(path + ".most"))
        running = lambda: [job(path, i)["owner"] for i in jobs if job(path, i)["state"] == reader.RUNNING]
        until("two to run", lambda: len(running()) == 2 and len(numbers(path + ".most")) >= max(begun, 2))
        pids = [reader.ask(path, "SELECT pid FROM nodes WHERE id = %d" % owner) for owner in running()[:1]]
        stopped = [node for node in crowd if node.process.pid in pids]
        for node in stopped:
            node.pause(path)
        until("another to begin", lambda: len(numbers(path + ".most")) > begun)
        for node in stopped:
            node.resume()
        until("two to run again", lambda: len(running()) == 2)
    go(path)
    for pid in numbers(path + ".pids"):
        if alive(pid):
            os.kill(pid, signal.SIGTERM)
    until("all ends", lambda: all(job(path, i)["state"] not in (reader.PENDING, reader.RUNNING) for i in jobs))
    for node in crowd:
        node.stop()
    most = numbers(path + ".most")
    assert max(most) == 2, most


def twenty_drains(path):
    """Given back twenty times uncounted (S2.10, I43), then it costs an execution each, and the last one ends it."""
    identity = put(path, "waits")
    for drain in range(1, 23):
        node = Node(path, 60000)
        until("its process", lambda: len(numbers(path + ".pids")) == drain)
        node.stop()
        now = job(path, identity)
        assert now["executions"] == max(0, drain - 20), (drain, now)
        assert now["state"] == (reader.PENDING if drain < 22 else reader.DEAD), (drain, now)
    assert reader.ask(path, "SELECT give_backs FROM jobs") == 20
    assert reader.ask(path, "SELECT rule FROM dead_letters") == "job.give_backs"
    assert reader.ask(path, "SELECT error_message FROM dead_letters").startswith("given back 20 times before")


sys.exit(nodes.run((a_stopped_node, a_busy_node, a_killed_node, a_job_that_kills, processes_of_a_killed_node,
                    a_bound_holds_over_nodes_that_are_stopped, twenty_drains)))
