package locktest

import (
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// hookLog records what hooks are called with.
type hookLog struct {
	takes   time.Duration // each call, so that a concurrent call is noticed
	calling sync.Mutex

	mu       sync.Mutex
	reported []any
	faults   []string
}

func (l *hookLog) note(about any) {
	if !l.calling.TryLock() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.faults = append(l.faults, fmt.Sprintf("while another was running: %+v", about))
		return
	}
	defer l.calling.Unlock()
	time.Sleep(l.takes)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reported = append(l.reported, about)
}

func (l *hookLog) hooks() holdfast.Hooks {
	return holdfast.Hooks{
		Started:    func(a holdfast.Acquisition) { l.note(start(a)) },
		Queued:     func(p holdfast.Place) { l.note(p) },
		Granted:    func(a holdfast.Acquisition) { l.note(outcome(a)) },
		Failed:     func(a holdfast.Acquisition) { l.note(outcome(a)) },
		Asked:      func(w holdfast.Wish) { l.note(w) },
		Observing:  func(o holdfast.Observing) { l.note(o) },
		Observed:   func(s holdfast.Sight) { l.note(s) },
		Ended:      func(e holdfast.Ending) { l.note(e) },
		TermBegan:  func(t holdfast.Term) { l.note(termBegan(t)) },
		TermEnded:  func(t holdfast.Term) { l.note(termEnded(t)) },
		Heartbeat:  func(h holdfast.Heartbeat) { l.note(h) },
		Connection: func(c holdfast.Connection) { l.note(c) },
	}
}

// start and outcome distinguish an acquisition's Started from its outcome, termBegan and
// termEnded the two ends of a term.
type (
	start     holdfast.Acquisition
	outcome   holdfast.Acquisition
	termBegan holdfast.Term
	termEnded holdfast.Term
)

// reported returns the calls of one kind so far.
func reported[T any](l *hookLog) []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []T
	for _, about := range l.reported {
		if v, ok := about.(T); ok {
			found = append(found, v)
		}
	}
	return found
}

// watched connects a client whose hooks are recorded.
func (e *env) watched() (*Client, *hookLog) {
	e.Helper()
	l := &hookLog{takes: e.engine.Lease / 100000}
	return e.clientWith(ClientOptions{Hooks: l.hooks()}), l
}

// closed closes a client, after which every hook call has been made, and checks their order.
func (e *env) closed(c *Client, l *hookLog) {
	e.Helper()
	e.close(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) > 0 {
		e.broken(ruleHookOrder, "%s", l.faults[0])
	}
	const started, granted, over = 1, 2, 3
	states := make(map[uint64]int)
	story := make(map[uint64][]any)
	var last time.Time
	for i, about := range l.reported {
		var at time.Time
		id, from, to := uint64(0), 0, 0
		switch v := about.(type) {
		case start:
			at, id, from, to = v.Time, v.ID, 0, started
		case holdfast.Place:
			at, id, from, to = v.Time, v.ID, started, started
		case outcome:
			at, id, from, to = v.Time, v.ID, started, granted
			if v.Err != nil {
				to = over
			}
		case holdfast.Wish:
			at, id, from, to = v.Time, v.ID, granted, granted
		case holdfast.Ending:
			at, id, from, to = v.Time, v.ID, granted, over
		case termBegan:
			at, id, from, to = v.Time, v.ID, granted, granted
		case termEnded: // before or after the end of the lock
			at = v.Time
		case holdfast.Observing:
			at = v.Time
		case holdfast.Sight:
			at = v.Time
		case holdfast.Heartbeat:
			at = v.Time
		case holdfast.Connection:
			at = v.Time
		}
		if at.IsZero() || at.Before(last) {
			e.broken(ruleHookOrder, "call %d is dated %v, the call before it %v: %+v", i+1, at, last, about)
		}
		if last = at; from == to && from == 0 {
			continue
		}
		if story[id] = append(story[id], about); id == 0 || states[id] != from {
			e.broken(ruleHookOrder, "call %d is out of order; the calls of this acquisition are:\n\t%+v", i+1, story[id])
		}
		states[id] = to
	}
	for id, state := range states {
		if state != over {
			e.broken(ruleHookOrder, "Close has returned, and the end of acquisition %d was not reported: %+v", id, story[id])
		}
	}
}
