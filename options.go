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
	retry   *Retry
}

// WithTTL limits how long the lock may be held, from the grant on: when d has
// passed it ends with [ErrTTLExpired], for the holder first and then in the
// engine. 0, the default, is no limit. It has nothing to do with the lease
// that shows the engine that the holder lives, which is renewed by itself.
func WithTTL(d time.Duration) Option { return func(r *request) { r.ttl = d } }

// WithOwner sets the owner name of this hold, 1 to [MaxOwner] bytes of UTF-8
// without NUL; the default is the client's.
func WithOwner(name string) Option {
	return func(r *request) { r.owner, r.ownerOK = name, true }
}

// WithData stores data, at most [MaxData] bytes, with the hold, for others to
// read by [Client.Inspect]. It is copied.
func WithData(data []byte) Option { return func(r *request) { r.data = append([]byte(nil), data...) } }

// WithReclaim ends earlier holds and places in the queue that other clients
// have under the same owner name, with [ErrReclaimed] (which says when it may be
// [ErrBroken] instead), so that a restarted process need not wait for its own dead
// lease. A place of which no more is known than that it is gone queues again. It needs [WithOwner]; the name
// must be one that no two live processes use at a time. A live hold of the
// same client is not touched: the call then fails with [ErrHeld].
func WithReclaim() Option { return func(r *request) { r.reclaim = true } }

// WithRetry governs how transient failures of the engine are tried again, and,
// in [Client.AcquireAny], the delays between passes. The default goes on until
// the ctx of the call ends.
func WithRetry(retry Retry) Option { return func(r *request) { r.retry = &retry } }

// WithWait bounds the wait for a holder: when d > 0 has passed, the call fails
// with a [*HeldError], or as [Client.Acquire] says. The default is to wait until
// ctx ends.
func WithWait(d time.Duration) Option {
	return func(r *request) { r.wait, r.waitOK = d, true }
}

// WithRandomOrder makes [Client.AcquireAny] try the keys in random order, anew
// on each pass. It has no meaning elsewhere.
func WithRandomOrder() Option { return func(r *request) { r.shuffle = true } }

// A Retry says how often something that failed is tried again, and after what
// delays. It is a plain value: it may be used by any number of calls.
// Delays double from Initial to Max, each varied by a quarter either way but
// never more than Max.
type Retry struct {
	Attempts int           // tries in all, the first included; 0: no limit
	Initial  time.Duration // first delay; 0: 100 ms
	Max      time.Duration // largest delay; 0: 5 s, or Initial if that is more
	Total    time.Duration // no try starts later than this after the first; 0: no limit

	// Delay, if set, takes the place of Initial and Max: given the number of
	// tries that have failed, it returns the delay before the next, or false
	// for none.
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
	if err := c.checkKey(key); err != nil {
		return nil, err
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	if r.owner == "" {
		r.owner = c.owner
	}
	return r, nil
}

func (r *request) validate() error {
	if r.ownerOK {
		if err := CheckOwner("owner", r.owner); err != nil {
			return err
		}
	}
	switch {
	case r.reclaim && !r.ownerOK:
		return driver.Invalid("owner", "WithReclaim needs an explicit WithOwner")
	case len(r.data) > MaxData:
		return driver.Invalid("data", "%d bytes, at most %d are allowed", len(r.data), MaxData)
	case r.ttl < 0:
		return driver.Invalid("TTL", "%v is negative", r.ttl)
	case r.waitOK && r.wait <= 0:
		return driver.Invalid("wait", "%v is not positive; TryAcquire does not wait", r.wait)
	}
	return r.retry.validate()
}
