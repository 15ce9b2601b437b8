# SPDX-License-Identifier: MIT
"""Waiting without polling: for changes of files in a folder (inotify), for the end of processes, for whatever a thread tells."""
import ctypes, os, select, time

MODIFY, MOVED_TO, CREATE, DELETE = 0x2, 0x80, 0x100, 0x200
LIBC = ctypes.CDLL(None, use_errno=True)


class Watch:
    """`until` looks at its condition at first and after each change. The files of an SQLite store change with each commit."""

    def __init__(self, folder, *processes):
        self.inotify = LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.inotify < 0 or LIBC.inotify_add_watch(self.inotify, os.fsencode(folder), MODIFY | MOVED_TO | CREATE | DELETE) < 0:
            raise OSError(ctypes.get_errno(), "inotify")
        self.heard, self.teller = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.processes = [os.pidfd_open(process.pid) for process in processes]

    def tell(self):
        """Something else has changed; any thread."""
        try:
            os.write(self.teller, b"!")
        except BlockingIOError:
            pass

    def until(self, what, condition, seconds=120):
        end = time.monotonic() + seconds
        while not condition():
            left = end - time.monotonic()
            assert left > 0, "waited too long for " + what
            ended = select.select([self.inotify, self.heard, *self.processes], [], [], left)[0]
            for fd in (self.inotify, self.heard):
                if fd in ended:
                    os.read(fd, 65536)
            for fd in set(ended) & set(self.processes):
                self.processes.remove(fd)
                os.close(fd)
