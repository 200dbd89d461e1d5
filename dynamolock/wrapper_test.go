package dynamolock_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// D62. The first write has no answer and is late; the second is repeated by a wrapper, and its copy meets what it has taken. That says nothing
// of the first.
func TestMeetsItsCopy(t *testing.T) {
	inEach(t, closedModes, func(t *testing.T, h *harness) {
		b, api := h.client(t), &odd{}
		a := h.odd(t, api)
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if purposeOf(op) != acquire || api.twice {
				return dynamofake.Fault{}
			}
			api.twice = true // from the second on
			return dynamofake.DeliverLate(time.Minute, io.ErrUnexpectedEOF)
		})
		mustRelease(t, a.hold(t, "k"))
		time.Sleep(20 * time.Minute)
		if _, err := b.TryAcquire(t.Context(), "k"); err != nil {
			t.Errorf("an orphan: %v", err)
		}
		if n := dynamolock.Leftovers(a.Client); n != 0 {
			t.Errorf("%d leftovers", n)
		}
	})
}

// D62. The copy is refused, by a server that does not say over what, and the read that is to tell fails: the call, or whoever sees its
// write through, does not know that the key was taken, and has it looked after.
func TestCannotReadItsCopy(t *testing.T) {
	for _, wait := range []time.Duration{time.Minute, 10 * time.Millisecond} {
		t.Run(wait.String(), func(t *testing.T) {
			inEach(t, closedModes, func(t *testing.T, h *harness) {
				b, a := h.client(t), h.odd(t, &odd{twice: true, silent: true})
				a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
					if op.Name == "GetItem" {
						return dynamofake.Fail(dynamofake.Throttled())
					}
					return dynamofake.Fault{}
				})
				if _, err := a.TryAcquire(within(t, wait), "k", once); err == nil {
					t.Fatal("granted")
				}
				time.Sleep(time.Second)
				a.conn.SetFault(nil)
				time.Sleep(20 * time.Minute)
				if _, err := b.TryAcquire(t.Context(), "k"); err != nil {
					t.Errorf("an orphan: %v", err)
				}
				if n := dynamolock.Leftovers(a.Client); n != 0 {
					t.Errorf("%d leftovers", n)
				}
			})
		})
	}
}

// D62. It is the write without an answer that was carried out: the lease counts from before that one, and nobody has to look for it when the
// lock is over.
func TestMeetsItsEarlierWrite(t *testing.T) {
	for _, opts := range [][]holdfast.Option{nil, {shared}} {
		t.Run(fmt.Sprint("shared ", opts != nil), func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				life := time.Until(a.hold(t, "other").Deadline())
				a.conn.SetFault(on(acquire, 1, dynamofake.LoseReply(io.ErrUnexpectedEOF)))
				began := time.Now()
				lock := a.hold(t, "k", append(opts, holdfast.WithRetry(holdfast.Retry{Delay: func(int) (time.Duration, bool) { return time.Second, true }}))...)
				if d := lock.Deadline().Sub(began); time.Since(began) < 100*time.Millisecond || d > life+10*time.Millisecond {
					t.Errorf("after %v, the lease ends %v after its write, not %v", time.Since(began), d, life)
				}
				mustRelease(t, lock)
				if n := dynamolock.Leftovers(a.Client); n != 0 {
					t.Errorf("%d leftovers", n)
				}
			})
		})
	}
}
