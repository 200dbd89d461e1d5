package locktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

var electionCases = []testCase{
	{"G15_OneTermAtATime", oneTermAtATime},
	{"G15_GivenBackAfterLead", givenBackAfterLead},
	{"G15_TermEndsFirst", termEndsFirst},
	{"G15_TermEndsByForce", termEndsByForce},
	{"G15_StandsAgainAfterALoss", standsAgainAfterALoss},
	{"G15_StandsAgainBehindOthers", standsAgainBehindOthers},
	{"G15_UnfitDoesNotStand", unfitDoesNotStand},
	{"G15_UnfitStepsDown", unfitStepsDown},
	{"G15_ResignWaitsForLead", resignWaitsForLead},
	{"G15_ResignAsRelease", resignAsRelease},
	{"G15_StepsDownWhenAsked", stepsDownWhenAsked},
	{"G15_WhatLeadReturns", whatLeadReturns},
	{"G15_LeaderTells", leaderTells},
	{"G15_RunEnds", runEnds},
	{"G15_OnEventReportsTerms", eventsReportTerms},
}

const (
	ruleElected   = "a candidate is elected when the key is free"
	ruleOneTerm   = "at most one candidate leads at a time, in one call of lead"
	ruleAfterLead = "the key is given back when lead has returned, never before"
	ruleTermFirst = "the ctx of lead ends before another candidate leads"
	ruleLossIsNo  = "to lose a term is no error: the candidate stands again"
	ruleBehind    = "a candidate that stepped down stands again behind the candidates that wait"
	ruleUnfit     = "a candidate that is unfit does not lead, and stands when it is fit"
	ruleResign    = "Resign ends the term, waits for lead and for the engine, and reports as Release does"
	ruleCheck     = "Check fails when lead still runs a while after the end of its ctx, and only then"
	ruleReturned  = "Run returns what lead returns, and nil for ErrWithdrawn"
	ruleLeader    = "Leader tells the leader, with the leader's data"
	ruleRunEnds   = "Run returns when its ctx ends or its client is closed, and leaves nothing"
	ruleTerms     = "OnEvent receives the beginning and the end of each term"
)

// oneTermAtATime has candidates lead in turn, each several times.
func oneTermAtATime(e *env) {
	const n, each = 3, 2
	var leading crowd
	var mu sync.Mutex
	var tokens []holdfast.Token
	var all []*candidate
	for range n {
		c := e.candidate(e.client(), nil)
		c.during = func(r *reign) {
			leave := leading.enter(e, ruleOneTerm, r.lock)
			mu.Lock()
			tokens = append(tokens, r.lock.Token())
			mu.Unlock()
			time.Sleep(e.engine.Lease / 50)
			leave()
			r.leave(nil)
		}
		all = append(all, c.run())
	}
	for range each {
		for _, c := range all {
			c.leads(n*e.turn(), "every candidate leads in the end")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	e.brokenIf(!e.Tokenless && !slices.IsSorted(tokens), "the token of a term is greater than those before", "%v", tokens)
}

// givenBackAfterLead ends terms in all ways that leave the lock live.
func givenBackAfterLead(e *env) {
	b := e.client()
	for way, cause := range map[string]error{
		"ctx": context.Canceled, "Resign": holdfast.ErrResigned, "unfit": holdfast.ErrUnfit, "Close": holdfast.ErrClosed,
	} {
		a, key, f := e.client(), e.prefix+way, &fitness{}
		c := e.candidateFor(a, key, &holdfast.ElectionOptions{FitEvery: e.engine.Soon / 10, Fit: f.fit}).run()
		r := c.leads(e.engine.Soon, ruleElected)
		w := e.waitKey(b, key, nil).waits(b, key, 1)
		switch way {
		case "ctx":
			c.stop()
		case "Resign":
			go c.Resign(e.within(e.patience()))
		case "unfit":
			f.set(errors.New("unfit"))
		case "Close":
			go a.Close(e.within(e.patience()))
		}
		r.ends(e, e.engine.Soon, "the ctx of lead ends by "+way, cause)
		time.Sleep(e.engine.Lease / 5)
		w.stillWaits(ruleAfterLead + ": by " + way)
		if way != "Close" {
			e.isLive(r.lock, ruleAfterLead+": by "+way)
		}
		e.brokenIf(c.Term() != nil, "Term is nil when the term is over", "after the end by %s it is %v", way, c.Term())
		r.leave(nil)
		e.release(e.succeeds(w, c, "the key is given back when lead has returned: by "+way))
	}
}

// termEndsFirst has another candidate elected after the silence of a leader.
func termEndsFirst(e *env) {
	ways := map[string]func(*Client){"cut": func(c *Client) { c.Cut() }}
	if pause := e.client(); pause.Pause != nil {
		ways["pause"] = func(c *Client) { c.Pause() }
	}
	for name, silence := range ways {
		key := e.prefix + name
		a, b := e.client(), e.client()
		one := e.candidateFor(a, key, nil).run()
		first := one.leads(e.engine.Soon, ruleElected)
		two := e.candidateFor(b, key, nil)
		early := make(chan bool, 1)
		two.during = func(*reign) { early <- first.ctx.Err() == nil }
		two.run()
		e.queued(b, key, 1)
		silence(a)
		if e.NeverExpires {
			time.Sleep(e.engine.Lease * 3 / 2)
			two.follows(ruleForever)
			e.brokenIf(first.ctx.Err() != nil, ruleForever, "the ctx of lead has ended by %s: %v", name, context.Cause(first.ctx))
			continue
		}
		second := two.leads(e.handOver(), "another candidate is elected when the leader's lease has passed")
		e.brokenIf(<-early, ruleTermFirst, "it had not ended, by %s; Err of the lock: %v", name, first.lock.Err())
		first.ends(e, 0, "the ctx of lead ends with its lock", expired...)
		e.newer(second.lock.Token(), first.lock.Token(), "the token of a term is greater than those before")
		e.brokenIf(one.Term() != nil || two.Term() != second.lock,
			"Term is the lock of the leader", "of the former leader: %v, of the new one: %v", one.Term(), two.Term())
	}
}

// termEndsByForce ends the lock of a leader.
func termEndsByForce(e *env) {
	a, b := e.client(), e.client()
	c := e.stands(a, nil)
	for name, end := range e.ways(a, b) {
		r := c.leads(e.turn(), ruleLossIsNo)
		want := end(r.lock)
		r.ends(e, e.engine.Soon, "the ctx of lead ends with its lock: by "+name, want)
		cause := context.Cause(r.ctx)
		e.brokenIf(cause != r.lock.Err(), "the cause of the end of lead's ctx is that of the lock", "%v and %v", cause, r.lock.Err())
		r.leave(r.ctx.Err())
	}
	limited := e.candidateFor(a, e.prefix+"limited", &holdfast.ElectionOptions{
		Candidacy: []holdfast.Option{holdfast.WithTTL(e.engine.Lease / 10)},
	}).run()
	r := limited.leads(e.engine.Soon, ruleElected)
	r.ends(e, e.engine.Lease/10+e.engine.Soon, "WithTTL limits a term", holdfast.ErrTTLExpired)
	e.release(e.holdWithin(e.turn(), b, e.prefix+"limited"))
	r.leave(context.Cause(r.ctx))
	limited.leads(e.turn(), ruleLossIsNo)
}

// standsAgainAfterALoss has a lead run on after the loss of its lock, while another candidate leads.
func standsAgainAfterALoss(e *env) {
	a, b := e.client(), e.client()
	one, first := e.elected(a, nil)
	two := e.stands(b, nil)
	e.queued(b, e.key, 1)
	causes := expired
	if e.NeverExpires {
		a.Cut()
		time.Sleep(e.engine.Lease)
		e.breaks(b, e.key)
		a.Heal()
		causes = []error{holdfast.ErrBroken}
	} else {
		a.dies()
	}
	first.ends(e, e.handOver(), "the ctx of lead ends with its lock", causes...)
	second := two.leads(e.handOver(), "another candidate is elected when the leader's lease has passed")
	a.Heal()
	second.leave(holdfast.ErrWithdrawn)
	two.returns(e.patience(), ruleReturned, nil)
	time.Sleep(e.engine.Lease / 5) // for what must not happen
	e.brokenIf(one.overlaps.Load() > 0 || len(one.reigns) > 0, ruleOneTerm, "lead was called again before the call before had returned")
	first.leave(first.lock.Err())
	one.leads(e.turn(), ruleLossIsNo)
}

func standsAgainBehindOthers(e *env) {
	a, b := e.client(), e.client()
	one, first := e.elected(a, nil)
	two := e.stands(b, nil)
	e.queued(b, e.key, 1)
	// Terms are long enough for the other to wait as others do. Otherwise the pause after a term
	// would hold the former leader back, not its place; or each would let the other go first.
	long := time.Second + e.engine.Lease/2
	for range 2 {
		second := e.stepsDown(one, first, two, long)
		first = e.stepsDown(two, second, one, long)
	}
}

// stepsDown has a leader step down, and returns the term of the other. Without a queue the
// other may be too slow to see that the key is free, but not always.
func (e *env) stepsDown(leader *candidate, term *reign, other *candidate, long time.Duration) *reign {
	tries := 5
	if e.Ordered {
		tries = 1
	}
	for range tries {
		time.Sleep(long)
		term.leave(nil)
		select {
		case next := <-other.reigns:
			leader.follows(ruleBehind)
			return next
		case term = <-leader.reigns:
		case <-time.After(e.turn()):
			e.broken(ruleBehind, "no candidate leads after %v", e.turn())
		}
	}
	e.broken(ruleBehind, "the candidate that stepped down leads again, %d times of %d", tries, tries)
	panic("not reached")
}

func unfitDoesNotStand(e *env) {
	a, b := e.client(), e.client()
	every := e.engine.Lease / 50
	f := &fitness{}
	f.set(errors.New("still warming up"))
	c := e.stands(a, &holdfast.ElectionOptions{Fit: f.fit, FitEvery: every})
	asked := func(n int64) {
		before := f.asked.Load()
		e.brokenIf(!e.eventually(e.patience(), func() bool { return f.asked.Load() >= before+n }),
			"Fit is asked every FitEvery", "not %d times within %v", n, e.patience())
	}
	asked(3)
	c.follows(ruleUnfit)
	lock := e.takes(b, e.key, ruleUnfit)
	f.set(nil)
	asked(3)
	e.queued(b, e.key, 1)
	f.set(errors.New("lost its disk"))
	asked(2)
	e.queued(b, e.key, 0)
	e.release(lock)
	asked(3)
	c.follows(ruleUnfit)
	f.set(nil)
	c.leads(e.turn(), ruleUnfit)
}

func unfitStepsDown(e *env) {
	a, b := e.client(), e.client()
	every := e.engine.Lease / 20
	f := &fitness{}
	one := e.stands(a, &holdfast.ElectionOptions{Fit: f.fit, FitEvery: every})
	first := one.leads(e.engine.Soon, ruleElected)
	two := e.stands(b, nil)
	time.Sleep(2 * every)
	e.brokenIf(first.ctx.Err() != nil, "a leader that is fit goes on leading", "%v", context.Cause(first.ctx))
	full := errors.New("the disk is full")
	f.set(full)
	first.ends(e, every+e.engine.Soon, "a leader that is unfit steps down within FitEvery", holdfast.ErrUnfit)
	first.ends(e, 0, "the cause of the end of lead's ctx has the error of Fit", full)
	first.leave(first.ctx.Err())
	two.leads(e.turn(), ruleBehind)
	one.follows(ruleUnfit)
}
