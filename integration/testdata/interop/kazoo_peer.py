"""One process with kazoo's Lock that does what it is told, a line of standard
input at a time, and reports in lines of JSON: of a lock that it has, again and
again that it believes so. It ends with its input.

Arguments: the server, the session timeout in milliseconds, the identifier, and
the form: "plain", "extra" with extra_lock_patterns for Curator's names, or
"renamed" for a lock whose own names are such, too.
"""
import json
import os
import queue
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState
from kazoo.recipe.lock import Lock

STAMP_SECONDS = 0.025


class RenamedLock(Lock):
    """A lock whose nodes are named <32 hex>-lock-<sequence>."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Peer:
    def __init__(self, client, identifier, form):
        self.client = client
        self.identifier = identifier
        self.form = form
        self.lock = None
        self.mutex = threading.RLock()
        self.held = False
        self.token = 0  # the czxid of the lock's node
        self.closed = False

    def report(self, what, at=0, note="", names=()):
        with self.mutex:
            line = {"what": what, "at": at or now(), "token": self.token, "note": note, "names": list(names)}
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()

    def stamp(self, what):
        with self.mutex:
            if self.held:
                self.report(what)

    def watch_state(self, state):
        if state == KazooState.LOST:
            # Not here, where kazoo waits for it.
            threading.Thread(target=self.end, args=("lost",), daemon=True).start()

    def end(self, what):
        with self.mutex:
            self.stamp(what)
            self.held = False

    def keep_stamping(self):
        while True:
            time.sleep(STAMP_SECONDS)
            self.stamp("holding")

    def obey(self, order):
        what, *words = order.split()
        try:
            getattr(self, what)(*words)
        except Exception as e:
            self.report("failed", note=repr(e))

    def make(self, path):
        if self.form == "renamed":
            return RenamedLock(self.client, path, self.identifier)
        patterns = ["lock-"] if self.form == "extra" else []
        return Lock(self.client, path, self.identifier, extra_lock_patterns=patterns)

    def acquire(self, path):
        self.leave()  # what was lost
        self.lock = self.make(path)
        if not self.lock.acquire():
            raise RuntimeError("acquire returns False")
        at = now()
        node = self.client.exists(path + "/" + self.lock.node)
        if node is None:
            self.leave()
            raise RuntimeError("the node is gone")
        with self.mutex:
            if not self.closed:
                self.held, self.token = True, node.czxid
                self.report("acquired", at)

    def close(self):
        """Gives up what it holds, and what it is granted from now on."""
        with self.mutex:
            self.held, self.closed = False, True

    def release(self):
        self.stamp("holding")
        with self.mutex:
            self.held = False
        self.report("released", note=self.leave())

    def leave(self):
        """Gives the lock back, and returns what went wrong."""
        lock, self.lock = self.lock, None
        if lock is None:
            return ""
        try:
            lock.release()
        except Exception as e:
            return repr(e)
        return ""

    def contenders(self, path):
        self.report("contenders", names=self.make(path).contenders())


def main():
    server, session, identifier, form = sys.argv[1:]
    client = KazooClient(hosts=server, timeout=int(session) / 1000)
    peer = Peer(client, identifier, form)
    client.add_listener(peer.watch_state)
    client.start(timeout=30)
    orders = queue.Queue()

    def obey():
        while True:
            peer.obey(orders.get())

    for target in (obey, peer.keep_stamping):
        threading.Thread(target=target, daemon=True).start()
    peer.report("ready")
    for line in sys.stdin:
        orders.put(line)
    peer.close()
    client.stop()  # ends the session, and so removes a node that still waits
    os._exit(0)


main()
