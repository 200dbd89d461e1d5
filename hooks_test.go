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

// told records hook calls, and insists that they come one at a time.
type told struct {
	t     testing.TB
	calls sync.Mutex    // held during a call
	slow  time.Duration // how long each call takes

	mu    sync.Mutex
	names []string
	all   []any
}

func (r *told) note(name string, about any) {
	if !r.calls.TryLock() {
		r.t.Error("two hooks run at a time")
		return
	}
	defer r.calls.Unlock()
	time.Sleep(r.slow)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names, r.all = append(r.names, name), append(r.all, about)
}

func (r *told) hooks() holdfast.Hooks {
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

// since returns the calls from the nth on, by name.
func (r *told) since(n int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.names[n:])
}

// only returns the calls of one kind, in order.
func only[T any](r *told) []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []T
	for _, about := range r.all {
		if v, ok := about.(T); ok {
			found = append(found, v)
		}
	}
	return found
}

// openTold makes a client whose hook calls are recorded.
func openTold(t testing.TB, b *engine) (*holdfast.Client, *told) {
	t.Helper()
	r := &told{t: t}
	return b.open(t, driver.Config{}, r.hooks()), r
}

// Hooks are called one at a time, in order, and delay no lock.
func TestHooksAreCalledInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		r := &told{t: t, slow: time.Second}
		l := b.open(t, driver.Config{}, r.hooks())
		began := time.Now()
		b.host.SetConnected(true)
		ttl := acquire(t, l, "a", holdfast.WithTTL(1))
		lost := acquire(t, l, "b")
		<-ttl.Done()
		b.lease.End(holdfast.ErrSessionExpired)
		<-lost.Done()
		synctest.Wait()
		if took := time.Since(began); took != 1 || b.ended.Load() != 2 {
			t.Errorf("hooks held up a lock: %v, %d of 2 keys given back", took, b.ended.Load())
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		want := "[ready true started a granted a started b granted b ended a ended b]"
		if s := fmt.Sprint(r.since(0)); s != want {
			t.Errorf("hooks: %s, want %s", s, want)
		}
	})
}

// The hook calls of an acquisition that waits, in all their parts.
func TestHooksTellOfAnAcquisition(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		b.acquire = func(_ context.Context, req *driver.Request) (driver.Grant, error) {
			time.Sleep(time.Second)
			req.Queued(3)
			time.Sleep(2 * time.Second)
			b.lease.Renew(b.host.Now())
			return b.grant(), nil
		}
		l, r := openTold(t, b)
		began := time.Now()
		lock := acquire(t, l, "k", holdfast.WithOwner("me"))
		time.Sleep(4 * time.Second)
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		started := holdfast.Acquisition{ID: 1, Time: began, Key: "k", Owner: "me", Wait: true}
		granted := started
		granted.Time, granted.Took, granted.Token = began.Add(3*time.Second), 3*time.Second, lock.Token()
		want := []any{
			started,
			holdfast.Place{ID: 1, Time: began.Add(time.Second), Key: "k", Owner: "me", Ahead: 3},
			granted,
			holdfast.Ending{
				ID: 1, Time: began.Add(7 * time.Second), Key: "k", Owner: "me", Token: lock.Token(),
				Held: 4 * time.Second, Err: holdfast.ErrReleased,
			},
		}
		if !slices.Equal(r.all, want) {
			t.Errorf("told:\n%+v\nwant:\n%+v", r.all, want)
		}
	})
}

// Hooks receive the error that a failed acquisition returns.
func TestHooksTellOfFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		late := false
		b.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			if req.Wait {
				<-ctx.Done()
			}
			if late {
				time.AfterFunc(time.Second, func() { req.Queued(1) }) // against the rules
			}
			return driver.Grant{}, &driver.HeldError{Holder: driver.Info{Key: req.Key}}
		}
		l, r := openTold(t, b)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, gaveUp := l.Acquire(ctx, "a")
		_, waited := l.Acquire(t.Context(), "b", holdfast.WithWait(time.Second))
		_, held := l.TryAcquire(t.Context(), "c")
		late = true
		_, any := l.AcquireAny(t.Context(), []string{"d", "e"}, holdfast.WithRetry(holdfast.Retry{Attempts: 1}))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := fmt.Sprint(r.since(0)); s != "[started a failed a started b failed b started c failed c started  failed ]" {
			t.Errorf("hooks: %s", s)
		}
		acquisitions := only[holdfast.Acquisition](r)
		for i, want := range []holdfast.Acquisition{
			{Took: time.Second, Wait: true, Err: gaveUp},
			{Took: time.Second, Wait: true, Err: waited},
			{Err: held},
			{Wait: true, Err: any},
		} {
			started, failed := acquisitions[2*i], acquisitions[2*i+1]
			if id := uint64(i + 1); started.ID != id || failed.ID != id {
				t.Errorf("%d: numbers %d and %d", i, started.ID, failed.ID)
			}
			if failed.Took != want.Took || failed.Wait != want.Wait || started.Wait != want.Wait || failed.Err != want.Err || started.Err != nil {
				t.Errorf("%d: %+v and %+v, want %+v", i, started, failed, want)
			}
		}
	})
}

// Hooks do not receive calls that are refused before they begin.
func TestHooksAreNotToldOfRefusals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, r := openTold(t, &engine{})
		done, cancel := context.WithCancel(t.Context())
		cancel()
		for i, call := range []func() error{
			func() error { _, err := l.Acquire(t.Context(), ""); return err },
			func() error { _, err := l.Acquire(done, "k"); return err },
			func() error { _, err := l.TryAcquire(t.Context(), "k", holdfast.WithWait(1)); return err },
			func() error { _, err := l.AcquireAny(t.Context(), nil); return err },
			func() error { _, err := l.AcquireAny(done, []string{"k"}); return err },
			func() error { return l.Do(t.Context(), "k", nil) },
			func() error { return l.Close(t.Context()) },
			func() error { _, err := l.Acquire(t.Context(), "k"); return err },
		} {
			if err := call(); (err == nil) != (i == 6) {
				t.Errorf("call %d: %v", i, err)
			}
		}
		synctest.Wait()
		if got := r.since(0); len(got) != 0 {
			t.Errorf("told of %v", got)
		}
	})
}

// To hooks, AcquireAny is one acquisition, however many keys it tries and however many
// grants come too late.
func TestHooksTellOfAnyOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		tries := 0
		b.acquire = func(_ context.Context, req *driver.Request) (driver.Grant, error) {
			if tries++; req.Key != "c" {
				return driver.Grant{}, &driver.HeldError{Holder: driver.Info{Key: req.Key}}
			}
			if tries == 3 {
				req.Lost(holdfast.ErrBroken) // before it could be handed out
			}
			return b.grant(), nil
		}
		l, r := openTold(t, b)
		lock, err := l.AcquireAny(t.Context(), []string{"a", "b", "c"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := fmt.Sprint(r.since(0)); s != "[started  granted c]" {
			t.Errorf("hooks: %s", s)
		}
		got := only[holdfast.Acquisition](r)
		if got[0].Wait || got[1].Token != lock.Token() || got[1].ID != 1 {
			t.Errorf("told: %+v", got)
		}
	})
}

// Hooks receive each kind of end once, with the error of Err and the time held.
func TestHooksTellOfEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, r := openTold(t, &engine{})
		locks := map[string]*holdfast.Lock{
			"released": acquire(t, l, "released"),
			"ttl":      acquire(t, l, "ttl", holdfast.WithTTL(2*time.Second)),
			"lost":     acquire(t, l, "lost"),
		}
		time.Sleep(time.Second)
		for range 2 {
			if err := locks["released"].Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(validity)
		closing := time.Now()
		if err := l.Close(t.Context()); err != nil || time.Now() != closing {
			t.Error(err)
		}
		held := map[string]time.Duration{"released": time.Second, "ttl": 2 * time.Second, "lost": validity}
		endings := only[holdfast.Ending](r)
		if len(endings) != len(held) {
			t.Errorf("told: %+v", endings)
		}
		for _, e := range endings {
			lock := locks[e.Key]
			if e.Held != held[e.Key] || e.Err != lock.Err() || e.Token != lock.Token() || e.Owner != lock.Owner() || e.ID == 0 {
				t.Errorf("told: %+v; Err: %v", e, lock.Err())
			}
		}
		if err := locks["lost"].Err(); !errors.Is(err, holdfast.ErrLeaseExpired) {
			t.Error(err)
		}
	})
}

// Close ends what is under way, and all hook calls about it are made when Close returns.
func TestHooksAreToldBeforeCloseReturns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		b.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			if req.Key == "held" {
				return b.grant(), nil
			}
			return driver.Grant{}, hang(ctx)
		}
		r := &told{t: t, slow: time.Minute}
		l := b.open(t, driver.Config{}, r.hooks())
		acquire(t, l, "held")
		go l.Acquire(t.Context(), "waited for")
		synctest.Wait()
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		want := "[started held granted held started waited for failed waited for ended held]"
		if s := fmt.Sprint(r.since(0)); s != want {
			t.Errorf("hooks: %s, want %s", s, want)
		}
		for _, a := range only[holdfast.Acquisition](r) {
			if a.Key == "waited for" && a.Took == 0 && a.Err != nil && !errors.Is(a.Err, holdfast.ErrClosed) {
				t.Errorf("told: %+v", a)
			}
		}
		b.host.SetConnected(true) // an engine that goes on
		b.host.Heartbeat("", b.host.Now(), nil)
		synctest.Wait()
		if n := len(r.since(0)); n != 5 {
			t.Errorf("%d calls after Close", n-5)
		}
	})
}

// An engine's reports of heartbeats and of its connection.
func TestHooksTellOfTheEngine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		_, r := openTold(t, b)
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
			t.Errorf("told:\n%+v\nwant:\n%+v", r.all, want)
		}
	})
}

// For a lock that is lost in the instant of its grant, hooks still receive the grant
// first, and times never go back.
func TestGrantIsToldBeforeEnd(t *testing.T) {
	t.Parallel()
	b := &engine{}
	b.acquire = func(_ context.Context, req *driver.Request) (driver.Grant, error) {
		go func() {
			time.Sleep(time.Duration(rand.IntN(20)) * time.Microsecond)
			req.Lost(holdfast.ErrBroken)
		}()
		return b.grant(), nil
	}
	r := &told{t: t}
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
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	var last time.Time
	states := make(map[uint64]string)
	next := map[string]string{"": "started", "started": "granted failed", "granted": "ended"}
	for i, about := range r.all {
		var id uint64
		var at time.Time
		switch v := about.(type) {
		case holdfast.Acquisition:
			id, at = v.ID, v.Time
		case holdfast.Ending:
			id, at = v.ID, v.Time
		}
		name, _, _ := strings.Cut(r.names[i], " ")
		if !strings.Contains(next[states[id]], name) {
			t.Errorf("call %d: acquisition %d is %s after %q", i, id, name, states[id])
		}
		if at.Before(last) {
			t.Errorf("call %d: %v after %v", i, at, last)
		}
		states[id], last = name, at
	}
	count := make(map[string]int)
	for _, state := range states {
		count[state]++
	}
	if count["ended"] == 0 || count["ended"]+count["failed"] != 600 {
		t.Errorf("600 acquisitions came to %v", count)
	}
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
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if s := fmt.Sprint(got); s != "[a b c ended]" {
			t.Errorf("called: %s", s)
		}
		all := (&told{t: t}).hooks()
		if j := holdfast.JoinHooks(all, holdfast.Hooks{}); j.Started == nil || j.Queued == nil || j.Granted == nil ||
			j.Failed == nil || j.Ended == nil || j.Heartbeat == nil || j.Connection == nil {
			t.Errorf("a function was left out: %+v", j)
		}
	})
}

// Hooks that are not set cost no memory.
func TestNoHooksCostNothing(t *testing.T) {
	for name, n := range holdfast.HookAllocs(holdfast.Hooks{}) {
		if n != 0 {
			t.Errorf("%s: %v allocations without hooks", name, n)
		}
	}
	var calls int
	for name, n := range holdfast.HookAllocs(holdfast.Hooks{
		Granted:    func(holdfast.Acquisition) { calls++ },
		Heartbeat:  func(holdfast.Heartbeat) { calls++ },
		Connection: func(holdfast.Connection) { calls++ },
	}) {
		if n == 0 {
			t.Errorf("%s: no allocations with hooks: this test sees none", name)
		}
	}
	if calls == 0 {
		t.Error("no hook was called")
	}
}

// A goroutine exists only while a hook is to be called.
func TestHooksHaveAGoroutineOnlyWhileCalled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		stacks := make([]byte, 1<<20)
		goroutines := func() int {
			synctest.Wait()
			return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "holdfast.(*pump[")
		}
		hold := make(chan struct{})
		b := &engine{}
		l := b.open(t, driver.Config{}, holdfast.Hooks{Ended: func(holdfast.Ending) { <-hold }})
		lock := acquire(t, l, "k")
		b.host.Heartbeat("k", b.host.Now(), nil)
		b.host.SetConnected(true)
		if n := goroutines(); n != 0 {
			t.Errorf("hooks that are nil have %d goroutines", n)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if n := goroutines(); n != 1 {
			t.Errorf("a hook that is being called has %d goroutines, want 1", n)
		}
		close(hold)
		if n := goroutines(); n != 0 {
			t.Errorf("when it has returned, %d goroutines stay", n)
		}
	})
}

// BenchmarkHooks measures what hooks add to an acquisition and a release.
func BenchmarkHooks(b *testing.B) {
	for name, hooks := range map[string]holdfast.Hooks{
		"none": {},
		"all":  {Started: func(holdfast.Acquisition) {}, Granted: func(holdfast.Acquisition) {}, Ended: func(holdfast.Ending) {}},
	} {
		b.Run(name, func(b *testing.B) {
			l := new(engine).open(b, driver.Config{}, hooks)
			b.ReportAllocs()
			for b.Loop() {
				lock, err := l.TryAcquire(b.Context(), "k")
				if err != nil {
					b.Fatal(err)
				}
				if err := lock.Release(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			if err := l.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
