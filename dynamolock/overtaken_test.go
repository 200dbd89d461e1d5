package dynamolock_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// D6.2. There is no item when the release arrives: an earlier try of it was carried out without an answer, or somebody has broken the lock.
// Before it is read again, a late request of the acquisition takes the key. The item is the lock's own, and is given back.
func TestReleaseIsOvertaken(t *testing.T) {
	for name, broken := range map[string]bool{"released": false, "broken": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{Mode: dynamolock.FailClosed}, func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				const late = 3 * time.Second
				arrives := time.Now().Add(late)
				a.conn.SetFault(on(acquire, 1, dynamofake.DeliverLate(late, io.ErrUnexpectedEOF)))
				lock := a.hold(t, "k")
				time.Sleep(time.Until(arrives) - time.Second)
				if broken {
					b.breakIt(t, "k", true)
				}
				lost := on(release, 1, dynamofake.LoseReply(io.ErrUnexpectedEOF))
				a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
					switch {
					case op.Name == "GetItem" && time.Until(arrives) > 0:
						return dynamofake.Delay(time.Until(arrives))
					case broken:
						return dynamofake.Fault{}
					}
					return lost(op)
				})
				if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrReleasePending) || errors.Is(err, holdfast.ErrLost) {
					t.Errorf("Release = %v", err)
				}
				if time.Until(arrives) > 0 {
					t.Fatal("the request was not late enough")
				}
				time.Sleep(time.Second)
				h.isFree(t, "k")
				time.Sleep(20 * time.Minute)
				if n := dynamolock.Leftovers(a.Client); n != 0 {
					t.Errorf("%d leftovers", n)
				}
			})
		})
	}
}
