package holdfast

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// A Backend is one client's connection to an engine. It grants, verifies,
// releases, inspects, lists and breaks; everything that must be the same on
// every engine is done by [Locker]. It is of interest to authors of engines
// only: users call zklock.Dial, dynamolock.New or memlock.New.
//
// All methods may be called at the same time. None is called before the open
// function of [New] has returned; after Close only List may be, and then fails
// with ErrClosed. Input has been validated.
type Backend interface {
	// CheckKey refuses keys that the engine cannot take, beyond the portable
	// rules of [CheckKey] or, with Config.AnyKey, instead of them, with an
	// [*InvalidError]. It sends nothing.
	CheckKey(key string) error

	// Acquire takes the key, or fails.
	//  1. When ctx ends it returns at once, also if the engine does not
	//      answer, and sees to it in the background that nothing stays behind.
	//  2. Its error then says what it was waiting for: a [*HeldError] or
	//      something that matches ErrDisconnected.
	//  3. With req.Wait unset, it does not wait for another holder but returns
	//      a [*HeldError] that describes it.
	//  4. It passes each transient failure to req.Again.
	//  5. It never returns a grant of which the engine knows nothing, and
	//      never leaves one in the engine that was not returned.
	//  6. If the engine has a queue, it tells req.Queued how many are ahead of
	//      the request, the holder included, when a request that waits has
	//      learned that there are any: at each entry, and whenever it looks again.
	Acquire(ctx context.Context, req *Request) (Grant, error)

	// Inspect describes a key. A key that nobody holds is no error.
	Inspect(ctx context.Context, key string) (Info, error)

	// List describes the keys that begin with prefix and are held or waited for.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Break removes the grant that info describes, and no other; [ErrChanged]
	// if it is not there any more.
	Break(ctx context.Context, info Info) error

	// Close ends the session, or the heartbeats; Release has been called and has
	// returned for all holds (but see Ender), and all calls have returned. It leaves
	// no goroutine behind. ctx, which may never end, bounds the wait for the engine's
	// confirmation; so does the end of all leases of what may be left.
	Close(ctx context.Context) error
}

// An Ender is a Backend that can give back in one step all that its client has, as
// by ending a session. Where it can, [Locker.Close] does not release each hold.
type Ender interface {
	// EndSession gives back all that the client has in the engine. All locks have
	// ended for their holders; calls of Release may be under way, and are given up when
	// it has returned. Then Close is called.
	//  1. It returns nil only if the engine has confirmed it, or nothing was left.
	//  2. It goes on trying while the engine cannot be reached, and returns soon after
	//      the end of ctx, having sent what it can by then.
	//  3. Its error says what was not confirmed.
	EndSession(ctx context.Context) error
}

// A Request is what a Backend is asked to acquire.
type Request struct {
	Key     string
	Owner   string
	Data    []byte
	Wait    bool // wait for the present holder
	Reclaim bool // end other clients' grants and places under the same Owner

	// Again is told of a transient failure. It returns nil after the delay that
	// the user's [Retry] asks for, or sooner when wake closes (nil never does),
	// if there is to be another try; otherwise the error to return.
	Again func(ctx context.Context, err error, wake <-chan struct{}) error

	// Queued is to be called as the sixth obligation of Acquire says, and not
	// after Acquire has returned. It never blocks.
	Queued func(ahead int)

	// Lose is to be called when the grant is found to have ended in the engine:
	// cause is ErrBroken, ErrReclaimed, ErrTakenOver or the like. It never
	// blocks, may be called from anywhere, also before Acquire has returned,
	// and counts only once.
	Lose func(cause error)
}

// A Grant is a key that the engine has given to this client.
type Grant struct {
	Token Token
	Lease *Lease // what its validity rests on; may be shared by many grants
	Hold  Hold
}

// A Hold is a Backend's side of one granted lock.
type Hold interface {
	// Verify asks the engine whether the grant stands. It returns nil, an error
	// that matches one of the causes of ErrLost, or whatever kept it from
	// finding out.
	Verify(ctx context.Context) error

	// Release gives the key back, and is called exactly once, however the hold
	// ended. It tries until the engine has confirmed, the grant is known to be
	// gone, or ctx ends, which is when the client is done closing. It returns
	// nil, ErrLost if the grant turned out to have been gone already, or what
	// kept it from finding out. It never touches another holder's grant.
	Release(ctx context.Context) error
}

// Config is what a [Locker] needs to know of its client. Engines fill it from
// their own Options.
type Config struct {
	Owner  string        // default owner name; "": host:pid:random
	Margin time.Duration // see [Host.NewLease]; 0: max(50 ms, lease/20)
	Logger *slog.Logger  // nil: silent
	Hooks  Hooks
	// AbsoluteKeys allows keys that start with a slash; what they mean is up to
	// the engine.
	AbsoluteKeys bool
	// AnyKey leaves it to the engine alone what a key is, and the beginning of one:
	// the portable rules are not applied, but that a key is not empty.
	AnyKey bool
	// Clock is set by this module's own tests; nil is the machine's clock.
	Clock clock.Clock
}

// A Host is a Locker as its Backend sees it: what the engine reports to.
type Host struct {
	clock  clock.Clock
	margin time.Duration
	log    *slog.Logger
	feed   *feed
	owner  string
}

// Logger never returns nil.
func (h *Host) Logger() *slog.Logger { return h.log }

// Owner is the client's default owner name.
func (h *Host) Owner() string { return h.owner }

// Now reads the clocks, for [Lease.Renew].
func (h *Host) Now() Instant { return Instant{h.clock.Now()} }

// AfterFunc runs f when d has passed, as [time.AfterFunc] does, on the clock
// that the whole client uses.
func (h *Host) AfterFunc(d time.Duration, f func()) interface{ Stop() bool } {
	return h.clock.AfterFunc(d, f)
}

// HoldOf returns the Hold of a lock that this client was granted; nil for another
// client's.
func (h *Host) HoldOf(lock *Lock) Hold {
	if lock.locker.feed != h.feed {
		return nil
	}
	return lock.hold
}

// SetConnected tells whether the engine can be reached. The first report, and
// each one that differs from the last, becomes an event.
func (h *Host) SetConnected(connected bool) { h.feed.setConnected(connected) }

// Heartbeat tells what came of a request that was to keep a lease alive and was
// sent at sent: err is why it failed, nil if it was acknowledged. key is that of the
// lock, or "" if the lease is for all locks of a session. It is to be called once per
// request, when the outcome is known, and not for what was called off since nothing
// is left to be kept alive. It never blocks.
func (h *Host) Heartbeat(key string, sent Instant, err error) { h.feed.heartbeat(key, sent.Mono, err) }

// Instant is a moment on the monotonic and the wall clock of the client.
type Instant struct{ clock.Instant }

// Sub returns the time from u to i on the monotonic clock.
func (i Instant) Sub(u Instant) time.Duration { return i.Mono.Sub(u.Mono) }

// Margin returns the part of a lease that is given up for the drift between
// the clocks of holder and engine: the one configured, or max(50 ms, lease/20);
// at most half the lease either way.
func (h *Host) Margin(lease time.Duration) time.Duration {
	margin := h.margin
	if margin == 0 {
		margin = max(50*time.Millisecond, lease/20)
	}
	return min(margin, lease/2)
}

// New makes the Locker of one client. It calls open once, which connects to
// the engine and returns the Backend; if that fails, so does New.
func New(config Config, open func(*Host) (Backend, error)) (*Locker, error) {
	if config.Owner == "" {
		config.Owner = defaultOwner()
	}
	if err := CheckOwner("Options.Owner", config.Owner); err != nil {
		return nil, err
	}
	if config.Margin < 0 {
		return nil, Invalid("Options.Margin", "%v is negative", config.Margin)
	}
	if config.Clock == nil {
		config.Clock = clock.Real{}
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	f := newFeed(config.Clock, config.Logger, config.Hooks)
	host := &Host{
		clock:  config.Clock,
		margin: config.Margin,
		log:    config.Logger,
		feed:   f,
		owner:  config.Owner,
	}
	backend, err := open(host)
	if err != nil {
		f.close()
		return nil, err
	}
	if backend == nil {
		return nil, fmt.Errorf("holdfast: open returned no backend")
	}
	return newLocker(config, host, backend), nil
}
