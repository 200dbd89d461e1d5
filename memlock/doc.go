// Package memlock has locks inside one process. It implements the whole contract of
// package holdfast without a server: for trying the library out, for programs that need
// locks among their own goroutines only, and for unit tests of programs that use another
// engine in production. Tests can cut a connection and expire a session on command.
//
//	store := memlock.NewStore()
//	worker, err := memlock.New(&memlock.Options{Store: store, Owner: "worker"})
//	...
//	store.Cut(worker) // the lock's Done closes before anybody else gets the key
//
// # Clients, and what they have
//
// A [Store] takes the place of the server; clients that compete share one. A [Client]
// embeds [holdfast.Client], whose methods are its API:
//
//   - Acquire, TryAcquire, AcquireAny, AcquireAll, Do, TryDo, DoAll: take locks.
//   - Inspect, List, Ask, Break: see who has them, ask for a grant, end it by force.
//   - Events: follow connection, expiry and loss.
//   - Owner: the default owner name.
//   - Close: end everything.
//
// A held lock is a [holdfast.Lock].
//
// # Sessions
//
// What a client holds and waits for depends on a session, as on ZooKeeper. The session
// begins with the first request. While the client holds or wants anything, it renews the
// session six times per lease, by timers; an idle client does nothing. The session ends
// when the store has heard nothing for [Options.Lease], or by [Store.Expire]; the next
// request begins another.
//
//	             first request
//	                  |
//	                  v         heard of within the lease
//	            +-----------+ <---+
//	+---------> |  session  |     |
//	|           +-----------+ ----+
//	|   silent for  |   | Expire
//	|   the lease   v   v
//	|           +-----------+  its keys go to the next in line;
//	+-----------|  expired  |  its waiters take their turn again,
//	 next       +-----------+  at the end of the line
//	 request
//
// The client does not wait for the store to tell it. It trusts its locks until
//
//	valid until = moment before the last request that arrived + Lease - Margin
//
// so that when the store gives a key away by itself, the old holder's Done has closed a
// Margin before.
//
// # Guarantees
//
// All guarantees of package holdfast; tested by locktest. Of those that depend on the
// engine:
//
//   - G3: one counter in the store numbers the grants of all keys.
//   - G7, G21: first come, first served, readers, writers and permits alike. A release wakes
//     those that have the key now, and no others. Inspect shows the queue.
//   - G2: a holder whose grant is broken or reclaimed is told in the same moment, or
//     when it is healed.
//   - G13: with a queue, WithReclaim takes its turn after those who were there.
//   - G14: a change is told as soon as it happens, or when the client is healed.
//
// What a client requests while it is cut off is never carried out later behind its back:
// calls wait at a gate for as long as their ctx allows. The exceptions are what the
// store has to know: a release, and that a waiter gave up. They are delivered when the
// client is healed, unless its lease has run out.
//
// # What is not guaranteed
//
// Nothing outlives the process, and no other process sees it. A store has one clock, so
// Margin only shows who knows first.
//
// # When things fail
//
//	what happens       the holder                 waiters of the client    others
//	-----------------  -------------------------  -----------------------  -------------------
//	Cut, Heal in time  Disconnected, Ready        wait on                  notice nothing
//	Cut                ErrSessionExpired at       wait on; once healed,    get the keys when
//	                   Deadline                   at the end of the line   the lease is over
//	Expire             ErrSessionExpired at once  at the end of the line   get the keys at once
//	Expire while cut   ErrSessionExpired when     as after Cut             get the keys at once
//	                   healed, or at Deadline
//	Ask                Asked, when it is healed   -                        wait on
//	Break              ErrBroken                  -                        get the key at once
//	WithReclaim        ErrReclaimed               fail with ErrReclaimed   get the key in turn
//
// # In tests with virtual time
//
// Store and clients may live inside a testing/synctest bubble; create both there. They
// use timers and no lasting goroutine. So a lock can be held for an hour in no time, and
// a client that a test forgets to close does not keep its bubble from ending. Calls that
// wait, deliveries that are pending while a client is cut off, and events that nobody
// reads (from the second one on) do have a goroutine: end them by a ctx, by Heal, or by
// Close.
package memlock
