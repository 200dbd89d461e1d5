package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
)

// counted is a driver of which the looks are counted, and may fail.
type counted struct {
	driver.Driver
	looks   *atomic.Int64
	trouble *atomic.Pointer[error]
}

func (c *counted) Inspect(ctx context.Context, key string) (driver.Info, error) {
	c.looks.Add(1)
	if err := c.trouble.Load(); err != nil {
		return driver.Info{}, *err
	}
	return c.Driver.Inspect(ctx, key)
}

// A scene is a watch in virtual time, with another client that takes locks.
type scene struct {
	t       *testing.T
	store   *memlock.Store
	other   *memlock.Client
	watched *memlock.Client
	looks   atomic.Int64
	trouble atomic.Pointer[error]
	out     bytes.Buffer // as it stands when everybody waits
	w       *watcher
}

const testInterval = time.Second

func newScene(t *testing.T) *scene {
	s := &scene{t: t, store: memlock.NewStore()}
	dial := func(o *memlock.Options) *memlock.Client {
		o.Store = s.store
		c, err := memlock.New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
	s.other = dial(&memlock.Options{Owner: "other"})
	s.watched = dial(&memlock.Options{Wrap: func(_ driver.Host, b driver.Driver) driver.Driver {
		return &counted{b, &s.looks, &s.trouble}
	}})
	s.w = &watcher{
		app: &app{out: &s.out}, key: "k", client: &client{Client: s.watched.Client},
		looks: looks{interval: testInterval, idle: testInterval},
	}
	return s
}

// begin has the watch print until the test ends.
func (s *scene) begin(output string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a := s.w.app
	a.set.output, a.set.timeout = output, 15*time.Second
	if err := s.w.first(ctx); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- s.w.run(ctx, &lines{app: a}, nil, nil) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			s.t.Error(err)
		}
		s.w.wait()
	})
}

// prints lets time pass, and fails the test unless what was printed meanwhile are
// lines like these, each after its time.
func (s *scene) prints(patterns ...string) {
	s.t.Helper()
	time.Sleep(2 * testInterval)
	synctest.Wait()
	got := s.out.String()
	s.out.Reset()
	var want strings.Builder
	for _, p := range patterns {
		want.WriteString(`[-0-9]{10}T[:.0-9]{12}\S* ` + p + "\n")
	}
	if !regexp.MustCompile("^" + want.String() + "$").MatchString(got) {
		s.t.Errorf("it printed %q, want %s", got, want.String())
	}
}

func (s *scene) take(opts ...holdfast.Option) *holdfast.Lock {
	s.t.Helper()
	lock, err := s.other.Acquire(context.Background(), "k", opts...)
	if err != nil {
		s.t.Fatal(err)
	}
	return lock
}

// TestWatchPrintsChanges tests the lines: one for each change and none between,
// in a form that does not change.
func TestWatchPrintsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.begin(outputText)
		s.prints("free key=k")
		lock := s.take(holdfast.WithOwner("a b"), holdfast.WithData([]byte("x\x1b[31m=")))
		const time = `[-0-9]{10}T[:0-9]{8}\S*`
		held := fmt.Sprintf(`held key=k owner="a b" token=%d since=%s lease=10s data="x\\x1b\[31m="`, lock.Token(), time)
		s.prints(held)
		s.prints()
		ctx, giveUp := context.WithCancel(context.Background())
		for _, owner := range []string{"first", "second"} {
			go func() { _, _ = s.other.Acquire(ctx, "k", holdfast.WithOwner(owner)) }()
			synctest.Wait()
		}
		s.prints(held + " waiting=2 next=first")
		giveUp()
		s.prints(held)
		s.store.Cut(s.watched)
		s.prints("disconnected key=k")
		s.prints()
		s.store.Heal(s.watched)
		s.prints(held)
		trouble := errors.New("line one\nline\x1btwo")
		s.trouble.Store(&trouble)
		s.prints(`unknown key=k error=".*line one line�two"`)
		s.prints()
		s.trouble.Store(nil)
		s.prints(held)
		if err := lock.Release(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.prints("free key=k")
	})
}

// TestWatchPrintsJSON tests the form of the same in JSON: a document per line,
// and what is not known is not there.
func TestWatchPrintsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.begin(outputJSON)
		next := func() (all map[string]any) {
			t.Helper()
			time.Sleep(2 * testInterval)
			synctest.Wait()
			if strings.Count(s.out.String(), "\n") != 1 {
				t.Fatalf("it printed %q, want one line", s.out.String())
			}
			if err := json.Unmarshal(s.out.Bytes(), &all); err != nil {
				t.Fatal(err)
			}
			s.out.Reset()
			if _, err := time.Parse(time.RFC3339, fmt.Sprint(all["time"])); err != nil {
				t.Error(err)
			}
			delete(all, "time")
			return all
		}
		expect := func(want string) {
			t.Helper()
			if got, _ := json.Marshal(next()); string(got) != want {
				t.Errorf("it printed %s, want %s", got, want)
			}
		}
		expect(`{"connected":true,"held":false,"key":"k"}`)
		s.take(holdfast.WithData([]byte{0xff}))
		all := next()
		if all["held"] != true || all["owner"] != "other" || all["data_base64"] != "/w==" || all["since"] == nil || all["token"] == nil {
			t.Errorf("it printed %v", all)
		}
		s.store.Cut(s.watched)
		expect(`{"connected":false,"key":"k"}`)
	})
}

// TestWatchLooksSeldom tests the engine against a watch that is left open: where
// something tells of changes it hardly looks, and never more often than it may.
func TestWatchLooksSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		const idle = 30 * testInterval
		s.w.idle = idle
		var ring atomic.Pointer[chan zk.Event]
		var alarms atomic.Int64
		s.w.alarm = func(string) <-chan zk.Event {
			alarms.Add(1)
			c := make(chan zk.Event, 1)
			ring.Store(&c)
			return c
		}
		s.begin(outputText)
		looks := func() int64 {
			synctest.Wait()
			return s.looks.Swap(0)
		}
		time.Sleep(testInterval) // at the beginning it is told that it is connected
		looks()
		time.Sleep(10 * idle)
		if n := looks(); n != 10 {
			t.Errorf("%d looks in ten times the idle period", n)
		}
		if n := alarms.Load(); n != 1 {
			t.Errorf("%d alarms were set, and none has rung", n)
		}
		begun := time.Now()
		for time.Since(begun) < 10*testInterval {
			select {
			case *ring.Load() <- zk.Event{}:
			default:
			}
			time.Sleep(testInterval / 100)
		}
		if n := looks(); n < 9 || n > 11 {
			t.Errorf("%d looks in ten periods of changes", n)
		}
		s.prints("free key=k")
	})
}

// TestWatchPanics tests the terminal, which is given back on the goroutine of the
// watch: a panic in a look comes out there.
func TestWatchPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.w.alarm = func(string) <-chan zk.Event { panic("in a look") }
		defer func() {
			if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "in a look") {
				t.Errorf("it panicked with %v", p)
			}
		}()
		_ = s.w.first(context.Background())
	})
}

// TestWatchFirstLook tests a watch that makes no sense from going on: what is
// wrong with its first look ends it.
func TestWatchFirstLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.w.key = "\xff"
		if err := s.w.first(context.Background()); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("the first look ended with %v, want ErrInvalid", err)
		}
		s.w.key = "k"
		s.store.Cut(s.watched)
		if err := s.w.first(context.Background()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first look, without a connection, ended with %v, want DeadlineExceeded", err)
		}
	})
}

// TestLockPath tests the znode that is watched: it is the one that zklock's
// documentation says.
func TestLockPath(t *testing.T) {
	for key, want := range map[string]string{
		"k":             "/root/k",
		"orders/42":     "/root/orders%2F42",
		"50%":           "/root/50%25",
		"a\tb\u0085":    "/root/a%09b%C2%85",
		"漢\uffff\ue000": "/root/漢%EF%BF%BF%EE%80%80",
		"😀":             "/root/%F0%9F%98%80",
		"/app/lock":     "/app/lock",
	} {
		if got := lockPath("/root", key); got != want {
			t.Errorf("lockPath(%q) is %q, want %q", key, got, want)
		}
	}
}
