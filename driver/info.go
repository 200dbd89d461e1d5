package driver

import (
	"bytes"
	"slices"
	"time"
)

// Info describes a key, as holdfast.Info does, where each field is documented.
type Info struct {
	Key      string
	Held     bool
	Owner    string
	Token    uint64
	Since    time.Time
	QueuedAt time.Time
	Data     []byte
	Lease    time.Duration
	Queue    []Waiter
	Grant    string // names this very grant, for Break

	// Shared says that the grants of the key go together: Holders has all of them, and
	// the fields above are those of the first. See [Together].
	Shared  bool
	Limit   int      // of a semaphore
	Holders []Holder // the oldest grant first; nil if the grant is exclusive

	// Unfenced says that this grant is a foreign program's, of a kind that does not keep to
	// the order: a later one may have a smaller token, this one may have a smaller one than
	// those before, and it may come back after nobody held the key.
	Unfenced bool
}

// A Holder is one of those who hold a shared key. The fields are those of an Info.
type Holder struct {
	Owner    string
	Token    uint64
	Since    time.Time
	QueuedAt time.Time
	Data     []byte
	Lease    time.Duration
	Grant    string
}

// Together describes a shared key that holders have, of whom there is at least one, the
// oldest grant first.
func Together(key string, limit int, holders []Holder) Info {
	first := holders[0]
	return Info{
		Key: key, Held: true, Owner: first.Owner, Token: first.Token, Since: first.Since, QueuedAt: first.QueuedAt,
		Data: first.Data, Lease: first.Lease, Grant: first.Grant,
		Shared: true, Limit: limit, Holders: holders,
	}
}

// Same reports whether two infos of a key tell an observer the same: who holds it, by
// which grants, and with which data. The times and the queue do not count. Where tokens
// keep to the order they tell grants apart; Grant may change once, when a grant is broken.
func (i Info) Same(j Info) bool {
	fenced := i.Token != 0 && !i.Unfenced && !j.Unfenced
	if i.Held != j.Held || i.Shared != j.Shared || i.Limit != j.Limit || !i.first().same(j.first(), fenced) {
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

// A Waiter is one of those who wait for a key.
type Waiter struct {
	Owner  string
	Since  time.Time
	Data   []byte
	Shared bool // it waits to share the key
}
