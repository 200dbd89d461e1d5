package memlock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locktest/logtest"
	"github.com/holdfast-go/holdfast/memlock"
)

// TestLogs checks the names, types and levels of all that a client logs.
func TestLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "SECRET"
		logs := &logtest.Recorder{}
		store := memlock.NewStore()
		open := func(logger *slog.Logger) *memlock.Client {
			c, err := memlock.New(&memlock.Options{Store: store, Lease: lease, Logger: logger})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		a, other := open(logs.Logger()), open(nil)
		acquire := func(c *memlock.Client, key string, opts ...holdfast.Option) *holdfast.Lock {
			return hold(t, c, key, append(opts, holdfast.WithData([]byte(secret)))...)
		}

		mustRelease(t, acquire(a, "released"))
		<-acquire(a, "past its TTL", holdfast.WithTTL(time.Second)).Done()

		held := acquire(other, "waited for")
		go func() {
			synctest.Wait()
			mustRelease(t, held)
		}()
		mustRelease(t, acquire(a, "waited for"))

		acquire(other, "limited", holdfast.WithLimit(2))
		if _, err := a.Acquire(t.Context(), "limited", holdfast.WithShared(), holdfast.WithWait(time.Second)); !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}

		acquire(other, "broken")
		breakIt(t, a, "broken")

		lost := acquire(a, "lost")
		store.Cut(a)
		<-lost.Done()
		go func() {
			time.Sleep(time.Second)
			store.Heal(a)
		}()
		acquire(a, "tried again")
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}

		logs.Check(
			t, []string{secret},
			logtest.Want{Text: "connected", Level: slog.LevelInfo},
			logtest.Want{Text: "disconnected", Level: slog.LevelWarn},
			logtest.Want{Text: "waiting in the queue", Level: slog.LevelDebug, Attrs: "key owner ahead"},
			logtest.Want{Text: "waiting behind another mode", Level: slog.LevelInfo, Attrs: "key owner mode other"},
			logtest.Want{Text: "acquisition is to be tried again", Level: slog.LevelDebug, Attrs: "key owner error"},
			logtest.Want{Text: "lock granted", Level: slog.LevelDebug, Attrs: "key owner token"},
			logtest.Want{Text: "lock released", Level: slog.LevelDebug, Attrs: "key owner token"},
			logtest.Want{Text: "lock reached its TTL", Level: slog.LevelWarn, Attrs: "key owner token"},
			logtest.Want{Text: "lock lost", Level: slog.LevelWarn, Attrs: "key owner token error"},
			logtest.Want{Text: "lock broken", Level: slog.LevelInfo, Attrs: "key owner token"},
		)
		if err := other.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// caller is a handler that calls the client and a lock, as one that writes to a table under a lock of its own might.
type caller struct {
	logtest.Recorder
	client *memlock.Client
	lock   *holdfast.Lock
}

func (c *caller) call(ctx context.Context) {
	if c.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second) // the client may be cut off
	defer cancel()
	_, _ = c.client.Inspect(ctx, "k")
	c.client.Events().Close()
	if c.lock != nil {
		_ = c.lock.Err()
	}
}

func (c *caller) Enabled(ctx context.Context, _ slog.Level) bool {
	c.call(ctx)
	return true
}

func (c *caller) Handle(ctx context.Context, r slog.Record) error {
	c.call(ctx)
	return c.Recorder.Handle(ctx, r)
}

// R14. A handler is called without a mutex that the client needs, or this would hang.
func TestLogHandler_CallsTheClient_NothingBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, h := memlock.NewStore(), &caller{}
		c, err := memlock.New(&memlock.Options{Store: store, Lease: lease, Logger: slog.New(h)})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h.client = c
		lock, err := c.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h.lock = lock
		info, err := c.Inspect(t.Context(), "k")
		if err == nil {
			err = c.Ask(t.Context(), info)
		}
		if err != nil {
			t.Fatal(err)
		}
		<-lock.Asked()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, "k"); !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
		store.Cut(c)
		<-lock.Done()
		synctest.Wait()
		store.Heal(c)
		synctest.Wait()
		h.client = nil // Close is not to be called for
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for _, text := range []string{"connected", "disconnected", "lock granted", "waiting in the queue", "lock lost"} {
			if !h.Has(text) {
				t.Errorf("nothing was logged as %q", text)
			}
		}
	})
}

// A wait behind a lock of the same client logs one warning, and a try says so. Readers and permits beside others that let them in do not.
func TestOwnHold_InTheWay_IsTold(t *testing.T) {
	shared, permit := []holdfast.Option{holdfast.WithShared()}, []holdfast.Option{holdfast.WithLimit(2)}
	const warning = "waiting for a lock of this client: locks are not re-entrant"
	for name, c := range map[string]struct {
		held [][]holdfast.Option
		want []holdfast.Option
		told bool
	}{
		"locks":       {[][]holdfast.Option{nil}, nil, true},
		"writer":      {[][]holdfast.Option{shared}, nil, true},
		"reader":      {[][]holdfast.Option{shared}, shared, false},
		"permit":      {[][]holdfast.Option{permit}, permit, false},
		"other limit": {[][]holdfast.Option{permit}, shared, true},
		"all permits": {[][]holdfast.Option{permit, permit}, permit, true},
		"own reclaim": {[][]holdfast.Option{nil}, []holdfast.Option{holdfast.WithOwner("a"), holdfast.WithReclaim()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			log := &logtest.Recorder{}
			a, err := memlock.New(&memlock.Options{Logger: log.Logger(), Owner: "a"})
			if err != nil {
				t.Fatal(err)
			}
			for _, opts := range c.held {
				if _, err := a.Acquire(t.Context(), "k", opts...); err != nil {
					t.Fatal(err)
				}
			}
			if c.told {
				var held *holdfast.HeldError
				if _, err := a.TryAcquire(t.Context(), "k", c.want...); !errors.As(err, &held) || !held.Own || !strings.HasSuffix(err.Error(), ", by this client; locks are not re-entrant") {
					t.Errorf("the try: %v", err)
				}
			}
			wait := map[bool]time.Duration{true: time.Millisecond, false: time.Minute}[c.told]
			_, err = a.Acquire(t.Context(), "k", append(c.want, holdfast.WithOwner("b"), holdfast.WithWait(wait))...)
			_ = a.Close(t.Context()) // waits for the log
			if (err != nil) != c.told || log.Has(warning) != c.told {
				t.Errorf("the wait: %v; warned: %v", err, log.Has(warning))
			}
			if c.told {
				log.Check(t, nil, logtest.Want{Text: warning, Level: slog.LevelWarn, Attrs: "key owner holder"})
			}
		})
	}
}
