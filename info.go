package holdfast

import (
	"iter"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Token is a fencing token: it is fixed when a lock is granted, and strictly greater than
// that of every earlier grant of the same key that excluded it or that it excludes; without
// [WithShared] and [WithLimit], than that of every earlier grant. A resource that remembers the greatest
// token it has seen, and refuses smaller ones, is safe from a holder that does not know yet
// that it has lost its lock (Kleppmann, "How to do distributed locking", 2016).
//
// Where readers share a key by [WithShared], the resource compares the tokens of all and
// remembers those of exclusive holders only: of two readers at a time either may have the
// greater one, and neither is late. A reader is late if a writer has written since. The
// permits of a semaphore exclude nobody in particular, and cannot be fenced: see [WithLimit].
type Token uint64

// String returns the token in decimal.
func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// Info is what an engine tells of a key: a snapshot, possibly outdated by the
// time it is read. If several hold the key, Holders has them all, and the fields that
// describe a holder are those of the oldest grant.
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
	Data     []byte // from WithData or SetData, or the foreign program's own
	// Lease is how long the engine waits for a silent holder; 0 if unknown, or
	// if it waits for ever.
	Lease time.Duration
	// Queue has those who wait, the next one first, where the engine keeps a
	// queue (ZooKeeper and memlock).
	Queue []Waiter
	// Grant is the engine's own name for this very grant: [Client.Break] uses
	// it to remove no other, and [Client.Ask] to ask for no other.
	Grant string

	// Shared says that others may hold the key at the same time, by [WithShared] or
	// [WithLimit]; Limit is that of a semaphore, else 0.
	Shared bool
	Limit  int
	// Holders has all who share the key, the oldest grant first. It is nil if the holder
	// shares it with nobody, and in what Each yields.
	Holders []Holder
}

// A Holder is one of those who share a key. Its fields are as in [Info].
type Holder struct {
	Owner    string
	Token    Token
	Since    time.Time
	QueuedAt time.Time
	Data     []byte
	Lease    time.Duration
	Grant    string
}

// Each yields an Info of each grant of the key, the oldest first: one if it is not shared,
// none if nobody holds it. Each describes its grant alone, has neither Holders nor Queue, and
// so is what [Client.Break] and [Client.Ask] take to reach one holder of several.
//
//	for grant := range info.Each() {
//		err = errors.Join(err, client.Ask(ctx, grant))
//	}
func (i Info) Each() iter.Seq[Info] {
	return func(yield func(Info) bool) {
		all := i.Holders
		i.Holders, i.Queue = nil, nil
		if i.Held && len(all) == 0 {
			yield(i)
			return
		}
		for _, h := range all {
			one := i
			one.Owner, one.Token, one.Since, one.QueuedAt = h.Owner, h.Token, h.Since, h.QueuedAt
			one.Data, one.Lease, one.Grant = h.Data, h.Lease, h.Grant
			if !yield(one) {
				return
			}
		}
	}
}

// A Waiter is one of those who wait for a key.
type Waiter struct {
	Owner  string
	Since  time.Time // when it began to wait, on the engine's clock; zero if unknown
	Data   []byte
	Shared bool // it waits to share the key
}

// infoOf is a key as the engine describes it, for the user.
func infoOf(i driver.Info) Info {
	info := Info{
		Key: i.Key, Held: i.Held, Owner: i.Owner, Token: Token(i.Token), Since: i.Since, QueuedAt: i.QueuedAt,
		Data: i.Data, Lease: i.Lease, Grant: i.Grant, Shared: i.Shared, Limit: i.Limit,
	}
	for _, w := range i.Queue {
		info.Queue = append(info.Queue, Waiter(w))
	}
	for _, h := range i.Holders {
		info.Holders = append(info.Holders, Holder{
			Owner: h.Owner, Token: Token(h.Token), Since: h.Since, QueuedAt: h.QueuedAt, Data: h.Data, Lease: h.Lease, Grant: h.Grant,
		})
	}
	return info
}

// driver is what the engine has to know of a key to break its grant, or ask for it.
func (i Info) driver() driver.Info {
	return driver.Info{
		Key: i.Key, Held: i.Held, Owner: i.Owner, Token: uint64(i.Token), Grant: i.Grant, Shared: i.Shared, Limit: i.Limit,
	}
}
