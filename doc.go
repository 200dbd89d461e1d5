// Package holdfast provides distributed locks with fencing tokens. The engines make clients: zklock on ZooKeeper, dynamolock on
// DynamoDB, mongolock on MongoDB, memlock in one process and for unit tests.
//
//	client, err := zklock.Dial(ctx, []string{"127.0.0.1:2181"}, nil)
//	if err != nil {
//		return err
//	}
//	defer client.Close(ctx)
//	events := client.Events() // channels: Ready, Disconnected, TTLExpired, Lost, Asked
//
//	err = client.Do(ctx, "reports/nightly", func(ctx context.Context, lock *holdfast.Lock) error {
//		return writeReport(ctx, lock.Token()) // ctx ends with the lock; the database refuses smaller tokens
//	})
//	if err != nil {
//		return err
//	}
//
//	lock, err := client.Acquire(ctx, "orders/42") // waits; TryAcquire fails at once if the key is held
//	if err != nil {
//		return err
//	}
//	defer lock.Release(ctx)
//	return work(lock.Done(), events.Lost(), lock.Err) // Err is nil while the lock is live
//
// A lock is a lease, a token, and a way to learn that the lock is over. The engine gives the key to no other client during the
// lease, which the client renews. The token rises with each grant of the key. The holder computes the end of the lease on its own
// clocks, so it detects the loss before another client can acquire the lock.
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
// At the end of a lock, events are queued, Done closes, contexts end, and only then the engine gets the key back. Nothing brings a
// lock back. [WithTTL] limits how long a lock is held; the lease, which etcd and Consul call TTL, shows that the holder lives.
//
// # Guarantees
//
// [docs/design/contract.md] defines them as G1 to G21, with a table of failures. The conformance suite, locktest, tests each on
// every engine. At most one grant of a key is live (G1), or readers together ([WithShared]), or as many permits as the limit of a
// semaphore ([WithLimit]). Done closes before another client gets the key, unless another client ends a live lease on purpose (G2).
// Tokens rise (G3). A call that fails leaves nothing behind (G5). ZooKeeper and memlock serve waiters in order; elsewhere each
// waiter gets a turn (G7). Bad input is refused before anything is sent (G12).
//
// Of a zero value, methods that return an error fail with [ErrInvalid], channels and contexts have ended, and other results are
// zero.
//
// # What is not guaranteed
//
//   - A lock alone does not make writes safe: a process can stop between its last look at the lock and its write. Only a
//     resource that compares tokens closes that gap, or a guard in the engine's own transaction: see [docs/fencing.md].
//   - The clocks of holder and engine must run at nearly the same rate, within 5% by default. A wall clock that jumps forward
//     past the end of the lease costs the lock ([ErrClockJump]).
//   - An engine restored from a backup has forgotten tokens.
//   - Locks are not re-entrant: a second Acquire by the holder waits.
//
// [docs/guide.md] has recipes, [docs/operations.md] times to choose and alarms.
//
// [docs/design/contract.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/design/contract.md
// [docs/guide.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/guide.md
// [docs/fencing.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/fencing.md
// [docs/operations.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/operations.md
package holdfast
