package locktest

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A Loss is what becomes of a message.
type Loss int

// Ways in which a message is lost. Its sender may see that its connection ends, or nothing.
const (
	LostRequest Loss = iota // it does not arrive
	LostReply               // it is carried out, and its answer does not arrive
	LateRequest             // it arrives, and is carried out, half a lease later; its answer does not arrive
)

func (l Loss) String() string {
	return map[Loss]string{LostRequest: "a lost request", LostReply: "a lost reply", LateRequest: "a late request"}[l]
}

var loseCases = []testCase{
	{"G6_AcquireLosesAMessage", acquireLosesAMessage},
	{"G6_GivingUpLosesAMessage", givingUpLosesAMessage},
	{"G10_ReleaseLosesAMessage", releaseLosesAMessage},
}

// mostMessages bounds how many messages of a step are lost, one after the other. Steps need fewer, but heartbeats count too.
const mostMessages = 8

// losing runs a step once for each message that a client sends from the call of lose on, and for each way in which that is lost.
func (e *env) losing(a *Client, step func(what string, lose func())) {
	e.Helper()
	if a.Lose == nil {
		e.Skip("the harness cannot lose single messages")
	}
	for _, how := range []Loss{LostRequest, LostReply, LateRequest} {
		for n := 1; n <= mostMessages; n++ {
			met := func() bool { return true }
			step(fmt.Sprintf("%v (message %d)", how, n), func() { met = a.Lose(n, how) })
			if !met() {
				break // it has fewer
			}
		}
	}
}

// recovers bounds how long it takes to give back what a message has left, from when it was sent: a late one arrives meanwhile. That
// is less than a lease after that, which would hide it.
func (e *env) recovers() time.Duration { return e.engine.Lease + e.engine.Soon }

// nothingIsLeft insists that a key is free for all once a late message has arrived.
func (e *env) nothingIsLeft(sent time.Time, rule string) {
	e.Helper()
	time.Sleep(time.Until(sent.Add(e.engine.Lease/2 + e.engine.Soon/2)))
	e.leavesNothing(e.key, max(0, time.Until(sent.Add(e.recovers()))), rule)
}

// releaseInTime releases a lock whose release may lose a message.
func (e *env) releaseInTime(lock *holdfast.Lock, what string) {
	e.Helper()
	if err := lock.Release(e.within(e.patience())); err != nil {
		e.broken(ruleRetries, "%s: %v", what, err)
	}
}

func acquireLosesAMessage(e *env) {
	a, probe := e.client(), e.client()
	e.losing(a, func(what string, lose func()) {
		lose()
		sent := time.Now()
		lock, err := a.Acquire(e.within(e.patience()), e.key)
		if err != nil {
			e.broken("what is lost is sent again", "%s: %v", what, err)
			return
		}
		if took := time.Since(sent); took > e.engine.Lease*3/4 {
			e.broken("nobody waits for the end of a lease of its own", "%s: Acquire of a free key took %v", what, took)
		}
		e.owns(lock, probe)
		e.releaseInTime(lock, what)
		e.nothingIsLeft(sent, what+" of an acquisition leaves nothing when its lock is released")
	})
}

func givingUpLosesAMessage(e *env) {
	a, b := e.client(), e.client()
	e.losing(a, func(what string, lose func()) {
		lose()
		sent := time.Now()
		if lock, err := a.Acquire(e.within(e.engine.Soon/4), e.key, holdfast.WithRetry(holdfast.Retry{Attempts: 1})); err == nil {
			e.releaseInTime(lock, what)
		}
		e.nothingIsLeft(sent, what+" of an acquisition that gives up leaves nothing")
		e.release(e.holdWithin(e.engine.Soon, b, e.key))
	})
}

func releaseLosesAMessage(e *env) {
	a, b := e.client(), e.client()
	e.losing(a, func(what string, lose func()) {
		lock := e.holdWithin(e.patience(), a, e.key)
		lose()
		sent := time.Now()
		e.releaseInTime(lock, what)
		next := e.hold(b)
		if err := next.Verify(e.soon()); err != nil {
			e.broken("a release ends nobody else's lock", "%s: %v", what, err)
		}
		time.Sleep(time.Until(sent.Add(e.engine.Lease/2 + e.engine.Soon/2))) // what is late has arrived
		if err := next.Verify(e.soon()); err != nil {
			e.broken("nor when it arrives late", "%s: %v", what, err)
		}
		e.release(next)
	})
}
