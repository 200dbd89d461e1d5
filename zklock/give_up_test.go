package zklock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// R15. The caller's Retry panics, and the program recovers, as net/http does. The client removes the node that the call has created.
func TestRetryPanics(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		if err := acquire(t, client, "a").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		client.LoseReply(opCreate)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Retry was not asked")
				}
			}()
			_, _ = client.Acquire(t.Context(), "a", holdfast.WithRetry(holdfast.Retry{Delay: func(int) (time.Duration, bool) { panic("in Delay") }}))
		}()
		time.Sleep(virtualSession)
		if left := e.Children(virtualRoot + "/a"); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}
