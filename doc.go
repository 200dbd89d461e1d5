// Package holdfast is a library of distributed locks for programs that already
// run a coordination service. This package has the contract, which is the same
// on every engine, and its one implementation, [Client]. Clients come from the
// engines' own packages: zklock for ZooKeeper, dynamolock for DynamoDB, and
// memlock for one process, which is for trying things out and for unit tests.
//
// This is the reference. For those who decide, run or change over, there are pages
// with pictures: how locks work on ZooKeeper ([docs/zookeeper.md]) and on DynamoDB
// ([docs/dynamodb.md]), [docs/fencing.md], [docs/operating.md], and coming from
// another library, [docs/migrating].
//
// # What a lock is
//
// A lock here is three things: a lease, a fencing token, and a way to learn
// that it is over. The lease is the engine's promise to give the key to nobody
// else for a while, renewed by itself for as long as the process lives and can
// be heard. The token is a number that grows with every grant of the key, so
// that what the lock protects can refuse a holder who is late. And the end of
// the lease is computed on the holder's own clocks, so that a holder who is cut
// off, or whose engine is gone, is told in time without anybody telling it.
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
//	      |              |                  |
//	      +--------------+------------------+
//	                     v
//	in this order: an event is queued unless the holder released, Done
//	closes, contexts end, and the key is given back to the engine, in the
//	background, until that is confirmed or the session is gone
//
// No arrow leads back. A lock whose lease ran out while the process was stopped
// is lost, even if the engine never noticed and goes on to renew the lease.
// [The same as a picture], with all causes of a loss.
//
// # Recipes
//
// Each is an example below, as a whole program.
//
//   - Leader election (example LeaderElection). Do in a loop: whoever has the lock
//     leads until it returns, its ctx ends or the process dies, and the next in the
//     queue goes on.
//   - A job once (CronJobOnce). Several machines start the same job, so that it is
//     done although one of them is down. Do, and under the lock look whether it has
//     been done: a lock says that nobody does it now, not that nobody has.
//   - A worker for each part of the work (WorkerPerShard). AcquireAny over the
//     parts, in random order, waiting for one that comes free.
//   - A program around a select (EventConsumer). Events, with one goroutine that
//     owns the state.
//   - Handing over (HandingOver). The successor waits with Acquire while the
//     predecessor ends its work and releases. After a crash, WithReclaim under a
//     fixed owner name.
//   - Writes that cannot come too late ([docs/fencing.md]): SQL, S3, ZooKeeper and
//     DynamoDB, each with an example that shows the late write go through without
//     the fence.
//   - Unit tests of a program that uses locks: give it the [Client] of package
//     memlock, whose Store can cut a client off, and end its session.
//
// # Guarantees
//
// The conformance suite, locktest, has cases for each of them by its number,
// and runs on every engine.
//
//   - G1 Exclusion. The engine has at most one live grant of a key.
//   - G2 The holder knows first. When a lease ends, Done closes by the holder's
//     own clock before the engine gives the key to anyone else. Every method of
//     [Lock] looks at the clocks, so a process that was stopped learns the truth
//     from its first call. A live lease that somebody ends on purpose (Break,
//     reclaim, deletion) is the exception: the holder is told afterwards, at
//     once on ZooKeeper, and within one heartbeat on DynamoDB, where Break lets
//     the lease run until then.
//   - G3 Fencing. Tokens of a key strictly increase, over releases, crashes,
//     takeovers and a key that was deleted and made anew. Renewing keeps them. 0
//     only where a foreign format has none: dynamolock's FailClosed.
//   - G4 One end, one cause. The first end of a lock wins and stays; Done
//     closes once; nothing brings a lock back.
//   - G5 Giving up is clean. Acquire returns as soon as its ctx ends, even if no
//     server answers, with an error that matches the ctx's and says what it was
//     waiting for. Whatever it left in the engine is removed in the background.
//   - G6 No orphans. A lost reply leaves neither a grant that nobody knows of,
//     nor a client that waits for itself, nor a holder in doubt of its own lock.
//   - G7 Order. First come, first served, and a release wakes one waiter, on
//     engines that keep a queue: ZooKeeper and memlock do. DynamoDB does not; every
//     waiter gets its turn to look.
//   - G8 TTL. [WithTTL] limits how long a lock is held, whatever the lease does.
//     It ends for the holder first, and then in the engine.
//   - G9 Events are facts. Loss and expiry are queued without limit and never
//     dropped; of the states Ready and Disconnected the latest counts. A slow
//     reader holds nothing up. [Hooks] are told of everything, in order.
//   - G10 Release. It ends the lock here first, then in the engine; it is sent
//     although ctx is done, it may be called twice, and it never touches the
//     grant of somebody else.
//   - G11 Close. It ends every lock and every wait of the client, each on its
//     own, and leaves no goroutine behind.
//   - G12 Bad input is refused before anything is sent, by the same rules on
//     every engine, with an error that names the field and the limit.
//   - G13 Reclaim. With [WithReclaim], a process that was restarted under its
//     fixed owner name ends what its former life still holds.
//
// # What is not guaranteed
//
//   - A lock alone does not make writes safe. Between the last look at the
//     lock and the moment that a write arrives, a process can be stopped for as
//     long as it takes to lose the lock. Only a resource that compares tokens
//     closes that gap (see [Token]), or a guard within the engine's own
//     transaction, such as zklock's Guard and dynamolock's ConditionCheck.
//   - Clocks are trusted to run at nearly the same rate on holder and engine:
//     within margin/lease, which is 5% by default. What time they show does not
//     matter.
//   - Setting the wall clock of the holder's machine forward by more than is
//     left of the lease costs the lock ([ErrClockJump]): it looks exactly like a
//     machine that was asleep. Setting it back does nothing.
//   - An engine restored from a backup has forgotten tokens that it gave out.
//   - Locks are not re-entrant: a second Acquire by the holder waits.
//
// Each engine's package lists what it assumes of its servers.
//
// # The trust window
//
// The holder trusts its lock until
//
//	valid until = sent + lease - margin        margin = max(50 ms, lease/20)
//
// or the TTL, if that is sooner; [Lock.Deadline] shows it. Here sent is a moment
// before the sending of something that the engine is known to have taken as a
// renewal. The engine cannot have taken it earlier than it was sent, so by its
// clock it keeps the key at least until sent + lease; the margin covers clocks
// that run at different rates. What counts as known is the engine's business,
// and not obvious: on ZooKeeper an answered ping does not (see zklock).
//
// Both of the machine's clocks are asked. The monotonic clock is immune to being
// set, but stands still while the machine sleeps; the wall clock is the reverse.
// Whichever says that the window is over is believed.
//
// # When things fail
//
//	what happens           what the holder sees   when                   the engine
//	---------------------  ---------------------  ---------------------  ---------------------
//	Release, Close         ErrReleased            at once                is told after it,
//	                                                                     until it confirms
//	the TTL passes         ErrTTLExpired, event   at the TTL             is told after it
//	the process dies       -                      -                      waits out the lease
//	connection lost,       Disconnected, later    at once                notices nothing
//	back within the lease  Ready; the lock lives
//	connection lost for    Disconnected, then     at Deadline, before    waits out the lease,
//	longer, or a server    ErrLost, with          the engine's end       gives the key away
//	without its quorum     ErrSessionExpired or
//	                       ErrLeaseExpired
//	process stopped past   the same               at its first call of   has given the key
//	the lease (SIGSTOP,                           any method of Lock     away: fencing needed
//	long GC, frozen VM)
//	machine asleep past    ErrLost with           at its first call      has given the key
//	the lease              ErrClockJump                                  away: fencing needed
//	Break, or its node     ErrLost with           one message later      has given the key
//	deleted by a stranger  ErrBroken                                     away: fencing needed
//	WithReclaim by         ErrLost with           one message later      has given the key
//	another client         ErrReclaimed                                  away: fencing needed
//	reply to an acquire    a slower Acquire       -                      keeps one place in
//	lost                                                                 the queue, not two
//	reply to a release     a slower Release, or   when ctx ends          is asked again until
//	lost                   ErrReleasePending                             it has answered
//	ctx of Acquire ends    ctx's error with       at once                is rid of the place
//	                       ErrHeld or                                    in the queue soon
//	                       ErrDisconnected                               after
//
// # Three ways to follow a lock
//
// [Lock.Done] and [Lock.Context] follow one lock, like a context does.
// [Client.Do] and [Client.TryDo] do so for a function: its ctx ends with the lock.
// [Client.Events] follows a client with all its locks, for programs built around
// a select. They tell the same facts and can be combined.
//
// # Metrics and logs
//
// [Hooks], which every engine has in its Options, tell of all that happens in a
// client: acquisitions from their start to their lock or error, places in queues,
// ends, heartbeats, the connection. The modules metrics/prometheus and metrics/otel
// make metrics of them; [JoinHooks] adds hooks of one's own.
//
// Options.Logger gets records whose texts may change from release to release, but
// whose attributes do not:
//
//	attribute  type      of what
//	---------  --------  ------------------------------------------------------
//	key        string    the lock
//	owner      string    the owner name of a hold or a place
//	token      uint64    the fencing token of a hold
//	error      error     why; of a lost lock its LostError
//	ahead      int       how many are before a waiter, the holder included
//	path       string    zklock: a znode
//	sequence   int       zklock: the newest sequence number of a lock
//	limit      int       zklock: the one at which the counter sticks
//	table      string    dynamolock: the table
//	call       string    dynamolock: the operation of DynamoDB's API
//	attribute  string    dynamolock: the one that Time to Live goes by
//
// The level goes by who has to care:
//
//   - Error: something of this client's stays in the engine, in the way of others,
//     until somebody removes it.
//   - Warn: what was promised has ended, or is in danger, and nobody here asked for
//     it: a lock was lost or reached its TTL, the engine cannot be reached.
//   - Info: somebody acted on others' locks, by Break or WithReclaim; the engine can
//     be reached.
//   - Debug: the course of ordinary operation, and what is tried again.
//
// The data that is stored with locks, and credentials, are never logged. What a
// call returns as an error is not logged as well.
//
// # Where to read what
//
//	client.go   Client: Inspect, List, Break, Close, the registry of what is held
//	acquire.go  Acquire, TryAcquire, AcquireAny
//	do.go       Do, TryDo
//	lock.go     Lock: its one end, its TTL, Verify, Release
//	lease.go    Lease: the trust window, and why a lock never comes back
//	events.go   Events, Event; pump.go is the unbounded channel below them
//	hooks.go    Hooks, and what they are told; result.go has words for metrics
//	options.go  With... options and Retry
//	errors.go   every sentinel and error type
//	info.go     Token, Info, Waiter
//	key.go      the portable rules for keys and owner names
//	host.go     what an engine reports to; package driver has what it implements
//
// The reasons behind the design, and the evidence for each guarantee, are in
// [docs/design].
//
// [docs/zookeeper.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/zookeeper.md
// [docs/dynamodb.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/dynamodb.md
// [docs/fencing.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/fencing.md
// [docs/operating.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/operating.md
// [docs/migrating]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/migrating/README.md
// [docs/design]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/design/README.md
// [The same as a picture]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/pictures/lock-states.svg
package holdfast
