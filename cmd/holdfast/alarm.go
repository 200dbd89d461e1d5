package main

import "time"

// alarm goes off at a moment on either clock: the monotonic clock stops while the machine
// is asleep, and the wall clock can be set.
type alarm struct {
	timer *time.Timer
	at    time.Time // with monotonic and wall clock
}

// set sets the alarm, unless it is already set to an earlier moment.
func (a *alarm) set(at time.Time) {
	if a.timer != nil {
		if !at.Before(a.at) {
			return
		}
		a.timer.Stop()
	}
	a.at, a.timer = at, time.NewTimer(time.Until(at))
}

func (a *alarm) clear() {
	if a.timer != nil {
		a.timer.Stop()
	}
	*a = alarm{}
}

// c delivers the alarm of the monotonic clock.
func (a *alarm) c() <-chan time.Time {
	if a.timer == nil {
		return nil
	}
	return a.timer.C
}

// passed looks at both clocks.
func (a *alarm) passed() bool {
	now := time.Now()
	return a.timer != nil && (!now.Before(a.at) || !now.Round(0).Before(a.at.Round(0)))
}
