package dynamolock

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// The limits of what a client does in the background.
const (
	maxGivenUp  = 64  // writes under way whose callers have gone; as long as there are so many, no others are sent
	maxWorkers  = 4   // goroutines that give back what calls have left, that start in an outage; otherwise as many as releases
	minStuck    = 3   // of these, for keys that fail, as long as they do
	growth      = 3   // how many more of either there are with each answer
	maxReleases = 32  // releases under way
	maxSlow     = 256 // the same, if answers take long
	maxLate     = 256 // of either, that are not answered
)

// quickAnswer is how long an answer takes at most for as few releases as maxReleases to be under way.
const quickAnswer = 25 * time.Millisecond

// leftovers are what calls that are over may have left in the table, at most one for each
// key. Workers give them back: see undo.go.
type leftovers struct {
	*engine

	mu      strict.Mutex[strict.Leftovers]
	byName  map[string]*leftover
	due     []*leftover
	failing []*leftover // due too, of keys that fail: they come after all others

	workers   int
	stuck     int // workers that have to do with those that fail
	mostStuck int // how many there may be, if there is room

	writes  int     // under way, of all keys, whose callers have gone
	limiter limiter // of these
	closing bool
	quiet   chan struct{} // closed when nothing is due or under way; nil unless the client closes
}

// A leftover is what may be left for one key.
type leftover struct {
	name string
	key  attributes

	// The grants of writes that were given up and are under way. What such a write takes is given back when it is over, by whoever
	// sees it through: a worker would count it for another write.
	writes  map[string]bool
	settled chan struct{} // closed when there are none; nil while there are none

	unanswered unanswered     // writes of grants that nobody has
	owed       bool           // a grant that is over, or its intent, could not be given back
	noted      driver.Instant // when something was added last
	queued     bool           // it is due, or a worker has it
	fresh      bool           // something was added since a worker took it
	failed     bool           // a worker has tried in vain
	refused    bool           // by the table, and another try would not change that

	timer  driver.Timer // of the next read; nil if there is none
	delays *backoff.Loop
}

func newLeftovers(e *engine) *leftovers {
	return &leftovers{engine: e, byName: make(map[string]*leftover), mostStuck: minStuck, limiter: limiter{engine: e, most: maxGivenUp, mostLate: maxLate}}
}

// nothing reports whether there is nothing to be given back.
func (l *leftover) nothing() bool { return l.unanswered.none() && !l.owed }

// admit waits until a contender may write to a key: not while a write for the key is
// under way whose caller has returned, since that may take the key, and not while there
// are too many of those in all. It returns false if ctx ends before that.
func (s *leftovers) admit(ctx context.Context, name string) bool {
	for room := false; ; {
		s.mu.Lock()
		var settled chan struct{}
		if l := s.byName[name]; l != nil && len(l.writes) > 0 {
			settled = l.settled
		}
		s.mu.Unlock()
		switch {
		case settled == nil && room:
			return ctx.Err() == nil
		case settled == nil:
			if room = s.limiter.wait(ctx, name); !room {
				return false
			}
			continue
		}
		room = false
		select {
		case <-settled:
		case <-ctx.Done():
			return false
		}
	}
}

// gaveUp notes a write under way whose caller returns.
func (s *leftovers) gaveUp(name string, key attributes, grant string, sent driver.Instant) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.ofLocked(name, key)
	if len(l.writes) == 0 {
		l.writes, l.settled = make(map[string]bool), make(chan struct{})
	}
	l.writes[grant] = true
	s.writes++
	return s.limiter.add(name, sent)
}

// seenThrough notes that such a write is over, and what it has left.
func (s *leftovers) seenThrough(name string, key attributes, grant string, u unanswered, owed bool) {
	s.mu.Lock()
	l := s.ofLocked(name, key)
	s.writes--
	delete(l.writes, grant)
	if len(l.writes) == 0 {
		close(l.settled)
		l.settled = nil
	}
	s.addLocked(l, u, owed)
	s.quietLocked()
	s.mu.Unlock()
	s.start()
}

// add notes what a call has left: writes without an answer, or a grant that could not be
// given back. A worker may have to be started for it.
func (s *leftovers) add(name string, key attributes, u unanswered, owed bool) {
	if u.none() && !owed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addLocked(s.ofLocked(name, key), u, owed)
}

func (s *leftovers) ofLocked(name string, key attributes) *leftover {
	l := s.byName[name]
	if l == nil {
		l = &leftover{name: name, key: key}
		s.byName[name] = l
	}
	return l
}

func (s *leftovers) addLocked(l *leftover, u unanswered, owed bool) {
	l.unanswered.merge(u)
	l.owed = l.owed || owed
	if u.none() && !owed {
		s.tidyLocked(l)
		return
	}
	l.fresh, l.noted = true, s.host.Now()
	l.delays = s.times.undo.Start()
	s.dueLocked(l)
}

// dueLocked puts a leftover last in its queue.
func (s *leftovers) dueLocked(l *leftover) {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	switch {
	case l.queued:
		return
	case l.failed:
		s.failing = append(s.failing, l)
	case s.health.failures(l.name) > 0: // before those that have been tried in vain
		s.failing = slices.Insert(s.failing, 0, l)
	default:
		s.due = append(s.due, l)
	}
	l.queued = true
}

// tidyLocked forgets a leftover of which nothing is left.
func (s *leftovers) tidyLocked(l *leftover) {
	if l.nothing() && len(l.writes) == 0 && !l.queued && s.byName[l.name] == l {
		delete(s.byName, l.name)
	}
}

func (s *leftovers) quietLocked() {
	if s.quiet != nil && s.workers == 0 && s.writes == 0 && len(s.due)+len(s.failing) == 0 {
		close(s.quiet)
		s.quiet = nil
	}
}
