// Package holdfast provides distributed locks for programs that already run ZooKeeper or
// DynamoDB. It defines what a lock promises, the same on every engine. Clients come from
// the engines' packages: zklock for ZooKeeper, dynamolock for DynamoDB, and memlock for
// one process and unit tests.
//
// A lock is a lease, a fencing token, and a way to learn that it is over. The lease is
// the engine's promise to give the key to nobody else for a while; it is renewed in the
// background. The token grows with every grant of the key, so that whatever the lock
// protects can refuse a late holder. The holder computes the end of the lease on its own
// clocks, so it detects the loss before anyone else can acquire the lock.
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
//	Acquire, TryAcquire, AcquireAny, AcquireAll, Do, TryDo, DoAll
//	   |
//	waiting --- ctx ends, WithWait elapses, Close ---> error; nothing stays
//	   | granted: the token is fixed
//	 live <---> the lease is renewed, the TTL extended
//	   |--- Release, Close ---------------------------> ErrReleased
//	   |--- the TTL passes ---------------------------> ErrTTLExpired
//	   |--- the lease runs out, a clock jumps, -------> ErrLost and its cause
//	        Break, reclaim, deletion
//
// No arrow leads back. When a lock ends, an event is queued unless the holder released it,
// Done closes, contexts end, and then the key is given back to the engine. [Lock.Deadline] is
// the end of what is known to be safe: the lease, or the TTL if that is sooner. (What etcd and
// Consul call a TTL is the lease here; [WithTTL] limits how long a lock is held, however alive its
// holder is.)
//
// # Guarantees
//
// The conformance suite, locktest, tests each on every engine; [docs/design/contract.md]
// has them in full, with a table of failures.
//
//   - G1, G19, G20: at most one live grant of a key; or readers together ([WithShared]); or n permits of
//     the same n ([WithLimit]). A request waits for every earlier request that does not share with it.
//   - G2, G4: Done closes before the engine gives the key to another, unless somebody ends a live
//     lease on purpose. There is one end with one cause, and nothing brings a lock back.
//   - G3: of two grants that exclude each other, the later has the greater token.
//   - G5, G6, G10, G11: who gives up, loses a reply, releases or closes leaves nothing behind.
//   - G7, G21: first come, first served; on DynamoDB, everybody gets a turn to look.
//   - G8, G13, G16: a TTL ends a lock for its holder first; a restarted process reclaims what it held;
//     data that the holder set last is what others read.
//   - G9, G14, G17: [Client.Events], [Client.Observe] and [Client.Ask] drop nothing that matters.
//   - G12: bad input is refused before anything is sent.
//   - G15: terms of an [Election] never overlap, and the key is given back after lead has returned.
//   - G18: [Client.AcquireAll] takes several keys, or leaves none held.
//
// Clients, elections, subscriptions and locks come from calls of this library. Of a zero value, all methods that return an error
// fail with [ErrInvalid], channels and contexts have ended, and other results are zero.
//
// # What is not guaranteed
//
//   - A lock alone does not make writes safe: a process can be stopped between its last
//     look at the lock and its write. Only a resource that compares tokens closes that
//     gap, or a guard in the engine's own transaction. See [Token] and [docs/fencing.md].
//   - The clocks of holder and engine must run at nearly the same rate, within 5% by
//     default. What time they show does not matter, but a wall clock that is set forward
//     by more than the rest of the lease costs the lock ([ErrClockJump]).
//   - An engine restored from a backup has forgotten tokens that it gave out.
//   - Locks are not re-entrant: a second Acquire by the holder waits.
//
// [docs/guide.md] has recipes, [docs/operating.md] which times to choose and what to alarm on.
//
// [docs/design/contract.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/design/contract.md
// [docs/guide.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/guide.md
// [docs/fencing.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/fencing.md
// [docs/operating.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/operating.md
package holdfast
