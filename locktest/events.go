package locktest

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

var eventCases = []testCase{
	{"G9_CutAndHealAreReported", cutAndHealAreReported},
	{"G9_FactsAreNotLost", factsAreNotLost},
	{"G9_CloseEndsTheSubscription", closeEndsTheSubscription},
}

// next receives an event within d.
func (e *env) next(ch <-chan holdfast.Event, d time.Duration, rule string) holdfast.Event {
	return receive(e, ch, d, rule, "no event")
}

// silent insists that nothing is unread.
func (e *env) silent(rule string, channels ...<-chan holdfast.Event) {
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
	e.brokenIf(event.Kind != kind || event.Seq == 0 || event.Time.IsZero() || event.Key != "" || event.Token != 0,
		"a state event has a kind, a number and a time, and no lock", "%+v, want %v", event, kind)
}

const (
	ruleAtOnceState = "a subscription delivers the current state at once"
	ruleState       = "the loss and the return of the connection are reported"
	ruleFacts       = "every end by TTL or loss is reported, once and in order, however slow the reader"
)

// cutAndHealAreReported has one subscription read, another not, and a third begin while the client is cut off.
func cutAndHealAreReported(e *env) {
	a, l := e.watched()
	slow, events := a.Events(), a.Events()
	last := e.next(events.Ready(), e.engine.Soon, ruleAtOnceState)
	unread := func(state, other <-chan holdfast.Event, want holdfast.Event) {
		a.Events().Close() // which waits until every subscription has the event
		e.silent("a newer state replaces one that is unread", other)
		got := e.next(state, e.engine.Soon, ruleState)
		e.brokenIf(got.Seq != want.Seq, "the newest state is the one that is unread", "number %d, want %d", got.Seq, want.Seq)
	}
	want := []holdfast.EventKind{holdfast.Ready}
	for i := range 2 {
		e.holdKey(a, fmt.Sprint(e.prefix, i)) // some engines notice by their heartbeats
		a.Cut()
		down := e.next(events.Disconnected(), e.engine.Lease+e.engine.Soon, ruleState)
		e.isState(down, holdfast.Disconnected)
		late := a.Events()
		unread(late.Disconnected(), slow.Ready(), down)
		e.silent("a state is delivered once", late.Disconnected(), late.Ready(), events.Disconnected())
		late.Close()
		a.Heal()
		up := e.next(events.Ready(), e.patience(), ruleState)
		e.isState(up, holdfast.Ready)
		e.brokenIf(last.Seq >= down.Seq || down.Seq >= up.Seq, "events are numbered in order", "%d, %d, %d", last.Seq, down.Seq, up.Seq)
		last, want = up, append(want, holdfast.Disconnected, holdfast.Ready)
	}
	unread(slow.Ready(), slow.Disconnected(), last)
	events.Close()
	slow.Close()
	e.closed(a, l)
	var got []holdfast.EventKind
	for _, c := range l.of(connections...) {
		got = append(got, c.Kind)
	}
	e.brokenIf(len(got) < len(want) || !slices.Equal(got[:len(want)], want), ruleConnection, "reported: %v, want %v", got, want)
}

// factsAreNotLost ends many locks before a subscription is read, and some that it is not to report.
func factsAreNotLost(e *env) {
	const n = 20
	a, b := e.client(), e.client()
	early := e.holdKey(a, e.prefix+"early", holdfast.WithTTL(time.Millisecond))
	e.ends(early, e.engine.Soon, ruleTTL, holdfast.ErrTTLExpired)
	first, second, other := a.Events(), a.Events(), b.Events()
	began := time.Now()
	e.release(e.hold(a))
	want := make(map[string]*holdfast.Lock)
	for i := range n {
		byTTL := e.holdKey(a, fmt.Sprintf("%sttl%02d", e.prefix, i), holdfast.WithOwner(fmt.Sprint("owner", i)))
		byLoss := e.holdKey(a, fmt.Sprintf("%sloss%02d", e.prefix, i))
		want[byTTL.Key()], want[byLoss.Key()] = byTTL, byLoss
		e.noError(byTTL.Extend(time.Millisecond), ruleAnswers, "Extend")
	}
	losses := expired
	if e.NeverExpires {
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
				e.brokenIf(lock == nil || seen[event.Key] || event.Seq <= last, ruleFacts, "%+v, after number %d", event, last)
				e.brokenIf(event.Kind != kind || event.Err != lock.Err() || event.Owner != lock.Owner() || event.Token != lock.Token() ||
					event.Time.Before(began) || event.Time.After(time.Now()), "an event says which lock ended, when and why", "%+v", event)
				seen[event.Key], last = true, event.Seq
			}
		}
		e.silent("a subscription reports each end from its opening on, but no release", events.TTLExpired(), events.Lost())
		events.Close()
	}
	e.silent("a client receives events of its own locks only", other.TTLExpired(), other.Lost())
	other.Close()
}

func closeEndsTheSubscription(e *env) {
	const rule = "Close of a subscription, or of its client, closes Done and leaves nothing to read"
	a := e.client()
	ended := func(events *holdfast.Events) {
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
