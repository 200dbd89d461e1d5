package locktest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
)

// A recorder records the failures of a case instead of failing the test.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
}

func (r *recorder) Helper()             {}
func (r *recorder) Log(...any)          {}
func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Error(args ...any) { r.Errorf("%s", fmt.Sprint(args...)) }

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skipf(string, ...any) { runtime.Goexit() }

func (r *recorder) Failed() bool { return len(r.reported()) > 0 }

func (r *recorder) reported() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures
}

// record runs one case in virtual time and returns its failures.
func record(t *testing.T, engine Engine, c testCase) (failures []string) {
	r := &recorder{}
	defer func() {
		if left := recover(); left != nil {
			r.Errorf("%s leaves goroutines: %v", c.name, left)
			failures = r.reported()
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		r.TB = t
		runCase(r, engine, c)
	})
	return r.reported()
}

const lease = 10 * time.Second

// newEngine returns a correct engine, except for what the fault changes.
func newEngine(l fault) Engine {
	return Engine{
		Start:  func(testing.TB) Harness { return &harness{store: memlock.NewStore(), fault: l} },
		Bubble: synctest.Test,
		Lease:  lease,
		Soon:   10 * time.Millisecond, Late: 10 * time.Millisecond,
		Unknown: []string{"LastHeard"},
	}
}

type harness struct {
	store *memlock.Store
	fault fault
}

func (h *harness) NewClient(t testing.TB, o ClientOptions) *Client {
	mail, wrap := &mailbag{}, h.fault.engine
	if h.fault.late {
		wrap = outcome(func(_ context.Context, _ *faulty, _ driver.Host, _ *driver.Request, g driver.Grant, err error) (driver.Grant, error) {
			g.Hold = lateData{g.Hold, mail}
			return g, err
		})
	}
	c, err := memlock.New(&memlock.Options{
		Store: h.store, Lease: lease, Owner: o.Owner, OnEvent: o.OnEvent, Wrap: wrap,
	})
	if err != nil {
		t.Fatalf("memlock.New: %v", err)
	}
	client := &Client{
		API:    c.Client,
		Cut:    func() { h.store.Cut(c) },
		Heal:   func() { h.store.Heal(c) },
		Expire: func() { h.store.Expire(c) },
	}
	if h.fault.late {
		client.Lose = mail.lose
	}
	if h.fault.client != nil {
		h.fault.client(client)
	}
	return client
}

func (h *harness) Residue(t testing.TB, key string) []string {
	c, err := memlock.New(&memlock.Options{Store: h.store})
	if err != nil {
		t.Fatalf("memlock.New: %v", err)
	}
	info, err := c.Inspect(t.Context(), key)
	if err != nil {
		t.Fatalf("Inspect: %v", err)
	}
	var left []string
	if info.Held {
		left = append(left, "holder "+info.Owner)
	}
	for _, w := range info.Queue {
		left = append(left, "waiter "+w.Owner)
	}
	return left
}
