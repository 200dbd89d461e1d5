package faulthttp

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestCutSilencesAllThatIsUnderWay(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	s, tr := newGatedServer(t, gate), newTransport(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	never := make(chan struct{})
	inFlight := start(ctx, t, tr, s, "PutItem")
	eventually(t, "the request arrives", func() bool { return s.arrived.Load() == 1 })
	tr.SetRule(All("GetItem", HoldRequest(never)))
	held := start(ctx, t, tr, s, "GetItem")
	eventually(t, "the second is on its way", func() bool { return tr.Count("GetItem") == 1 })

	tr.Cut()
	tr.Cut()
	during := start(ctx, t, tr, s, "PutItem")
	eventually(t, "the third has been counted", func() bool { return tr.Count("PutItem") == 2 })
	close(gate)
	close(never)
	tr.Heal()
	tr.Heal()
	if r := call(t.Context(), t, tr, s, "PutItem"); r.status != 200 {
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
	s, tr := newServer(t), newTransport(t)
	tr.Cut()
	tr.SetRule(All("", LoseRequest(Reset)))
	hit := tr.Once("PutItem", Throttled())
	ctx, cancel := context.WithCancel(t.Context())
	done := start(ctx, t, tr, s, "PutItem")
	eventually(t, "the request is counted", func() bool { return tr.Count("") == 1 })
	silent(t, done, cancel)
	tr.Heal()
	if r := call(t.Context(), t, tr, s, "PutItem"); r.status != 400 {
		t.Errorf("after Heal: %+v, want the armed fault", r)
	}
	if out := <-hit; out.N != 2 {
		t.Errorf("the fault was for request %d, want 2", out.N)
	}
	if r := call(t.Context(), t, tr, s, "PutItem"); !errors.Is(r.err, syscall.ECONNRESET) {
		t.Errorf("after the armed fault: %+v, want the rule's", r)
	}
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s, tr := newServer(t), newTransport(t)
	never := make(chan struct{})
	late := tr.Once("PutItem", LateUntil(never, Reset))
	if r := call(t.Context(), t, tr, s, "PutItem"); !errors.Is(r.err, syscall.ECONNRESET) {
		t.Fatalf("the client has seen %+v, want a reset", r)
	}
	var silent []<-chan result
	for _, f := range []Fault{LoseRequest(Silence), LoseReply(Silence), LateUntil(never, Silence), HoldRequest(never), HoldReply(never)} {
		tr.Once("GetItem", f)
		silent = append(silent, start(context.Background(), t, tr, s, "GetItem"))
	}
	eventually(t, "all are on their way", func() bool { return tr.Count("GetItem") == len(silent) })
	tr.Close()
	tr.Close()
	for _, done := range silent {
		if r := <-done; !errors.Is(r.err, ErrClosed) {
			t.Errorf("a silent call has seen %+v after Close, want ErrClosed", r)
		}
	}
	select {
	case out := <-late:
		if out.Status != 0 {
			t.Errorf("the late request was answered with %d", out.Status)
		}
	default:
		t.Error("Close has returned before the late request has ended")
	}
	if r := call(t.Context(), t, tr, s, "PutItem"); !errors.Is(r.err, ErrClosed) {
		t.Errorf("a call after Close: %+v, want ErrClosed", r)
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	s, tr := newServer(t), newTransport(t)
	tr.SetRule(First(Nth("PutItem", 3, Throttled()), Nth("PutItem", 3, ServerError()), Nth("GetItem", 5, Denied())))
	const each = 10
	var mu sync.Mutex
	seen := make(map[string]int)
	var wg sync.WaitGroup
	for _, op := range []string{"PutItem", "GetItem", "Query"} {
		for range each {
			wg.Go(func() {
				r := call(t.Context(), t, tr, s, op)
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

func TestRuleSeesTheBody(t *testing.T) {
	t.Parallel()
	s, tr := newServer(t), newTransport(t)
	tr.SetRule(func(r Request) Fault {
		if strings.Contains(string(r.Body), `"TableName":"t"`) && tr.Count(r.Op) == r.N {
			return Throttled()
		}
		return Pass
	})
	if r := call(t.Context(), t, tr, s, "PutItem"); r.status != 400 {
		t.Errorf("%+v, want the rule's answer", r)
	}
	tr.SetRule(nil)
	if r := call(t.Context(), t, tr, s, "PutItem"); r.status != 200 {
		t.Errorf("%+v without a rule", r)
	}
}

func TestDelaysTakeTheirTime(t *testing.T) {
	t.Parallel()
	s, tr := newServer(t), newTransport(t)
	const d = 30 * time.Millisecond
	for name, f := range map[string]Fault{"request": DelayRequest(d), "reply": DelayReply(d)} {
		tr.Once("", f)
		began := time.Now()
		if r := call(t.Context(), t, tr, s, "PutItem"); r.status != 200 {
			t.Errorf("%s delayed: %+v", name, r)
		}
		if took := time.Since(began); took < d {
			t.Errorf("%s delayed by %v took %v", name, d, took)
		}
	}
}
