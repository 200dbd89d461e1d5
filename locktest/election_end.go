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
	e.noError(c.Resign(e.soon()), ruleResign, "of a candidate that does not run")
	lock := e.hold(b)
	c.run()
	e.queued(b, e.key, 1)
	e.noError(c.Resign(e.soon()), ruleResign, "of a candidate that does not lead")
	e.release(lock)
	r := c.leads(e.turn(), "Resign of a candidate that does not lead changes nothing")
	w := e.wait(b).waits(b, e.key, 1)
	resigned := make(chan error, 2)
	for range cap(resigned) {
		go func() { resigned <- c.Resign(e.within(e.patience())) }()
	}
	r.ends(e, e.engine.Soon, "Resign ends the ctx of lead", holdfast.ErrResigned)
	time.Sleep(e.engine.Lease / 20)
	e.brokenIf(len(resigned) > 0, ruleResign, "it has returned, and lead has not")
	r.leave(r.ctx.Err())
	for range cap(resigned) {
		e.noError(receive(e, resigned, e.patience(), ruleResign, "it has not returned"), ruleResign)
	}
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
			e.brokenIf(e.engine.Ordered, rule, "the candidate leads again")
			time.Sleep(e.engine.Lease / 20)
			r.leave(nil)
		case <-time.After(e.turn()):
			e.broken(rule, "nobody has the key after %v", e.turn())
		}
	}
	return w.granted(0, rule)
}

// resignAsRelease resigns with a ctx that is done, in an outage, after a loss, and in lead.
func resignAsRelease(e *env) {
	a, b := e.client(), e.client()
	c := e.stands(a, nil)
	r := c.leads(e.engine.Soon, ruleElected)
	done, cancel := context.WithCancel(e.ctx)
	cancel()
	if err := c.Resign(done); !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, context.Canceled) {
		e.broken(ruleResign, "with a ctx that is done: %v", err)
	}
	r.ends(e, e.engine.Soon, "Resign ends the ctx of lead, even if its own is done", holdfast.ErrResigned)
	r.leave(nil)

	r = c.leads(e.turn(), "a candidate that has resigned stands again")
	within := make(chan error, 1)
	r.returns <- func() error {
		within <- c.Resign(r.ctx)
		return nil
	}
	e.failsWith(receive(e, within, e.engine.Soon, "Resign in lead, with its ctx, does not wait for itself", "it has not returned"), holdfast.ErrReleasePending, ruleResign, "in lead")

	r = c.leads(e.turn(), "a candidate that has resigned stands again")
	e.breaks(b, e.key)
	r.ends(e, e.engine.Notice, "the ctx of lead ends with its lock", holdfast.ErrBroken)
	resigned := make(chan error, 1)
	go func() { resigned <- c.Resign(e.within(e.patience())) }()
	time.Sleep(e.engine.Lease / 20)
	r.leave(nil)
	if err := receive(e, resigned, e.patience(), ruleResign, "it has not returned"); err != nil && !errors.Is(err, holdfast.ErrBroken) {
		e.broken(ruleResign, "after a loss: %v", err) // nil if lead had returned
	}

	r = c.leads(e.turn(), ruleLossIsNo)
	a.Cut()
	r.leave(nil)
	if err := c.Resign(e.within(e.engine.Lease / 20)); err != nil && !errors.Is(err, holdfast.ErrReleasePending) {
		e.broken(ruleResign, "in an outage: %v", err) // nil if lead had returned
	}
	a.Heal()
	c.leads(e.turn(), "a candidate that could not give the key back stands again")
}

func stepsDownWhenAsked(e *env) {
	a, b := e.client(), e.client()
	obeys := e.stands(a, &holdfast.ElectionOptions{StepDownWhenAsked: true})
	term := obeys.leads(e.engine.Soon, ruleElected)
	proud := e.stands(b, nil)
	e.queued(b, e.key, 1)
	ask := func(c *Client) {
		e.noError(c.Ask(e.soon(), e.inspect(c)), ruleAnswers, "Ask")
	}
	ask(b)
	term.ends(e, e.engine.Notice, "a leader that is asked steps down, if it is to", holdfast.ErrAsked)
	time.Sleep(e.engine.Lease / 20)
	proud.follows(ruleAfterLead)
	term.leave(term.ctx.Err())
	next := proud.leads(e.turn(), ruleBehind)
	ask(a)
	if !e.closes(next.lock.Asked(), e.engine.Notice) {
		e.Fatalf("%s: the leader was not told that it was asked", e.rule)
	}
	e.settle()
	e.brokenIf(next.ctx.Err() != nil,
		"a leader that is asked leads on, unless it is to step down", "its ctx has ended: %v", context.Cause(next.ctx))
}

func checkTellsAnOverdueLead(e *env) {
	a := e.client()
	grace := e.engine.Lease / 10
	c := e.candidate(a, nil)
	well := func(when string, grace time.Duration) {
		if err := c.Check(grace); err != nil {
			e.broken(ruleCheck, "%s: %v", when, err)
		}
	}
	well("before Run", 0)
	c.run()
	r := c.leads(e.engine.Soon, ruleElected)
	time.Sleep(grace)
	well("while leading", 0)
	for range 2 {
		go c.Resign(e.within(e.patience()))
		r.ends(e, e.engine.Soon, "Resign ends the ctx of lead", holdfast.ErrResigned)
		time.Sleep(grace / 2)
		well("within grace", e.patience())
		e.brokenIf(!e.eventually(grace+e.engine.Soon, func() bool { return c.Check(grace) != nil }),
			ruleCheck, "lead runs, and its ctx ended more than %v ago: nil", grace)
		if err := c.Check(grace); !errors.Is(err, holdfast.ErrOverdue) || !errors.Is(err, holdfast.ErrResigned) {
			e.broken(ruleCheck, "it is to match ErrOverdue, and why the term ended: %v", err)
		}
		r.leave(nil)
		if !e.eventually(e.engine.Soon, func() bool { return c.Check(0) == nil }) {
			e.broken(ruleCheck, "lead has returned: %v", c.Check(0))
		}
		r = c.leads(e.turn(), "a candidate that has resigned stands again")
	}
}

// whatLeadReturns ends Run in each way that lead can.
func whatLeadReturns(e *env) {
	a := e.client()
	c := e.candidate(a, nil)
	failed := errors.New("the work failed")
	for _, way := range []struct {
		returns, want error
	}{
		{failed, failed},
		{holdfast.ErrWithdrawn, nil},
		{context.DeadlineExceeded, context.DeadlineExceeded}, // of its own work: the term has not ended
	} {
		c.run().leads(e.turn(), "an election may run again").leave(way.returns)
		c.returns(e.patience(), ruleReturned, way.want)
		e.brokenIf(way.want == nil && c.err != nil, ruleReturned, "it returned %v for ErrWithdrawn", c.err)
		e.leavesNothing(e.key, e.engine.Soon, "the key is given back when Run returns")
	}
	c.run().leads(e.turn(), "an election may run again").returns <- func() error { panic("stop") }
	e.brokenIf(!e.closes(c.over, e.patience()) || c.panicked != "stop",
		"Run does not swallow a panic of lead", "it returned %v, recovered %v", c.err, c.panicked)
	e.leavesNothing(e.key, e.engine.Soon, "the key is given back when lead panics")
	c.run().leads(e.turn(), "an election may run again").returns <- func() error { runtime.Goexit(); return nil }
	e.brokenIf(!e.closes(c.over, e.patience()), "Run ends when lead ends its goroutine", "it has not")
	e.leavesNothing(e.key, e.engine.Soon, "the key is given back when lead ends its goroutine")
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
	if info := leader(two); info.Held || two.Term() != nil {
		e.broken(ruleLeader, "nobody leads: %+v, Term %v", info, two.Term())
	}
	r := one.run().leads(e.engine.Soon, ruleElected)
	two.run()
	e.queued(b, e.key, 1)
	for _, of := range []*candidate{one, two} {
		info := leader(of)
		e.brokenIf(!info.Held || info.Owner != "candidate one" || string(info.Data) != "10.0.0.1:80" || info.Token != r.lock.Token(),
			ruleLeader, "%+v; the lock of the term has token %v", info, r.lock.Token())
	}
	e.brokenIf(one.Term() != r.lock || two.Term() != nil,
		"Term is the lock of who leads", "of the leader: %v, of another: %v", one.Term(), two.Term())
	told := make(chan holdfast.Token, 100)
	ctx, cancel := context.WithCancel(e.ctx)
	over := make(chan struct{})
	e.Cleanup(func() {
		cancel()
		e.closes(over, e.patience())
	})
	go func() {
		defer close(over)
		for info, err := range two.Observe(ctx) {
			if err == nil && info.Held {
				told <- info.Token
			}
		}
	}()
	observes := func(want holdfast.Token) {
		const rule = "Observe tells who leads"
		got := receive(e, told, e.turn(), rule, "it has told nothing")
		e.brokenIf(got != want, rule, "the token of the leader is %v, it told %v", want, got)
	}
	observes(r.lock.Token())
	r.leave(nil)
	second := two.leads(e.turn(), ruleBehind)
	observes(second.lock.Token())
	if info := leader(one); info.Owner != b.Owner() || info.Token != second.lock.Token() || one.Term() != nil {
		e.broken(ruleLeader, "after a hand-over: %+v", info)
	}
}

func runEnds(e *env) {
	a, b := e.client(), e.client()
	lock := e.hold(b)
	c := e.stands(a, nil)
	e.queued(b, e.key, 1)
	c.stop()
	c.returns(e.engine.Soon, ruleRunEnds, context.Canceled)
	e.queued(b, e.key, 0)
	done, cancel := context.WithCancel(e.ctx)
	cancel()
	e.failsWith(c.Run(done, func(context.Context, *holdfast.Lock) error { return nil }), context.Canceled, ruleRunEnds, "with a ctx that is done")
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
	closed := make(chan error, 1)
	go func() { closed <- a.Close(e.within(e.patience())) }()
	r.ends(e, e.engine.Soon, "the ctx of lead ends when the client is closed", holdfast.ErrClosed)
	waiting.returns(e.engine.Soon, ruleRunEnds, holdfast.ErrClosed)
	r.leave(nil)
	e.noError(receive(e, closed, e.patience(), "Close returns when lead has", "it has not"), "Close returns nil when lead has returned and the key is given back")
	c.returns(e.patience(), ruleRunEnds, holdfast.ErrClosed)
	e.leavesNothing(e.key, e.engine.Soon, ruleRunEnds)
	waiting.run().returns(e.engine.Soon, ruleRunEnds, holdfast.ErrClosed)
}

func runTwice(e *env) {
	a := e.client()
	c := e.stands(a, nil)
	r := c.leads(e.engine.Soon, ruleElected)
	for range 2 {
		err := c.Run(e.within(e.engine.Lease/10), func(context.Context, *holdfast.Lock) error { return holdfast.ErrWithdrawn })
		e.brokenIf(!errors.Is(err, holdfast.ErrRunning), ruleRunning, "the second Run returned %v", err)
	}
	e.isLive(r.lock, ruleRunning)
	r.leave(holdfast.ErrWithdrawn)
	c.returns(e.patience(), ruleReturned, nil)
	c.run().leads(e.turn(), "an election may run again").leave(holdfast.ErrWithdrawn)
}
