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

// An acquisition whose first request was carried out long ago, without an answer: the lease counts from then, so what is granted
// has been renewed, or taken anew.
func TestGrantedLate(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for left := 20 * time.Millisecond; left < lease; left += left / 2 { // of the lease, when the network is well again
			t.Run(fmt.Sprintf("shared %v, %v left", shared, left), func(t *testing.T) {
				bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
					h.db.Latency = 100 * time.Millisecond
					a := h.client(t)
					var began time.Time
					a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
						switch {
						case began.IsZero():
							began = time.Now()
							return dynamofake.LoseReply(io.ErrUnexpectedEOF)
						case time.Since(began) < lease-left:
							return dynamofake.Fail(io.ErrUnexpectedEOF)
						}
						return dynamofake.Fault{}
					})
					opts := []holdfast.Option{holdfast.WithRetry(holdfast.Retry{Initial: 10 * time.Millisecond, Max: 10 * time.Millisecond})}
					if shared {
						opts = append(opts, holdfast.WithShared())
					}
					lock := a.hold(t, "k", opts...)
					if left := time.Until(lock.Deadline()); left < lease/2 {
						t.Errorf("granted with %v left of a lease of %v", left, lease)
					}
					time.Sleep(3 * lease)
					mustVerify(t, lock)
					mustRelease(t, lock)
					h.isFree(t, "k")
				})
			})
		}
	}
}

// The machine is suspended while the request is under way: that counts for the lease, too.
func TestSuspendedWhileAcquiring(t *testing.T) {
	for _, percent := range []time.Duration{30, 50, 60, 70, 80, 85, 90} {
		t.Run(fmt.Sprint(int(percent), "% of a lease"), func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				a.conn.SetFault(on(acquire, 1, dynamofake.DelayReply(time.Second)))
				go func() {
					time.Sleep(500 * time.Millisecond)
					a.clock.Jump(lease * percent / 100)
				}()
				lock := a.hold(t, "k")
				time.Sleep(2 * lease)
				mustLive(t, lock)
			})
		})
	}
}
