package holdfast

import (
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Token is a fencing token: it is fixed when a lock is granted and strictly
// greater than that of every earlier grant of the same key. A resource that
// remembers the greatest token it has seen, and refuses smaller ones, is safe
// from a holder that does not know yet that it has lost its lock (Kleppmann,
// "How to do distributed locking", 2016).
type Token uint64

// String returns the token in decimal.
func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// Info is what an engine tells of a key: a snapshot, possibly outdated by the
// time it is read.
type Info struct {
	Key   string
	Held  bool      // false: all below is zero, but for Queue
	Owner string    // "" if the holder's program left none
	Token Token     // of the present grant; 0 if its format has none
	Since time.Time // of the present grant, on the engine's clock (on DynamoDB, the holder's); zero if unknown, as on ZooKeeper
	// QueuedAt is when the holder's place in the queue was made, on the engine's
	// clock; zero if unknown, as on DynamoDB. The grant came then or later: how much
	// later, ZooKeeper does not record.
	QueuedAt time.Time
	Data     []byte // from WithData, or the foreign program's own
	// Lease is how long the engine waits for a silent holder; 0 if unknown, or
	// if it waits for ever.
	Lease time.Duration
	// Queue has those who wait, the next one first, where the engine keeps a
	// queue (ZooKeeper and memlock).
	Queue []Waiter
	// Grant is the engine's own name for this very grant: [Client.Break] uses
	// it to remove no other.
	Grant string
}

// A Waiter is one of those who wait for a key.
type Waiter struct {
	Owner string
	Since time.Time // when it began to wait, on the engine's clock; zero if unknown
	Data  []byte
}

// infoOf is a key as the engine describes it, for the user.
func infoOf(i driver.Info) Info {
	info := Info{
		Key: i.Key, Held: i.Held, Owner: i.Owner, Token: Token(i.Token), Since: i.Since, QueuedAt: i.QueuedAt,
		Data: i.Data, Lease: i.Lease, Grant: i.Grant,
	}
	for _, w := range i.Queue {
		info.Queue = append(info.Queue, Waiter(w))
	}
	return info
}

// driver is what the engine has to know of a key to break its grant.
func (i Info) driver() driver.Info {
	return driver.Info{Key: i.Key, Held: i.Held, Owner: i.Owner, Token: uint64(i.Token), Grant: i.Grant}
}
