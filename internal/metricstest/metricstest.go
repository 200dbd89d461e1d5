// Package metricstest is what the tests of all collectors of metrics have in common.
package metricstest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
)

// World is a store and a client of it, whose lease is ten seconds.
type World struct {
	Store  *memlock.Store
	Client *memlock.Client
	Host   driver.Host // of the client that was opened last
}

// New makes a world whose client has the OnEvent function.
func New(t testing.TB, onEvent func(holdfast.Event)) *World {
	t.Helper()
	w := &World{Store: memlock.NewStore()}
	w.Client = w.Open(t, onEvent)
	return w
}

// Open makes another client, which is closed when the test ends.
func (w *World) Open(t testing.TB, onEvent func(holdfast.Event)) *memlock.Client {
	t.Helper()
	client, err := memlock.New(&memlock.Options{
		Store: w.Store, Lease: 10 * time.Second, OnEvent: onEvent,
		Wrap: func(host driver.Host, inner driver.Driver) driver.Driver {
			w.Host = host
			return inner
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Store.Heal(client)
		if err := client.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return client
}

// Acquire acquires a lock, or fails the test.
func Acquire(t testing.TB, c *memlock.Client, key string, opts ...holdfast.Option) *holdfast.Lock {
	t.Helper()
	lock, err := c.Acquire(t.Context(), key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// Release releases a lock, or fails the test.
func Release(t testing.TB, lock *holdfast.Lock) {
	t.Helper()
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Heartbeats are two that take a second each, and one that fails; memlock has none of its own.
func (w *World) Heartbeats() {
	for _, err := range []error{nil, nil, holdfast.ErrDisconnected} {
		sent := w.Host.Now()
		time.Sleep(time.Second)
		w.Host.Heartbeat("k", sent, err)
	}
	synctest.Wait()
}

// Story uses the client in every way, known to the second, and calls shows for what the metrics must show after each step. It
// runs in a bubble of synctest.
func (w *World) Story(t *testing.T, shows func(step string)) {
	other := w.Open(t, nil)
	synctest.Wait()
	shows("nothing has happened")

	// Two wait in line behind another client, for two and three seconds.
	held := Acquire(t, other, "k")
	for range 2 {
		go func() {
			lock := Acquire(t, w.Client, "k")
			time.Sleep(time.Second)
			Release(t, lock)
		}()
		synctest.Wait()
	}
	shows("two wait")
	time.Sleep(2 * time.Second)
	Release(t, held)
	synctest.Wait()
	shows("one holds, one waits")
	time.Sleep(2 * time.Second)
	synctest.Wait()
	shows("both have released")

	// Refused; refused after a second; canceled after two.
	Acquire(t, other, "k")
	if _, err := w.Client.TryAcquire(t.Context(), "k"); !errors.Is(err, holdfast.ErrHeld) {
		t.Error(err)
	}
	if _, err := w.Client.Acquire(t.Context(), "k", holdfast.WithWait(time.Second)); !errors.Is(err, holdfast.ErrHeld) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(2*time.Second, cancel)
	if _, err := w.Client.Acquire(ctx, "k"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// One reaches its TTL of a second, one is asked for, twice, and then broken, two are lost with the session.
	<-Acquire(t, w.Client, "ttl", holdfast.WithTTL(time.Second)).Done()
	broken := Acquire(t, w.Client, "broken")
	for range 2 { // who learn that it is held, and that it is not
		go func() {
			for range w.Client.Observe(t.Context(), "broken") {
			}
		}()
	}
	synctest.Wait()
	info, err := other.Inspect(t.Context(), "broken")
	if err == nil {
		err = errors.Join(other.Ask(t.Context(), info), other.Ask(t.Context(), info))
	}
	<-broken.Asked()
	if err == nil {
		err = other.Break(t.Context(), info)
	}
	if err != nil {
		t.Fatal(err)
	}
	<-broken.Done()
	synctest.Wait() // its observers hear of it before the client is cut off
	Acquire(t, w.Client, "one")
	two := Acquire(t, w.Client, "two")
	w.Store.Cut(w.Client)
	<-two.Done()
	synctest.Wait()
	shows("refused, expired, broken, lost")
}

// Lead leads once for a time, and calls f, if not nil, at the end of it.
func Lead(t testing.TB, c *memlock.Client, key string, d time.Duration, f func()) {
	t.Helper()
	election, err := c.Election(key, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = election.Run(t.Context(), func(context.Context, *holdfast.Lock) error {
		time.Sleep(d)
		if f != nil {
			f()
		}
		return holdfast.ErrWithdrawn
	})
	if err != nil {
		t.Error(err)
	}
}
