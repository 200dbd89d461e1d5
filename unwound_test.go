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

// R15. Hooks hear of the end of each acquisition, also of one whose Retry.Delay does not return.
func TestHooksOfACallThatIsUnwound(t *testing.T) {
	acquire := map[string]func(c *holdfast.Client, opt holdfast.Option){
		"Acquire":    func(c *holdfast.Client, opt holdfast.Option) { _, _ = c.Acquire(t.Context(), "k", opt) },
		"AcquireAll": func(c *holdfast.Client, opt holdfast.Option) { _, _ = c.AcquireAll(t.Context(), []string{"k"}, opt) },
		"AcquireAny": func(c *holdfast.Client, opt holdfast.Option) { _, _ = c.AcquireAny(t.Context(), []string{"k"}, opt) },
	}
	unwind := map[string]func(){"panics": func() { panic("in Delay") }, "ends its goroutine": runtime.Goexit}
	for call, acquire := range acquire {
		for how, unwind := range unwind {
			var told []string
			b := &engine{acquire: func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
				return driver.Grant{}, req.Retry(ctx, holdfast.ErrDisconnected, nil)
			}}
			c := b.open(t, driver.Config{}, holdfast.Hooks{
				Started: func(holdfast.Acquisition) { told = append(told, "started") },
				Failed:  func(a holdfast.Acquisition) { told = append(told, a.Result()) },
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
			mustClose(t, c)
			if !slices.Equal(told, []string{"started", "error"}) {
				t.Errorf("%s, Delay %s: hooks are told %q", call, how, told)
			}
		}
	}
}

// R15. They do so too if a log handler panics when one of several locks is lost.
func TestHooksOfACallThatALogHandlerUnwinds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		started, over := 0, 0
		b := &engine{}
		b.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			if req.Key == "a" {
				time.AfterFunc(time.Second, func() { req.Lost(holdfast.ErrBroken) })
				return b.grant(), nil
			}
			<-ctx.Done()
			return driver.Grant{}, driver.ContextError(ctx)
		}
		logger := slog.New(unwindingAt{slog.DiscardHandler, "acquisition is to be tried again", panics})
		c := b.open(t, driver.Config{Logger: logger}, holdfast.Hooks{
			Started: func(holdfast.Acquisition) { started++ },
			Granted: func(holdfast.Acquisition) { over++ },
			Failed:  func(holdfast.Acquisition) { over++ },
		})
		func() {
			defer func() { _ = recover() }()
			_, _ = c.AcquireAll(t.Context(), []string{"a", "b"})
			t.Error("it went on")
		}()
		mustClose(t, c)
		if started != 2 || over != 2 {
			t.Errorf("%d acquisitions have begun, %d ended", started, over)
		}
	})
}

// unwindingAt is a log handler that panics, or ends its goroutine, at one message.
type unwindingAt struct {
	slog.Handler
	at     string
	unwind func()
}

func (u unwindingAt) Enabled(context.Context, slog.Level) bool { return true }

func (u unwindingAt) Handle(_ context.Context, r slog.Record) error {
	if r.Message == u.at {
		u.unwind()
	}
	return nil
}

func panics() { panic("in a log handler") }

// A log handler that panics at a grant leaves no lock behind.
func TestLogHandlerPanicsAtAGrant(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, err := memlock.New(&memlock.Options{Logger: slog.New(unwindingAt{slog.DiscardHandler, "lock granted", panics})})
		if err != nil {
			t.Fatal(err)
		}
		panicked := false
		func() {
			defer func() { panicked = recover() != nil }()
			_, _ = c.Acquire(t.Context(), "k")
		}()
		time.Sleep(time.Second)
		if info, err := c.Inspect(t.Context(), "k"); !panicked || err != nil || info.Held {
			t.Errorf("panicked: %v; %+v, %v", panicked, info, err)
		}
		mustClose(t, c.Client)
	})
}

// R15. Nor does one that panics, or ends its goroutine, at a place in the queue leave that behind, to be granted to nobody.
func TestLogHandlerPanicsAtAPlace(t *testing.T) {
	for how, unwind := range map[string]func(){"panics": panics, "ends its goroutine": runtime.Goexit} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				store := memlock.NewStore()
				var clients [2]*memlock.Client
				for i, handler := range []slog.Handler{slog.DiscardHandler, unwindingAt{slog.DiscardHandler, "waiting in the queue", unwind}} {
					c, err := memlock.New(&memlock.Options{Store: store, Logger: slog.New(handler)})
					if err != nil {
						t.Fatal(err)
					}
					clients[i] = c
				}
				first := acquire(t, clients[0].Client, "k")
				unwound := make(chan struct{})
				go func() {
					defer close(unwound)
					defer func() { _ = recover() }()
					_, err := clients[1].Acquire(t.Context(), "k")
					t.Errorf("it went on: %v", err)
				}()
				<-unwound
				mustRelease(t, first)
				if info, err := clients[0].Inspect(t.Context(), "k"); err != nil || info.Held {
					t.Errorf("%+v, %v", info, err)
				}
				for _, c := range clients {
					mustClose(t, c.Client)
				}
			})
		})
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

// R14. A log handler may ask the client, or a lock, also when it is asked whether it is enabled.
func TestLogHandlerAsksWhenItIsAsked(t *testing.T) {
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
