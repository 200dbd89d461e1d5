package locktest

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A Fate is what becomes of a message. Where one is lost or late, its sender may see that its connection ends, or nothing.
type Fate int

// The fates of messages.
const (
	Arrives     Fate = iota // as it should
	LostRequest             // it does not arrive
	LostReply               // it is carried out, and its answer does not arrive
	// LateRequest: it arrives, and is carried out, half a lease later; its answer does not arrive. Where nothing on the way can hold
	// back a message whose sender has given it up, it is LostReply.
	LateRequest
	// LateReply: it is carried out, and its answer comes as late as its sender waits for it, but at most a quarter of a lease later;
	// that must be more than the client's margin, or shows nothing. It is the last: nothing that the client sends after it, messages
	// of which Lose is not asked included, arrives before Heal.
	LateReply
)

func (f Fate) String() string {
	return [...]string{"a message", "a lost request", "a lost reply", "a late request", "a late reply"}[f]
}

var loseCases = slices.Concat([]testCase{
	{"G2_LateReplyRenewsNoLonger", lateReplyRenewsNoLonger},
	{"G2_LateReplyGrantsNoLonger", lateReplyGrantsNoLonger},
	{"G2_OtherRepliesRenewNothing", otherRepliesRenewNothing},
	{"G2_PausedClientSendsNothing", pausedClientSendsNothing},
	{"G2_RepetitionGrantsNoLonger", repetitionGrantsNoLonger},
}, fated("G6_Acquire", acquireLoses), fated("G6_GivingUp", givingUpLoses), fated("G6_GivingUpAndClosing", givingUpAndClosing)[1:],
	fated("G10_Release", releaseLoses), fated("G10_Break", breakLoses), fated("G17_Ask", askLoses))

// fated is a case for each fate of the messages of a call.
func fated(name string, run func(*env, Fate)) []testCase {
	return []testCase{
		{name + "LosesARequest", func(e *env) { run(e, LostRequest) }},
		{name + "LosesAReply", func(e *env) { run(e, LostReply) }},
		{name + "IsLate", func(e *env) { run(e, LateRequest) }},
	}
}

// mostMessages bounds how many messages of a step are lost, one after the other. Steps need fewer, but heartbeats count too.
const mostMessages = 8

func (e *env) needsLose(a *Client) {
	e.needs(a.Lose != nil, "lose single messages")
}

// lose gives the n-th message from now on, counted from 1, a fate. Met reports whether there has been one.
func (a *Client) lose(n int, fate Fate) (met func() bool) {
	var sent atomic.Int64
	a.Lose(func() Fate {
		switch i := sent.Add(1); {
		case i == int64(n):
			return fate
		case i > int64(n) && fate == LateReply:
			return LostRequest
		}
		return Arrives
	})
	return func() bool { return sent.Load() >= int64(n) }
}

// losing runs a step for the first message that a client sends from the call of lose on, for the second, and so on.
func (e *env) losing(a *Client, fate Fate, step func(what string, lose func())) {
	e.needsLose(a)
	for n := 1; n <= mostMessages; n++ {
		met := func() bool { return true }
		step(fmt.Sprintf("%v (message %d)", fate, n), func() { met = a.lose(n, fate) })
		a.Lose(nil)
		if !met() {
			break // it has fewer
		}
	}
}

// recovers bounds how long it takes to give back what a message has left, from when it was sent: less than the end of its lease does.
func (e *env) recovers(fate Fate) time.Duration {
	limit := e.engine.Lease * 7 / 8
	if fate == LateRequest {
		limit += e.engine.Lease / 2
	}
	return limit
}

// arrived waits until what was sent late has arrived.
func (e *env) arrived(sent time.Time, fate Fate) {
	if fate == LateRequest {
		time.Sleep(time.Until(sent.Add(e.engine.Lease * 5 / 8)))
	}
}

// nothingIsLeft insists that a key is free for all once a message has had its fate.
func (e *env) nothingIsLeft(sent time.Time, fate Fate, rule string) {
	e.arrived(sent, fate)
	e.leavesNothing(e.key, max(0, time.Until(sent.Add(e.recovers(fate)))), rule)
}

// releaseInTime releases a lock whose release may lose a message.
func (e *env) releaseInTime(lock *holdfast.Lock, what string) {
	e.noError(lock.Release(e.within(e.patience())), ruleRetries, what)
}

func acquireLoses(e *env, fate Fate) {
	a, probe := e.client(), e.client()
	e.losing(a, fate, func(what string, lose func()) {
		lose()
		sent := time.Now()
		lock, err := a.Acquire(e.within(e.patience()), e.key)
		e.noError(err, "what is lost is sent again", what)
		took := time.Since(sent)
		e.brokenIf(took > e.engine.Lease*3/4, "no client waits for the end of its own lease", "%s: Acquire of a free key took %v", what, took)
		e.owns(lock, probe)
		e.releaseInTime(lock, what)
		a.Lose(nil) // what is sent from now on does not count
		e.nothingIsLeft(sent, fate, what+" of an acquisition leaves nothing when its lock is released")
	})
}

func givingUpLoses(e *env, fate Fate) {
	a, b := e.client(), e.client()
	e.losing(a, fate, func(what string, lose func()) {
		lose()
		sent := time.Now()
		if lock, err := a.Acquire(e.within(e.engine.Soon/4), e.key, holdfast.WithRetry(holdfast.Retry{Attempts: 1})); err == nil {
			e.releaseInTime(lock, what)
		}
		e.nothingIsLeft(sent, fate, what+" of an acquisition that gives up leaves nothing")
		e.release(e.holdWithin(e.engine.Soon, b, e.key))
	})
}

func releaseLoses(e *env, fate Fate) {
	a, b := e.client(), e.client()
	e.losing(a, fate, func(what string, lose func()) {
		lock := e.holdWithin(e.patience(), a, e.key)
		lose()
		sent := time.Now()
		e.releaseInTime(lock, what)
		a.Lose(nil) // what is sent from now on does not count
		next := e.hold(b)
		e.noError(next.Verify(e.soon()), ruleSpares, what)
		e.arrived(sent, fate)
		e.noError(next.Verify(e.soon()), ruleSpares, what+", which has arrived")
		e.release(next)
	})
}

const ruleSending = "a lease runs from when what renewed it was sent, whenever its answer comes"

// lateReplyRenewsNoLonger has a message answered late that is sent while a lock is held: a renewal of its lease may take several. It is
// the last to arrive.
func lateReplyRenewsNoLonger(e *env) {
	a, b := e.client(), e.client()
	e.needsLose(a)
	for n := 1; n <= 3; n++ {
		var sent time.Time // or later
		silence := func() {
			met := a.lose(n, LateReply)
			e.needs(e.eventually(2*e.engine.Lease, met), "see what renews a lease")
			sent = time.Now()
		}
		if e.NeverExpires {
			e.keepsForever(a, silence, a.Heal)
			return
		}
		lock := e.holdWithin(e.patience(), a, e.key)
		next := e.handsOver(lock, b, silence, ruleExpires, ruleSending)
		e.endedBy(lock, ruleAlone, expired...)
		late := lock.Deadline().Sub(sent.Add(e.engine.Lease))
		e.brokenIf(late > 0, ruleSending, "message %d was the last to arrive: the Deadline was %v later than that", n, late)
		a.Heal()
		e.isLive(next, ruleOne)
		e.release(next)
	}
}

// lateReplyGrantsNoLonger has each message of an acquisition answered late. It is the last to arrive.
func lateReplyGrantsNoLonger(e *env) {
	a := e.client()
	e.needsLose(a)
	for n := 1; n <= mostMessages; n++ {
		met := a.lose(n, LateReply)
		w := e.wait(a)
		var last bool
		var sent time.Time // or later
		e.eventually(e.engine.Lease/2, func() bool {
			last = met()
			sent = time.Now()
			return last || isClosed(w.done)
		})
		if e.closes(w.done, e.engine.Lease/2) && w.err == nil && last && !e.NeverExpires {
			late := w.lock.Deadline().Sub(sent.Add(e.engine.Lease))
			e.brokenIf(late > 0, ruleSending, "message %d was the last to arrive: the Deadline is %v later than that", n, late)
		}
		w.cancel(nil)
		a.Heal()
		e.brokenIf(!e.closes(w.done, e.engine.Soon), ruleAtOnce, "message %d", n)
		if w.err == nil {
			e.mayFail(w.lock.Release(e.within(e.patience())), holdfast.ErrLost, ruleRetries)
		}
		e.leavesNothing(e.key, e.patience(), ruleNothing)
		if !met() {
			break
		}
	}
}

// otherRepliesRenewNothing loses all messages of a holder but those that only look. Where these keep its session alive, the lock
// lives on.
func otherRepliesRenewNothing(e *env) {
	a, b := e.client(), e.client()
	e.needsLose(a)
	lock := e.hold(a)
	known := make(chan bool, 1)
	w := e.waitKey(b, e.key, func(*holdfast.Lock) { known <- lock.Err() != nil }).waits(b, e.key, 1)
	var looking atomic.Bool
	a.Lose(func() Fate {
		if looking.Load() {
			return Arrives
		}
		return LostRequest
	})
	for began := time.Now(); time.Since(began) < e.handOver() && !isClosed(w.done); time.Sleep(e.engine.Lease / 40) {
		looking.Store(true)
		_, _ = a.Inspect(e.within(e.engine.Lease/8), e.key)
		looking.Store(false)
	}
	a.Heal()
	if !isClosed(w.done) {
		e.mayFail(lock.Release(e.within(e.patience())), holdfast.ErrLost, ruleRetries)
	}
	next := w.granted(e.handOver(), ruleExpires)
	if !<-known {
		e.refuted(ruleFirst, "another client was granted the key while the lock of a holder was live that was only told of the key")
	}
	e.release(next)
}

// pausedClientSendsNothing counts the messages of a client whose clock stands.
func pausedClientSendsNothing(e *env) {
	a := e.client()
	e.needsLose(a)
	e.needs(a.Pause != nil, "pause a client")
	e.hold(a)
	a.Pause()
	time.Sleep(e.engine.Lease / 4) // what was under way
	var sent atomic.Int64
	a.Lose(func() Fate {
		sent.Add(1)
		return Arrives
	})
	time.Sleep(e.engine.Lease)
	n := sent.Load()
	a.Resume()
	e.brokenIf(n > 0, "an engine measures time by its host's clock alone", "%d messages were sent while that stood", n)
}
