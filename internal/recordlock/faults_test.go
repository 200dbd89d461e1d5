package recordlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
)

// A write takes the key, and its reply is lost. The Renew that is to confirm the grant fails until ctx ends.
func TestGivenUp_BeforeItsGrantIsConfirmed_FreesTheKey(t *testing.T) {
	for _, m := range modes {
		for name, fault := range map[string]memstore.Fault{"throttled": {Err: throttled}, "silent": {Lose: true}} {
			t.Run(m.name+" "+name, func(t *testing.T) {
				bubble(t, m, func(t *testing.T, h *harness) {
					a, b := h.client(t), h.client(t)
					a.conn.SetFault(func(op memstore.Op) memstore.Fault {
						switch op.Name {
						case "Take":
							return memstore.Fault{LoseReply: true, Err: errors.New("reset")}
						case "Renew":
							return fault
						}
						return memstore.Fault{}
					})
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					if _, err := a.Acquire(ctx, "k"); err == nil {
						t.Error("granted")
					}
					cancel()
					a.conn.SetFault(nil)
					time.Sleep(lease / 4)
					if left := h.Residue(t, "k"); len(left) > 0 {
						t.Errorf("after a quarter of a lease: %v", left)
					}
					time.Sleep(30 * time.Minute)
					if _, err := b.TryAcquire(t.Context(), "k"); err != nil {
						t.Error("after 30 minutes:", err)
					}
					if err := a.Close(t.Context()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// depose leaves a client with a deposed primary, which shows the records of this moment to reads that are not fresh, and confirms nothing.
func depose(c *client) {
	began := time.Now()
	c.conn.SetBehind(func() time.Duration { return time.Since(began) })
	c.conn.SetFault(func(op memstore.Op) memstore.Fault { return memstore.Fault{Lose: op.Name != "Read" || op.Fresh} })
}

// A holder that is left with a deposed primary knows the loss before another client has the key. A waiter that is left with one takes
// nothing, and has the key when it reaches the present primary.
func TestDeposedPrimary_ConfirmsNothing(t *testing.T) {
	bubble(t, revisions, func(t *testing.T, h *harness) {
		other, holder, waiter := h.client(t), h.client(t), h.client(t)
		lock, err := holder.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		depose(holder)
		next, err := other.Acquire(t.Context(), "k")
		if err != nil || !errors.Is(lock.Err(), holdfast.ErrLeaseExpired) || next.Token() <= lock.Token() {
			t.Fatalf("%v; %v; tokens %d, %d", err, lock.Err(), lock.Token(), next.Token())
		}
		granted := make(chan *holdfast.Lock)
		go func() {
			lock, _ := waiter.Acquire(t.Context(), "k")
			granted <- lock
		}()
		time.Sleep(2 * poll)
		depose(waiter)
		if err := next.Release(t.Context()); err != nil {
			t.Error(err)
		}
		again, err := other.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		select {
		case lock := <-granted:
			t.Errorf("two holders: %v", lock)
		case <-time.After(3 * lease):
		}
		if err := again.Release(t.Context()); err != nil {
			t.Error(err)
		}
		waiter.conn.SetBehind(nil)
		waiter.conn.SetFault(nil)
		if lock := <-granted; lock == nil || lock.Release(t.Context()) != nil {
			t.Error("the waiter did not get the key")
		}
	})
}

// A SetData while beats are denied must not beat without a pause.
func TestSetData_BeatsDenied_BeatsAtAPace(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			bubble(t, m, func(t *testing.T, h *harness) {
				a := h.client(t)
				lock := a.hold(t, "k")
				var sent, on atomic.Int64
				on.Store(1)
				a.conn.SetFault(func(op memstore.Op) memstore.Fault {
					if on.Load() == 0 {
						return memstore.Fault{}
					}
					if sent.Add(1) == 1000 {
						on.Store(0)
					}
					return memstore.Fault{Err: fmt.Errorf("%w: policy", driver.ErrDenied), Permanent: true}
				})
				time.Sleep(lease/4 + lease/8) // one beat at least was denied
				before := sent.Load()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := lock.SetData(ctx, []byte("x"))
				if n := sent.Load() - before; n > 50 {
					t.Errorf("%d requests within a second; SetData: %v", n, err)
				}
			})
		})
	}
}

// The time in a write that waited for its turn is not before the lease of its holder.
func TestTrustLocalTime_WriteThatWaited_CountsFromItsSending(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		h.opts.TrustLocalTime = true
		a, b := h.client(t), h.client(t)
		var writes atomic.Int64
		var well atomic.Bool
		a.conn.SetFault(func(op memstore.Op) memstore.Fault {
			if well.Load() || op.Name == "Read" {
				return memstore.Fault{}
			}
			writes.Add(1)
			return memstore.Fault{Err: throttled}
		})
		got := make(chan *holdfast.Lock, 40)
		for range 12 {
			go func() {
				lock, _ := a.TryAcquire(t.Context(), "k")
				got <- lock
			}()
		}
		time.Sleep(12 * time.Second)
		well.Store(true)
		lock := <-got
		for lock == nil {
			lock = <-got
		}
		a.conn.Cut() // just after the grant
		other, err := b.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if lock.Err() == nil {
			t.Errorf("two live grants, tokens %v and %v: the first is live for %v more", lock.Token(), other.Token(), time.Until(lock.Deadline()))
		}
		time.Sleep(lease)
		for range 11 {
			select {
			case <-got:
			case <-time.After(2 * lease):
			}
		}
	})
}
