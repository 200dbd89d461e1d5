// Package memlock provides locks inside one process. It implements the whole contract of package holdfast without a server: for
// trying the library out, for programs that need locks among their own goroutines only, and for unit tests of programs that use
// another engine in production. Tests can cut a connection and expire a session on command.
//
//	store := memlock.NewStore()
//	worker, err := memlock.New(&memlock.Options{Store: store, Owner: "worker"})
//	...
//	store.Cut(worker) // the lock's Done closes before another client gets the key
//
// A [Store] takes the place of the server; clients that compete share one. A [Client] embeds [*holdfast.Client], and so has Acquire,
// TryAcquire, AcquireAny, AcquireAll, Do, DoAll, Inspect, List, Break, Ask, Events, Owner, Close and so on.
//
// # Sessions
//
// A client's locks and waiters depend on a session, as on ZooKeeper. The session begins with the first request. While the client has
// locks or waiters, it renews the session six times per lease; an idle client does nothing. The session ends when the store has
// received nothing for [Options.Lease], or by [Store.Expire]. Then the keys go to the next in line. The client's next request begins
// another session, and its waiters queue again, at the end.
//
// The client does not wait for the store to tell it. It trusts its locks until
//
//	sending of the last request that arrived + Lease - Margin
//
// so that when the store gives a key away by itself, the old holder's Done has closed a Margin before.
//
// A request of a client that is cut off waits for as long as its ctx allows, and is never carried out later. Only a release, and the end
// of a wait, reach the store when the client is healed, unless its lease has run out.
//
// # Guarantees
//
// All guarantees of package holdfast, with a queue for G7 and G21: first come, first served. A client learns at once that it is asked,
// broken or reclaimed, or when it is healed. One counter numbers the grants of all keys (G3). Nothing outlives the process, and no
// other process sees it.
//
// # In tests with virtual time
//
// Store and clients may live inside a [testing/synctest] bubble; create both there. They use timers and no lasting goroutine. So a
// lock can be held for an hour in no time, and a client that a test forgets to close does not keep its bubble from ending. Calls that
// wait, deliveries that are pending while a client is cut off, and unread events (from the second one on) do have a
// goroutine: end them by a ctx, by Heal, or by Close.
package memlock
