package dynamolock

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/internal/backoff"
)

// The bounds of what a client does of its own accord.
const (
	mostGivenUp  = 64 // writes under way whose callers have gone; as long as there are so many, no others are sent
	mostCleaners = 4  // goroutines that see to what calls have left
	mostReleases = 32 // releases under way
)

// errands are what a client has yet to see to when those who called have gone: one
// at most for each key.
type errands struct {
	*engine

	mu       sync.Mutex
	byName   map[string]*errand
	due      []*errand
	cleaners int
	writes   int           // under way, of all errands
	room     chan struct{} // closed when there are fewer than mostGivenUp; nil while there are
	closing  bool
	quiet    chan struct{} // closed when nothing is under way; nil if nobody wants to know
}

// An errand is about one key.
type errand struct {
	name string
	key  attributes

	// Writes that were given up and are under way.
	writes  int
	settled chan struct{} // closed when there are none; nil while there are none

	doubt  doubt // about writes of grants that nobody has
	owed   bool  // a grant that is over was not given back
	queued bool  // it is due, or being seen to
	fresh  bool  // something was added since it was last taken up
	logged bool

	timer  interface{ Stop() bool } // of the next time; nil if there is none
	delays *backoff.Loop
}

func newErrands(b *engine) *errands {
	return &errands{engine: b, byName: make(map[string]*errand)}
}

// admit waits until a key may be written to: not while a write for it is under way
// whose caller has gone, since that may take the key, and not while there are too
// many of those in all. It returns false if ctx ends before that.
func (x *errands) admit(ctx context.Context, name string) bool {
	for {
		x.mu.Lock()
		var wait chan struct{}
		if e := x.byName[name]; e != nil && e.writes > 0 {
			wait = e.settled
		} else if x.writes >= mostGivenUp {
			if x.room == nil {
				x.room = make(chan struct{})
			}
			wait = x.room
		}
		x.mu.Unlock()
		if wait == nil {
			return ctx.Err() == nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return false
		}
	}
}

func (x *errands) errandLocked(name string, key attributes) *errand {
	e := x.byName[name]
	if e == nil {
		e = &errand{name: name, key: key}
		x.byName[name] = e
	}
	return e
}

// gaveUp notes a write under way whose caller goes.
func (x *errands) gaveUp(name string, key attributes) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.errandLocked(name, key)
	if e.writes == 0 {
		e.settled = make(chan struct{})
	}
	e.writes++
	x.writes++
}

// seenThrough notes that such a write has come back, and what it has left.
func (x *errands) seenThrough(name string, key attributes, d doubt, owed bool) {
	x.mu.Lock()
	e := x.errandLocked(name, key)
	x.writes--
	if x.room != nil && x.writes < mostGivenUp {
		close(x.room)
		x.room = nil
	}
	e.writes--
	if e.writes == 0 {
		close(e.settled)
		e.settled = nil
	}
	inline := x.leftLocked(e, d, owed)
	x.quietLocked()
	x.mu.Unlock()
	if inline {
		x.clean()
	}
}

// left notes what a call has left: doubts about its writes, and a grant that could
// not be given back.
func (x *errands) left(name string, key attributes, d doubt, owed bool) {
	if d.none() && !owed {
		return
	}
	x.mu.Lock()
	inline := x.leftLocked(x.errandLocked(name, key), d, owed)
	x.mu.Unlock()
	if inline {
		x.clean()
	}
}

// leftLocked reports whether the caller, a task, is to clean up itself, since it is
// too late for a new one.
func (x *errands) leftLocked(e *errand, d doubt, owed bool) (inline bool) {
	e.doubt.merge(d)
	e.owed = e.owed || owed
	if d.none() && !owed {
		x.tidyLocked(e)
		return false
	}
	e.fresh = true
	e.delays = x.delays()
	x.dueLocked(e)
	return x.startLocked()
}

// delays are those between questions that were answered, in vain. What asks is a
// read.
func (x *errands) delays() *backoff.Loop {
	return backoff.Policy{Initial: 4 * x.opts.RetryDelay, Max: max(4*x.opts.RetryDelay, x.patience())}.Start()
}

// dueLocked puts an errand last in the queue.
func (x *errands) dueLocked(e *errand) {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
	if !e.queued {
		e.queued = true
		x.due = append(x.due, e)
	}
}

// startLocked sees to it that somebody sees to what is due. It returns true if
// that has to be the caller.
func (x *errands) startLocked() (inline bool) {
	if len(x.due) == 0 || x.cleaners >= mostCleaners {
		return false
	}
	x.cleaners++
	if !x.tasks.begin() {
		return true
	}
	go func() {
		defer x.tasks.end()
		x.clean()
	}()
	return false
}

// tidyLocked forgets an errand of which nothing is left.
func (x *errands) tidyLocked(e *errand) {
	if e.doubt.none() && !e.owed && e.writes == 0 && !e.queued && x.byName[e.name] == e {
		delete(x.byName, e.name)
	}
}

func (x *errands) quietLocked() {
	if x.quiet != nil && x.cleaners == 0 && x.writes == 0 {
		close(x.quiet)
		x.quiet = nil
	}
}
