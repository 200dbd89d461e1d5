package drivertest

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		var ran atomic.Int32
		run := func() { ran.Add(1) }
		expect := func(n int32, when string) {
			t.Helper()
			synctest.Wait()
			if got := ran.Load(); got != n {
				t.Errorf("%s: %d ran, want %d", when, got, n)
			}
		}
		before := c.Now()
		c.AfterFunc(time.Second, run)
		stopped := c.AfterFunc(time.Second, run)
		if !stopped.Stop() || stopped.Stop() {
			t.Error("Stop is in time once")
		}
		time.Sleep(time.Second)
		expect(1, "running")

		c.Pause()
		held := c.AfterFunc(time.Second, run)
		dropped := c.AfterFunc(time.Second, run)
		late := c.AfterFunc(time.Minute, run)
		time.Sleep(2 * time.Second)
		expect(1, "paused")
		if !dropped.Stop() {
			t.Error("a timer that is held back can be stopped")
		}
		c.Resume()
		expect(2, "resumed")
		if held.Stop() {
			t.Error("a timer that ran cannot be stopped")
		}
		time.Sleep(time.Minute)
		expect(3, "after the pause")
		if late.Stop() {
			t.Error("a timer that ran cannot be stopped")
		}

		c.Jump(time.Hour)
		now := c.Now()
		if mono := now.Mono.Sub(before.Mono); mono != 63*time.Second {
			t.Errorf("the monotonic clock went on by %v", mono)
		}
		if wall := now.Wall.Sub(before.Wall); wall != 63*time.Second+time.Hour {
			t.Errorf("the wall clock went on by %v", wall)
		}
	})
}

func TestInstant(t *testing.T) {
	var zero driver.Instant
	if !zero.IsZero() || (&Clock{}).Now().IsZero() {
		t.Error("only an instant that was never set is zero")
	}
	now := (&Clock{}).Now()
	later := now.Add(time.Minute)
	if later.Mono.Sub(now.Mono) != time.Minute || later.Wall.Sub(now.Wall) != time.Minute {
		t.Errorf("%v, %v", now, later)
	}
}
