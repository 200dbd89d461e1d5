package recordlock_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/internal/recordlock"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/locktest"
)

func init() { strict.On() }

const lease, poll, margin = 20 * time.Second, time.Second, 100 * time.Millisecond

// A mode is a kind of store and of leases.
type mode struct {
	name         string
	neverExpires bool
	forgetful    bool // the store has no tokens, and forgets vacant keys
	revisions    bool // each write makes another version
}

var modes = []mode{
	{name: "leases"}, {name: "closed", neverExpires: true}, {name: "closed and forgetful", neverExpires: true, forgetful: true},
}

// revisions is how package mongolock keeps leases.
var revisions = mode{name: "revisions", revisions: true}

// TestConformance runs the suite in virtual time.
func TestConformance(t *testing.T) {
	for _, m := range append([]mode{revisions}, modes...) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			heartbeats, unknown := locktest.PerLock, []string{"QueuedAt"}
			if m.neverExpires {
				unknown = append(unknown, "Lease", "LastHeard")
				heartbeats = locktest.Heartbeats(0)
			}
			locktest.Run(t, locktest.Engine{
				Start: func(t testing.TB) locktest.Harness {
					t.Cleanup(func() { time.Sleep(lease) })
					return newHarness(m)
				},
				Bubble:     synctest.Test,
				Lease:      lease,
				Soon:       2*poll + time.Second,
				Late:       2*poll + time.Second,
				Notice:     lease/4 + time.Second,
				Heartbeats: heartbeats,
				Unknown:    unknown,
			})
		})
	}
}

// harness is a store, and the settings of its clients.
type harness struct {
	store   *memstore.Store
	opts    recordlock.Options
	onEvent func(holdfast.Event)
	logger  *slog.Logger
}

func newHarness(m mode) *harness {
	h := &harness{
		store: &memstore.Store{Latency: 4 * time.Millisecond, Lag: 100 * time.Millisecond, Forgetful: m.forgetful, Revisions: m.revisions},
		opts: recordlock.Options{
			Lease: lease, Heartbeat: lease / 4, Poll: poll, Timeout: lease / 6, RetryDelay: lease / 200,
			NeverExpires: m.neverExpires, Late: lease,
		},
	}
	if m.neverExpires {
		h.opts.Late = 15 * time.Minute
	}
	return h
}

// client is one client, its connection, its engine and its clock.
type client struct {
	*holdfast.Client
	conn   *memstore.Conn
	engine *recordlock.Engine
	clock  *drivertest.Clock
}

// open returns a client. The caller closes it.
func (h *harness) open(t testing.TB, owner string, onEvent func(holdfast.Event)) *client {
	clk := &drivertest.Clock{}
	c := h.openWith(t, owner, onEvent, clk, nil)
	c.clock = clk
	return c
}

// openWith is open with another clock and, unless wrap is nil, another store.
func (h *harness) openWith(
	t testing.TB, owner string, onEvent func(holdfast.Event), clk driver.Clock, wrap func(recordlock.Store) recordlock.Store,
) *client {
	t.Helper()
	c, o := &client{conn: h.store.Conn()}, h.opts
	var err error
	c.Client, err = holdfast.New(driver.Config{
		Owner: owner, Margin: margin, Clock: clk, Logger: h.logger, Lease: func() time.Duration { return o.Lease },
		Features: driver.Features{
			Shares: !o.NeverExpires, NeverExpires: o.NeverExpires, Tokenless: h.store.Forgetful, AnyKey: true,
		},
	}, onEvent, func(host driver.Host) (driver.Driver, error) {
		host.SetConnected(true)
		var store recordlock.Store = c.conn
		if h.store.Revisions {
			store = recordlock.ByRevision(c.conn)
		}
		if wrap != nil {
			store = wrap(store)
		}
		c.engine = recordlock.New(host, store, o)
		return c.engine, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// client returns a client that is closed when the test ends.
func (h *harness) client(t testing.TB) *client {
	t.Helper()
	c := h.open(t, "", h.onEvent)
	t.Cleanup(c.end)
	return c
}

// openOn is client with another clock and, unless wrap is nil, another store.
func (h *harness) openOn(t testing.TB, clk driver.Clock, wrap func(recordlock.Store) recordlock.Store) *client {
	t.Helper()
	c := h.openWith(t, "", h.onEvent, clk, wrap)
	t.Cleanup(c.end)
	return c
}

// end closes a client that can reach its store.
func (c *client) end() {
	c.conn.SetFault(nil)
	c.conn.Heal()
	_ = c.Close(context.Background())
}

// NewClient implements locktest.Harness.
func (h *harness) NewClient(t testing.TB, o locktest.ClientOptions) *locktest.Client {
	c := h.open(t, o.Owner, o.OnEvent)
	return &locktest.Client{
		API:    c.Client,
		Cut:    c.conn.Cut,
		Heal:   func() { c.conn.SetFault(nil); c.conn.Heal() },
		Pause:  func() { c.clock.Pause(); c.conn.Cut() },
		Resume: func() { c.conn.Heal(); c.clock.Resume() },
		Jump:   c.clock.Jump,
		Stall:  c.conn.Stall,
		Lose:   func(next func() locktest.Fate) { c.conn.SetFault(fates(next)) },
	}
}

// fates are the faults of requests.
func fates(next func() locktest.Fate) func(memstore.Op) memstore.Fault {
	if next == nil {
		return nil
	}
	var mu sync.Mutex
	return func(memstore.Op) memstore.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch next() {
		case locktest.LostRequest:
			return memstore.Fault{Lose: true}
		case locktest.LostReply:
			return memstore.Fault{LoseReply: true}
		case locktest.LateRequest:
			return memstore.Fault{Late: lease / 2, LoseReply: true, Err: io.ErrUnexpectedEOF}
		case locktest.LateReply:
			return memstore.Fault{Delay: lease / 100}
		}
		return memstore.Fault{}
	}
}

// Residue implements locktest.Harness: a holder that is live, or that never expires.
func (h *harness) Residue(_ testing.TB, key string) (left []string) {
	for _, holder := range h.store.Record(key).Holders {
		if holder.Lease == recordlock.Forever || time.Since(holder.Touched) <= holder.Lease {
			left = append(left, fmt.Sprintf("%+v", holder))
		}
	}
	return left
}
