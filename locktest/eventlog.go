package locktest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// eventLog records what OnEvent receives.
type eventLog struct {
	takes   time.Duration // each call, so that a concurrent call is noticed
	calling sync.Mutex

	mu       sync.Mutex
	reported []holdfast.Event
	faults   []string
}

func (l *eventLog) note(event holdfast.Event) {
	if !l.calling.TryLock() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.faults = append(l.faults, fmt.Sprintf("while another was running: %+v", event))
		return
	}
	defer l.calling.Unlock()
	time.Sleep(l.takes)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reported = append(l.reported, event)
}

// The kinds of events that most cases look at.
var (
	outcomes    = []holdfast.EventKind{holdfast.Granted, holdfast.Failed}
	endings     = []holdfast.EventKind{holdfast.Released, holdfast.TTLExpired, holdfast.Lost}
	connections = []holdfast.EventKind{holdfast.Ready, holdfast.Disconnected}
)

// of returns the events of some kinds so far.
func (l *eventLog) of(kinds ...holdfast.EventKind) []holdfast.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []holdfast.Event
	for _, event := range l.reported {
		if slices.Contains(kinds, event.Kind) {
			found = append(found, event)
		}
	}
	return found
}

// watched connects a client whose events are recorded.
func (e *env) watched() (*Client, *eventLog) {
	l := &eventLog{takes: e.engine.Lease / 100000}
	return e.clientWith(ClientOptions{OnEvent: l.note}), l
}

// closed closes a client, after which OnEvent has received every event, and checks their order.
func (e *env) closed(c *Client, l *eventLog) {
	e.close(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) > 0 {
		e.broken(ruleEventOrder, "%s", l.faults[0])
	}
	const started, granted, over = 1, 2, 3
	steps := map[holdfast.EventKind]struct{ from, to int }{ // of an acquisition
		holdfast.Started: {0, started}, holdfast.Queued: {started, started}, holdfast.Granted: {started, granted}, holdfast.Failed: {started, over},
		holdfast.Asked: {granted, granted}, holdfast.TermBegan: {granted, granted},
		holdfast.Released: {granted, over}, holdfast.TTLExpired: {granted, over}, holdfast.Lost: {granted, over},
	}
	states := make(map[uint64]int)
	story := make(map[uint64][]holdfast.Event)
	var last holdfast.Event
	for _, event := range l.reported {
		e.brokenIf(event.Time.IsZero() || event.Time.Before(last.Time) || event.Seq <= last.Seq,
			ruleEventOrder, "%+v\n\tfollows %+v", event, last)
		last = event
		step, ok := steps[event.Kind]
		if !ok {
			continue
		}
		id := event.ID
		if story[id] = append(story[id], event); id == 0 || states[id] != step.from {
			e.broken(ruleEventOrder, "event %d is out of order; the events of this acquisition are:\n\t%+v", event.Seq, story[id])
		}
		states[id] = step.to
	}
	for id, state := range states {
		e.brokenIf(state != over, ruleEventOrder, "Close has returned, and the end of acquisition %d was not reported: %+v", id, story[id])
	}
}
