package holdfast_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// R15. OnEvent receives the end of each acquisition, and all keys are given back, also if Retry.Delay does not return.
func TestRetryDelay_DoesNotReturn_FailedIsReported(t *testing.T) {
	acquire := map[string]func(c *holdfast.Client, opt holdfast.Option){
		"Acquire": func(c *holdfast.Client, opt holdfast.Option) { _, _ = c.Acquire(t.Context(), "k", opt) },
		"AcquireAll": func(c *holdfast.Client, opt holdfast.Option) {
			_, _ = c.AcquireAll(t.Context(), []string{"a", "k"}, opt)
		},
		"AcquireAny": func(c *holdfast.Client, opt holdfast.Option) { _, _ = c.AcquireAny(t.Context(), []string{"k"}, opt) },
	}
	unwind := map[string]func(){"panics": func() { panic("in Delay") }, "ends its goroutine": runtime.Goexit}
	for call, acquire := range acquire {
		for how, unwind := range unwind {
			var told []string
			b := &engine{}
			b.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
				if req.Key == "a" {
					return b.grant(), nil
				}
				return driver.Grant{}, req.Retry(ctx, holdfast.ErrDisconnected, nil)
			}
			c := b.open(t, driver.Config{}, func(e holdfast.Event) {
				if e.Key != "a" {
					told = append(told, e.Kind.String())
				}
			})
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				acquire(c, holdfast.WithRetry(holdfast.Retry{Delay: func(int) (time.Duration, bool) {
					unwind()
					return 0, false
				}}))
			}()
			<-done
			n := int64(b.token.Load()) - b.ended.Load()
			mustClose(t, c)
			if n != 0 || !slices.Equal(told, []string{"started", "failed"}) {
				t.Errorf("%s, Delay %s: events %q, %d keys kept", call, how, told, n)
			}
		}
	}
}
