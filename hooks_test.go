package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// hookCalls records hook calls, and insists that they come one at a time.
type hookCalls struct {
	t     testing.TB
	calls sync.Mutex    // held during a call
	slow  time.Duration // how long each call takes

	names []string
	all   []any
}

func (r *hookCalls) note(name string, about any) {
	if !r.calls.TryLock() {
		r.t.Error("two hooks run at a time")
		return
	}
	defer r.calls.Unlock()
	time.Sleep(r.slow)
	r.names, r.all = append(r.names, name), append(r.all, about)
}

func (r *hookCalls) hooks() holdfast.Hooks {
	return holdfast.Hooks{
		Started:    func(a holdfast.Acquisition) { r.note("started "+a.Key, a) },
		Queued:     func(p holdfast.Place) { r.note(fmt.Sprintf("queued %s behind %d", p.Key, p.Ahead), p) },
		Granted:    func(a holdfast.Acquisition) { r.note("granted "+a.Key, a) },
		Failed:     func(a holdfast.Acquisition) { r.note("failed "+a.Key, a) },
		Ended:      func(e holdfast.Ending) { r.note("ended "+e.Key, e) },
		Heartbeat:  func(h holdfast.Heartbeat) { r.note("heartbeat "+h.Key, h) },
		Connection: func(c holdfast.Connection) { r.note(fmt.Sprintf("ready %v", c.Ready), c) },
	}
}

// Close ends what is under way, and all hook calls about it are made when Close returns.
func TestHooksAreCalledBeforeCloseReturns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		b.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			if req.Key == "held" {
				return b.grant(), nil
			}
			return driver.Grant{}, hang(ctx)
		}
		r := &hookCalls{t: t, slow: time.Minute}
		l := b.open(t, driver.Config{}, r.hooks())
		acquire(t, l, "held")
		go l.Acquire(t.Context(), "waited for")
		synctest.Wait()
		mustClose(t, l)
		want := "[started held granted held started waited for failed waited for ended held]"
		if s := fmt.Sprint(r.names); s != want {
			t.Errorf("hooks: %s, want %s", s, want)
		}
		if a, ok := r.all[3].(holdfast.Acquisition); !ok || !errors.Is(a.Err, holdfast.ErrClosed) {
			t.Errorf("reported: %+v", r.all[3])
		}
		b.host.SetConnected(true) // an engine that goes on
		b.host.Heartbeat("", b.host.Now(), nil)
		synctest.Wait()
		if n := len(r.names); n != 5 {
			t.Errorf("%d calls after Close", n-5)
		}
	})
}

// An engine's reports of heartbeats and of its connection.
func TestHooksReportTheEngine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, r := &engine{}, &hookCalls{t: t}
		b.open(t, driver.Config{}, r.hooks())
		began, broken := time.Now(), errors.New("broken")
		for _, up := range []bool{true, true, false, false, true} {
			b.host.SetConnected(up)
		}
		sent := b.host.Now()
		time.Sleep(time.Second)
		b.host.Heartbeat("k", sent, nil)
		b.host.Heartbeat("", sent, broken)
		synctest.Wait()
		after := began.Add(time.Second)
		want := []any{
			holdfast.Connection{Time: began, Ready: true},
			holdfast.Connection{Time: began},
			holdfast.Connection{Time: began, Ready: true},
			holdfast.Heartbeat{Time: after, Key: "k", Took: time.Second},
			holdfast.Heartbeat{Time: after, Took: time.Second, Err: broken},
		}
		if !slices.Equal(r.all, want) {
			t.Errorf("reported:\n%+v\nwant:\n%+v", r.all, want)
		}
	})
}

// For a lock that is lost in the instant of its grant, hooks still receive the grant first.
func TestGrantIsReportedBeforeEnd(t *testing.T) {
	t.Parallel()
	b := &engine{}
	b.acquire = func(_ context.Context, req *driver.Request) (driver.Grant, error) {
		go func() {
			time.Sleep(time.Duration(rand.IntN(20)) * time.Microsecond)
			req.Lost(holdfast.ErrBroken)
		}()
		return b.grant(), nil
	}
	r := &hookCalls{t: t}
	l := b.open(t, driver.Config{}, r.hooks())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 150 {
				_, _ = l.TryAcquire(t.Context(), "k", holdfast.WithRetry(holdfast.Retry{Attempts: 1}))
			}
		})
	}
	wg.Wait()
	mustClose(t, l)
	var last time.Time
	stories := make(map[uint64]string)
	for i, about := range r.all {
		var id uint64
		var at time.Time
		switch v := about.(type) {
		case holdfast.Acquisition:
			id, at = v.ID, v.Time
		case holdfast.Ending:
			id, at = v.ID, v.Time
		}
		if at.Before(last) {
			t.Errorf("call %d: %v after %v", i, at, last)
		}
		last = at
		stories[id] += strings.TrimSuffix(r.names[i], "k")
	}
	count := make(map[string]int)
	for _, story := range stories {
		count[story]++
	}
	if n := count["started granted ended "]; n == 0 || n+count["started failed "] != 600 {
		t.Errorf("600 acquisitions came to %v", count)
	}
}

// A hook that ends its goroutine, as t.FailNow does, is followed by the next.
func TestHookEndsItsGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var got []string
		l := new(engine).open(t, driver.Config{}, holdfast.Hooks{
			Granted: func(holdfast.Acquisition) { got = append(got, "granted"); runtime.Goexit() },
			Ended:   func(holdfast.Ending) { got = append(got, "ended") },
		})
		for range 2 {
			mustRelease(t, acquire(t, l, "k"))
		}
		mustClose(t, l)
		if s := fmt.Sprint(got); s != "[granted ended granted ended]" {
			t.Errorf("called: %s", s)
		}
	})
}

// Joined hooks are called in the order given; a hook that none has stays nil.
func TestJoinHooks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var got []string
		hooks := func(name string) holdfast.Hooks {
			return holdfast.Hooks{Granted: func(holdfast.Acquisition) { got = append(got, name) }}
		}
		ended := holdfast.Hooks{Ended: func(holdfast.Ending) { got = append(got, "ended") }}
		j := holdfast.JoinHooks(hooks("a"), ended, holdfast.Hooks{}, hooks("b"), hooks("c"))
		if j.Started != nil || j.Queued != nil || j.Failed != nil || j.Heartbeat != nil || j.Connection != nil {
			t.Error("a function that nobody gave is not nil")
		}
		l := new(engine).open(t, driver.Config{}, j)
		acquire(t, l, "k")
		mustClose(t, l)
		if s := fmt.Sprint(got); s != "[a b c ended]" {
			t.Errorf("called: %s", s)
		}
		all := (&hookCalls{t: t}).hooks()
		if j := holdfast.JoinHooks(all, holdfast.Hooks{}); j.Started == nil || j.Queued == nil || j.Granted == nil ||
			j.Failed == nil || j.Ended == nil || j.Heartbeat == nil || j.Connection == nil {
			t.Errorf("a function was left out: %+v", j)
		}
	})
}

// Hooks that are not set cost no memory.
func TestNoHooksCostNothing(t *testing.T) {
	all := (&hookCalls{t: t}).hooks()
	for name, n := range holdfast.HookAllocs(holdfast.Hooks{}) {
		if with := holdfast.HookAllocs(all)[name]; n != 0 || with == 0 {
			t.Errorf("%s: %v allocations without hooks, %v with", name, n, with)
		}
	}
}

// Each kind of outcome has its word, even if an error is of several kinds.
func TestResults(t *testing.T) {
	t.Parallel()
	both := func(first, second error) error { return fmt.Errorf("acquire: %w: %w", first, second) }
	lost := func(cause error) error { return &holdfast.LostError{Cause: cause} }
	other := errors.New("something else")
	for want, errs := range map[string][]error{
		"granted":      {nil},
		"held":         {&holdfast.HeldError{Key: "k"}, both(context.DeadlineExceeded, holdfast.ErrHeld)},
		"disconnected": {holdfast.ErrDisconnected, both(context.DeadlineExceeded, holdfast.ErrDisconnected), both(context.Canceled, holdfast.ErrDisconnected)},
		"canceled":     {both(context.Canceled, holdfast.ErrHeld), both(context.Canceled, lost(holdfast.ErrReclaimed))}, // the ctx of another lock
		"timeout":      {context.DeadlineExceeded},
		"denied":       {both(holdfast.ErrDenied, other)},
		"reclaimed":    {holdfast.ErrReclaimed},
		"closed":       {both(holdfast.ErrClosed, holdfast.ErrDisconnected)},
		"invalid":      {driver.Invalid("data", "too long")},
		"error":        {other, holdfast.ErrLeaseExpired},
	} {
		for _, err := range errs {
			if got := (holdfast.Acquisition{Err: err}).Result(); got != want {
				t.Errorf("an acquisition that came to %v is %q, want %q", err, got, want)
			}
		}
	}
	for want, err := range map[string]error{
		"released":        holdfast.ErrReleased,
		"ttl_expired":     holdfast.ErrTTLExpired,
		"session_expired": lost(holdfast.ErrSessionExpired),
		"lease_expired":   lost(holdfast.ErrLeaseExpired),
		"broken":          lost(holdfast.ErrBroken),
		"reclaimed":       lost(holdfast.ErrReclaimed),
		"taken_over":      lost(holdfast.ErrTakenOver),
		"clock_jump":      lost(holdfast.ErrClockJump),
		"lost":            lost(other),
	} {
		if got := (holdfast.Ending{Err: err}).Result(); got != want {
			t.Errorf("an end by %v is %q, want %q", err, got, want)
		}
	}
	for want, err := range map[string]error{
		"ok":           nil,
		"disconnected": both(holdfast.ErrDisconnected, other),
		"denied":       holdfast.ErrDenied,
		"lost":         both(holdfast.ErrTakenOver, other),
		"error":        other,
	} {
		if got := (holdfast.Heartbeat{Err: err}).Result(); got != want {
			t.Errorf("a heartbeat that came to %v is %q, want %q", err, got, want)
		}
	}
}

// A hook that ends its goroutine keeps none of those that it is joined with from being called.
func TestJoinedHookEndsItsGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var got []string
		granted := func(name string, then func()) holdfast.Hooks {
			return holdfast.Hooks{Granted: func(holdfast.Acquisition) { got = append(got, name); then() }}
		}
		l := new(engine).open(t, driver.Config{}, granted("a", func() {}), granted("b", runtime.Goexit), granted("c", runtime.Goexit), granted("d", func() {}))
		for range 2 {
			mustRelease(t, acquire(t, l, "k"))
		}
		mustClose(t, l)
		if s := fmt.Sprint(got); s != "[a b c d a b c d]" {
			t.Errorf("called: %s", s)
		}
	})
}
