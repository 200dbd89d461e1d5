package holdfast

import (
	"sync"

	"github.com/holdfast-go/holdfast/internal/queue"
)

// Events is a subscription to the events of one client, made by [Client.Events].
//
// Ready and Disconnected are a state: at most one of the two is unread, and a newer one replaces it. A new subscription delivers
// the present state at once. TTLExpired, Lost and Asked are facts: each arrives, in order; unread facts stay in memory. A slow
// reader never delays the client.
//
// The channels of events are never closed, so that a select over them cannot spin. [Events.Done] closes with the subscription or
// its client.
type Events struct {
	feed *feed

	ready, disconnected     chan Event // state; capacity 1, at most one of the two is full
	ttlExpired, lost, asked *queue.Chan[Event]

	done chan struct{}
	once sync.Once
}

// Ready delivers an event when the engine becomes reachable.
func (e *Events) Ready() <-chan Event { return e.orEnded().ready }

// Disconnected delivers an event when the engine becomes unreachable.
func (e *Events) Disconnected() <-chan Event { return e.orEnded().disconnected }

// TTLExpired delivers an event for each lock that reaches its TTL.
func (e *Events) TTLExpired() <-chan Event { return e.orEnded().ttlExpired.Out }

// Lost delivers an event for each lock that is lost.
func (e *Events) Lost() <-chan Event { return e.orEnded().lost.Out }

// Asked delivers an event for each live lock that another client asks for: see [Lock.Asked].
func (e *Events) Asked() <-chan Event { return e.orEnded().asked.Out }

// Done returns a channel that closes when the subscription or its client is closed. Nothing is delivered after that.
func (e *Events) Done() <-chan struct{} { return e.orEnded().done }

// Close ends the subscription and drops unread events. Further calls do nothing.
func (e *Events) Close() {
	if e = e.orEnded(); e != noEvents {
		e.feed.mu.Lock()
		delete(e.feed.subs, e)
		e.feed.mu.Unlock()
		e.stop()
	}
}

// noEvents stands for the zero Events: its channels are closed.
var noEvents = func() *Events {
	e := &Events{ready: make(chan Event), done: make(chan struct{})}
	close(e.ready)
	close(e.done)
	q := &queue.Chan[Event]{Out: e.ready}
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
		e.ttlExpired.Close()
		e.lost.Close()
		e.asked.Close()
		e.clearState()
		close(e.done)
	})
}

// deliver takes an event in. The feed's mutex makes it the only writer.
func (e *Events) deliver(event Event) {
	switch event.Kind {
	case Ready:
		e.clearState()
		e.ready <- event
	case Disconnected:
		e.clearState()
		e.disconnected <- event
	case TTLExpired:
		e.ttlExpired.Push(event)
	case Lost:
		e.lost.Push(event)
	case Asked:
		e.asked.Push(event)
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
