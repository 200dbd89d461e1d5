"""One process with kazoo's Lock, or another recipe of kazoo's, that does what it
is told, a line of standard input at a time, and reports in lines of JSON: of a
lock that it has, again and again that it believes so. It ends with its input.

Arguments: the server, the session timeout in milliseconds, the identifier, and
the form: "plain", "extra" with extra_lock_patterns for Curator's names, or
"renamed" for a lock whose own names are such, too, or "election".
"""
import json
import os
import queue
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState
from kazoo.recipe.election import Election
from kazoo.recipe.lock import Lock, ReadLock, WriteLock
from kazoo.version import __version__

STAMP_SECONDS = 0.025


class RenamedLock(Lock):
    """A lock whose nodes are named <32 hex>-lock-<sequence>."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class Elected:
    """An election in the form of a lock: whoever leads holds it."""

    def __init__(self, client, path, identifier):
        self.election = Election(client, path, identifier)
        self.decided = threading.Event()
        self.over = threading.Event()
        self.error = None
        self.thread = threading.Thread(target=self.run, daemon=True)

    @property
    def node(self):
        return self.election.lock.node

    def contenders(self):
        return self.election.contenders()

    def run(self):
        try:
            self.election.run(self.lead)
        except Exception as e:
            self.error = e
            self.decided.set()

    def lead(self):
        self.decided.set()
        self.over.wait()

    def acquire(self):
        self.thread.start()
        self.decided.wait()
        if self.error is not None:
            raise self.error
        return True

    def release(self):
        self.over.set()
        self.thread.join()


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

    def make(self, path, recipe="Lock"):
        if recipe == "Election" or self.form == "election":
            return Elected(self.client, path, self.identifier)
        if self.form == "renamed":
            return RenamedLock(self.client, path, self.identifier)
        patterns = ["lock-"] if self.form == "extra" else []
        kind = {"Lock": Lock, "ReadLock": ReadLock, "WriteLock": WriteLock}[recipe]
        return kind(self.client, path, self.identifier, extra_lock_patterns=patterns)

    def acquire(self, path, recipe="Lock"):
        self.leave()  # what was lost
        self.lock = self.make(path, recipe)
        if not self.lock.acquire():
            raise RuntimeError("acquire returns False")
        at = now()
        token = 0
        if getattr(self.lock, "node", None):
            node = self.client.exists(path + "/" + self.lock.node)
            if node is None:
                self.leave()
                raise RuntimeError("the node is gone")
            token = node.czxid
        with self.mutex:
            if not self.closed:
                self.held, self.token = True, token
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
    peer.report("ready", note=__version__)
    for line in sys.stdin:
        orders.put(line)
    peer.close()
    client.stop()  # ends the session, and so removes a node that still waits
    os._exit(0)


main()
