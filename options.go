package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"

	"github.com/holdfast-go/holdfast/internal/backoff"
)

// An Option changes one acquisition.
type Option func(*request)

// request is an acquisition with its options applied.
type request struct {
	key     string
	owner   string // "" until the client's own is filled in
	ownerOK bool   // WithOwner was given
	data    []byte
	ttl     time.Duration
	wait    time.Duration
	waitOK  bool // WithWait was given
	reclaim bool
	shuffle bool
	shared  bool
	limit   int
	limitOK bool // WithLimit was given
	passes  bool // a try is one of many: see AcquireAny
	yield   bool // let others have the key first
	retry   *Retry
}

// WithTTL limits how long the lock may be held, from the grant on: when d has
// passed it ends with [ErrTTLExpired], for the holder first and then in the
// engine. 0, the default, is no limit. In [Client.AcquireAll] it counts from when all
// keys are held. It has nothing to do with the lease
// that shows the engine that the holder lives, which is renewed by itself.
func WithTTL(d time.Duration) Option { return func(r *request) { r.ttl = d } }

// WithOwner sets the owner name of this hold, 1 to [MaxOwner] bytes of UTF-8
// without NUL; the default is the client's.
func WithOwner(name string) Option {
	return func(r *request) { r.owner, r.ownerOK = name, true }
}

// WithData stores data, at most [MaxData] bytes ([MaxSharedData] if it is shared), with the hold, for others to
// read by [Client.Inspect]. It is copied. [Lock.SetData] replaces it.
func WithData(data []byte) Option {
	data = append([]byte(nil), data...)
	return func(r *request) { r.data = data }
}

// WithReclaim ends earlier holds and places in the queue that other clients
// have under the same owner name, with [ErrReclaimed] (which says when it may be
// [ErrBroken] instead), so that a restarted process need not wait for its own dead
// lease. A client that waits, and finds no more than that its
// place is gone, queues again. It needs [WithOwner]; the name
// must be one that no two live processes use at a time. A live hold of the
// same client is not touched: the call then fails with [ErrHeld].
func WithReclaim() Option { return func(r *request) { r.reclaim = true } }

// WithShared shares the key with others that ask for it in the same way, such as readers of
// what the key protects. It excludes those who do not, and is excluded by them: they wait
// for each other, and where the engine keeps a queue, whoever comes later waits behind
// those who wait already, whatever they wait for. Everything else is as without it. A hold
// cannot be changed from one kind to the other: release it, acquire the other, and look
// again at what the key protects. [Info.Holders] has all who share a key, [Token] says how a
// resource tells late ones.
//
// A shared hold has at most [MaxSharedData] bytes of data. On DynamoDB at most [MaxLimit]
// can share a key at a time; for those beyond it is held.
func WithShared() Option { return func(r *request) { r.shared = true } }

// WithLimit makes the key a semaphore of n permits, of which this takes one: at most n hold
// the key at a time. n is from 1 to [MaxLimit]. The engine remembers it while anybody holds
// the key or waits for it; meanwhile a call with another n, or without WithLimit, fails with
// a [*MismatchError]. On DynamoDB nothing shows that somebody waits. So once nobody holds the
// key, another call may use it in another way before a waiter looks again, and the waiter
// then fails in the same way. A permit is a [Lock] like any other, with at most [MaxSharedData] bytes of data;
// WithLimit and [WithShared] do not go together.
//
// A permit cannot be fenced. Its token tells it from others, but a greater token does not
// make a smaller one late: both may be live. Where each of n holders needs a token that
// protects, or a number of its own, let [Client.AcquireAny] take one of n keys.
func WithLimit(n int) Option { return func(r *request) { r.limit, r.limitOK = n, true } }

// WithRetry governs how transient failures of the engine are tried again, and,
// in [Client.AcquireAny] and [Client.AcquireAll], the delays between passes. The default goes on until
// the ctx of the call ends.
func WithRetry(retry Retry) Option { return func(r *request) { r.retry = &retry } }

// WithWait bounds the wait for a holder, in [Client.AcquireAll] for all of them together: when d > 0 has passed, the call fails
// with a [*HeldError], or as [Client.Acquire] says. The default is to wait until
// ctx ends. A call that does not wait, such as [Client.TryAcquire], refuses it: [ErrInvalid].
func WithWait(d time.Duration) Option {
	return func(r *request) { r.wait, r.waitOK = d, true }
}

// WithRandomOrder makes [Client.AcquireAny] try the keys in random order, anew
// on each pass. It has no meaning elsewhere.
func WithRandomOrder() Option { return func(r *request) { r.shuffle = true } }

// yielding is for a candidate that has just led.
func yielding(yes bool) Option { return func(r *request) { r.yield = yes } }

// A Retry says how often something that failed is tried again, and after what
// delays. It is a plain value: it may be used by any number of calls.
// Delays double from Initial to Max, each varied by a quarter either way but
// never more than Max. A delay may end early because the engine can be reached
// again. The try that follows does not count; there is at most one such free try for
// each that counts.
type Retry struct {
	Attempts int           // tries in all, the first included; 0: no limit
	Initial  time.Duration // first delay; 0: 100 ms
	Max      time.Duration // largest delay; 0: 5 s, or Initial if that is more
	Total    time.Duration // no try starts later than this after the first; 0: no limit

	// Delay, if set, takes the place of Initial and Max: given the number of
	// tries that have failed, it returns the delay before the next, or false
	// for none. It must not call Close.
	Delay func(attempt int) (time.Duration, bool)
}

func (r *Retry) policy() backoff.Policy {
	if r == nil {
		return backoff.Policy{}
	}
	return backoff.Policy(*r)
}

func (r *Retry) validate() error {
	switch {
	case r == nil:
		return nil
	case r.Attempts < 0:
		return driver.Invalid("Retry.Attempts", "%d is negative", r.Attempts)
	case r.Initial < 0:
		return driver.Invalid("Retry.Initial", "%v is negative", r.Initial)
	case r.Max < 0:
		return driver.Invalid("Retry.Max", "%v is negative", r.Max)
	case r.Max > 0 && r.Initial > r.Max:
		return driver.Invalid("Retry.Initial", "%v is more than Retry.Max, %v", r.Initial, r.Max)
	case r.Total < 0:
		return driver.Invalid("Retry.Total", "%v is negative", r.Total)
	}
	return nil
}

// newRequest applies opts and checks everything that can be checked without
// the engine, by the same rules for all of them.
func (c *Client) newRequest(key string, opts []Option) (*request, error) {
	r := &request{key: key}
	for _, opt := range opts {
		if opt != nil {
			opt(r)
		}
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	if err := c.checkKey(key, r.mode()); err != nil {
		return nil, err
	}
	if r.owner == "" {
		r.owner = c.owner
	}
	return r, nil
}

func (r *request) validate() error {
	if r.ownerOK {
		if err := driver.CheckOwner("owner", r.owner); err != nil {
			return err
		}
	}
	if err := checkData(r.data, r.mode()); err != nil {
		return err
	}
	switch {
	case r.limitOK && r.shared:
		return driver.Invalid("limit", "a key is a semaphore or is shared with writers: WithLimit and WithShared do not go together")
	case r.limitOK && r.limit < 1:
		return driver.Invalid("limit", "%d, at least 1 is needed", r.limit)
	case r.limit > MaxLimit:
		return driver.Invalid("limit", "%d, at most %d are allowed", r.limit, MaxLimit)
	case r.reclaim && !r.ownerOK:
		return driver.Invalid("owner", "WithReclaim needs an explicit WithOwner")
	case r.ttl < 0:
		return driver.Invalid("TTL", "%v is negative", r.ttl)
	case r.waitOK && r.wait <= 0:
		return driver.Invalid("wait", "%v is not positive; TryAcquire does not wait", r.wait)
	}
	return r.retry.validate()
}

// mode is what the engine has to know of WithShared and WithLimit.
func (r *request) mode() driver.Mode {
	return driver.Mode{Shared: r.shared || r.limitOK, Limit: r.limit}
}
