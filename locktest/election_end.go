package locktest

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast"
)

func resignWaitsForLead(e *env) {
	a, b := e.client(), e.client()
	c := e.candidate(a, nil)
	const grace = time.Hour
	e.noError(c.Resign(e.soon()), ruleResign, "of a candidate that does not run")
	e.noError(c.Check(0), ruleCheck, "of a candidate that does not run")
	lock := e.hold(b)
	c.run()
	e.queued(b, e.key, 1)
	e.noError(c.Resign(e.soon()), ruleResign, "of a candidate that does not lead")
	e.release(lock)
	r := c.leads(e.turn(), "Resign of a candidate that does not lead changes nothing")
	w := e.wait(b).waits(b, e.key, 1)
	e.noError(c.Check(0), ruleCheck, "of a leader")
	resigned := make(chan error, 2)
	for range cap(resigned) {
		go func() { resigned <- c.Resign(e.within(e.patience())) }()
	}
	r.ends(e, e.engine.Soon, "Resign ends the ctx of lead", holdfast.ErrResigned)
	time.Sleep(e.engine.Lease / 20)
	e.brokenIf(len(resigned) > 0, ruleResign, "it has returned, and lead has not")
	e.noError(c.Check(grace), ruleCheck, "within grace")
	for _, want := range []error{holdfast.ErrOverdue, holdfast.ErrResigned} {
		e.failsWith(c.Check(e.engine.Lease/40), want, ruleCheck)
	}
	r.leave(r.ctx.Err())
	for range cap(resigned) {
		e.noError(e.result(resigned, e.patience(), ruleResign), ruleResign)
	}
	e.noError(c.Check(0), ruleCheck, "lead has returned")
	e.endedBy(r.lock, "a leader that resigns releases", holdfast.ErrReleased)
	e.release(e.succeeds(w, c, "Resign hands over to the next"))
	c.leads(e.turn(), "a candidate that has resigned stands again")
}

// succeeds returns the lock of a waiter after the end of a term. Where there is no queue, the
// candidate may be quicker: then it steps down again, a few times.
func (e *env) succeeds(w *waiter, c *candidate, rule string) *holdfast.Lock {
	for range 5 {
		select {
		case <-w.done:
			return w.granted(0, rule)
		case r := <-c.reigns:
			e.brokenIf(e.Ordered, rule, "the candidate leads again")
			time.Sleep(e.engine.Lease / 20)
			r.leave(nil)
		case <-time.After(e.turn()):
			e.broken(rule, "the key is free after %v", e.turn())
		}
	}
	return w.granted(0, rule)
}

// resignAsRelease resigns with a ctx that is done, in lead, after a loss, and in an outage.
func resignAsRelease(e *env) {
	a, b := e.client(), e.client()
	c, r := e.elected(a, nil)
	err := c.Resign(e.done())
	e.brokenIf(!errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, context.Canceled), ruleResign, "its ctx is done: %v", err)
	r.ends(e, e.engine.Soon, "Resign ends the ctx of lead, even if its own is done", holdfast.ErrResigned)
	r.leave(nil)

	r = c.leads(e.turn(), "a candidate that has resigned stands again")
	within := make(chan error, 1)
	r.returns <- func() error {
		within <- c.Resign(r.ctx)
		return nil
	}
	e.failsWith(e.result(within, e.engine.Soon, "Resign in lead does not wait for itself"), holdfast.ErrReleasePending, ruleResign)

	r = c.leads(e.turn(), "a candidate that has resigned stands again")
	e.breaks(b, e.key)
	r.ends(e, e.engine.Notice, "the ctx of lead ends with its lock", holdfast.ErrBroken)
	resigned := later(func() error { return c.Resign(e.within(e.patience())) })
	time.Sleep(e.engine.Lease / 20)
	r.leave(nil)
	e.mayFail(e.result(resigned, e.patience(), ruleResign), holdfast.ErrBroken, ruleResign) // nil if lead had returned

	r = c.leads(e.turn(), ruleLossIsNo)
	a.Cut()
	r.leave(nil)
	time.Sleep(e.engine.Lease / 20)
	e.failsWith(c.Resign(e.within(e.engine.Lease/20)), holdfast.ErrReleasePending, ruleResign, "after lead, in an outage")
	a.Heal()
	c.leads(e.turn(), "a candidate that could not give the key back stands again")
}

func stepsDownWhenAsked(e *env) {
	a, b := e.client(), e.client()
	_, term := e.elected(a, &holdfast.ElectionOptions{StepDownWhenAsked: true})
	proud := e.stands(b, nil)
	e.queued(b, e.key, 1)
	e.asks(b, e.key)
	term.ends(e, e.engine.Notice, "a leader that is asked steps down, if it is to", holdfast.ErrAsked)
	time.Sleep(e.engine.Lease / 20)
	proud.follows(ruleAfterLead)
	term.leave(term.ctx.Err())
	next := proud.leads(e.turn(), ruleBehind)
	e.asks(a, e.key)
	e.asked(next.lock, e.engine.Notice)
	e.settle()
	e.brokenIf(next.ctx.Err() != nil,
		"a leader that is asked leads on, unless it is to step down", "its ctx has ended: %v", context.Cause(next.ctx))
}

// whatLeadReturns ends Run in each way that lead can. Meanwhile a second Run fails.
func whatLeadReturns(e *env) {
	c := e.candidate(e.client(), nil)
	leads := func() *reign {
		r := c.run().leads(e.turn(), "an election may run again")
		err := c.Run(e.soon(), func(context.Context, *holdfast.Lock) error { return holdfast.ErrWithdrawn })
		e.failsWith(err, holdfast.ErrRunning, "an election runs once at a time")
		e.isLive(r.lock, "a second Run ends no term")
		return r
	}
	failed := errors.New("the work failed")
	for returned, want := range map[error]error{
		failed: failed, holdfast.ErrWithdrawn: nil, context.DeadlineExceeded: context.DeadlineExceeded, // of its own work: the term has not ended
	} {
		leads().leave(returned)
		c.returns(e.patience(), ruleReturned, want)
		e.leavesNothing(e.key, e.engine.Soon, "the key is given back when Run returns")
	}
	for _, want := range []any{nil, "stop"} {
		leads().returns <- func() error {
			if want != nil {
				panic(want)
			}
			runtime.Goexit()
			return nil
		}
		const rule = "Run ends when lead panics or ends its goroutine, and swallows no panic"
		e.brokenIf(!e.closes(c.over, e.patience()) || c.panicked != want, rule, "recovered %v, want %v", c.panicked, want)
		e.leavesNothing(e.key, e.engine.Soon, rule)
	}
}

func leaderTells(e *env) {
	a, b := e.client(), e.client()
	one := e.candidate(a, &holdfast.ElectionOptions{Candidacy: []holdfast.Option{
		holdfast.WithOwner("candidate one"), holdfast.WithData([]byte("10.0.0.1:80")),
	}})
	two := e.candidate(b, nil)
	leader := func(of *candidate) holdfast.Info {
		info, err := of.Leader(e.soon())
		e.brokenIf(err != nil || info.Key != e.key, ruleLeader, "%+v, %v", info, err)
		return info
	}
	e.brokenIf(leader(two).Held || two.Term() != nil, ruleLeader, "of a free key: %+v, Term %v", leader(two), two.Term())
	r := one.run().leads(e.engine.Soon, ruleElected)
	two.run()
	e.queued(b, e.key, 1)
	for _, of := range []*candidate{one, two} {
		info := leader(of)
		e.brokenIf(!info.Held || info.Owner != "candidate one" || string(info.Data) != "10.0.0.1:80" || info.Token != r.lock.Token(),
			ruleLeader, "%+v; the lock of the term has token %v", info, r.lock.Token())
	}
	e.brokenIf(one.Term() != r.lock || two.Term() != nil,
		"Term is the lock of the leader", "of the leader: %v, of another: %v", one.Term(), two.Term())
	o := e.observing(two.Observe, nil)
	o.holds(r.lock, ruleLeader)
	r.leave(nil)
	second := two.leads(e.turn(), ruleBehind)
	o.holds(second.lock, ruleLeader)
	info := leader(one)
	e.brokenIf(info.Owner != b.Owner() || info.Token != second.lock.Token() || one.Term() != nil, ruleLeader, "after a hand-over: %+v", info)
}

func runEnds(e *env) {
	a, b := e.client(), e.client()
	lock := e.hold(b)
	c := e.stands(a, nil)
	e.queued(b, e.key, 1)
	c.stop()
	c.returns(e.engine.Soon, ruleRunEnds, context.Canceled)
	e.queued(b, e.key, 0)
	err := c.Run(e.done(), func(context.Context, *holdfast.Lock) error { return nil })
	e.failsWith(err, context.Canceled, ruleRunEnds, "with a ctx that is done")
	e.release(lock)
	e.leavesNothing(e.key, e.engine.Soon, ruleRunEnds)

	r := c.run().leads(e.turn(), ruleElected)
	c.stop()
	r.ends(e, e.engine.Soon, "the ctx of lead ends with that of Run", context.Canceled)
	r.leave(nil)
	c.returns(e.patience(), ruleRunEnds, context.Canceled)
	e.leavesNothing(e.key, e.engine.Soon, ruleRunEnds)

	r = c.run().leads(e.turn(), ruleElected)
	waiting := e.candidateFor(a, e.key, nil).run() // a second candidate of the same client
	closed := later(func() error { return a.Close(e.within(e.patience())) })
	r.ends(e, e.engine.Soon, "the ctx of lead ends when the client is closed", holdfast.ErrClosed)
	waiting.returns(e.engine.Soon, ruleRunEnds, holdfast.ErrClosed)
	r.leave(nil)
	e.noError(receive(e, closed, e.patience(), "Close returns when lead has", "it has not"),
		"Close returns nil when lead has returned and the key is given back")
	c.returns(e.patience(), ruleRunEnds, holdfast.ErrClosed)
	e.leavesNothing(e.key, e.engine.Soon, ruleRunEnds)
	waiting.run().returns(e.engine.Soon, ruleRunEnds, holdfast.ErrClosed)
}

func eventsReportTerms(e *env) {
	a, l := e.watched()
	c := e.stands(a, nil)
	failed := errors.New("the work failed")
	var locks []*holdfast.Lock
	for i, end := range []func(*reign){
		func(r *reign) { r.leave(nil) },
		func(r *reign) {
			e.noError(r.lock.Extend(time.Millisecond), ruleAnswers, "Extend")
			r.ends(e, e.engine.Soon, "the ctx of lead ends with its lock", holdfast.ErrTTLExpired)
			time.Sleep(e.engine.Lease / 50)
			r.leave(r.ctx.Err())
		},
		func(r *reign) { r.leave(failed) },
	} {
		r := c.leads(e.turn(), ruleLossIsNo)
		locks = append(locks, r.lock)
		n := i + 1
		e.brokenIf(!e.eventually(e.engine.Soon, func() bool { return len(l.of(holdfast.TermBegan)) == n }),
			ruleTerms, "term %d has begun; reported: %+v", n, l.of(holdfast.TermBegan))
		time.Sleep(e.engine.Lease / 50)
		end(r)
	}
	c.returns(e.patience(), ruleReturned, failed)
	e.closed(a, l)
	began, ended, granted := l.of(holdfast.TermBegan), l.of(holdfast.TermEnded), l.of(outcomes...)
	e.brokenIf(len(began) != len(locks) || len(ended) != len(locks), ruleTerms, "%d terms; reported: %+v and %+v", len(locks), began, ended)
	for i, lock := range locks {
		want := holdfast.Event{
			Seq: began[i].Seq, Kind: holdfast.TermBegan, Time: began[i].Time, ID: granted[i].ID, Key: e.key, Owner: a.Owner(), Token: lock.Token(),
		}
		e.brokenIf(began[i] != want, ruleTerms, "%+v, want %+v", began[i], want)
		want.Seq, want.Kind, want.Time, want.Took = ended[i].Seq, holdfast.TermEnded, ended[i].Time, ended[i].Took
		want.Cause, want.Err = []error{nil, lock.Err(), nil}[i], []error{nil, nil, failed}[i]
		e.brokenIf(ended[i] != want, ruleTerms, "%+v, want %+v", ended[i], want)
		e.brokenIf(want.Took < e.engine.Lease/50 || want.Took > e.patience(), ruleTerms, "reported to have taken %v", want.Took)
	}
}
