package recordlock_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/internal/recordlock"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
)

// observing collects what an observer reports, until end is called.
type observing struct {
	mu   sync.Mutex
	told []holdfast.Info
	at   []time.Time
	end  context.CancelFunc
}

func (c *client) observe(t testing.TB, key string) *observing {
	ctx, cancel := context.WithCancel(t.Context())
	o := &observing{end: cancel}
	go func() {
		for info, err := range c.Observe(ctx, key) {
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			o.mu.Lock()
			o.told, o.at = append(o.told, info), append(o.at, time.Now())
			o.mu.Unlock()
		}
	}()
	return o
}

// tokens returns the reported tokens, 0 for a free key, and the time of the last report.
func (o *observing) tokens() (tokens []holdfast.Token, last time.Time) {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, info := range o.told {
		tokens = append(tokens, info.Token)
	}
	if len(o.at) > 0 {
		last = o.at[len(o.at)-1]
	}
	return tokens, last
}

// An observer reports a silent holder until the end of its lease, and not a poll longer. A try then gets the key at once.
func TestObserveExpiry(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		h.store.Latency = 0
		a, b := h.client(t), h.client(t)
		o := b.observe(t, "k")
		time.Sleep(time.Second) // the free key is reported
		lock := a.hold(t, "k")
		time.Sleep(h.opts.Poll)
		a.conn.Cut()
		silent := time.Now()
		<-lock.Done()
		time.Sleep(lease)
		told, at := o.tokens()
		if len(told) != 3 || told[1] != lock.Token() || told[2] != 0 {
			t.Fatalf("told %v", told)
		}
		// It was seen within a poll of its last heartbeat.
		if d := at.Sub(silent); d < lease-h.opts.Heartbeat || d > lease+h.opts.Poll {
			t.Errorf("told after %v, the lease is %v", d, lease)
		}
		next, err := b.TryAcquire(t.Context(), "k")
		if err != nil {
			t.Fatalf("nobody holds the key, and a try fails: %v", err)
		}
		a.conn.Heal()
		time.Sleep(2 * lease)
		if told, _ := o.tokens(); len(told) != 4 || told[3] != next.Token() {
			t.Errorf("told %v", told)
		}
		o.end()
	})
}

// stopping is a connection whose process is stopped when the n-th answer to a read has arrived.
type stopping struct {
	recordlock.Store
	reads atomic.Int64
	n     int64
	while time.Duration
}

func (s *stopping) Read(ctx context.Context, key string, fresh bool) (recordlock.Record, error) {
	rec, err := s.Store.Read(ctx, key, fresh)
	if s.reads.Add(1) == s.n {
		time.Sleep(s.while)
	}
	return rec, err
}

// An observer that was stopped for longer than a lease does not report an earlier read as the present state.
func TestObserveAfterAPause(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		a := h.client(t)
		b := h.openOn(t, &drivertest.Clock{}, func(conn recordlock.Store) recordlock.Store {
			return &stopping{Store: conn, n: 3, while: 2 * lease}
		})
		lock := a.hold(t, "k")
		o := b.observe(t, "k")
		time.Sleep(6 * lease)
		if told, _ := o.tokens(); len(told) != 1 || told[0] != lock.Token() {
			t.Errorf("told %v; the holder lives", told)
		}
		mustLive(t, lock)
		o.end()
	})
}

// The holder of another program is silent for a lease, and goes on before another client has taken the key. Then a record with a
// lower token replaces it.
func TestObserveStrangers(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		h.store.Latency = 0
		c := h.client(t)
		o := c.observe(t, "k")
		time.Sleep(time.Second)
		h.store.Put("k", stranger(7, 10*time.Second, "a"))
		time.Sleep(20 * time.Second)
		h.store.Put("k", stranger(7, 10*time.Second, "b"))
		time.Sleep(h.opts.Poll)
		if told, _ := o.tokens(); !slices.Equal(told, []holdfast.Token{0, 7, 0, 7}) {
			t.Errorf("told %v of a holder that has come back to life", told)
		}
		h.store.Put("k", stranger(1, 10*time.Second, "c"))
		time.Sleep(h.opts.Poll)
		if told, _ := o.tokens(); !slices.Equal(told, []holdfast.Token{0, 7, 0, 7, 1}) {
			t.Errorf("told %v of a holder that counts from 1", told)
		}
		o.end()
	})
}

// An observer that survives a wiped or restored table tells of the new holder, whose token is lower; a replica that lags behind changes
// nothing.
func TestObserveLostHistory(t *testing.T) {
	forEach(t, map[string]bool{"restored": false, "wiped": true}, func(t *testing.T, h *harness, wiped bool) {
		a, o := h.client(t), h.client(t)
		mustRelease(t, a.hold(t, "k"))
		backup := h.store.Record("k")
		for range 5 {
			mustRelease(t, a.hold(t, "k"))
		}
		lock := a.hold(t, "k")
		told := o.observe(t, "k")
		time.Sleep(2 * poll)
		stale := stranger(1, lease, "g") // of a replica
		live := h.store.Record("k")
		h.store.Put("k", stale)
		var reads atomic.Int64
		o.conn.SetFault(func(op memstore.Op) memstore.Fault {
			if reads.Add(1) == 2 {
				h.store.Put("k", live)
			}
			return memstore.Fault{}
		})
		time.Sleep(4 * poll)
		if tokens, _ := told.tokens(); !slices.Equal(tokens, []holdfast.Token{lock.Token()}) {
			t.Errorf("a stale read: told %v", tokens)
		}
		a.dies(t)
		if wiped {
			backup.Token = 7
		}
		h.store.Put("k", backup)
		b := h.client(t)
		next := b.hold(t, "k", holdfast.WithOwner("the next"))
		time.Sleep(3 * poll)
		told.mu.Lock()
		last := told.told[len(told.told)-1]
		told.mu.Unlock()
		if last.Token != next.Token() || next.Token() >= lock.Token() || last.Owner != "the next" {
			t.Errorf("told %+v, the holder's token is %d, and was %d", last, next.Token(), lock.Token())
		}
		told.end()
	})
}
