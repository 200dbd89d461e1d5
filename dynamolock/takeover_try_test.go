package dynamolock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// tries takes the key by a client that has not seen it before, as a program does that tries once and ends.
func tries(t *testing.T, h *harness, opts ...holdfast.Option) (*holdfast.Lock, error) {
	t.Helper()
	return h.client(t).TryAcquire(t.Context(), "k", opts...)
}

// dies has a client reach nothing any more, until the test ends.
func (c *client) dies(t *testing.T) {
	t.Helper()
	c.conn.Cut()
	c.closed = true
	t.Cleanup(func() {
		c.conn.Heal()
		_ = c.Client.Close(context.Background()) // its lease was over long ago
	})
}

// A try by which a program begins that then ends finds out that the holder is dead, if it may, whatever holds the key.
func TestTakeoverByATry(t *testing.T) {
	shared, permit := holdfast.WithShared(), holdfast.WithLimit(2)
	type takeover struct{ dead, live, waits, want []holdfast.Option }
	forEach(t, map[string]takeover{
		"alone":                 {},
		"readers":               {dead: []holdfast.Option{shared}},
		"alone, for a reader":   {want: []holdfast.Option{shared}},
		"a permit, for another": {dead: []holdfast.Option{permit}, live: []holdfast.Option{permit}, want: []holdfast.Option{permit}},
		"permits, for a lock":   {dead: []holdfast.Option{permit}},
		"a reader and a writer that waits, for a reader": {
			dead: []holdfast.Option{shared}, waits: []holdfast.Option{}, want: []holdfast.Option{shared},
		},
	}, func(t *testing.T, h *harness, c takeover) {
		a, b := h.client(t), h.client(t)
		a.hold(t, "k", c.dead...)
		switch {
		case c.live != nil:
			h.client(t).hold(t, "k", c.live...)
		case c.waits != nil:
			go func() { _, _ = b.Acquire(t.Context(), "k", c.waits...) }()
			time.Sleep(3 * poll) // it keeps others out
		case c.dead != nil:
			b.hold(t, "k", c.dead...)
		}
		a.dies(t)
		b.dies(t)
		time.Sleep(10 * lease)
		var lock *holdfast.Lock
		var err error
		took := took(func() { lock, err = tries(t, h, c.want...) })
		if err != nil || took < lease-poll || took > lease+2*poll {
			t.Fatalf("%v, after %v", err, took)
		}
		mustVerify(t, lock)
	})
}

// A holder that lives is not waited for; nor is one whose clock is wrong, or the client's own, for longer than until its next
// heartbeat.
func TestTakeoverOfALiveHolder(t *testing.T) {
	for name, jumps := range map[string]struct{ holder, other time.Duration }{
		"right clocks": {}, "the holder's clock is slow": {holder: -lease}, "the other's is fast": {other: 24 * time.Hour},
		"the holder's clock is fast": {holder: lease},
	} {
		for kind, opts := range map[string][]holdfast.Option{"alone": nil, "shared": {holdfast.WithShared()}} {
			t.Run(name+", "+kind, func(t *testing.T) {
				bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
					a := h.client(t)
					a.clock.Jump(jumps.holder)
					lock := a.hold(t, "k", opts...)
					time.Sleep(10*lease + lease/10)
					b := h.client(t)
					b.clock.Jump(jumps.other)
					var err error
					most := lease/4 + 2*poll // a heartbeat
					if jumps.holder >= 0 && jumps.other == 0 {
						most = poll / 2
					}
					if d := took(func() { _, err = b.TryAcquire(t.Context(), "k") }); !errors.Is(err, holdfast.ErrHeld) || d > most {
						t.Errorf("%v, after %v", err, d)
					}
					mustVerify(t, lock)
				})
			})
		}
	}
}

// TestTakeover_OneReadFails_GoesOn: one throttled read late in the watch of a dead holder does not end the try.
func TestTakeover_OneReadFails_GoesOn(t *testing.T) {
	for name, c := range map[string]struct{ holder, after time.Duration }{
		"at the end": {lease, lease - poll/2}, "after the own lease": {3 * lease, 2 * lease},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a, b := h.client(t, func(o *dynamolock.Options) { o.Lease = c.holder }), h.client(t)
				a.hold(t, "k")
				a.dies(t)
				time.Sleep(3 * c.holder)
				began, failed := time.Now(), false
				b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
					if failed || op.Name != "GetItem" || time.Since(began) < c.after {
						return dynamofake.Fault{}
					}
					failed = true
					return dynamofake.Fail(&types.ProvisionedThroughputExceededException{})
				})
				if _, err := b.TryAcquire(t.Context(), "k"); err != nil || !failed {
					t.Errorf("a read failed: %v, the try: %v", failed, err)
				}
			})
		})
	}
}
