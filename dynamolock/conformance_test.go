package dynamolock_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
	"github.com/holdfast-go/holdfast/locktest"
)

// TestConformance runs the suite in virtual time, in each mode.
func TestConformance(t *testing.T) {
	for _, mode := range allModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			locktest.Run(t, locktest.Engine{
				Start: func(t testing.TB) locktest.Harness {
					return newHarness(t, &dynamolock.Options{Mode: mode, Margin: 100 * time.Millisecond})
				},
				Bubble: synctest.Test,
				Lease:  dynamolock.DefaultLease,
				// A waiter notices a release at its next look, and a look takes a round trip.
				Soon:       2*dynamolock.DefaultPoll + time.Second,
				Late:       2*dynamolock.DefaultPoll + time.Second,
				Notice:     dynamolock.DefaultLease/4 + time.Second,
				Heartbeats: map[dynamolock.Mode]locktest.Heartbeats{dynamolock.FailOpen: locktest.PerLock}[mode],
				AnyKey:     true,
				Shares:     mode == dynamolock.FailOpen,

				Tokenless:    mode == dynamolock.FailClosed,
				NeverExpires: mode != dynamolock.FailOpen,
			})
		})
	}
}

// harness is one table of a fake, and the settings of its clients.
type harness struct {
	db      *dynamofake.DB
	options dynamolock.Options
}

const tableName = "locks"

func newHarness(t testing.TB, o *dynamolock.Options) *harness {
	t.Helper()
	h := &harness{db: dynamofake.New(), options: *o}
	h.db.Latency = 4 * time.Millisecond
	h.db.Lag = 100 * time.Millisecond
	h.options.Table = tableName
	if err := dynamolock.CreateTable(t.Context(), h.db.Client(), &h.options); err != nil {
		t.Fatal(err)
	}
	return h
}

// client is one client, its connection, and its clock if that is a fake.
type client struct {
	*dynamolock.Client
	conn   *dynamofake.Client
	clock  *clock.Fake
	closed bool // by the test itself
}

// Close marks the client as closed by the test, which has looked at the result.
func (c *client) Close(ctx context.Context) error {
	c.closed = true
	return c.Client.Close(ctx)
}

// client returns a client that is closed when the test ends.
func (h *harness) client(t testing.TB, change ...func(*dynamolock.Options)) *client {
	t.Helper()
	fake := &clock.Fake{}
	c := h.clientOn(t, fake, nil, change...)
	c.clock = fake
	return c
}

// clientOn is client on another clock and, unless wrap is nil, on what that makes of the connection.
func (h *harness) clientOn(
	t testing.TB, on driver.Clock, wrap func(*dynamofake.Client) dynamolock.API, change ...func(*dynamolock.Options),
) *client {
	t.Helper()
	c, o := &client{conn: h.db.Client()}, h.options
	for _, f := range change {
		f(&o)
	}
	var api dynamolock.API = c.conn
	if wrap != nil {
		api = wrap(c.conn)
	}
	var err error
	if c.Client, err = dynamolock.New(clock.With(t.Context(), on), api, &o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !c.closed {
			c.close(t)
		}
	})
	return c
}

func (h *harness) pair(t testing.TB) (a, b *client) { return h.client(t), h.client(t) }

func (h *harness) NewClient(t testing.TB, o locktest.ClientOptions) *locktest.Client {
	c := h.client(t, func(options *dynamolock.Options) { options.Owner, options.Hooks = o.Owner, o.Hooks })
	c.closed = true // by the suite
	return &locktest.Client{
		API:    c.Client.Client,
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
func fates(next func() locktest.Fate) func(dynamofake.Op) dynamofake.Fault {
	if next == nil {
		return nil
	}
	var mu sync.Mutex
	return func(dynamofake.Op) dynamofake.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch next() {
		case locktest.LostRequest:
			return dynamofake.Drop()
		case locktest.LostReply:
			return dynamofake.LoseReply(nil)
		case locktest.LateRequest:
			return dynamofake.DeliverLate(dynamolock.DefaultLease/2, io.ErrUnexpectedEOF)
		case locktest.LateReply:
			return dynamofake.DelayReply(dynamolock.DefaultLease / 100) // heartbeats wait for a little longer
		}
		return dynamofake.Fault{}
	}
}

// Residue is an item that is held under a live lease, or under none. All clients have the
// same clock here, except those whose clock was set.
func (h *harness) Residue(t testing.TB, key string) []string {
	i := h.item(key)
	if i == nil || number(i["leaseDurationMs"]) == 1 {
		return nil
	}
	if i["leaseDurationMs"] == nil {
		return []string{fmt.Sprintf("an item held for ever: %v", i["owner"])}
	}
	lease := time.Duration(number(i["leaseDurationMs"])) * time.Millisecond
	if touched := time.UnixMilli(number(i["lockAcquiredTimeUnixMs"])); time.Since(touched) > lease {
		return nil
	}
	return []string{fmt.Sprintf("an item held, of lease %v: %v", lease, i["owner"])}
}

func number(v types.AttributeValue) int64 {
	var n int64
	if v, ok := v.(*types.AttributeValueMemberN); ok {
		_, _ = fmt.Sscan(v.Value, &n)
	}
	return n
}
