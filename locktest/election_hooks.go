package locktest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

func hooksReportTerms(e *env) {
	a, l := e.watched()
	c := e.stands(a, nil)
	failed := errors.New("the work failed")
	var locks []*holdfast.Lock
	for i, end := range []func(*reign){
		func(r *reign) { r.leave(nil) },
		func(r *reign) {
			if err := r.lock.Extend(time.Millisecond); err != nil {
				e.Fatalf("%s: Extend: %v", e.rule, err)
			}
			r.ends(e, e.engine.Soon, "the ctx of lead ends with its lock", holdfast.ErrTTLExpired)
			time.Sleep(e.engine.Lease / 50)
			r.leave(r.ctx.Err())
		},
		func(r *reign) { r.leave(failed) },
	} {
		r := c.leads(e.turn(), ruleLossIsNo)
		locks = append(locks, r.lock)
		if n := i + 1; !e.eventually(e.engine.Soon, func() bool { return len(reported[termBegan](l)) == n }) {
			e.broken(ruleTerms, "term %d has begun; reported: %+v", n, reported[termBegan](l))
		}
		time.Sleep(e.engine.Lease / 50)
		end(r)
	}
	c.returns(e.patience(), ruleReturned, failed)
	e.closed(a, l)
	began, ended, granted := reported[termBegan](l), reported[termEnded](l), reported[outcome](l)
	if len(began) != len(locks) || len(ended) != len(locks) {
		e.broken(ruleTerms, "%d terms; reported: %+v and %+v", len(locks), began, ended)
	}
	for i, lock := range locks {
		want := termBegan{ID: granted[i].ID, Time: began[i].Time, Key: e.key, Owner: a.Owner(), Token: lock.Token()}
		if began[i] != want {
			e.broken(ruleTerms, "%+v, want %+v", began[i], want)
		}
		want.Time, want.Led, want.Over = ended[i].Time, ended[i].Led, ended[i].Over
		want.Cause, want.Err = []error{nil, lock.Err(), nil}[i], []error{nil, nil, failed}[i]
		if termBegan(ended[i]) != want {
			e.broken(ruleTerms, "%+v, want %+v", ended[i], want)
		}
		if led := ended[i].Led; led < e.engine.Lease/50 || led > e.patience() || (ended[i].Over > 0) != (i == 1) {
			e.broken(ruleTerms, "the term was reported to have taken %v, of which %v after its end: %+v", led, ended[i].Over, ended[i])
		}
	}
}
