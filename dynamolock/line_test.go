package dynamolock

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// The first waiter that does not rest leads, in whatever order waiters rest and leave.
func TestLeadOfALine(t *testing.T) {
	e, _ := fuzzEngine(t, Options{})
	var places []*waiter // in the order of arrival; nil for one that has left
	resting := map[*waiter]bool{}
	for range 20_000 {
		i := rand.IntN(len(places) + 1)
		switch {
		case rand.IntN(10) == 0:
			e.lines.record("k", &item{form: form(rand.IntN(2)) * leased, sharing: &sharing{limit: rand.IntN(4)}})
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
		l := e.lines.of["k"]
		if l == nil {
			continue
		}
		var want *waiter
		for _, w := range places {
			if w == nil || resting[w] {
				continue
			}
			want = w
			break
		}
		if l.lead() != want {
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
		delete(e.lines.of, "k")
		all := []*waiter{e.lines.join("k", &waiter{})}
		e.lines.record("k", &item{form: leased, lease: time.Minute})
		for range n - 1 {
			all = append(all, e.lines.join("k", &waiter{}))
		}
		began := time.Now()
		for _, i := range rand.Perm(n) {
			e.lines.leads("k", all[i])
		}
		for _, w := range all[1:] {
			e.lines.rest("k", w, true)
		}
		for _, i := range rand.Perm(n - 1) {
			e.lines.rest("k", all[i+1], false)
		}
		for _, i := range rand.Perm(n - 1) {
			e.lines.leave("k", all[i+1])
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

// D75. Touches of a grant rise. What shows an earlier one of the same grant was read from an old replica, and nothing else is.
func TestOlder(t *testing.T) {
	grant, other := newGrant(newClientID()), newGrant(newClientID())
	alone := func(f form, token driver.Token, guid string) *item {
		return &item{form: f, token: token, guid: guid, lease: time.Second}
	}
	entry := func(grant string, token driver.Token, touch string) holder {
		return holder{grant: grant, token: token, touch: touch}
	}
	together := func(holders ...holder) *item { return &item{form: leased, sharing: &sharing{holders: holders}} }
	broken := entry(grant, 7, ordered(4))
	broken.touch = broken.mark()
	seen, shared := alone(leased, 7, touch(grant, 5)), together(entry(other, 3, ordered(9)), entry(grant, 7, ordered(5)))
	for name, c := range map[string]struct {
		read, seen *item
		older      bool
	}{
		"an earlier touch":              {alone(leased, 7, touch(grant, 4)), seen, true},
		"the same":                      {seen, seen, false},
		"a later one":                   {alone(leased, 7, touch(grant, 6)), seen, false},
		"of another grant":              {alone(leased, 7, touch(other, 4)), seen, false},
		"taken again by a late request": {alone(leased, 8, touch(grant, 1)), seen, false},
		"without a token":               {alone(tokenless, 0, touch(grant, 4)), alone(tokenless, 0, touch(grant, 5)), false},
		"released":                      {alone(released, 7, touch(grant, 4)), seen, false},
		"gone":                          {&item{}, seen, false},
		"seen gone":                     {seen, &item{}, false},
		"seen broken":                   {seen, alone(leased, 7, stranger()), false},
		"shared since":                  {seen, shared, false},
		"shared, an earlier touch":      {together(entry(grant, 7, ordered(4))), shared, true},
		"shared, the same":              {shared, shared, false},
		"shared, a later one":           {together(entry(grant, 7, ordered(6))), shared, false},
		"shared, joined again":          {together(entry(grant, 8, ordered(1))), shared, false},
		"shared, others":                {together(entry(newGrant(newClientID()), 8, ordered(1))), shared, false},
		"shared, broken":                {together(broken), shared, false},
		"shared, before it was broken":  {shared, together(broken), true},
		"shared, and then taken":        {shared, seen, false},
	} {
		if got := c.read.older(c.seen); got != c.older {
			t.Errorf("%s: %v", name, got)
		}
	}
}
