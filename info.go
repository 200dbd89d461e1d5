package holdfast

import "github.com/holdfast-go/holdfast/driver"

// A Token is a fencing token, fixed at the grant. It is greater than that of every earlier grant of the key that could not be held
// together with it: without [WithShared] and [WithLimit], than that of every earlier grant. A resource that remembers the greatest
// token and refuses smaller ones is safe from a late holder (Kleppmann, "How to do distributed locking", 2016).
//
// If readers share the key by [WithShared], compare a reader's token with the greatest of a writer only, and a writer's with the greatest
// of all. The permits of a semaphore cannot be fenced: see [WithLimit]. The packages below fencing do this.
type Token = driver.Token

// Info is a snapshot of a key: its holder, or several if they share it, and its waiters. It may be outdated when the caller reads
// it. The fields of the embedded [Holder] describe the oldest grant. Each yields one Info per holder. A field is zero if the
// engine does not know it.
//
// Fields: Key, Held, Holder, Owner, Token, Since, QueuedAt, Data, Lease, LastHeard, Grant, Holders, Shared, Limit, Queue, Stale, Unfenced.
type Info = driver.Info

// A Holder is one grant of a key. SeemsDead reports whether the holder has been silent for longer than its lease.
//
// Fields: Owner, Token, Since, QueuedAt, Data, Lease, LastHeard, Grant.
type Holder = driver.Holder

// A Waiter is one waiting request.
//
// Fields: Owner, Since, Data, Shared, Limit.
type Waiter = driver.Waiter
