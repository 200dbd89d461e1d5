package holdfast

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/queue"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// A feed numbers the events of a client and delivers them to its subscribers and to OnEvent.
type feed struct {
	clock   driver.Clock
	onEvent *queue.Pump[Event] // nil without OnEvent
	logs    *queue.Pump[func()]
	ids     atomic.Uint64 // of acquisitions

	mu         strict.Mutex[strict.Feed]
	seq        uint64
	state      Event         // the last Ready or Disconnected; zero before the first
	connection chan struct{} // closed by Disconnected, replaced by the next Ready
	subs       map[*Events]struct{}
	quiet      bool // the client is closing: the connection is not reported any more
	closed     bool
}

func newFeed(clock driver.Clock, onEvent func(Event)) *feed {
	f := &feed{clock: clock, logs: queue.NewPump(func(f func()) { f() }), subs: make(map[*Events]struct{}), connection: make(chan struct{})}
	if onEvent != nil {
		f.onEvent = queue.NewPump(onEvent)
	}
	return f
}

func (f *feed) subscribe() *Events {
	e := &Events{
		feed:         f,
		ready:        make(chan Event, 1),
		disconnected: make(chan Event, 1),
		ttlExpired:   queue.NewChan[Event](),
		lost:         queue.NewChan[Event](),
		asked:        queue.NewChan[Event](),
		done:         make(chan struct{}),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		e.stop()
		return e
	}
	f.subs[e] = struct{}{}
	e.deliver(f.state)
	return e
}

// emit dates, numbers and delivers an event, and returns its time. since, if set, is the beginning of Took.
func (f *feed) emit(event Event, since time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.emitLocked(event, since).Time
}

func (f *feed) emitLocked(event Event, since time.Time) Event {
	event.Time = f.clock.Now().Mono
	if !since.IsZero() {
		event.Took = event.Time.Sub(since)
	}
	if f.closed {
		return event
	}
	f.seq++
	event.Seq = f.seq
	for e := range f.subs {
		e.deliver(event)
	}
	if f.onEvent != nil {
		f.onEvent.Push(event)
	}
	return event
}

// setConnected reports whether the engine is reachable, and whether that is news.
func (f *feed) setConnected(connected bool) (changed bool) {
	kind := Disconnected
	if connected {
		kind = Ready
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.quiet || f.closed || f.state.Kind == kind {
		return false
	}
	switch {
	case !connected:
		close(f.connection)
	case f.state.Kind == Disconnected:
		f.connection = make(chan struct{})
	}
	f.state = f.emitLocked(Event{Kind: kind}, time.Time{})
	return true
}

// connected returns a channel that is closed while the engine is unreachable.
func (f *feed) connected() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.connection
}

// closing stops reports of the connection: its end by Close is no outage.
func (f *feed) closing() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.quiet = true
}

func (f *feed) close() {
	f.mu.Lock()
	f.closed = true
	subs := slices.Collect(maps.Keys(f.subs))
	f.subs = nil
	f.mu.Unlock()
	for _, e := range subs {
		e.stop()
	}
	if f.onEvent != nil {
		f.onEvent.Close()
	}
	f.logs.Close()
}

// A logHandler passes records to the user's handler on a goroutine of the feed, so a handler may block or call the client.
type logHandler struct {
	slog.Handler
	logs *queue.Pump[func()]
}

func (f *feed) logger(log *slog.Logger) *slog.Logger {
	if log.Handler() == slog.DiscardHandler {
		return log
	}
	return slog.New(logHandler{log.Handler(), f.logs})
}

func (logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h logHandler) Handle(ctx context.Context, record slog.Record) error {
	h.logs.Push(func() {
		if h.Handler.Enabled(ctx, record.Level) {
			_ = h.Handler.Handle(ctx, record)
		}
	})
	return nil
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs), h.logs}
}

func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name), h.logs}
}

// An acquisition is one call that Started reports.
type acquisition struct {
	feed  *feed
	began time.Time
	event Event // the fields that all its events have
	over  bool  // Granted or Failed was reported; guarded by feed.mu
}

// started reports a call that has begun. The caller defers failed(errUnwound).
func (f *feed) started(key string, r *request, wait bool) *acquisition {
	a := &acquisition{feed: f, event: Event{Kind: Started, ID: f.ids.Add(1), Key: key, Owner: r.owner, Wait: wait}}
	a.began = f.emit(a.event, time.Time{})
	return a
}

// queued reports a place in the queue, unless the acquisition is over.
func (a *acquisition) queued(key string, ahead int) {
	a.feed.mu.Lock()
	defer a.feed.mu.Unlock()
	if !a.over {
		a.feed.emitLocked(Event{Kind: Queued, ID: a.event.ID, Key: key, Owner: a.event.Owner, Ahead: ahead}, time.Time{})
	}
}

// granted reports the grant. It is called before anything can end the lock.
func (a *acquisition) granted(k *Lock) {
	event := a.event
	event.Kind, event.Key, event.Token = Granted, k.key, k.token
	k.id, k.grantedAt = event.ID, a.finish(event)
}

// failed reports the error that the call returns, unless the acquisition is over.
func (a *acquisition) failed(err error) {
	event := a.event
	event.Kind, event.Err = Failed, err
	a.finish(event)
}

// finish reports the outcome of the acquisition, once, and returns its time.
func (a *acquisition) finish(event Event) (at time.Time) {
	a.feed.mu.Lock()
	defer a.feed.mu.Unlock()
	if !a.over {
		a.over = true
		at = a.feed.emitLocked(event, a.began).Time
	}
	return at
}

// event returns an event about the lock.
func (k *Lock) event(kind EventKind, err error) Event {
	return Event{Kind: kind, ID: k.id, Key: k.key, Owner: k.owner, Token: k.token, Err: err}
}
