"""One process with kazoo's Lock. Each line of standard input is "run PATH N"; the
answer is the nanoseconds that N acquisitions and releases took.

Arguments: the server and the session timeout in seconds.
"""
import gc
import sys
import time

from kazoo.client import KazooClient

session = KazooClient(hosts=sys.argv[1], timeout=float(sys.argv[2]))
session.start()
for order in sys.stdin:
    _, path, n = order.split()
    lock = session.Lock(path)
    gc.collect()  # as before a block of the other side
    began = time.perf_counter_ns()
    for _ in range(int(n)):
        lock.acquire()
        lock.release()
    print(time.perf_counter_ns() - began, flush=True)
