package faulthttp

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
)

func TestCutSilencesAllThatIsUnderWay(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	s := newGatedServer(t, gate)
	tr, way := direct(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	inFlight := way.start(ctx, t, "PutItem")
	eventually(t, "the request arrives", func() bool { return s.arrived.Load() == 1 })
	tr.SetRule(All("GetItem", DelayRequest(never)))
	held := way.start(ctx, t, "GetItem")
	eventually(t, "the second is on its way", func() bool { return tr.Count("GetItem") == 1 })

	tr.Cut()
	tr.Cut()
	during := way.start(ctx, t, "PutItem")
	eventually(t, "the third has been counted", func() bool { return tr.Count("PutItem") == 2 })
	close(gate)
	tr.Heal()
	tr.Heal()
	if r := way.call(t.Context(), t, "PutItem"); r.status != 200 {
		t.Errorf("a call after Heal: %+v", r)
	}
	silent(t, inFlight, cancel)
	for name, done := range map[string]<-chan result{"held request": held, "request during the cut": during} {
		if r := <-done; !errors.Is(r.err, context.Canceled) {
			t.Errorf("%s: %+v, want silence until its ctx has ended", name, r)
		}
	}
	tr.Close()
	arrivals(t, s, 2)
}

func TestCutTakesNoFault(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tr, way := direct(t, s)
	tr.Cut()
	tr.SetRule(All("", LoseRequest(Reset)))
	hit := tr.Once("PutItem", Throttled())
	ctx, cancel := context.WithCancel(t.Context())
	done := way.start(ctx, t, "PutItem")
	eventually(t, "the request is counted", func() bool { return tr.Count("") == 1 })
	silent(t, done, cancel)
	tr.Heal()
	if r := way.call(t.Context(), t, "PutItem"); r.status != 400 {
		t.Errorf("after Heal: %+v, want the armed fault", r)
	}
	if out := <-hit; out.N != 2 {
		t.Errorf("the fault was for request %d, want 2", out.N)
	}
	if r := way.call(t.Context(), t, "PutItem"); !errors.Is(r.err, syscall.ECONNRESET) {
		t.Errorf("after the armed fault: %+v, want the rule's", r)
	}
}

func TestStall(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tr, way := direct(t, s)
	tr.Stall()
	tr.Stall()
	ctx, cancel := context.WithCancel(t.Context())
	givenUp := way.start(ctx, t, "PutItem")
	waits := way.start(t.Context(), t, "GetItem")
	eventually(t, "both have been sent", func() bool { return tr.Count("") == 2 })
	silent(t, givenUp, cancel)
	arrivals(t, s, 0)
	tr.Heal()
	tr.Heal()
	if r := <-waits; r.status != 200 {
		t.Errorf("a call that waited: %+v", r)
	}
	if r := way.call(t.Context(), t, "PutItem"); r.status != 200 {
		t.Errorf("a call after Heal: %+v", r)
	}
	// Nobody waits for the one that was given up, and Close would end it.
	eventually(t, "the call that was given up arrives too", func() bool { return s.arrived.Load() == 3 })
	tr.Close()
	arrivals(t, s, 3)
}

func TestCounts(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tr, way := direct(t, s)
	tr.SetRule(First(Nth("PutItem", 3, Throttled()), Nth("PutItem", 3, ServerError()), Nth("GetItem", 5, Denied())))
	const each = 10
	var mu sync.Mutex
	seen := make(map[string]int)
	var wg sync.WaitGroup
	for _, op := range []string{"PutItem", "GetItem", "Query"} {
		for range each {
			wg.Go(func() {
				r := way.call(t.Context(), t, op)
				mu.Lock()
				defer mu.Unlock()
				if r.err != nil || r.status != 200 {
					seen[op+" failed"]++
				}
			})
		}
	}
	wg.Wait()
	if len(seen) != 2 || seen["PutItem failed"] != 1 || seen["GetItem failed"] != 1 {
		t.Errorf("failures: %v; want one PutItem and one GetItem", seen)
	}
	for op, want := range map[string]int{"PutItem": each, "GetItem": each, "Query": each, "Scan": 0, "": 3 * each} {
		if got := tr.Count(op); got != want {
			t.Errorf("Count(%q) = %d, want %d", op, got, want)
		}
	}
	arrivals(t, s, 3*each-2)
	tr.ResetCounts()
	if n := tr.Count(""); n != 0 {
		t.Errorf("Count = %d after ResetCounts", n)
	}
}
