package recordlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/recordlock"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
	"github.com/holdfast-go/holdfast/locktest/logtest"
)

var (
	busy      = &recordlock.Error{Class: recordlock.Busy, Err: errors.New("a transaction writes the record")}
	refused   = &recordlock.Error{Class: recordlock.NotDone, Err: errors.New("connection refused")}
	denied    = memstore.Fault{Err: fmt.Errorf("%w: policy", driver.ErrDenied), Permanent: true}
	errReset  = errors.New("connection reset")
	errServer = errors.New("internal server error")
)

var shared = holdfast.WithShared()

// inEach runs a test in some modes.
func inEach(t *testing.T, modes []mode, run func(t *testing.T, h *harness)) {
	t.Helper()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) { bubble(t, m, run) })
	}
}

// forEach runs a test for each of some cases, with leases.
func forEach[C any](t *testing.T, cases map[string]C, run func(t *testing.T, h *harness, c C)) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, modes[0], func(t *testing.T, h *harness) { run(t, h, c) })
		})
	}
}

func (h *harness) pair(t testing.TB) (a, b *client) { return h.client(t), h.client(t) }

// setLease sets the times of further clients.
func (h *harness) setLease(d time.Duration) {
	h.opts.Lease, h.opts.Heartbeat, h.opts.Timeout = d, d/4, min(d/6, 5*time.Second)
	h.opts.RetryDelay = min(d/200, time.Second)
	h.opts.Late = d
}

func (h *harness) log() *logtest.Recorder {
	logs := &logtest.Recorder{}
	h.logger = logs.Logger()
	return logs
}

// data returns the data of the only holder of a key.
func (h *harness) data(key string) string {
	if all := h.store.Record(key).Holders; len(all) == 1 {
		return string(all[0].Data)
	}
	return ""
}

func (h *harness) isFree(t testing.TB, key string) {
	t.Helper()
	if all := h.store.Record(key).Holders; len(all) > 0 {
		t.Errorf("%q is held: %+v", key, all)
	}
}

// stranger is the record of another program.
func stranger(token driver.Token, lease time.Duration, beat string) recordlock.Record {
	return recordlock.Record{Token: token, Holders: []recordlock.Holder{{
		Grant: fmt.Sprint("-", token), Beat: strings.Repeat(beat, recordlock.GrantLen), Token: token, Lease: lease, Owner: "node",
	}}}
}

func (c *client) requests() int {
	calls, _ := c.conn.Calls()
	return sum(calls)
}

// waits acquires a key that is held, on a goroutine.
func (c *client) waits(t testing.TB, key string) <-chan *holdfast.Lock {
	granted := make(chan *holdfast.Lock, 1)
	go func() { granted <- c.hold(t, key) }()
	return granted
}

// dies cuts a client off for the rest of the test.
func (c *client) dies(t testing.TB) {
	t.Helper()
	c.conn.Cut()
}

func (c *client) breakNow(ctx context.Context, info holdfast.Info) error {
	return c.Break(recordlock.AtOnce(ctx), info)
}

// breakIt breaks the grant of a key, and returns its Info.
func (c *client) breakIt(t testing.TB, key string, now bool) holdfast.Info {
	t.Helper()
	info, err := c.Inspect(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	breakGrant := c.Break
	if now {
		breakGrant = c.breakNow
	}
	if err := breakGrant(t.Context(), info); err != nil {
		t.Fatal(err)
	}
	return info
}

func mustClose(t testing.TB, c *client) {
	t.Helper()
	if err := c.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func mustRelease(t testing.TB, lock *holdfast.Lock) {
	t.Helper()
	if err := lock.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

func mustVerify(t testing.TB, lock *holdfast.Lock) {
	t.Helper()
	if err := lock.Verify(t.Context()); err != nil {
		t.Errorf("Verify: %v", err)
	}
}

func mustLive(t testing.TB, lock *holdfast.Lock) {
	t.Helper()
	if err := lock.Err(); err != nil {
		t.Errorf("%q: %v", lock.Key(), err)
	}
}

func isDone(lock *holdfast.Lock) bool {
	select {
	case <-lock.Done():
		return true
	default:
		return false
	}
}

// within returns a context that ends after d.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// took measures f, in virtual time.
func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// A purpose is the purpose of a write.
type purpose string

const (
	acquire purpose = "acquire"
	beat    purpose = "heartbeat"
	release purpose = "release"
)

// purposeOf returns the purpose of a write; "" for other requests.
func purposeOf(op memstore.Op) purpose {
	switch {
	case op.Name == "Take", op.Name == "Swap" && len(op.Next.Holders) > 0 && op.Next.Holders[len(op.Next.Holders)-1].Grant != newest(op.Old):
		return acquire
	case op.Name == "Renew":
		return beat
	case op.Name == "Swap":
		return release
	}
	return ""
}

func newest(rec recordlock.Record) string {
	if n := len(rec.Holders); n > 0 {
		return rec.Holders[n-1].Grant
	}
	return ""
}

// on injects a fault into the first writes with a purpose.
func on(want purpose, times int, fault memstore.Fault) func(memstore.Op) memstore.Fault {
	var sent atomic.Int64
	return func(op memstore.Op) memstore.Fault {
		if purposeOf(op) == want && sent.Add(1) <= int64(times) {
			return fault
		}
		return memstore.Fault{}
	}
}

// always injects a fault into every request.
func always(fault memstore.Fault) func(memstore.Op) memstore.Fault {
	return func(memstore.Op) memstore.Fault { return fault }
}
