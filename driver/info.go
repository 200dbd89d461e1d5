package driver

import (
	"bytes"
	"iter"
	"slices"
	"strconv"
	"time"
)

// A Token is a fencing token: see holdfast.Token.
type Token uint64

// String returns the token in decimal.
func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// A Holder is one grant of a key, as an engine shows it. An engine leaves a field zero if it does not know the value.
type Holder struct {
	Owner string    // "" if the holder's program left none
	Token Token     // 0 if the format of the holder's program has none
	Since time.Time // the time of the grant, on the engine's clock; on DynamoDB, on the holder's clock; unknown on ZooKeeper
	// QueuedAt is the time at which the holder joined the queue, on the engine's clock; unknown on DynamoDB. On ZooKeeper the grant
	// follows after an unknown time.
	QueuedAt time.Time
	Data     []byte // from WithData or SetData, or the data of a foreign program
	// Lease is how long the engine waits for a silent holder; 0 also if the engine waits for ever.
	Lease time.Duration
	// LastHeard is the time of the last renewal, on the holder's clock, which may be wrong: see [Holder.SeemsDead]. Only DynamoDB in
	// mode FailOpen sets it.
	LastHeard time.Time
	// Grant is the engine's name for this grant. Break and Ask use it to reach no other grant.
	Grant string
}

// SeemsDead reports whether the holder has been silent for longer than its lease at now. The result is a hint: it compares the
// holder's clock with the caller's.
func (h Holder) SeemsDead(now time.Time) bool {
	return h.Lease > 0 && !h.LastHeard.IsZero() && now.Sub(h.LastHeard) > h.Lease
}

// Info is a snapshot of a key, possibly outdated when the caller reads it.
type Info struct {
	Key    string
	Held   bool // false: all other fields but Queue and Stale are zero
	Holder      // the oldest holder
	// Holders has all holders of a shared key, the oldest grant first; nil for an exclusive lock, and in what Each yields.
	Holders []Holder
	// Shared and Limit are the mode of all holders, as in Mode.
	Shared bool
	Limit  int
	Queue  []Waiter // the waiters, the next one first, if the engine keeps a queue (ZooKeeper and memlock)
	Stale  bool     // only from Observe: the engine has been unreachable since it confirmed this state
	// Unfenced reports a grant of a foreign program whose tokens are not monotonic. Such a grant may also come back after the key was
	// free.
	Unfenced bool
}

// Each yields an Info for each grant of the key, the oldest first, without Holders and Queue. Break and Ask of such an Info reach one
// holder of several.
//
//	for grant := range info.Each() {
//		err = errors.Join(err, client.Ask(ctx, grant))
//	}
func (i Info) Each() iter.Seq[Info] {
	return func(yield func(Info) bool) {
		all := i.Holders
		if i.Held && len(all) == 0 {
			all = []Holder{i.Holder}
		}
		for _, h := range all {
			one := i
			one.Holder, one.Holders, one.Queue = h, nil, nil
			if !yield(one) {
				return
			}
		}
	}
}

// A Waiter is one waiting request.
type Waiter struct {
	Owner  string
	Since  time.Time // the beginning of the wait, on the engine's clock; zero if unknown
	Data   []byte
	Shared bool // Shared and Limit are the mode that it waits for
	Limit  int
}

// Together describes a shared key with its holders, the oldest grant first; there is at least one.
func Together(key string, limit int, holders []Holder) Info {
	return Info{Key: key, Held: true, Holder: holders[0], Shared: true, Limit: limit, Holders: holders}
}

// Same reports whether two infos of a key tell an observer the same: the holders, their grants and data, and Stale. Times and the
// queue do not count. Where tokens are monotonic they identify a grant; Grant may change when a grant is broken.
func (i Info) Same(j Info) bool {
	fenced := i.Token != 0 && !i.Unfenced && !j.Unfenced
	same := func(h, g Holder) bool {
		return h.Owner == g.Owner && h.Token == g.Token && bytes.Equal(h.Data, g.Data) && (fenced || h.Grant == g.Grant)
	}
	return i.Held == j.Held && i.Stale == j.Stale && i.Shared == j.Shared && i.Limit == j.Limit &&
		same(i.Holder, j.Holder) && slices.EqualFunc(i.Holders, j.Holders, same)
}
