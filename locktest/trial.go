package locktest

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// maxTrials is how often a case is tried whose machine stops every time.
const maxTrials = 5

// A trial runs a case in real time. On a machine that stops for a part of a lease, locks end that the case wants to live, and
// what it wants to see soon comes late. A failure after that proves nothing, and is forgotten: the case is tried again.
type trial struct {
	testing.TB
	excuse func() bool // the machine has stopped since the trial began

	mu      sync.Mutex
	void    bool
	refuted bool // for good: it is not tried again
	left    bool // a call has not returned; its later reports do not count
}

// inRealTime runs a case, again if its trial is void. It asks watch, for each trial, whether the machine stops.
func inRealTime(t testing.TB, engine Engine, c testCase, watch func(limit time.Duration) (stopped func() bool, end func())) {
	for n := 1; ; n++ {
		stopped, end := watch(engine.Lease / 8)
		tried := &trial{TB: t, excuse: func() bool { return n < maxTrials && stopped() }}
		runCase(tried, engine, c)
		end()
		if tried.isOver() {
			return
		}
	}
}

func (r *trial) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.void || r.refuted
}

// excused reports whether a failure does not count, and makes the trial void.
func (r *trial) excused(failure string) bool {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.void && !r.left && r.excuse() {
		r.void = true
		r.TB.Logf("the machine has stopped, so this is tried again: %s", failure)
	}
	return r.void || r.left
}

// refuted fails the case as broken does. That the machine has stopped is no excuse, not even in a trial that is void.
func (e *env) refuted(rule, format string, args ...any) {
	e.Helper()
	e.unexcused().Fatal(e.breach(rule, format, args...))
}

// leave ends the case without a call that has not returned.
func (e *env) leave() {
	if r, ok := e.TB.(*trial); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.left = true
	}
}

// unexcused is for failures that prove a fault on any machine.
func (e *env) unexcused() testing.TB {
	r, ok := e.TB.(*trial)
	if !ok {
		return e.TB
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuted = true
	return r.TB
}

func (r *trial) Logf(format string, args ...any) {
	r.Helper()
	r.mu.Lock()
	left := r.left
	r.mu.Unlock()
	if !left {
		r.TB.Logf(format, args...)
	}
}

func (r *trial) Error(args ...any) {
	r.Helper()
	if !r.excused(fmt.Sprint(args...)) {
		r.TB.Error(args...)
	}
}

func (r *trial) Errorf(format string, args ...any) {
	r.Helper()
	if !r.excused(fmt.Sprintf(format, args...)) {
		r.TB.Errorf(format, args...)
	}
}

func (r *trial) Fatal(args ...any) {
	r.Helper()
	if r.excused(fmt.Sprint(args...)) {
		runtime.Goexit()
	}
	r.TB.Fatal(args...)
}

func (r *trial) Fatalf(format string, args ...any) {
	r.Helper()
	if r.excused(fmt.Sprintf(format, args...)) {
		runtime.Goexit()
	}
	r.TB.Fatalf(format, args...)
}

// watchMachine looks at the clock all the time. The machine has stopped if it could not for longer than limit.
func watchMachine(limit time.Duration) (stopped func() bool, end func()) {
	var mu sync.Mutex
	last, long := time.Now(), false
	look := func() bool {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		long = long || now.Sub(last) > limit
		last = now
		return long
	}
	over := make(chan struct{})
	go func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(limit / 10):
				look()
			}
		}
	}()
	return look, func() { close(over) }
}
