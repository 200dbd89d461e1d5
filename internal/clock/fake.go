package clock

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Fake runs on the time of the process, which in a testing/synctest bubble
// is virtual, and can be paused and set. The zero value is ready to use.
type Fake struct {
	mu     sync.Mutex
	offset time.Duration
	paused bool
	held   []*fakeTimer // fired while paused, in the order of firing
}

// Now implements [driver.Clock]. It goes on while the clock is paused: a stopped
// process has no say in how time passes.
func (c *Fake) Now() driver.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	return driver.Instant{Mono: now, Wall: now.Round(0).Add(c.offset)}
}

// Jump sets the wall clock forward by d, or backward.
func (c *Fake) Jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// Pause holds back the functions of all timers, as SIGSTOP does.
func (c *Fake) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = true
}

// Resume runs what was held back, each on a goroutine of its own.
func (c *Fake) Resume() {
	c.mu.Lock()
	c.paused = false
	held := c.held
	c.held = nil
	c.mu.Unlock()
	for _, t := range held {
		go t.run()
	}
}

// AfterFunc implements [driver.Clock].
func (c *Fake) AfterFunc(d time.Duration, f func()) driver.Timer {
	t := &fakeTimer{clock: c, f: f}
	t.timer = time.AfterFunc(d, func() {
		c.mu.Lock()
		if c.paused {
			c.held = append(c.held, t)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		t.run()
	})
	return t
}

type fakeTimer struct {
	clock *Fake
	timer *time.Timer
	f     func()

	mu   sync.Mutex
	over bool // ran or was stopped
}

func (t *fakeTimer) run() {
	if t.finish() {
		t.f()
	}
}

func (t *fakeTimer) Stop() bool {
	t.timer.Stop()
	return t.finish()
}

func (t *fakeTimer) finish() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.over
	t.over = true
	return first
}
