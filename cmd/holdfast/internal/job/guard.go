//go:build unix

package job

import "time"

// guardName is the name by which this program calls itself to be a guard, and what
// ps(1) shows, with what it guards. By guardComm, short as the kernel wants it, other
// tools know it: not by the program's own name, by which many are killed at once.
const (
	guardName = "holdfast guard"
	guardComm = "hf-guard"
)

// A Guard is a process that kills a job where this program cannot: because it has
// been killed itself, or stopped for longer than the job may run. A nil *Guard is
// valid, and does nothing.
type Guard struct {
	of     string
	pid    int
	send   func(orders) // kills the guard if it does not listen
	close  func()
	until  time.Time // as it knows
	ended  <-chan struct{}
	failed func() error // once it has ended
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
// ended of; nil if there never was one. One that somebody has stopped is killed.
func (g *Guard) Ended() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.ended
}

// Failed says what a guard has ended of; nil if it has done its work, and the job was
// killed.
func (g *Guard) Failed() error { return g.failed() }

// Again starts another guard in the place of one that has ended.
func (g *Guard) Again(j *Job) (*Guard, error) {
	another, err := StartGuard(g.of)
	if err != nil {
		return g, err
	}
	g.close()
	another.Watch(j, g.until)
	return another, nil
}

// Dismiss ends the guard. It is for when nobody of the job is left.
func (g *Guard) Dismiss() {
	if g != nil {
		g.send(dismissed)
		g.close()
	}
}
