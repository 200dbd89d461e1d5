package dynamolock_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// D53. An acquisition whose first request was carried out long ago, without an answer: the lease counts from then, so what is granted
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

// D79. The renewal is carried out when the lease is over: by then the others have been told that nobody holds the key, and a token that
// was over is never told again. So the key is taken anew, and who was asked for the first grant is not told so of the second.
func TestRenewedTooLate(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, late := range []time.Duration{0, 2300, 2700} { // ms
			t.Run(fmt.Sprintf("shared %v, %v ms", shared, int(late)), func(t *testing.T) {
				bubble(t, dynamolock.Options{Poll: 150 * time.Millisecond}, func(t *testing.T, h *harness) {
					h.db.Latency = 400 * time.Millisecond
					a, b := h.pair(t)
					began, renewals, well := time.Now(), 0, lease-1550*time.Millisecond
					if late == 0 {
						well = lease * 3 / 4
					}
					a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
						switch since := time.Since(began); {
						case since == 0:
							return dynamofake.LoseReply(io.ErrUnexpectedEOF)
						case since < well:
							return dynamofake.Refuse()
						case purposeOf(op) == beat && since < lease:
							renewals++
							return dynamofake.Delay(late * time.Millisecond)
						}
						return dynamofake.Fault{}
					})
					told := b.observe(t, "k")
					var asked holdfast.Token
					time.AfterFunc(lease/2, func() {
						info, err := b.Inspect(t.Context(), "k")
						if err = errors.Join(err, b.Ask(t.Context(), info)); err != nil {
							t.Error(err)
						}
						asked = info.Token
					})
					opts := []holdfast.Option{holdfast.WithRetry(holdfast.Retry{Initial: 10 * time.Millisecond, Max: 10 * time.Millisecond})}
					if shared {
						opts = append(opts, holdfast.WithShared())
					}
					lock := a.hold(t, "k", opts...)
					if renewals == 0 {
						t.Fatal("nothing was renewed")
					}
					if (late == 0) != (lock.Token() == asked) || isClosed(lock.Asked()) != (lock.Token() == asked) {
						t.Errorf("token %d, asked %v; who was asked for had token %d", lock.Token(), isClosed(lock.Asked()), asked)
					}
					time.Sleep(lease)
					mustVerify(t, lock)
					if tokens, _ := told.tokens(); tokens[len(tokens)-1] != lock.Token() {
						t.Errorf("told %v, while token %d holds the key", tokens, lock.Token())
					}
					told.end()
					mustRelease(t, lock)
				})
			})
		}
	}
}

// D53. The machine is suspended while the request is under way: that counts for the lease, too.
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
