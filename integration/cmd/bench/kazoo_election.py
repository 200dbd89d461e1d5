"""One process with kazoo's Election, driven by commands on standard input, each
answered with the nanoseconds it took:

  run PATH N    is elected and resigns N times, one after the other; nobody else
                stands
  fill PATH N   lets candidates join until there are N: a leader and others that
                wait
  pass PATH N   lets the leader resign, and each one after it, until the Nth goes
                on leading
  stand PATH N  lets a candidate stand for each of PATH-0 to PATH-(N-1), with a
                session of its own
  lead PATH N   waits until all of these lead; it is answered with N numbers,
                until each did

Arguments: the server, the session timeout in milliseconds, the number of
sessions for all but the last two.
"""
import gc
import os
import queue
import sys
import threading
import time
import traceback

from kazoo.client import KazooClient

OWNER = "bench-host:12345:ABCDEFGHIJ"


def start(work, *args):
    def run():
        try:
            work(*args)
        except Exception:
            traceback.print_exc()
            os._exit(1)

    threading.Thread(target=run, daemon=True).start()


class Line:
    """An election with a leader and others that wait, which are spread over the
    sessions."""

    def __init__(self, sessions, path):
        self.sessions = sessions
        self.path = path
        self.allowed = 0
        self.kept = queue.SimpleQueue()
        self.go = queue.SimpleQueue()
        self.began = 0
        self.next = 0
        self.inside = 0

    def fill(self, candidates):
        if self.next == 0:
            self.join()
            self.kept.get()
        while self.inside < candidates:
            self.join()
        return 0

    def hand_on(self, n):
        self.allowed = n - 1
        self.go.put(n)
        ended = self.kept.get()
        self.inside -= n
        return ended - self.began

    def join(self):
        session = self.sessions[self.next % len(self.sessions)]
        self.next += 1
        self.inside += 1
        start(session.Election(self.path, OWNER).run, self.lead)

    def lead(self):
        """It resigns by returning."""
        self.allowed -= 1  # only a leader does this
        if self.allowed < 0:
            self.kept.put(time.perf_counter_ns())
            self.go.get()
            self.began = time.perf_counter_ns()


class Heat:
    """A number of elections, each with one candidate here."""

    def __init__(self, connect, pause, path, n):
        """Returns when all have a session. Their heartbeats are not sent at the
        same time."""
        self.led = [queue.SimpleQueue() for _ in range(n)]
        for i in range(n):
            election = connect().Election(f"{path}-{i}", OWNER)
            start(election.run, self.lead, i)
            time.sleep(pause)

    def lead(self, i):
        self.led[i].put(time.perf_counter_ns())
        threading.Event().wait()

    def took(self):
        began = time.perf_counter_ns()
        return " ".join(str(max(0, led.get() - began)) for led in self.led)


def run(session, path, n):
    election = session.Election(path, OWNER)
    gc.collect()  # as before a block of the other side
    began = time.perf_counter_ns()
    for _ in range(n):
        election.run(lambda: None)
    return time.perf_counter_ns() - began


def main():
    server, timeout_ms, count = sys.argv[1:]
    timeout = int(timeout_ms) / 1000

    def connect():
        session = KazooClient(hosts=server, timeout=timeout)
        session.start()
        return session

    sessions = [connect() for _ in range(int(count))]
    lines, heats = {}, {}

    def stand(path, n):
        heats[path] = Heat(connect, timeout / 24, path, n)
        return 0

    for command in sys.stdin:
        name, path, n = command.split()
        line = lines.setdefault(path, Line(sessions, path))
        took = {
            "run": lambda n: run(sessions[0], path, n),
            "fill": line.fill,
            "pass": line.hand_on,
            "stand": lambda n: stand(path, n),
            "lead": lambda n: heats[path].took(),
        }[name](int(n))
        print(took, flush=True)


main()
