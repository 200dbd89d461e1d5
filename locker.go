package holdfast

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// A Locker is one client of one engine: what the Client of zklock,
// dynamolock and memlock embeds. All its methods may be used from any goroutine.
type Locker struct {
	backend  Backend
	clock    clock.Clock
	log      *slog.Logger
	feed     *feed
	owner    string
	absolute bool
	anyKey   bool

	// closing ends waiters when Close begins; background ends deliveries when
	// Close gives up on them.
	closing    context.Context
	close      context.CancelCauseFunc
	background context.Context
	giveUp     context.CancelCauseFunc

	mu         sync.Mutex
	held       map[*Lock]struct{} // live
	ours       map[*Lock]struct{} // live, or ended and not known to be given back
	left       []*Lock            // ended since Close began, which gives them back
	closed     bool
	calls      sync.WaitGroup // calls that may end in a grant or use the backend
	ends       sync.WaitGroup // registered locks that have not ended
	deliveries sync.WaitGroup // goroutines that give back a lock

	closeDone chan struct{}
	closeErr  error
}

func newLocker(config Config, host *Host, backend Backend) *Locker {
	l := &Locker{
		backend:   backend,
		clock:     config.Clock,
		log:       config.Logger,
		feed:      host.feed,
		owner:     config.Owner,
		absolute:  config.AbsoluteKeys,
		anyKey:    config.AnyKey,
		held:      make(map[*Lock]struct{}),
		ours:      make(map[*Lock]struct{}),
		closeDone: make(chan struct{}),
	}
	l.closing, l.close = context.WithCancelCause(context.Background())
	l.background, l.giveUp = context.WithCancelCause(context.Background())
	return l
}

// defaultOwner is unique per client, and tells an operator where to look.
func defaultOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	host = host[:min(len(host), 200)]
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), rand.Text()[:10])
}

// Owner returns the client's default owner name.
func (l *Locker) Owner() string { return l.owner }

// Events subscribes to what happens to this client and its locks, from now on.
// After Close it returns a subscription that has ended already.
func (l *Locker) Events() *Events { return l.feed.subscribe() }

// Inspect describes a key as the engine knows it. A key that nobody holds is
// no error: Held is false.
func (l *Locker) Inspect(ctx context.Context, key string) (Info, error) {
	fail := func(err error) (Info, error) {
		return Info{}, fmt.Errorf("holdfast: inspect %q: %w", clip(key), err)
	}
	if err := l.checkKey(key); err != nil {
		return fail(err)
	}
	ctx, done, err := l.enter(ctx)
	if err != nil {
		return fail(err)
	}
	defer done()
	info, err := l.backend.Inspect(ctx, key)
	if err != nil {
		return fail(l.explain(ctx, err))
	}
	return info, nil
}

// List yields the keys that begin with prefix and are held or waited for. The
// empty prefix is for all. It is not a snapshot of one moment. The last pair
// has the error, if there is one.
func (l *Locker) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		fail := func(err error) {
			yield(Info{}, fmt.Errorf("holdfast: list %q: %w", clip(prefix), err))
		}
		if err := l.checkPrefix(prefix); err != nil {
			fail(err)
			return
		}
		// It is not counted in: the loop's body may close the client.
		ctx, done, err := l.bind(ctx)
		if err != nil {
			fail(err)
			return
		}
		defer done()
		for info, err := range l.backend.List(ctx, prefix) {
			if err != nil {
				fail(l.explain(ctx, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

// Break removes the grant that info describes, as returned by Inspect or List
// or in a HeldError, and no other: [ErrChanged] if it is gone by now. It is for
// operators: the holder is told, but may act on the lock until it is. Only
// fencing covers that gap.
func (l *Locker) Break(ctx context.Context, info Info) error {
	fail := func(err error) error {
		return fmt.Errorf("holdfast: break %q: %w", clip(info.Key), err)
	}
	if err := l.checkKey(info.Key); err != nil {
		return fail(err)
	}
	if !info.Held || info.Grant == "" {
		return fail(Invalid("info", "it describes no grant"))
	}
	ctx, done, err := l.enter(ctx)
	if err != nil {
		return fail(err)
	}
	defer done()
	if err := l.backend.Break(ctx, info); err != nil {
		return fail(l.explain(ctx, err))
	}
	l.log.Info("lock broken", "key", info.Key, "owner", info.Owner, "token", uint64(info.Token))
	return nil
}

// enter begins a call that Close is to wait for.
func (l *Locker) enter(ctx context.Context) (context.Context, func(), error) {
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.calls.Add(1)
	}
	l.mu.Unlock()
	if closed {
		return nil, nil, ErrClosed
	}
	ctx, done, err := l.bind(ctx)
	if err != nil {
		l.calls.Done()
		return nil, nil, err
	}
	return ctx, func() { done(); l.calls.Done() }, nil
}

// bind adds the closing of the client to a context that is not done yet.
func (l *Locker) bind(ctx context.Context) (context.Context, func(), error) {
	if l.closing.Err() != nil {
		return nil, nil, ErrClosed
	}
	if ctx.Err() != nil {
		return nil, nil, contextError(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.closing, func() { cancel(ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }, nil
}

// explain adds to an error of the backend that the call's ctx, or the client,
// has ended, so that it matches both.
func (l *Locker) explain(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if errors.Is(context.Cause(ctx), ErrClosed) {
		return ErrClosed
	}
	ended := contextError(ctx)
	switch {
	case err == nil || errors.Is(ended, err):
		return ended
	case errors.Is(err, ended):
		return err
	}
	return fmt.Errorf("%w: %w", ended, err)
}

func (l *Locker) checkPrefix(prefix string) error {
	if prefix == "" || l.anyKey || (l.absolute && prefix == "/") {
		return nil
	}
	portable := prefix
	if l.absolute && portable[0] == '/' {
		portable = portable[1:]
	}
	last := portable[strings.LastIndexByte(portable, '/')+1:]
	switch last {
	case "": // the prefix ends with a slash
		portable = strings.TrimSuffix(portable, "/")
	case ".", "..": // the beginning of an element such as ".hidden"
		portable += "-"
	}
	return CheckKey("prefix", portable)
}

// register notes a lock that is about to be live, so that whatever ends it
// finds it noted.
func (l *Locker) register(k *Lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[k] = struct{}{}
	l.ours[k] = struct{}{}
	l.ends.Add(1)
}

// ended takes a lock out of those that are live and gives its key back, whatever its
// end was: a lock that ended by the holder's clock may still stand in the engine.
func (l *Locker) ended(k *Lock) {
	defer l.ends.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, k)
	if l.closed {
		l.left = append(l.left, k)
		return
	}
	l.deliveries.Go(func() { l.deliver(k) })
}

// deliver gives back a lock that has ended.
func (l *Locker) deliver(k *Lock) {
	err := k.hold.Release(l.background)
	if err != nil && !errors.Is(err, ErrLost) && context.Cause(l.background) == errSessionEnded {
		err = nil // it went with the session
	}
	l.delivered(k, err)
}

// delivered notes what has come of giving back a lock.
func (l *Locker) delivered(k *Lock, err error) {
	k.deliver(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ours, k)
}

// holds reports whether this client has a live lock on key under owner.
func (l *Locker) holds(key, owner string) bool {
	l.mu.Lock()
	var found []*Lock
	for k := range l.held {
		if k.key == key && k.owner == owner {
			found = append(found, k)
		}
	}
	l.mu.Unlock()
	for _, k := range found {
		if k.Err() == nil {
			return true
		}
	}
	return false
}

// clip keeps a key that may be of any size out of error texts.
func clip(key string) string {
	const most = 80
	if len(key) <= most {
		return key
	}
	return key[:most] + "..."
}
