package job

import "time"

// guardName is the name by which this program calls itself to be a guard, and what
// ps(1) shows.
const guardName = "holdfast guard"

// A Guard is a process that kills a job where this program cannot: because it has
// been killed itself, or stopped for longer than the job may run. A nil *Guard is
// valid, and does nothing.
type Guard struct {
	send  func(orders) // kills the guard if it does not listen
	close func()
	until time.Time // as it knows
	ended <-chan struct{}
}

// orders are all that a guard knows.
type orders struct {
	group    int64 // to be killed
	deadline int64 // when, by sharedClock; 0: when the program that is guarded for is gone, and not before
}

// dismissed are the orders to leave.
var dismissed = orders{}

// Watch has the guard kill a job at a moment, or as soon as this program is gone,
// whichever comes first. It is called again whenever the moment may have moved.
func (g *Guard) Watch(j *Job, until time.Time) {
	if g != nil && !until.Equal(g.until) {
		g.until = until
		g.send(orders{group: int64(j.pid), deadline: sharedClock(until)})
	}
}

// Ended returns a channel that is closed when the guard has ended, whatever it has
// ended of; nil if there never was one.
func (g *Guard) Ended() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.ended
}

// Dismiss ends the guard. It is for when nobody of the job is left.
func (g *Guard) Dismiss() {
	if g != nil {
		g.send(dismissed)
		g.close()
	}
}
