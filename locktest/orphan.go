package locktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

var orphanCases = []testCase{
	{"G6_CutDuringAcquireAndRelease", cutDuringAcquireAndRelease},
	{"G6_GiveUpDuringCut", giveUpDuringCut},
}

// moments are delays after which a cut may hit a request or its reply; with -1 it comes before the call.
var moments = []time.Duration{
	-1, 0, 500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, 5 * time.Millisecond,
}

const ruleRetries = "Release retries until the engine has confirmed it"

// owns insists that the engine and the holder of a lock agree.
func (e *env) owns(lock *holdfast.Lock, probe *Client) {
	const rule = "the engine has the grant that Acquire returns, once"
	e.noError(lock.Verify(e.within(e.patience())), rule, "Verify")
	// The duplicate of a repeated request may be on its way out.
	e.becomes(e.patience(), "no client waits behind its own grant", func() (bool, any) {
		info, n := e.inspect(probe), 0
		for grant := range info.Each() {
			if grant.Token == lock.Token() && grant.Owner == lock.Owner() {
				n++
			}
		}
		e.brokenIf(n != 1, rule, "token %v of %q; Inspect: %+v", lock.Token(), lock.Owner(), info)
		return len(info.Queue) == 0, info.Queue
	})
}

// cutDuringAcquireAndRelease has another client share the key all the time, if the mode allows that.
func cutDuringAcquireAndRelease(e *env) {
	a, b := e.client(), e.client()
	for _, m := range e.modes() {
		var stays []*holdfast.Lock
		if m != "w" {
			stays = append(stays, e.hold(b, m.option()))
		}
		for i, delay := range moments {
			if delay < 0 {
				a.Cut()
			}
			w := e.wait(a, m.option())
			e.cutFor(a, delay)
			lock := w.granted(e.patience(), "a request whose reply was lost still ends in a grant")
			if i%2 == 0 {
				e.owns(lock, b)
			}
			released := later(func() error { return lock.Release(e.within(e.patience())) })
			e.cutFor(a, delay)
			e.mayFail(e.result(released, e.patience(), ruleRetries), holdfast.ErrLost, ruleRetries)
			if m == "w" {
				e.leavesNothing(e.key, e.handOver(), "a lost reply leaves nothing behind")
				continue
			}
			e.becomes(e.handOver(), "a lost reply leaves nothing behind", func() (bool, any) {
				info := e.inspect(b)
				return len(info.Holders) == 1 && len(info.Queue) == 0, info
			})
			e.areLive(stays, ruleOthers)
		}
		e.release(stays...)
	}
}

// cutFor cuts a client off after a delay, for a short time.
func (e *env) cutFor(a *Client, delay time.Duration) {
	time.Sleep(delay)
	a.Cut()
	time.Sleep(e.engine.Lease / 20)
	a.Heal()
}

func giveUpDuringCut(e *env) {
	a, b := e.client(), e.client()
	for _, delay := range moments {
		if delay < 0 {
			a.Cut()
		}
		ctx, cancel := context.WithCancel(e.ctx)
		result := make(chan *holdfast.Lock, 1)
		go func() {
			lock, _ := a.Acquire(ctx, e.key)
			result <- lock
		}()
		time.Sleep(delay)
		a.Cut()
		time.Sleep(time.Millisecond)
		cancel()
		lock := receive(e, result, e.engine.Soon, ruleAtOnce, "the reply was lost, and it has not returned")
		if lock != nil { // the call was faster than the cut
			err := lock.Release(e.done())
			e.brokenIf(err != nil && !errors.Is(err, holdfast.ErrReleasePending) && !errors.Is(err, holdfast.ErrLost),
				"Release is pending while the engine does not answer", "%v", err)
		}
		a.Heal()
		e.settle()
		e.leavesNothing(e.key, e.handOver(), "an acquire that was given up while its outcome was unknown leaves nothing behind")
		e.release(e.holdWithin(e.patience(), b, e.key))
	}
}

// stallCases are cases of clients that are cut off, once more: their messages are not lost meanwhile, but arrive when they are back.
var stallCases = []testCase{
	stalled("G2_HolderKnowsFirst", holderKnowsFirst),
	stalled("G5_CancelWhileDisconnected", cancelWhileDisconnected),
	stalled("G5_CancelWhileWaitingDisconnected", cancelWhileWaitingDisconnected),
	stalled("G6_CutDuringAcquireAndRelease", cutDuringAcquireAndRelease),
	stalled("G6_GiveUpDuringCut", giveUpDuringCut),
	stalled("G10_PendingWhileCut", pendingWhileCut),
	stalled("G10_LateReleaseSparesTheSuccessor", lateReleaseSparesTheSuccessor),
	stalled("G11_CloseWhileCut", closeWhileCut),
	stalled("G16_SurvivesACut", dataSurvivesACut),
	stalled("G16_NeverAfterTheEnd", dataAfterTheEnd),
	stalled("G18_NothingHalfWhileCut", nothingHalfWhileCut),
}

// stalled is a case whose clients are stalled where they are cut off otherwise.
func stalled(name string, run func(e *env)) testCase {
	return testCase{name + "_Stalled", func(e *env) {
		e.stalls = true
		run(e)
	}}
}

// repetitionGrantsNoLonger loses the reply to each message of an acquisition. Another client waits for the key from then on, and the
// holder is cut off once it has repeated the message.
func repetitionGrantsNoLonger(e *env) {
	a, b := e.client(), e.client()
	e.needsLose(a)
	e.release(e.hold(b)) // an engine may take an unused key in another way
	for n := 1; n <= mostMessages; n++ {
		met := a.lose(n, LostReply)
		w := e.wait(a)
		e.eventually(e.engine.Lease/2, func() bool { return met() || isClosed(w.done) })
		known := make(chan bool, 1)
		other := e.waitKey(b, e.key, func(*holdfast.Lock) { known <- isClosed(w.done) && w.err == nil && w.lock.Err() != nil })
		e.eventually(e.patience(), func() bool { return isClosed(w.done) || isClosed(other.done) })
		last := !met()
		switch {
		case isClosed(other.done): // that message had not taken the key
			e.release(other.granted(0, ruleOne))
			e.releaseInTime(w.granted(e.handOver(), ruleOne), "the second client")
		case e.NeverExpires:
			a.Lose(nil)
			e.release(w.granted(0, "what is lost is sent again"))
			e.release(other.granted(e.handOver(), "a release lets the next in"))
		default:
			lock := w.granted(0, "what is lost is sent again")
			a.Cut()
			next := other.granted(e.handOver(), ruleExpires)
			if !<-known {
				e.refuted(ruleFirst, "the reply to message %d was lost, and another client was granted the key; the old Deadline is %v from now",
					n, time.Until(lock.Deadline()))
			}
			e.release(next)
			a.Heal()
		}
		if last {
			break
		}
	}
}

// givingUpAndClosing closes a client whose acquisition has given up with a message that has had its fate, and no other that arrived.
func givingUpAndClosing(e *env, fate Fate) {
	b := e.client()
	e.release(e.hold(b))
	for n := 1; n <= mostMessages; n++ {
		a := e.client()
		e.needsLose(a)
		i := 0
		met := false
		a.Lose(func() Fate {
			switch i++; {
			case i == n:
				met = true
				return fate
			case i == n+1:
				return LostRequest
			}
			return Arrives
		})
		sent := time.Now()
		if lock, err := a.Acquire(e.within(e.engine.Lease/8), e.key, holdfast.WithRetry(holdfast.Retry{Attempts: 1})); err == nil {
			e.releaseInTime(lock, fate.String())
		}
		err := a.Close(e.within(e.settling() + e.patience()))
		e.noError(err, "Close sees to what calls that have given up may have left", fmt.Sprintf("%v (message %d)", fate, n))
		a.Lose(nil) // and met may be read
		e.arrived(sent, fate)
		if fate == LateRequest && !e.NeverExpires { // what arrives after Close may have to go with its lease
			e.release(e.holdWithin(e.handOver(), b, e.key))
		}
		e.leavesNothing(e.key, 0, "Close returns nil only if nothing is left")
		if !met {
			break
		}
	}
}

// loses has each message of a call about a grant lost, and hands the key over then. A late message must not reach the next grant.
func (e *env) loses(fate Fate, call func(c *Client, lock *holdfast.Lock, info holdfast.Info) error, after func(lock, next *holdfast.Lock)) {
	a, b := e.client(), e.client()
	e.losing(b, fate, func(what string, lose func()) {
		lock := e.holdWithin(e.patience(), a, e.key)
		e.watches(a)
		info := e.inspect(b)
		lose()
		sent := time.Now()
		e.noError(call(b, lock, info), "a call whose messages are lost sends them again, and its result is that of the first", what)
		b.Lose(nil)
		if lock.Err() == nil {
			e.releaseInTime(lock, what)
		}
		next := e.holdWithin(e.patience(), a, e.key)
		e.arrived(sent, fate)
		e.isLive(next, "no request about a grant reaches the one after it")
		after(lock, next)
		e.releaseInTime(next, what)
	})
}

func askLoses(e *env, fate Fate) {
	e.loses(fate, func(c *Client, lock *holdfast.Lock, info holdfast.Info) error {
		err := c.Ask(e.within(e.patience()), info)
		if err == nil {
			e.asked(lock, e.engine.Notice)
		}
		return err
	}, func(_, next *holdfast.Lock) {
		e.brokenIf(isClosed(next.Asked()), ruleAskOnly, "Asked of the next grant is closed")
	})
}

func breakLoses(e *env, fate Fate) {
	e.loses(fate, func(c *Client, lock *holdfast.Lock, info holdfast.Info) error {
		err := c.Break(e.within(e.patience()), info)
		if err == nil {
			e.ends(lock, e.engine.Notice, "Break removes the grant that its Info describes", holdfast.ErrBroken)
		}
		return err
	}, func(_, _ *holdfast.Lock) {})
}

// askingTheDead goes on asking a holder that has died, while another client waits for its lease to run out.
func askingTheDead(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	e.hold(a)
	e.needs(!e.NeverExpires, "end a lease")
	w := e.wait(b).waits(c, e.key, 1)
	a.Cut()
	for began := time.Now(); !isClosed(w.done) && time.Since(began) < e.handOver(); time.Sleep(e.engine.Lease / 8) {
		info := e.inspect(c)
		err := c.Ask(e.soon(), info)
		e.brokenIf(err != nil && !isClosed(w.done) && !errors.Is(err, holdfast.ErrChanged) && !errors.Is(err, holdfast.ErrInvalid),
			"Ask returns nil once the engine has kept the wish", "%v", err)
	}
	e.release(w.granted(e.engine.Soon, "an ask does not make the lease of the one that is asked any longer"))
}
