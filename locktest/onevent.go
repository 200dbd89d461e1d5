package locktest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

var onEventCases = []testCase{
	{"G9_OnEventReportsHolds", eventsReportHolds},
	{"G9_OnEventReportsPlaces", eventsReportPlaces},
	{"G9_OnEventReportsHeartbeats", eventsReportHeartbeats},
	{"G9_OnEventDelaysNothing", onEventDelaysNothing},
}

const (
	ruleEventOrder  = "OnEvent receives one event at a time, in order"
	ruleAcquisition = "OnEvent receives the start and the outcome of each acquisition"
	rulePlace       = "OnEvent receives a waiter's place in the queue, if there is a queue"
	ruleEnding      = "OnEvent receives each end of a hold once, with the error of Err and the time held"
	ruleHeartbeat   = "OnEvent receives the outcome of each heartbeat"
	ruleConnection  = "OnEvent receives the loss and the return of the connection"
	ruleEventBlocks = "a slow OnEvent delays only later events and Close"
)

// An attempt is a call that OnEvent must report.
type attempt struct {
	call          string
	want          holdfast.Event // Started
	lock          *holdfast.Lock
	err           error
	granted, over time.Time // after the call, and after the end of the lock
	lasted        time.Duration
}

// eventsReportHolds makes calls of each kind, and ends what is granted in each way.
func eventsReportHolds(e *env) {
	a, l := e.watched()
	other := e.client()
	taken, free, giveUp := e.prefix+"taken", e.prefix+"free", e.engine.Lease/20
	e.holdKey(other, taken)
	var attempts []*attempt
	try := func(call, key, owner string, wait bool, f func() (*holdfast.Lock, error)) *attempt {
		began, tried := time.Now(), &attempt{call: call, want: holdfast.Event{Kind: holdfast.Started, Key: key, Owner: owner, Wait: wait}}
		tried.lock, tried.err = f()
		tried.granted, tried.lasted = time.Now(), time.Since(began)
		attempts = append(attempts, tried)
		return tried
	}
	for way, end := range e.ways(a, other) {
		tried := try("Acquire", e.prefix+way, "somebody", true, func() (*holdfast.Lock, error) {
			return e.holdKey(a, e.prefix+way, holdfast.WithOwner("somebody")), nil
		})
		time.Sleep(e.engine.Lease / 50)
		end(tried.lock)
		tried.over = time.Now()
	}
	try("TryAcquire of a held key", taken, a.Owner(), false, func() (*holdfast.Lock, error) { return a.TryAcquire(e.soon(), taken) })
	late := try("Acquire with a ctx that ends", taken, a.Owner(), true, func() (*holdfast.Lock, error) {
		ctx, cancel := context.WithCancel(e.within(e.patience()))
		go func() {
			defer cancel()
			if e.eventually(e.engine.Soon, func() bool { return len(l.of(holdfast.Started)) == len(attempts)+1 }) {
				time.Sleep(giveUp)
			}
		}()
		return a.Acquire(ctx, taken)
	})
	try("AcquireAny", "", a.Owner(), false, func() (*holdfast.Lock, error) { return a.AcquireAny(e.soon(), []string{taken, free}) })
	try("AcquireAny with WithWait", "", a.Owner(), true, func() (*holdfast.Lock, error) {
		return a.AcquireAny(e.within(e.patience()), []string{taken}, holdfast.WithWait(giveUp))
	})
	for _, key := range []string{"", taken} { // neither begins
		e.brokenIf(failed(a.Acquire(e.done(), key)) == nil, ruleAcquisition, "Acquire(%q) is granted, although its ctx is done", key)
	}
	e.closed(a, l)

	starts, outs, ends := l.of(holdfast.Started), l.of(outcomes...), make(map[uint64]holdfast.Event)
	for _, event := range l.of(endings...) {
		ends[event.ID] = event
	}
	e.brokenIf(len(starts) != len(attempts) || len(outs) != len(attempts), ruleAcquisition, "%d calls: %+v, %+v", len(attempts), starts, outs)
	for i, a := range attempts {
		began, out := starts[i], outs[i]
		a.want.ID, a.want.Time, a.want.Seq = began.ID, began.Time, began.Seq
		e.brokenIf(began != a.want, ruleAcquisition, "%s: started as %+v, want %+v", a.call, began, a.want)
		want := a.want
		want.Kind, want.Seq, want.Time, want.Took, want.Err = holdfast.Failed, out.Seq, out.Time, out.Time.Sub(began.Time), a.err
		if a.lock != nil {
			want.Kind, want.Key, want.Token = holdfast.Granted, a.lock.Key(), a.lock.Token()
			e.ending(ends[began.ID], a)
		}
		e.brokenIf(out != want || out.Took < 0 || out.Took > a.lasted, ruleAcquisition, "%s: %+v, want %+v in %v", a.call, out, want, a.lasted)
		e.brokenIf(a == late && out.Took < giveUp, ruleAcquisition, "a wait of more than %v is reported as %v", giveUp, out.Took)
	}
}

// ending checks how the end of a hold was reported.
func (e *env) ending(end holdfast.Event, a *attempt) {
	e.brokenIf(end.Key != a.lock.Key() || end.Owner != a.lock.Owner() || end.Token != a.lock.Token() || end.Err != a.lock.Err(),
		ruleEnding, "%+v; the lock: %q, %v, %v", end, a.lock.Owner(), a.lock.Token(), a.lock.Err())
	if held := a.over.Sub(a.granted); !a.over.IsZero() { // the others end with Close
		e.brokenIf(end.Took < e.engine.Lease/50 || end.Took > held+a.lasted, ruleEnding, "held for %v: %+v", held, end)
	}
}

// eventsReportPlaces has several clients wait. Without a queue, OnEvent receives no place.
func eventsReportPlaces(e *env) {
	const n = 3
	a, l := e.watched()
	holder := e.client()
	lock := e.hold(holder)
	var waiters []*waiter
	for i := range n {
		w := e.waitKey(a, e.key, func(lock *holdfast.Lock) { e.lets(lock) })
		waiters = append(waiters, w.waits(holder, e.key, i+1))
		e.brokenIf(e.Ordered && !e.eventually(e.engine.Soon, func() bool { return len(l.of(holdfast.Queued)) > i }),
			rulePlace, "%d wait; reported: %+v", i+1, l.of(holdfast.Queued))
	}
	e.release(lock)
	for _, w := range waiters {
		w.granted(e.patience(), "every waiter is served in the end")
	}
	e.closed(a, l)
	places := l.of(holdfast.Queued)
	if !e.Ordered {
		e.brokenIf(len(places) > 0, rulePlace, "there is no queue; reported: %+v", places)
		return
	}
	ahead, first := make(map[uint64]int), make(map[uint64]bool)
	for i, s := range l.of(holdfast.Started) {
		ahead[s.ID] = i + 1
	}
	for _, p := range places {
		want := holdfast.Event{Seq: p.Seq, Kind: holdfast.Queued, ID: p.ID, Time: p.Time, Key: e.key, Owner: a.Owner(), Ahead: ahead[p.ID]}
		if first[p.ID] && p.Ahead > 0 && p.Ahead < want.Ahead { // the waiter looked again
			want.Ahead = p.Ahead
		}
		first[p.ID] = true
		e.brokenIf(p != want, rulePlace, "%+v, want %+v", p, want)
	}
	e.brokenIf(len(first) != n, rulePlace, "%d waited; reported: %+v", n, places)
}

// eventsReportHeartbeats checks those of a client that holds two locks for a lease and is then cut off.
func eventsReportHeartbeats(e *env) {
	a, l := e.watched()
	one, two := e.holdKey(a, e.prefix+"one"), e.holdKey(a, e.prefix+"two")
	keys := map[Heartbeats][]string{PerSession: {""}, PerLock: {one.Key(), two.Key()}}[e.engine.Heartbeats]
	time.Sleep(e.engine.Lease)
	for _, lock := range []*holdfast.Lock{one, two} {
		e.isLive(lock, "a lease that is renewed does not end")
	}
	for _, key := range keys {
		e.brokenIf(!e.eventually(e.engine.Soon, func() bool { return beats(l, key, false) > 1 }),
			ruleHeartbeat, "a lease has passed, and no heartbeat for %q was reported: %+v", key, l.of(holdfast.Heartbeat))
	}
	a.Cut()
	cut := time.Now()
	if e.NeverExpires {
		e.outlasts(e.client(), one)
	}
	for _, lock := range []*holdfast.Lock{one, two} {
		if e.NeverExpires {
			break
		}
		e.ends(lock, e.handOver(), "a holder that is cut off loses its lock", expired...)
	}
	healed := time.Now()
	a.Heal()
	time.Sleep(e.engine.Lease) // to give back what was lost; Close would not wait for that
	e.closed(a, l)
	for _, h := range l.of(holdfast.Heartbeat) {
		sent := h.Time.Add(-h.Took)
		e.brokenIf(!slices.Contains(keys, h.Key) || h.Took < 0, ruleHeartbeat, "%+v; they are for %q", h, keys)
		e.brokenIf(h.Err == nil && sent.After(cut) && h.Time.Before(healed),
			ruleHeartbeat, "a heartbeat sent while the client was cut off renewed the lease: %+v", h)
	}
	for _, key := range keys {
		e.brokenIf(beats(l, key, true) == 0,
			ruleHeartbeat, "the client was cut off, and all heartbeats for %q succeeded: %+v", key, l.of(holdfast.Heartbeat))
	}
}

// beats is how many heartbeats for a key were reported to have succeeded, or failed.
func beats(l *eventLog, key string, failed bool) (n int) {
	for _, h := range l.of(holdfast.Heartbeat) {
		if h.Key == key && (h.Err != nil) == failed {
			n++
		}
	}
	return n
}

// onEventDelaysNothing acquires and releases locks while OnEvent does not return.
func onEventDelaysNothing(e *env) {
	const n = 10
	l, goOn := &eventLog{}, make(chan struct{})
	a := e.clientWith(ClientOptions{OnEvent: func(event holdfast.Event) {
		if event.Kind == holdfast.Granted {
			<-goOn
		}
		l.note(event)
	}})
	for range n {
		lock, err := a.Acquire(e.within(e.patience()), e.key)
		if err != nil || lock.Release(e.within(e.patience())) != nil {
			close(goOn)
			e.broken(ruleEventBlocks, "Acquire: %v", err)
		}
	}
	early := len(l.of(outcomes...))
	close(goOn)
	e.brokenIf(early > 0, ruleEventBlocks, "%d events came early", early)
	e.closed(a, l)
	got := len(l.of(endings...))
	e.brokenIf(got != n, ruleEnding, "%d holds, %d ends reported", n, got)
}

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
		holdfast.Started: {0, started}, holdfast.Queued: {started, started},
		holdfast.Granted: {started, granted}, holdfast.Failed: {started, over}, holdfast.Asked: {granted, granted},
		holdfast.TermBegan: {granted, granted},
		holdfast.Released:  {granted, over}, holdfast.TTLExpired: {granted, over}, holdfast.Lost: {granted, over},
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
