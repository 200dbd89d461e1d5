package holdfast

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// EventKind says what an [Event] reports.
type EventKind int

// The kinds of events, one for each channel of [Events].
const (
	Ready        EventKind = iota + 1 // the engine can be reached
	Disconnected                      // it cannot; locks live on until their Deadline
	TTLExpired                        // a lock of this client reached its TTL
	Lost                              // a lock of this client was lost
	Asked                             // somebody has asked for a lock of this client
)

// String returns the name of the kind in lower case.
func (k EventKind) String() string {
	switch k {
	case Ready:
		return "ready"
	case Disconnected:
		return "disconnected"
	case TTLExpired:
		return "ttl expired"
	case Lost:
		return "lost"
	case Asked:
		return "asked"
	}
	return "unknown"
}

// An Event is something that happened to a client or to one of its locks.
type Event struct {
	Seq  uint64 // counts the events of the client, from 1
	Kind EventKind
	Time time.Time // when it happened, on the client's clock

	// Of the lock; zero for Ready and Disconnected.
	Key   string
	Owner string
	Token Token
	Err   error // what Lock.Err returns
}

// Events is a subscription to what happens to one client and its locks, made
// by [Client.Events].
//
// Ready and Disconnected are a state: at most one of the two is unread at any
// time, and a newer one replaces it. The state of the moment is delivered at
// once. TTLExpired, Lost and Asked are facts: each arrives, in order, however slow the
// reader; what is unread is kept in memory. A slow reader never holds up the client.
//
// The channels of events are never closed, so that a select over them cannot spin.
// [Events.Done] closes when the subscription or its client is closed.
type Events struct {
	feed *feed

	ready, disconnected     chan Event // state; capacity 1, one of them full at most
	ttlExpired, lost, asked *queue

	done chan struct{}
	once sync.Once
}

// Ready delivers an event when the engine has become reachable.
func (e *Events) Ready() <-chan Event { return e.orEnded().ready }

// Disconnected delivers an event when the engine has become unreachable.
func (e *Events) Disconnected() <-chan Event { return e.orEnded().disconnected }

// TTLExpired delivers an event for each lock that reached its TTL.
func (e *Events) TTLExpired() <-chan Event { return e.orEnded().ttlExpired.out }

// Lost delivers an event for each lock that was lost for another reason.
func (e *Events) Lost() <-chan Event { return e.orEnded().lost.out }

// Asked delivers an event for each lock for which somebody has asked: see [Lock.Asked]. Its
// Err is nil, as the lock lives on.
func (e *Events) Asked() <-chan Event { return e.orEnded().asked.out }

// Done returns a channel that is closed when the subscription has ended, by its own
// Close or by that of the client. Nothing is delivered after that.
func (e *Events) Done() <-chan struct{} { return e.orEnded().done }

// Close ends the subscription: Done closes, and unread events are dropped. Closing the
// client does the same. Further calls do nothing.
func (e *Events) Close() {
	if e = e.orEnded(); e != noEvents {
		e.feed.remove(e)
		e.stop()
	}
}

// noEvents stands for a subscription that no client has made: its channels are closed.
var noEvents = func() *Events {
	e := &Events{ready: make(chan Event), done: make(chan struct{})}
	close(e.ready)
	close(e.done)
	q := &queue{out: e.ready}
	e.disconnected, e.ttlExpired, e.lost, e.asked = e.ready, q, q, q
	return e
}()

func (e *Events) orEnded() *Events {
	if e == nil || e.feed == nil {
		return noEvents
	}
	return e
}

func (e *Events) stop() {
	e.once.Do(func() {
		e.ttlExpired.close()
		e.lost.close()
		e.asked.close()
		e.clearState()
		close(e.done)
	})
}

// setState replaces what is unread. The feed's mutex makes it the only writer.
func (e *Events) setState(event Event) {
	e.clearState()
	if event.Kind == Ready {
		e.ready <- event
	} else {
		e.disconnected <- event
	}
}

func (e *Events) clearState() {
	for _, ch := range []chan Event{e.ready, e.disconnected} {
		select {
		case <-ch:
		default:
		}
	}
}

// feed numbers a client's events and gives them to its subscribers and hooks.
type feed struct {
	clock  driver.Clock
	log    *slog.Logger
	silent bool // nobody gave a logger
	hooks  Hooks
	calls  *pump[func()] // of hooks
	logs   *pump[func()] // of what cannot be logged where it is learned

	mu           strict.Mutex[strict.Feed]
	seq          uint64
	acquisitions uint64        // numbered for hooks
	state        Event         // the last Ready or Disconnected; zero before the first
	connection   chan struct{} // closed by Disconnected, replaced by the next Ready
	subs         map[*Events]struct{}
	quiet        bool // the client is closing: changes of the connection are no events
	closed       bool
}

func newFeed(c driver.Clock, log *slog.Logger, hooks Hooks) *feed {
	return &feed{
		clock: c, log: log, silent: log.Handler() == slog.DiscardHandler,
		hooks: hooks, calls: newRunner(), logs: newRunner(), subs: make(map[*Events]struct{}), connection: make(chan struct{}),
	}
}

func (f *feed) subscribe() *Events {
	e := &Events{
		feed:         f,
		ready:        make(chan Event, 1),
		disconnected: make(chan Event, 1),
		ttlExpired:   newQueue(),
		lost:         newQueue(),
		asked:        newQueue(),
		done:         make(chan struct{}),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		e.stop()
		return e
	}
	f.subs[e] = struct{}{}
	if f.state.Kind != 0 {
		e.setState(f.state)
	}
	return e
}

func (f *feed) remove(e *Events) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, e)
}

// stampLocked numbers an event.
func (f *feed) stampLocked(event Event) Event {
	f.seq++
	event.Seq = f.seq
	event.Time = f.clock.Now().Mono
	return event
}

func (f *feed) setConnected(connected bool) {
	kind := Disconnected
	if connected {
		kind = Ready
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.quiet || f.closed || f.state.Kind == kind {
		return
	}
	switch {
	case !connected:
		close(f.connection)
	case f.state.Kind == Disconnected:
		f.connection = make(chan struct{})
	}
	f.state = f.stampLocked(Event{Kind: kind})
	for e := range f.subs {
		e.setState(f.state)
	}
	callLocked(f, f.hooks.Connection, Connection{Time: f.state.Time, Ready: connected})
	f.logState(connected)
}

// connected returns a channel that is closed when the engine becomes unreachable, or is so now.
func (f *feed) connected() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.connection
}

// logState logs on a goroutine: engines report from under their locks, and a user's
// handler may do anything, also when it is asked whether it is enabled.
func (f *feed) logState(connected bool) {
	level, text := slog.LevelWarn, "disconnected"
	if connected {
		level, text = slog.LevelInfo, "connected"
	}
	if !f.silent {
		f.logs.push(func() { f.log.Log(context.Background(), level, text) })
	}
}

// ended reports the end of a lock; kind is 0 if it is none that events are for.
func (f *feed) ended(kind EventKind, k *Lock, err error) {
	if kind == 0 && f.hooks.Ended == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	event := Event{Kind: kind, Key: k.key, Owner: k.owner, Token: k.token, Err: err}
	switch kind {
	case 0:
		event.Time = f.clock.Now().Mono
	case TTLExpired:
		event = f.stampLocked(event)
		for e := range f.subs {
			e.ttlExpired.push(event)
		}
	default:
		event = f.stampLocked(event)
		for e := range f.subs {
			e.lost.push(event)
		}
	}
	callLocked(f, f.hooks.Ended, Ending{
		ID: k.id, Time: event.Time, Key: k.key, Owner: k.owner, Token: k.token, Held: event.Time.Sub(k.grantedAt), Err: err,
	})
}

// closing keeps the end of the connection from being an event.
func (f *feed) closing() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.quiet = true
}

func (f *feed) close() {
	f.mu.Lock()
	f.closed = true
	subs := f.subs
	f.subs = nil
	f.mu.Unlock()
	for e := range subs {
		e.stop()
	}
	f.calls.wait()
	f.logs.wait()
}

// logEnd logs the end of a lock.
func (k *Lock) logEnd(err error) {
	log := k.client.log
	switch {
	case errors.Is(err, ErrReleased):
		log.Debug("lock released", "key", k.key, "owner", k.owner, "token", uint64(k.token))
	case errors.Is(err, ErrTTLExpired):
		log.Warn("lock reached its TTL", "key", k.key, "owner", k.owner, "token", uint64(k.token))
	default:
		log.Warn("lock lost", "key", k.key, "owner", k.owner, "token", uint64(k.token), "error", err)
	}
}
