package dynamolock

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

// The first to come of those who do not rest leads, in whatever order they rest and leave.
func TestLeadOfALine(t *testing.T) {
	e, _ := fuzzEngine(t, Options{})
	var places []*waiter // in the order of arrival; nil for one that has left
	resting := map[*waiter]bool{}
	for range 20_000 {
		i := rand.IntN(len(places) + 1)
		switch {
		case i == len(places):
			places = append(places, e.lines.join("k", &waiter{}))
		case places[i] == nil:
		case resting[places[i]]:
			delete(resting, places[i])
			e.lines.rest("k", places[i], false)
		case rand.IntN(2) == 0:
			resting[places[i]] = true
			e.lines.rest("k", places[i], true)
		default:
			e.lines.leave("k", places[i])
			places[i] = nil
		}
		var want *waiter
		for _, w := range places {
			if w != nil && !resting[w] {
				want = w
				break
			}
		}
		if l := e.lines.of["k"]; l != nil && l.lead() != want {
			t.Fatalf("%+v leads, not %+v", l.lead(), want)
		}
		if len(places) > 100 {
			places = places[:0]
			clear(resting)
			delete(e.lines.of, "k")
		}
	}
}

// Waiters that rest and leave, all at a time, cost a little more than in proportion to
// their number. Four times as many would cost sixteen times as much if each had to pass
// all others.
func TestLeavingALongLine(t *testing.T) {
	e, _ := fuzzEngine(t, Options{})
	cost := func(n int) time.Duration {
		var all []*waiter
		for range n {
			all = append(all, e.lines.join("k", &waiter{}))
		}
		began := time.Now()
		for _, w := range all {
			e.lines.rest("k", w, true)
		}
		for _, i := range rand.Perm(n) {
			e.lines.rest("k", all[i], false)
		}
		for _, i := range rand.Perm(n) {
			e.lines.leave("k", all[i])
		}
		return time.Since(began)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const few, most = 5000, 9.0
	ratio := 0.0
	for try := 0; try < 10 && ctx.Err() == nil; try++ { // the machine may be busy
		if ratio = float64(cost(4*few)) / float64(cost(few)); ratio < most {
			return
		}
	}
	t.Errorf("four times as many waiters cost %.1f times as much", ratio)
}
