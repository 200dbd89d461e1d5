"""One process with a recipe of kazoo's, driven by commands on standard input, each
answered with the nanoseconds it took:

  run PATH N   acquires and releases N times, one after the other, a lock that
               nobody else wants
  fill PATH N  lets contenders join until there are N: a holder and waiters
  pass PATH N  lets the holder release, and each one after it, until the Nth
               keeps the lock
  many PATH N  acquires and releases N times in all, by as many threads as there
               are, at the same time

Arguments: the server, the session timeout in milliseconds, the number of
sessions; what "run" and "many" acquire, "mutex", "read" for the lock of a
reader, or the number of permits of a semaphore; and the number of threads, which
use the sessions in turn. "fill" and "pass" are of the Lock.
"""
import gc
import os
import queue
import sys
import threading
import time
import traceback

from kazoo.client import KazooClient


class Line:
    """A held lock with waiters, which are spread over the sessions."""

    def __init__(self, sessions, path):
        self.sessions = sessions
        self.path = path
        self.allowed = 0
        self.kept = queue.SimpleQueue()
        self.go = queue.SimpleQueue()
        self.began = 0
        self.next = 0
        self.inside = 0

    def fill(self, contenders):
        if self.next == 0:
            self.join()
            self.kept.get()
        while self.inside < contenders:
            self.join()
        return 0

    def hand_on(self, n):
        self.allowed = n - 1
        self.go.put(n)
        ended = self.kept.get()
        self.inside -= n
        return ended - self.began

    def join(self):
        lock = self.sessions[self.next % len(self.sessions)].Lock(self.path)
        self.next += 1
        self.inside += 1
        threading.Thread(target=self.contend, args=(lock,), daemon=True).start()

    def contend(self, lock):
        try:
            lock.acquire()
            self.allowed -= 1  # only a holder does this
            if self.allowed < 0:
                self.kept.put(time.perf_counter_ns())
                self.go.get()
                self.began = time.perf_counter_ns()
            lock.release()
        except Exception:
            traceback.print_exc()
            os._exit(1)


def recipe(name, session, path):
    """The recipe, for one thread."""
    if name == "mutex":
        return session.Lock(path)
    if name == "read":
        return session.ReadLock(path)
    return session.Semaphore(path, max_leases=int(name))


def run(lock, n):
    gc.collect()  # as before a block of the other side
    began = time.perf_counter_ns()
    for _ in range(n):
        lock.acquire()
        lock.release()
    return time.perf_counter_ns() - began


def many(locks, n):
    left = queue.SimpleQueue()
    for i in range(n):
        left.put(i)

    def work(lock):
        try:
            while True:
                left.get_nowait()
                lock.acquire()
                lock.release()
        except queue.Empty:
            pass
        except Exception:
            traceback.print_exc()
            os._exit(1)

    threads = [threading.Thread(target=work, args=(lock,)) for lock in locks]
    gc.collect()
    began = time.perf_counter_ns()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter_ns() - began


def main():
    server, timeout_ms, count, what, threads = sys.argv[1:]
    sessions = []
    for _ in range(int(count)):
        session = KazooClient(hosts=server, timeout=int(timeout_ms) / 1000)
        session.start()
        sessions.append(session)
    lines = {}
    for command in sys.stdin:
        name, path, n = command.split()
        line = lines.setdefault(path, Line(sessions, path))
        took = {
            "run": lambda n: run(recipe(what, sessions[0], path), n),
            "many": lambda n: many(
                [recipe(what, sessions[i % len(sessions)], path) for i in range(int(threads))], n
            ),
            "fill": line.fill,
            "pass": line.hand_on,
        }[name](int(n))
        print(took, flush=True)


main()
