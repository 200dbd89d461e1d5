package dynamolock_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
	"github.com/holdfast-go/holdfast/locktest"
)

// TestConformance runs the whole contract in virtual time, in each mode. Reads that are not
// consistent lag behind, as they may.
func TestConformance(t *testing.T) {
	for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosedFenced, dynamolock.FailClosed} {
		t.Run(mode.String(), func(t *testing.T) {
			locktest.Run(t, locktest.Engine{
				Start:  func(t testing.TB) locktest.Harness { return newHarness(t, &dynamolock.Options{Mode: mode}) },
				Bubble: synctest.Test,
				Lease:  dynamolock.DefaultLease,
				// A waiter notices a release at its next look, and a look takes a round trip.
				Soon:       2*dynamolock.DefaultPoll + time.Second,
				Late:       2*dynamolock.DefaultPoll + time.Second,
				Notice:     dynamolock.DefaultLease/4 + time.Second,
				Heartbeats: map[dynamolock.Mode]locktest.Heartbeats{dynamolock.FailOpen: locktest.PerLock}[mode],
				AnyKey:     true,

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

// client is one client, its connection, and its clocks.
type client struct {
	*dynamolock.Client
	conn  *dynamofake.Client
	clock *clock.Fake
}

func (h *harness) client(t testing.TB, change ...func(*dynamolock.Options)) *client {
	t.Helper()
	c := &client{conn: h.db.Client(), clock: &clock.Fake{}}
	o := h.options
	for _, f := range change {
		f(&o)
	}
	var err error
	c.Client, err = dynamolock.New(clock.With(t.Context(), c.clock), c.conn, &o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pair returns two clients, which end with the test.
func (h *harness) pair(t testing.TB) (a, b *client) {
	t.Helper()
	a, b = h.client(t), h.client(t)
	t.Cleanup(func() {
		b.close(t)
		a.close(t)
	})
	return a, b
}

func (h *harness) NewClient(t testing.TB, o locktest.ClientOptions) *locktest.Client {
	c := h.client(t, func(options *dynamolock.Options) { options.Owner, options.Hooks = o.Owner, o.Hooks })
	return &locktest.Client{
		API:    c.Client.Client,
		Cut:    c.conn.Cut,
		Heal:   c.conn.Heal,
		Pause:  func() { c.clock.Pause(); c.conn.Cut() },
		Resume: func() { c.conn.Heal(); c.clock.Resume() },
		Jump:   c.clock.Jump,
	}
}

// Residue is an item that is held under a live lease, or under none. All clients have the
// same clock here, except those whose clock was set.
func (h *harness) Residue(t testing.TB, key string) []string {
	i := h.db.Item(tableName, map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: key}})
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
