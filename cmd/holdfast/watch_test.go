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

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
)

// counted is a driver that counts looks, and can make them fail.
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

func (c *counted) Observe(ctx context.Context, key string, tell func(driver.Info)) error {
	if err := c.trouble.Load(); err != nil {
		return *err
	}
	return c.Driver.Observe(ctx, key, tell)
}

// A scene is a watch in virtual time, with another client that acquires locks.
type scene struct {
	t       *testing.T
	store   *memlock.Store
	other   *memlock.Client
	watched *memlock.Client
	looks   atomic.Int64
	trouble atomic.Pointer[error]
	out     bytes.Buffer // read it only while all goroutines wait
	w       *watcher
}

const testInterval = time.Second

// inScene runs a test in a scene in virtual time.
func inScene(t *testing.T, test func(t *testing.T, s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newScene(t)) })
}

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
		app: &app{out: &s.out, set: settings{timeout: 15 * time.Second}}, key: "k", client: &client{Client: s.watched.Client, queues: true}, interval: testInterval,
	}
	return s
}

// begin starts the watch, which prints until the test ends.
func (s *scene) begin() {
	s.t.Helper()
	if err := s.w.look(context.Background()); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.w.app.follow(ctx, s.w) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			s.t.Error(err)
		}
	})
}

// prints lets time pass, and fails the test unless the watch then printed exactly these
// lines, each after its time.
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

// TestWatchPrintsChanges checks that watch prints one line for each change and no other.
func TestWatchPrintsChanges(t *testing.T) {
	inScene(t, func(t *testing.T, s *scene) {
		s.begin()
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

// TestWatchLooksSeldom checks how often a watch looks who waits: at its interval, and less often
// the more of them there are.
func TestWatchLooksSeldom(t *testing.T) {
	inScene(t, func(t *testing.T, s *scene) {
		s.begin()
		in := func(d time.Duration) int64 {
			synctest.Wait()
			s.looks.Store(0)
			time.Sleep(d)
			synctest.Wait()
			return s.looks.Load()
		}
		if n := in(100 * testInterval); n != 100 {
			t.Errorf("%d looks in a hundred intervals", n)
		}
		ctx, giveUp := context.WithCancel(context.Background())
		defer giveUp()
		for range 199 {
			go func() { _, _ = s.other.Acquire(ctx, "k") }()
		}
		time.Sleep(testInterval)
		if n := in(100 * 10 * testInterval); n < 98 || n > 102 {
			t.Errorf("%d looks at 200 contenders in 1000 s, want one in 10 s", n)
		}
	})
}

// TestJSONLines checks that observe and watch print documents with the fields of show, and that a look fails without a connection.
func TestJSONLines(t *testing.T) {
	inScene(t, func(t *testing.T, s *scene) {
		s.w.app.set.output = "json"
		s.take(holdfast.WithData([]byte{0xff}))
		prints := func(outage string) {
			t.Helper()
			synctest.Wait()
			var all map[string]any
			if err := json.Unmarshal(s.out.Bytes(), &all); err != nil {
				t.Fatalf("%v: %q", err, s.out.String())
			}
			if all["time"] == nil || all["held"] != true || all["owner"] != "other" || all["data_base64"] != "/w==" || all["token"] == nil {
				t.Errorf("it printed %v", all)
			}
			s.store.Cut(s.watched)
			time.Sleep(2 * testInterval)
			synctest.Wait()
			if !strings.Contains(s.out.String(), outage) {
				t.Errorf("it printed %s, want %s", s.out.String(), outage)
			}
		}
		stop := s.observe()
		prints(`"stale":true`)
		stop()
		s.store.Heal(s.watched)
		s.out.Reset()
		s.begin()
		prints(`"connected":false,"key":"k"}`)
		if err := (&watcher{app: s.w.app, key: "k", client: s.w.client}).look(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a look without a connection ended with %v, want DeadlineExceeded", err)
		}
	})
}

// observe begins to observe the key of a scene, and returns what ends it.
func (s *scene) observe() (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.w.app.tellChanges(ctx, s.w.client, "k", "")
	}()
	return func() {
		cancel()
		<-ended
	}
}

// TestObservePrintsChanges checks that observe prints one line for each change of holder, one for the begin of an
// outage and one for its end, and no other: a waiter gets none.
func TestObservePrintsChanges(t *testing.T) {
	inScene(t, func(t *testing.T, s *scene) {
		defer s.observe()()
		s.prints("free key=k")
		lock := s.take(holdfast.WithOwner("a b"), holdfast.WithData([]byte("x\x1b[31m=")))
		const time = `[-0-9]{10}T[:0-9]{8}\S*`
		held := fmt.Sprintf(`held key=k owner="a b" token=%d since=%s lease=10s data="x\\x1b\[31m="`, lock.Token(), time)
		s.prints(held)
		ctx, giveUp := context.WithCancel(context.Background())
		go func() { _, _ = s.other.Acquire(ctx, "k") }()
		s.prints()
		giveUp()
		s.store.Cut(s.watched)
		s.prints(held + " stale=true")
		s.store.Heal(s.watched)
		s.prints(held)
		if err := lock.Release(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.prints("free key=k")
	})
}
