package holdfast_test

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
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

// asking is a log handler that does something when it is asked whether it is enabled.
type asking struct {
	slog.Handler
	ask atomic.Pointer[func()]
}

func (a *asking) Enabled(context.Context, slog.Level) bool {
	if ask := a.ask.Load(); ask != nil {
		(*ask)()
	}
	return false
}

// R14. A log handler may call the client or a lock, also in Enabled.
func TestLogHandler_CallsTheClient_NothingBlocks(t *testing.T) {
	handler := &asking{Handler: slog.DiscardHandler}
	store := memlock.NewStore()
	c, err := memlock.New(&memlock.Options{Store: store, Logger: slog.New(handler)})
	if err != nil {
		t.Fatal(err)
	}
	lock := acquire(t, c.Client, "k")
	events := c.Events()
	info, err := c.Inspect(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	ask := func() {
		_ = lock.Err()
		c.Events().Close()
	}
	handler.ask.Store(&ask)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Ask(t.Context(), info); err != nil {
			t.Error(err)
		}
		<-lock.Asked()
		store.Cut(c)
		<-events.Disconnected()
		store.Heal(c)
		mustClose(t, c.Client)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the client stands still")
	}
}
