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
	yield   bool // a candidate has just led: other waiters come first
	retry   backoff.Policy
	retryOK bool
}

// WithTTL limits how long the lock is held: after d it ends with [ErrTTLExpired], for the holder first and then in the engine. 0,
// the default, is no limit. In [Client.AcquireAll] it begins when all keys are held. The TTL is independent of the lease, which
// renews itself.
func WithTTL(d time.Duration) Option { return func(r *request) { r.ttl = d } }

// WithOwner sets the owner name of this hold, 1 to [MaxOwner] bytes of UTF-8 without NUL; the default is the client's.
func WithOwner(name string) Option {
	return func(r *request) { r.owner, r.ownerOK = name, true }
}

// WithData stores data with the hold, at most [MaxData] bytes, [MaxSharedData] if the hold is shared. [Client.Inspect] shows it,
// [Lock.SetData] replaces it.
func WithData(data []byte) Option {
	data = append([]byte(nil), data...)
	return func(r *request) { r.data = data }
}

// WithReclaim ends earlier holds and places in the queue of other clients with the same owner name, with [ErrReclaimed], so that a
// restarted process need not wait for its own dead lease. It needs [WithOwner], with a name that no two live processes use at a
// time. If the same client holds the key, the call fails with [ErrHeld].
func WithReclaim() Option { return func(r *request) { r.reclaim = true } }

// WithShared shares the key with others that use WithShared, such as readers, and excludes all others. Where the engine keeps a
// queue, a later request waits behind the earlier ones, whatever their mode. A hold cannot change its mode: release it and acquire
// again. [Info.Holders] has all who share a key; [Token] says how a resource detects late ones.
//
// A shared hold has at most [MaxSharedData] bytes of data. On DynamoDB at most [MaxLimit] share a key at a time.
func WithShared() Option { return func(r *request) { r.shared = true } }

// WithLimit takes one of n permits: at most n hold the key at a time. n is from 1 to [MaxLimit], and the same for all. Another n, a
// reader or a lock excludes permits and is excluded by them. It waits in its turn, and later requests wait behind it even while
// permits are free; the wait is logged. So a program that holds a permit and asks for a second one can wait for ever, and an
// [Election] for the key keeps permits out while it leads. On ZooKeeper, Curator's and kazoo's semaphores are separate: a fleet that
// mixes them with permits has up to 2n holders. A permit is a [Lock] like any other, with at most [MaxSharedData] bytes of data;
// WithLimit and [WithShared] do not go together.
//
// A permit cannot be fenced. Its token tells it from others, but a greater token does not make a smaller one late: both may be
// live. Where each of n holders needs a token that protects, or a number of its own, let [Client.AcquireAny] take one of n keys.
func WithLimit(n int) Option { return func(r *request) { r.limit, r.limitOK = n, true } }

// WithRetry sets how transient failures of the engine are retried, and the delays between passes of [Client.AcquireAny] and
// [Client.AcquireAll]. The default retries until ctx ends.
func WithRetry(retry Retry) Option {
	return func(r *request) { r.retry, r.retryOK = backoff.Policy(retry), true }
}

// WithWait bounds the wait for holders, in [Client.AcquireAll] for all together. See [Client.Acquire] for the error. The default
// is to wait until ctx ends. Calls that do not wait, such as [Client.TryAcquire], refuse it.
func WithWait(d time.Duration) Option { return func(r *request) { r.wait, r.waitOK = d, true } }

// WithRandomOrder makes [Client.AcquireAny] try the keys in random order, anew in each pass.
func WithRandomOrder() Option { return func(r *request) { r.shuffle = true } }

// A Retry says how often a failure is retried, and after what delays. Delays double from Initial to Max, each varied by a quarter.
// A delay may end early because the engine is reachable again; that try does not count, once per try that counts.
type Retry struct {
	Attempts int           // tries in all, the first included; 0: no limit
	Initial  time.Duration // first delay; 0: 100 ms
	Max      time.Duration // largest delay; 0: 5 s, or Initial if that is more
	Total    time.Duration // no try starts later than this after the first; 0: no limit

	// Delay, if set, replaces Initial and Max: it returns the delay after a number of failed tries, or false to stop. It must not
	// call Close.
	Delay func(attempt int) (time.Duration, bool)
}

func (r Retry) validate() error {
	switch {
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

// newRequest applies opts and checks everything that can be checked without the engine, by the same rules for all of them.
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
		r.owner = c.config.Owner
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
	return Retry(r.retry).validate()
}

// mode is what the engine has to know of WithShared and WithLimit.
func (r *request) mode() driver.Mode {
	return driver.Mode{Shared: r.shared || r.limitOK, Limit: r.limit}
}
