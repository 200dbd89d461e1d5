package locktest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

// fitness is a Fit that a case sets, and the number of times it was asked.
type fitness struct {
	unfit atomic.Pointer[error]
	asked atomic.Int64
}

func (f *fitness) set(err error) { f.unfit.Store(&err) }

func (f *fitness) fit(context.Context) error {
	f.asked.Add(1)
	if err := f.unfit.Load(); err != nil {
		return *err
	}
	return nil
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

	key := e.prefix + "slow"
	slow := e.candidateFor(a, key, &holdfast.ElectionOptions{FitEvery: every, Fit: func(ctx context.Context) error {
		if f.asked.Add(1); f.unfit.Load() == nil {
			return nil
		}
		<-ctx.Done()
		return nil // it took too long to say so
	}})
	f.unfit.Store(nil)
	third := slow.run().leads(e.engine.Soon, ruleElected)
	f.set(full)
	third.ends(e, 2*every+e.engine.Soon, "a leader whose Fit does not answer steps down", holdfast.ErrUnfit)
	third.leave(nil)
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
