package locktest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

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
		if led := ended[i].Took; led < e.engine.Lease/50 || led > e.patience() {
			e.broken(ruleTerms, "the term was reported to have taken %v: %+v", led, ended[i])
		}
	}
}
