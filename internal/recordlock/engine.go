package recordlock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/task"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// Options are the settings of an engine. All are set.
type Options struct {
	Lease, Heartbeat, Poll, Timeout, RetryDelay time.Duration
	// NeverExpires: grants have no lease. Lease is the pace of checks and retries.
	NeverExpires bool
	// Late is how long after a request was given up the store may still carry it out.
	Late           time.Duration
	TrustLocalTime bool
}

const (
	maxRequests = 64               // of a client that are in flight, heartbeats and List excluded
	patient     = 30 * time.Second // the longest pause before another try of a call, however long leases are
	maxRefused  = 4                // how often a write may be refused by the record that it names
)

// Engine implements [driver.Driver].
type Engine struct {
	host   driver.Host
	store  Store
	opts   Options
	client string // begins the names of its grants
	tasks  *task.Group
	slots  chan struct{}
	pauses backoff.Policy // between the tries of a call
	count  atomic.Uint64  // numbers the holds, to spread their beats

	mu     strict.Mutex[strict.Records]
	lines  map[string]*line
	alive  map[string]claim // the grants of this client that a call or a lock has
	debts  map[string]*debt
	health health
}

// A claim is what has a grant: a call that may get it or gives it back, or a lock, which has an owner.
type claim struct{ key, owner string }

// New returns an engine on a store.
func New(host driver.Host, store Store, o Options) *Engine {
	e := &Engine{
		host: host, store: store, opts: o, client: random(ClientLen), tasks: task.NewGroup(), slots: make(chan struct{}, maxRequests),
		pauses: backoff.Policy{Initial: o.RetryDelay, Max: max(o.RetryDelay, min(o.Heartbeat, patient))},
		lines:  make(map[string]*line), alive: make(map[string]claim), debts: make(map[string]*debt),
	}
	e.count.Store(rand.Uint64())
	return e
}

// Tasks returns the group of the engine's goroutines.
func (e *Engine) Tasks() *task.Group { return e.tasks }

// CheckKey implements driver.Driver.
func (e *Engine) CheckKey(key string, mode driver.Mode) error {
	if mode.Shared && e.opts.NeverExpires {
		return driver.Invalid(mode.Option(), "where leases never expire, keys cannot be shared: the grant of a dead holder would stay")
	}
	return e.store.CheckKey(key)
}

// unsent is the error of a request that was not sent because ctx ended.
func unsent(ctx context.Context) error { return &Error{NotDone, errors.Join(errNoAnswer, ctx.Err())} }

// slot takes one of the client's slots for requests.
func (e *Engine) slot(ctx context.Context) error {
	select {
	case e.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return unsent(ctx)
	}
}

// call sends one request of the store in a slot.
func (e *Engine) call(ctx context.Context, key string, send func(context.Context) error) error {
	if err := e.slot(ctx); err != nil {
		return err
	}
	defer func() { <-e.slots }()
	return e.timed(ctx, key, e.opts.Timeout, send)
}

// timed sends one request within a time limit, and notes whether the store answered.
func (e *Engine) timed(ctx context.Context, key string, limit time.Duration, send func(context.Context) error) error {
	attempt, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sent := e.host.Now()
	err := send(attempt)
	if answered := !transient(err) && !errors.Is(err, driver.ErrDenied) || classIs(err, Busy); answered || ctx.Err() == nil {
		e.note(key, sent, answered)
	}
	return err
}

func (e *Engine) read(ctx context.Context, key string, fresh bool) (rec Record, err error) {
	err = e.call(ctx, key, func(ctx context.Context) (err error) {
		rec, err = e.store.Read(ctx, key, fresh)
		return err
	})
	return rec, err
}

func (e *Engine) swap(ctx context.Context, key string, old, next Record) (now Record, done bool, err error) {
	if old.Version == nil {
		return old, false, errAbsent
	}
	err = e.call(ctx, key, func(ctx context.Context) (err error) {
		now, done, err = e.store.Swap(ctx, key, old, next)
		return err
	})
	if err == nil {
		e.saw(key, now)
	}
	return now, done, err
}

// errSettled ends a change that has nothing left to do.
var errSettled = errors.New("settled")

// errRefused ends a write that the store refuses although it has the record that the write names.
var errRefused = fmt.Errorf("%w: the store has the record that a write names, and refuses the write", ErrCorrupt)

// change swaps the record of a key for what f returns, again with the present record if another client was faster. It begins with
// known if that is not nil. It ends when f fails, or a request does.
func (e *Engine) change(ctx context.Context, key string, known *Record, f func(Record) (next Record, err error)) (rec Record, err error) {
	if known != nil {
		rec = *known
	} else if rec, err = e.read(ctx, key, true); err != nil {
		return rec, err
	}
	for refused := 0; refused < maxRefused; {
		next, err := f(rec)
		if errors.Is(err, errSettled) {
			return rec, nil
		} else if err != nil {
			return rec, err
		}
		now, done, err := e.swap(ctx, key, rec, next)
		if err != nil || done {
			return now, err
		}
		if now.Version == rec.Version {
			refused++
		}
		rec = now
	}
	return rec, errRefused
}

// Inspect implements driver.Driver.
func (e *Engine) Inspect(ctx context.Context, key string) (info driver.Info, err error) {
	err = e.pauses.Retry(ctx, e.host, func() error {
		rec, err := e.read(ctx, key, true)
		info = rec.info(key, rec.Holders)
		return err
	})
	return info, err
}

// List implements driver.Driver.
func (e *Engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Info, error] {
	return func(yield func(driver.Info, error) bool) {
		for k, err := range e.store.List(ctx, prefix) {
			if e.tasks.Open().Err() != nil {
				err = driver.ErrClosed
			}
			if err != nil {
				yield(driver.Info{}, err)
				return
			}
			if len(k.Holders) > 0 && !yield(k.info(k.Key, k.Holders), nil) {
				return
			}
		}
	}
}
