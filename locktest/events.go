package locktest

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

var eventCases = []testCase{
	{"G9_CutAndHealAreReported", cutAndHealAreReported},
	{"G9_StateIsReplaced", stateIsReplaced},
	{"G9_FactsAreNotLost", factsAreNotLost},
	{"G9_EventsNameTheLock", eventsNameTheLock},
	{"G9_OnlyOwnAndFromNow", onlyOwnAndFromNow},
	{"G9_CloseEndsTheSubscription", closeEndsTheSubscription},
}

// next receives an event within d.
func (e *env) next(ch <-chan holdfast.Event, d time.Duration, rule string) holdfast.Event {
	e.Helper()
	return receive(e, ch, d, rule, "no event")
}

// silent insists that nothing is unread.
func (e *env) silent(rule string, channels ...<-chan holdfast.Event) {
	e.Helper()
	for _, ch := range channels {
		select {
		case event, ok := <-ch:
			e.broken(rule, "got %+v, %v", event, ok)
		default:
		}
	}
}

// isState insists on an event of the client, not of a lock.
func (e *env) isState(event holdfast.Event, kind holdfast.EventKind) {
	e.Helper()
	e.brokenIf(event.Kind != kind || event.Seq == 0 || event.Time.IsZero() || event.Key != "" || event.Token != 0,
		"a state event has a kind, a number and a time, and no lock", "%+v, want %v", event, kind)
}

const (
	ruleAtOnceState = "a subscription delivers the current state at once"
	ruleState       = "the loss and the return of the connection are reported"
	ruleFacts       = "every end by TTL or loss is reported, once and in order, however slow the reader"
)

func cutAndHealAreReported(e *env) {
	a := e.client()
	events := a.Events()
	defer events.Close()
	last := e.next(events.Ready(), e.engine.Soon, ruleAtOnceState)
	e.hold(a)
	for range 2 {
		a.Cut()
		down := e.next(events.Disconnected(), e.engine.Lease+e.engine.Soon, ruleState)
		e.isState(down, holdfast.Disconnected)
		late := a.Events()
		again := e.next(late.Disconnected(), e.engine.Soon, ruleAtOnceState)
		e.brokenIf(again.Seq != down.Seq, ruleAtOnceState, "number %d, the state is that of %d", again.Seq, down.Seq)
		e.silent("a state is delivered once", late.Disconnected(), late.Ready(), events.Disconnected())
		late.Close()
		a.Heal()
		up := e.next(events.Ready(), e.patience(), ruleState)
		e.isState(up, holdfast.Ready)
		e.brokenIf(last.Seq >= down.Seq || down.Seq >= up.Seq,
			"events are numbered in order", "%d, %d, %d", last.Seq, down.Seq, up.Seq)
		last = up
	}
}

func stateIsReplaced(e *env) {
	a := e.client()
	slow, fast := a.Events(), a.Events()
	defer slow.Close()
	defer fast.Close()
	e.next(fast.Ready(), e.engine.Soon, ruleAtOnceState)
	e.hold(a)
	a.Cut()
	e.next(fast.Disconnected(), e.engine.Lease+e.engine.Soon, ruleState)
	a.Events().Close() // which waits until every subscription has the event
	e.silent("a newer state replaces one that is unread", slow.Ready())
	a.Heal()
	last := e.next(fast.Ready(), e.patience(), ruleState)
	a.Events().Close() // which waits until every subscription has the event
	e.silent("a newer state replaces one that is unread", slow.Disconnected())
	got := e.next(slow.Ready(), e.engine.Soon, ruleState)
	e.brokenIf(got.Seq != last.Seq, "the newest state is the one that is unread", "number %d, want %d", got.Seq, last.Seq)
}

// factsAreNotLost ends many locks before anyone reads.
func factsAreNotLost(e *env) {
	const n = 20
	a, b := e.client(), e.client()
	first, second := a.Events(), a.Events()
	want := make(map[string]*holdfast.Lock)
	for i := range n {
		byTTL := e.holdKey(a, fmt.Sprintf("%sttl%02d", e.prefix, i))
		byLoss := e.holdKey(a, fmt.Sprintf("%sloss%02d", e.prefix, i))
		want[byTTL.Key()], want[byLoss.Key()] = byTTL, byLoss
		e.noError(byTTL.Extend(time.Millisecond), ruleAnswers, "Extend")
	}
	losses := expired
	if e.engine.NeverExpires {
		losses = []error{holdfast.ErrBroken}
		for i := range n {
			e.breaks(b, fmt.Sprintf("%sloss%02d", e.prefix, i))
		}
	} else {
		a.Cut()
	}
	for _, lock := range want {
		e.ends(lock, e.handOver(), "a reader that does not read its events blocks nothing", append(losses, holdfast.ErrTTLExpired)...)
	}
	for _, events := range []*holdfast.Events{first, second} {
		seen := make(map[string]bool)
		for kind, ch := range map[holdfast.EventKind]<-chan holdfast.Event{
			holdfast.TTLExpired: events.TTLExpired(), holdfast.Lost: events.Lost(),
		} {
			last := uint64(0)
			for i := range n {
				event := e.next(ch, e.engine.Soon, fmt.Sprintf("%s (%v, %d of %d read)", ruleFacts, kind, i, n))
				lock := want[event.Key]
				e.brokenIf(lock == nil || seen[event.Key] || event.Kind != kind || event.Err != lock.Err() || event.Seq <= last,
					ruleFacts, "%+v, after number %d", event, last)
				seen[event.Key], last = true, event.Seq
			}
		}
		e.silent(ruleFacts, events.TTLExpired(), events.Lost())
		events.Close()
	}
}

func eventsNameTheLock(e *env) {
	a, probe := e.client(), e.client()
	events := a.Events()
	defer events.Close()
	for name, ch := range map[string]<-chan holdfast.Event{"TTL": events.TTLExpired(), "break": events.Lost()} {
		lock := e.holdKey(a, e.prefix+name, holdfast.WithOwner("owner of "+name))
		began := time.Now()
		e.ways(a, probe)[name](lock)
		event := e.next(ch, e.engine.Soon, ruleFacts)
		e.brokenIf(event.Key != lock.Key() || event.Owner != lock.Owner() || event.Token != lock.Token() ||
			event.Err != lock.Err() || event.Seq == 0 || event.Time.Before(began) || event.Time.After(time.Now()), "an event says which lock ended, when and why", "%+v; the lock: %q, %q, %v, %v",
			event, lock.Key(), lock.Owner(), lock.Token(), lock.Err())
	}
	e.release(e.hold(a))
	time.Sleep(e.engine.Lease / 20)
	e.silent("a release by the holder is no event", events.TTLExpired(), events.Lost())
}

func onlyOwnAndFromNow(e *env) {
	a, b := e.client(), e.client()
	early := e.holdKey(a, e.prefix+"early", holdfast.WithTTL(time.Millisecond))
	e.ends(early, e.engine.Soon, ruleTTL, holdfast.ErrTTLExpired)
	mine, other := a.Events(), b.Events()
	defer mine.Close()
	defer other.Close()
	lock := e.hold(a, holdfast.WithTTL(time.Millisecond))
	e.ends(lock, e.engine.Soon, ruleTTL, holdfast.ErrTTLExpired)
	event := e.next(mine.TTLExpired(), e.engine.Soon, ruleFacts)
	e.brokenIf(event.Key != e.key, "a subscription reports what happens after it was opened", "%+v", event)
	time.Sleep(e.engine.Lease / 20)
	e.silent("a client receives events of its own locks only", other.TTLExpired(), other.Lost())
}

func closeEndsTheSubscription(e *env) {
	const rule = "Close of a subscription, or of its client, closes Done and leaves nothing to read"
	a := e.client()
	ended := func(events *holdfast.Events) {
		e.Helper()
		e.brokenIf(!isClosed(events.Done()), rule, "Done is open")
		// A closed channel would make a select over it spin.
		e.silent(rule, events.Ready(), events.Disconnected(), events.TTLExpired(), events.Lost())
	}
	first, second := a.Events(), a.Events()
	for i := range 3 {
		lock := e.holdKey(a, fmt.Sprint(e.prefix, i), holdfast.WithTTL(time.Millisecond))
		e.ends(lock, e.engine.Soon, "a TTL ends a lock", holdfast.ErrTTLExpired)
	}
	e.brokenIf(isClosed(first.Done()), "a subscription lasts until it is closed", "Done is closed")
	first.Close()
	first.Close()
	ended(first)
	e.next(second.Ready(), e.engine.Soon, ruleAtOnceState)
	e.close(a)
	ended(second)
	ended(a.Events()) // after Close it has already ended
	second.Close()
}
