package driver

import (
	"bytes"
	"iter"
	"slices"
	"strconv"
	"time"
)

// A Token is a fencing token: it is fixed when a lock is granted, and strictly greater than
// that of every earlier grant of the same key that excluded it or that it excludes; without
// holdfast.WithShared and holdfast.WithLimit, than that of every earlier grant. A resource that remembers the greatest
// token it has seen, and refuses smaller ones, is safe from a holder that does not know yet
// that it has lost its lock (Kleppmann, "How to do distributed locking", 2016).
//
// Where readers share a key by holdfast.WithShared, the resource compares the tokens of all and
// remembers those of exclusive holders only: of two readers at a time either may have the
// greater one, and neither is late. A reader is late if a writer has written since. The
// permits of a semaphore exclude nobody in particular, and cannot be fenced: see holdfast.WithLimit.
type Token uint64

// String returns the token in decimal.
func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// Info is what an engine tells of a key: a snapshot, possibly outdated by the
// time it is read. If several hold the key, Holders has them all, and the fields that
// describe a holder are those of the oldest grant.
type Info struct {
	Key   string
	Held  bool      // false: all below is zero, but for Queue and Stale
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
	// LastHeard is when the holder last renewed its lease, by the holder's own clock, which may be wrong: see [Info.SeemsDead].
	// It is zero where the engine ends the lease of a dead holder itself, or waits for ever: it is set on DynamoDB, in mode FailOpen.
	LastHeard time.Time
	// Queue has those who wait, the next one first, where the engine keeps a
	// queue (ZooKeeper and memlock).
	Queue []Waiter
	// Grant is the engine's own name for this very grant: holdfast.Client.Break uses
	// it to remove no other, and holdfast.Client.Ask to ask for no other.
	Grant string
	// Stale is set by holdfast.Client.Observe alone: the engine has not confirmed this state since it was last unreachable.
	Stale bool

	// Shared says that others may hold the key at the same time, by holdfast.WithShared or
	// holdfast.WithLimit; Limit is that of a semaphore, else 0.
	Shared bool
	Limit  int
	// Unfenced says that the grant is a foreign program's, of a kind that does not keep to
	// the order of tokens: a later one may have a smaller token, this one may have a smaller one than
	// those before, and it may come back after nobody held the key.
	Unfenced bool
	// Holders has all who share the key, the oldest grant first. It is nil if the holder
	// shares it with nobody, and in what Each yields.
	Holders []Holder
}

// A Holder is one of those who share a key. Its fields are as in [Info].
type Holder struct {
	Owner     string
	Token     Token
	Since     time.Time
	QueuedAt  time.Time
	Data      []byte
	Lease     time.Duration
	LastHeard time.Time
	Grant     string
}

// SeemsDead reports whether the holder has been silent for longer than its lease at now. The result is a hint only: it compares the
// holder's clock with the caller's. Where several share the key it is about the oldest grant; see Each for the others.
func (i Info) SeemsDead(now time.Time) bool {
	return i.Lease > 0 && !i.LastHeard.IsZero() && now.Sub(i.LastHeard) > i.Lease
}

// Each yields an Info of each grant of the key, the oldest first: one if it is not shared,
// none if nobody holds it. Each describes its grant alone, has neither Holders nor Queue, and
// so is what holdfast.Client.Break and holdfast.Client.Ask take to reach one holder of several.
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
			one.Data, one.Lease, one.LastHeard, one.Grant = h.Data, h.Lease, h.LastHeard, h.Grant
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
	Limit  int  // it waits for a permit of so many; 0: for none
}

// Together describes a shared key that holders have, of whom there is at least one, the
// oldest grant first.
func Together(key string, limit int, holders []Holder) Info {
	first := holders[0]
	return Info{
		Key: key, Held: true, Owner: first.Owner, Token: first.Token, Since: first.Since, QueuedAt: first.QueuedAt,
		Data: first.Data, Lease: first.Lease, LastHeard: first.LastHeard, Grant: first.Grant,
		Shared: true, Limit: limit, Holders: holders,
	}
}

// Same reports whether two infos of a key tell an observer the same: who holds it, by
// which grants, with which data, and whether that is stale. The times and the queue do not count. Where tokens
// keep to the order they tell grants apart; Grant may change once, when a grant is broken.
func (i Info) Same(j Info) bool {
	fenced := i.Token != 0 && !i.Unfenced && !j.Unfenced
	if i.Held != j.Held || i.Stale != j.Stale || i.Shared != j.Shared || i.Limit != j.Limit || !i.first().same(j.first(), fenced) {
		return false
	}
	return slices.EqualFunc(i.Holders, j.Holders, func(a, b Holder) bool { return a.same(b, fenced) })
}

// first is the grant that the fields of the Info itself describe, as far as it counts.
func (i Info) first() Holder {
	return Holder{Owner: i.Owner, Token: i.Token, Data: i.Data, Grant: i.Grant}
}

func (h Holder) same(g Holder, fenced bool) bool {
	return h.Owner == g.Owner && h.Token == g.Token && bytes.Equal(h.Data, g.Data) && (fenced || h.Grant == g.Grant)
}
