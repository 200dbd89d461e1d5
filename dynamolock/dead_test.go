package dynamolock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// A grant of this client that no lock and no call has any more keeps it from nothing: it takes the key at once, with waits that
// are shorter than a lease, and without one.
func TestOwnDeadGrant(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, a *client, opts []holdfast.Option){
		// The client has given up to free the key.
		"release denied": func(t *testing.T, a *client, opts []holdfast.Option) {
			lock := a.hold(t, "k", opts...)
			a.conn.SetFault(always(dynamofake.Fail(dynamofake.Denied())))
			if err := lock.Release(t.Context()); err == nil {
				t.Error("released, without credentials")
			}
			time.Sleep(2 * lease)
		},
		"release denied, and broken": func(t *testing.T, a *client, opts []holdfast.Option) {
			lock := a.hold(t, "k", opts...)
			a.conn.SetFault(always(dynamofake.Fail(dynamofake.Denied())))
			if err := lock.Release(t.Context()); err == nil {
				t.Error("released, without credentials")
			}
			time.Sleep(2 * lease)
			a.conn.SetFault(nil)
			if i, err := a.Inspect(t.Context(), "k"); err != nil || i.Held && a.Break(t.Context(), i) != nil {
				t.Errorf("%+v, %v", i, err)
			}
		},
		// The call has given up, and its request comes.
		"late request": func(t *testing.T, a *client, opts []holdfast.Option) {
			a.conn.SetFault(on(acquire, 1, dynamofake.DeliverLate(time.Second, dynamofake.Reset())))
			opts = append(opts, once)
			if _, err := a.TryAcquire(t.Context(), "k", opts...); err == nil {
				t.Error("granted, without an answer")
			}
			a.conn.SetFault(always(dynamofake.Fail(dynamofake.Denied())))
			time.Sleep(2 * lease)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, opts := range map[string][]holdfast.Option{"alone": nil, "shared": {holdfast.WithShared()}} {
				modes := allModes
				if opts != nil {
					modes = modes[:1]
				}
				t.Run(kind, func(t *testing.T) {
					inEach(t, modes, func(t *testing.T, h *harness) {
						a := h.client(t)
						leave(t, a, opts)
						if h.item("k") == nil && !strings.Contains(name, "broken") { // a break may free the key at once
							t.Fatal("nothing is left")
						}
						a.conn.SetFault(nil)
						lock, err := a.Acquire(t.Context(), "k", holdfast.WithWait(time.Second))
						if err != nil {
							t.Fatalf("it waits for itself: %v", err)
						}
						time.Sleep(20 * time.Minute) // what calls have left is looked for
						mustLive(t, lock)
						mustVerify(t, lock)
					})
				})
			}
		})
	}
}

// Of a grant that a call is getting just now, or that is being given back, nothing is taken.
func TestOwnGrantUnderWay(t *testing.T) {
	inEach(t, allModes, func(t *testing.T, h *harness) {
		a := h.client(t)
		a.conn.SetFault(on(acquire, 1, dynamofake.DelayReply(time.Second)))
		granted := a.waits(t, "k")
		time.Sleep(time.Second / 2)
		if lock, err := a.TryAcquire(t.Context(), "k"); err == nil {
			t.Errorf("a second grant, %v, while the first is on its way", lock.Token())
		}
		lock := <-granted
		mustLive(t, lock)
		mustVerify(t, lock)
	})
}
