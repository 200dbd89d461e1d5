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

// Somebody breaks a grant before the call that it was made for knows of it: the key is taken anew. Neither does the call wait for its own
// grant until the lease of that is over, nor is a try refused over it, nor a lock granted that is broken.
func TestBrokenBeforeItIsKnown(t *testing.T) {
	for _, try := range []bool{false, true} {
		for _, shared := range []bool{false, true} {
			for _, refusedFor := range []time.Duration{2 * time.Second, lease / 2} {
				t.Run(fmt.Sprintf("try %v, shared %v, %v", try, shared, refusedFor), func(t *testing.T) {
					bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
						a, b := h.pair(t)
						began := time.Now()
						a.conn.SetFault(func(dynamofake.Op) dynamofake.Fault {
							switch since := time.Since(began); {
							case since == 0:
								return dynamofake.LoseReply(io.ErrUnexpectedEOF)
							case since < refusedFor:
								return dynamofake.Refuse()
							}
							return dynamofake.Fault{}
						})
						time.AfterFunc(time.Second, func() { b.breakIt(t, "k", false) })
						opts := []holdfast.Option{holdfast.WithRetry(holdfast.Retry{Initial: 10 * time.Millisecond, Max: 10 * time.Millisecond})}
						if shared {
							opts = append(opts, holdfast.WithShared())
						}
						acquire := a.Acquire
						if try {
							acquire = a.TryAcquire
						}
						lock, err := acquire(t.Context(), "k", opts...)
						if err != nil {
							t.Fatalf("after %v: %v", time.Since(began), err)
						}
						if d := time.Since(began) - refusedFor; d > 3*time.Second {
							t.Errorf("after %v", d)
						}
						time.Sleep(lease)
						mustVerify(t, lock)
						mustRelease(t, lock)
						h.isFree(t, "k")
					})
				})
			}
		}
	}
}
