package holdfast

import "github.com/holdfast-go/holdfast/driver"

// A Token is a fencing token: it is fixed when a lock is granted, and strictly greater than
// that of every earlier grant of the key that could not be held together with it. Without
// [WithShared] and [WithLimit], that is every earlier grant. A resource that remembers the greatest
// token it has seen, and refuses smaller ones, is safe from a holder that does not know yet
// that it has lost its lock (Kleppmann, "How to do distributed locking", 2016).
//
// Where readers share a key by [WithShared], the resource compares the tokens of all and
// remembers those of exclusive holders only: of two readers at a time either may have the
// greater one, and neither is late. A reader is late if a writer has written since. The
// permits of a semaphore exclude nobody in particular, and cannot be fenced: see [WithLimit].
type Token = driver.Token

// Info is what an engine tells of a key: who holds it, with which token and data, since when, and who waits. It is a snapshot,
// possibly outdated by the time it is read. Each yields one of each who share the key.
//
// Fields: Key, Held, Owner, Token, Since, QueuedAt, Data, Lease, LastHeard, Queue (of [Waiter]), Grant, Stale, Shared, Limit, Unfenced, Holders (of [Holder]).
type Info = driver.Info

// A Holder is one of those who share a key. Its fields are as in [Info].
//
// Fields: Owner, Token, Since, QueuedAt, Data, Lease, LastHeard, Grant.
type Holder = driver.Holder

// A Waiter is one of those who wait for a key.
//
// Fields: Owner, Since, Data, Shared, Limit.
type Waiter = driver.Waiter
