// Package holdfast has distributed locks for programs that already run ZooKeeper or
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
// Done closes, contexts end, and then the key is given back to the engine.
//
// [Lock.Deadline] is the end of what is known to be safe: the lease, or the TTL if that
// is sooner. What etcd and Consul call a TTL is the lease here; [WithTTL] limits how long
// a lock is held, however alive its holder is.
//
// Somebody who wants the key may ask for it, by [Client.Ask]: then [Lock.Asked] closes, and
// the lock lives on until its holder lets go.
//
// With [WithShared], readers hold a key together, and exclude those who acquire it without;
// with [WithLimit], a key is a semaphore.
//
// [Client.Election] is for processes of which one is to lead: it stands for a key, calls a
// function while it leads, and stands again.
//
// [Lock.Done] and [Lock.Context] follow one lock, those of [Locks] the first of several to
// end. [Client.Do] follows it for a function, whose ctx ends with the lock. [Client.Events]
// follows all locks of a client; [Client.Observe] follows a key, whoever holds it.
//
// # Guarantees
//
// The conformance suite, locktest, tests each on every engine; [docs/design/contract.md]
// has them in full, with the formula of the deadline and a table of failures.
//
//   - G1 Exclusion: the engine has at most one live grant of a key, or several that share it.
//   - G2 The holder knows first: Done closes before the engine gives the key to another,
//     unless somebody ends a live lease on purpose (Break, reclaim, deletion).
//   - G3 Fencing: of two grants that exclude each other, the later has the greater token.
//   - G4 One end, one cause: nothing brings a lock back.
//   - G5 Giving up is clean: Acquire returns as soon as its ctx ends, and leaves nothing.
//   - G6 No orphans: a lost reply leaves no grant that nobody knows of.
//   - G7 Order: first come, first served; on DynamoDB, everybody gets a turn to look.
//   - G8 TTL: it ends a lock for its holder first, and then in the engine.
//   - G9 Events: loss and expiry are never dropped, and a slow reader blocks nothing.
//   - G10 Release: it is sent even if ctx is done, and never touches another's grant.
//   - G11 Close: it ends every lock and every wait, and leaves no goroutine behind.
//   - G12 Bad input: it is refused before anything is sent.
//   - G13 Reclaim: a restarted process ends what its previous incarnation still holds.
//   - G14 Observe: it tells the present state first and the last one always, and no waiter.
//   - G15 Election: terms never overlap, and the key is given back after lead has returned.
//   - G16 Data: what the holder sets last is what others read, and never after its grant.
//   - G17 Asking: a wish that the holder let go reaches it, once, and nobody else.
//   - G18 All or none: AcquireAll takes several keys or leaves none held.
//   - G19 Sharing: readers go together; they and writers exclude each other.
//   - G20 Permits: as many hold a semaphore as its limit says, no more, and none is lost.
//   - G21 Turns: first come, first served for readers, writers and permits too; on DynamoDB,
//     a writer that waits keeps new readers out.
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
// [docs/guide.md] has recipes, [docs/operating.md] which times to choose and what to alarm
// on, [docs/metrics.md] metrics and log attributes, [docs/design] the reasons and the
// evidence. Each engine's package lists what it assumes of its servers.
//
// [docs/design/contract.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/design/contract.md
// [docs/guide.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/guide.md
// [docs/fencing.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/fencing.md
// [docs/operating.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/operating.md
// [docs/metrics.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/metrics.md
// [docs/design]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/design/README.md
package holdfast
