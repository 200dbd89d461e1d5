package holdfast_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
)

// A loop that begins right after the last observer has left waits for the engine's Observe to return: the engine observes a
// key once at a time, and ObserveEnded precedes the next ObserveBegan.
func TestObserveAgainAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		var calls []string
		running := 0
		b.observe = func(ctx context.Context, key string, tell func(driver.Info)) error {
			if running++; running > 1 {
				t.Errorf("%d calls of the engine's Observe at a time", running)
			}
			defer func() { running-- }()
			tell(driver.Info{Key: key})
			<-ctx.Done()
			time.Sleep(10 * time.Millisecond)
			return ctx.Err()
		}
		c := b.open(t, driver.Config{}, func(e holdfast.Event) { calls = append(calls, e.Kind.String()) })
		for range 2 {
			for range c.Observe(t.Context(), "k") {
				break
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for info, err := range c.Observe(ctx, "k") {
				if err == nil {
					t.Errorf("told %+v of an observation that had not begun", info)
				}
			}
		}()
		synctest.Wait() // it waits for the second, and leaves meanwhile
		cancel()
		synctest.Wait()
		for range c.Observe(t.Context(), "k") {
			break
		}
		mustClose(t, c)
		pair := []string{"observe began", "observed", "observe ended"}
		if want := slices.Concat(pair, pair, pair, pair); !slices.Equal(calls, want) {
			t.Errorf("events: %q, want %q", calls, want)
		}
	})
}

// An observer may write into its Info: no other observer sees it, and the next state is not compared with it.
func TestObserversShareNoMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, err := memlock.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		lock := acquire(t, c.Client, "k", holdfast.WithShared(), holdfast.WithData([]byte("one")))
		var told []string
		go func() {
			for info, err := range c.Observe(t.Context(), "k") {
				if err == nil {
					told = append(told, string(info.Holders[0].Data))
					copy(info.Data, "XXX")
					copy(info.Holders[0].Data, "XXX")
				}
			}
		}()
		synctest.Wait()
		for info, err := range c.Observe(t.Context(), "k") {
			if err != nil || string(info.Holders[0].Data) != "one" || string(info.Data) != "one" {
				t.Errorf("another observer has written into %q and %q; %v", info.Holders[0].Data, info.Data, err)
			}
			break
		}
		for _, data := range []string{"XXX", "two"} {
			if err := lock.SetData(t.Context(), []byte(data)); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		mustClose(t, c.Client)
		if want := []string{"one", "XXX", "two"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}
