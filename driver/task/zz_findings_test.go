package task

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A task that begins its successor kept Close short before: Go refused it. Now Close never returns, even after its ctx has ended.
func TestFinding_CloseEndsWithItsCtx(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup()
		begun, stop := 0, false
		var next func(context.Context)
		next = func(ctx context.Context) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			if begun++; !stop {
				time.Sleep(time.Millisecond)
				g.Go(next)
			}
		}
		g.Go(next)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		closed := make(chan struct{})
		go func() { g.Close(ctx); close(closed) }()
		time.Sleep(time.Minute)
		select {
		case <-closed:
		default:
			t.Errorf("Close has not returned 50 s after the end of its ctx; %d tasks", begun)
			stop = true
			<-closed
		}
	})
}
