package holdfast

import (
	"log/slog"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// ClockLook is how often a client with locks compares its clocks.
const ClockLook = clockLook

// Contexts is how many contexts a lock has to end.
func Contexts(k *Lock) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.cancels)
}

// HookAllocs is how many times memory is allocated for the hooks of a lock and of a client.
func HookAllocs(hooks Hooks) map[string]float64 {
	const runs = 100
	f := newFeed(clock.Real{}, slog.New(slog.DiscardHandler), hooks)
	defer f.close()
	h := &host{Clock: f.clock, feed: f}
	c := &Client{feed: f, log: f.log}
	k, r := &Lock{client: c, key: "k"}, &request{key: "k", owner: "me"}
	connected := false
	return map[string]float64{
		"a lock": testing.AllocsPerRun(runs, func() {
			a := f.started("k", r, true)
			c.queued(r, a)(1)
			a.granted(k)
			f.ended(0, k, ErrReleased)
			f.started("k", r, true).failed(ErrHeld)
		}),
		"a heartbeat": testing.AllocsPerRun(runs, func() { h.Heartbeat("k", driver.Instant{}, nil) }),
		"the connection": testing.AllocsPerRun(runs, func() {
			connected = !connected
			h.SetConnected(connected)
		}),
	}
}

// ReadWhileClosed is what a reader gets of n events of a queue that is closed meanwhile.
func ReadWhileClosed(n int) []uint64 {
	q := newQueue()
	for i := range n {
		q.push(Event{Seq: uint64(i)})
	}
	read, closed := make(chan []uint64), make(chan struct{})
	go func() {
		var got []uint64
		for {
			select {
			case event := <-q.out:
				got = append(got, event.Seq)
			case <-closed:
				read <- got
				return
			}
		}
	}()
	q.close()
	close(closed)
	return <-read
}
