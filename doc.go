// Package holdfast has distributed locks for programs that already run ZooKeeper or
// DynamoDB. It defines what a lock promises, which is the same on every engine, and
// implements everything that does not depend on the engine. Clients come from the
// engines' own packages: zklock for ZooKeeper, dynamolock for DynamoDB, and memlock for
// one process, for trying things out and for unit tests.
//
// # What a lock is
//
// A lock is a lease, a fencing token, and a way to learn that it is over. The lease is
// the engine's promise to give the key to nobody else for a while. It is renewed in the
// background for as long as the process lives and can be heard. The token is a number
// that grows with every grant of the key, so that whatever the lock protects can refuse
// a late holder. The holder computes the end of the lease on its own clocks. So it
// detects the loss before anyone else can acquire the lock, even if it is cut off and
// nobody can tell it.
//
//	client, err := zklock.Dial(ctx, []string{"127.0.0.1:2181"}, nil)
//	if err != nil {
//		return err
//	}
//	defer client.Close(context.WithoutCancel(ctx))
//
//	return client.Do(ctx, "reports/nightly", func(ctx context.Context, lock *holdfast.Lock) error {
//		// ctx ends when the lock does. The database refuses tokens that are
//		// smaller than the greatest it has seen.
//		return writeReport(ctx, lock.Token())
//	})
//
// # The life of a lock
//
//	 Acquire, TryAcquire, AcquireAny, Do, TryDo
//	                     |
//	                     v
//	               +-----------+   ctx ends, WithWait elapses, Close
//	               |  waiting  |------------------------------------> error,
//	               +-----------+                                      nothing
//	                     | granted: the token is fixed                stays
//	                     v
//	               +-----------+ <---+ the lease is renewed
//	               |   live    |     | the TTL is extended
//	               +-----------+ ----+
//	   Release,     |    |    |     the lease runs out, a clock jumps,
//	   Close        |    |    |     Break, reclaim, deletion
//	      +---------+    |    +-------------+
//	      |              | TTL passes       |
//	      v              v                  v
//	+----------+   +-------------+    +-----------+
//	| released |   | TTL expired |    |   lost    |
//	+----------+   +-------------+    +-----------+
//	ErrReleased     ErrTTLExpired      ErrLost and its cause
//
// When a lock ends, this happens in order: an event is queued unless the holder released
// the lock, Done closes, contexts end, and the key is given back to the engine in the
// background, until that is confirmed or the session is gone.
//
// No arrow leads back. A lock whose lease ran out while the process was stopped is lost,
// even if the engine never noticed and goes on to renew the lease.
//
// [Lock.Deadline] is the end of what is known to be safe: the lease, or the TTL if that
// is sooner. The lease is what etcd and Consul call a TTL. Here, [WithTTL] limits how
// long a lock is held, however alive its holder is.
//
// # Three ways to follow a lock
//
// [Lock.Done] and [Lock.Context] follow one lock, as a context does. [Client.Do] and
// [Client.TryDo] follow it for a function, whose ctx ends with the lock. [Client.Events]
// follows all locks of a client, for programs built around a select. All report the same
// facts and can be combined. [Hooks] are for metrics.
//
// # Guarantees
//
// The conformance suite, locktest, tests each by its number on every engine.
// [docs/design/contract.md] has them in full, with the formula of the deadline and a
// table of failures.
//
//   - G1 Exclusion. The engine has at most one live grant of a key.
//   - G2 The holder knows first. Done closes by the holder's own clocks before the
//     engine gives the key to anyone else. Every method of [Lock] checks the clocks, so
//     a process that was stopped learns the truth from its first call. If somebody ends
//     a live lease on purpose (Break, reclaim, deletion), the holder is told afterwards.
//   - G3 Fencing. Tokens of a key strictly increase.
//   - G4 One end, one cause. Nothing brings a lock back.
//   - G5 Giving up is clean. Acquire returns as soon as its ctx ends, says what it was
//     waiting for, and removes what it left in the engine in the background.
//   - G6 No orphans. A lost reply leaves no grant that nobody knows of, no client that
//     waits for itself, and no holder in doubt about its own lock.
//   - G7 Order. First come, first served, and a release wakes one waiter. On DynamoDB
//     there is no order; every waiter gets its turn to look.
//   - G8 TTL. [WithTTL] ends a lock for its holder first, and then in the engine.
//   - G9 Events are facts. Loss and expiry are never dropped. A slow reader blocks
//     nothing.
//   - G10 Release. It is sent even if ctx is done, may be called twice, and never
//     touches the grant of somebody else.
//   - G11 Close. It ends every lock and every wait, and leaves no goroutine behind.
//   - G12 Bad input. It is refused before anything is sent, by the same rules on every
//     engine.
//   - G13 Reclaim. With [WithReclaim], a process that restarts under its fixed owner
//     name ends what its previous incarnation still holds.
//
// # What is not guaranteed
//
//   - A lock alone does not make writes safe. Between the last look at the lock and the
//     moment a write arrives, a process can be stopped for as long as it takes to lose
//     the lock. Only a resource that compares tokens closes that gap (see [Token]), or a
//     guard in the engine's own transaction: zklock's Guard, dynamolock's
//     ConditionCheck. See [docs/fencing.md].
//   - The clocks of holder and engine are trusted to run at nearly the same rate, within
//     5% by default. What time they show does not matter.
//   - Setting the holder's wall clock forward by more than what is left of the lease
//     costs the lock ([ErrClockJump]): it looks exactly like a machine that was asleep.
//   - An engine restored from a backup has forgotten tokens that it gave out.
//   - Locks are not re-entrant: a second Acquire by the holder waits.
//
// Each engine's package lists what it assumes of its servers.
//
// # More
//
// [docs/guide.md] shows how to use the library, with recipes; the examples below are
// whole programs. [docs/operating.md] says which times to choose, what to alarm on and
// what to do when something goes wrong. [docs/metrics.md] lists metrics and the
// attributes of log records, [docs/migrating] compares programs for other lock
// libraries, and [docs/design] says why it is built as it is, with the evidence for each
// guarantee.
//
// [docs/design/contract.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/design/contract.md
// [docs/guide.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/guide.md
// [docs/fencing.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/fencing.md
// [docs/operating.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/operating.md
// [docs/metrics.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/metrics.md
// [docs/migrating]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/migrating/README.md
// [docs/design]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/design/README.md
package holdfast
