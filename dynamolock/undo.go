package dynamolock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// start adds a worker, if one is needed. If it is too late for a new task, the caller,
// which is a task, does the work.
func (s *leftovers) start() {
	s.mu.Lock()
	needed := s.workers < s.room() && (len(s.due) > 0 || len(s.failing) > 0 && s.mayStickLocked())
	if needed {
		s.workers++
	}
	s.mu.Unlock()
	if needed && !s.tasks.Go(s.work) {
		s.work(s.tasks.Context())
	}
}

// room is how many workers there may be.
func (s *leftovers) room() int {
	if s.health.outage() {
		return maxWorkers
	}
	return s.releases.room()
}

// mayStickLocked reports whether one more worker may have to do with a key that fails. Half of them at least are for others, however many
// keys that failed were answered before.
func (s *leftovers) mayStickLocked() bool {
	return s.stuck < max(minStuck, min(s.mostStuck, s.room()/2))
}

// work gives back one leftover after the other until none is due. One that fails goes to
// the end of the queue, and the worker waits before the next. So in an outage, once each
// has been tried, the number of requests does not depend on the number of leftovers. Otherwise
// a worker that has met a key of which it was not known that it fails does not wait, but
// leaves it to those who do.
func (s *leftovers) work(ctx context.Context) {
	var failing *backoff.Loop
	for {
		l, fails := s.next(ctx)
		if l == nil {
			return
		}
		asked := s.host.Now()
		freed, err := s.giveBackDead(ctx, l)
		s.conclude(ctx, l, asked, freed, err)
		answered := !transient(err)
		if fails {
			s.met(answered)
		}
		switch {
		case answered:
			failing = nil
		case fails, s.health.outage():
			if failing == nil {
				failing = s.times.undoFailed.Start()
			}
			failing.Wait(ctx, s.wake(err))
		}
		if fails {
			s.mu.Lock()
			s.stuck--
			s.mu.Unlock()
		}
		for range growth {
			if answered {
				s.start()
			}
		}
	}
}

// met notes whether there was an answer about a key that fails. Then others may be well again, too: an outage is over, perhaps.
func (s *leftovers) met(answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answered {
		s.mostStuck += growth
	} else {
		s.mostStuck = minStuck
	}
}

// next returns what is due first, and whether its key fails; nil if the worker is to end.
func (s *leftovers) next(ctx context.Context) (l *leftover, fails bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := &s.due
	if len(s.due) == 0 && s.mayStickLocked() {
		queue, fails = &s.failing, true
	}
	if len(*queue) == 0 || ctx.Err() != nil {
		s.workers--
		s.quietLocked()
		return nil, false
	}
	l = (*queue)[0]
	*queue = (*queue)[1:]
	l.fresh = false
	if fails {
		s.stuck++
	}
	return l, fails
}

// dead reports whether nobody has a grant any more, nor sees to a write of it that is under way. It asks in the order in which
// a call that is given up leaves its grant; what else that has left is noted by then.
func (s *leftovers) dead(l *leftover, grant string) bool {
	if s.grants.alive(grant) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !l.writes[grant]
}

// giveBackDead frees a key if it is held by a grant of this client that nobody has any
// more, or kept for one.
func (s *leftovers) giveBackDead(ctx context.Context, l *leftover) (freed bool, err error) {
	i, err := s.get(ctx, l.key, true)
	switch {
	case errors.Is(err, ErrItem):
		return false, nil // another program's
	case err != nil:
		return false, err
	}
	withdrawn, err := s.withdraw(ctx, l.key, i)
	switch {
	case err != nil:
		return false, err
	case i.sharing != nil:
		freed, err = s.giveBackShared(ctx, l.key, i, func(h *holder) bool { return h.grant[:clientLen] == s.id && s.dead(l, h.grant) })
	default:
		freed, err = s.freeDead(ctx, l, i)
	}
	return freed || withdrawn, err
}

// freeDead is giveBackDead for an item that was read, unless it is shared. Where it was broken, who is to learn of that before anybody else
// has the key is nobody.
func (s *leftovers) freeDead(ctx context.Context, l *leftover, i *item) (freed bool, err error) {
	guid := i.ofGrant()
	if !i.held() || i.sharing != nil || len(guid) != guidLen || guid[:clientLen] != s.id || !s.dead(l, guid[:grantLen]) {
		return false, nil
	}
	dead := func(x *expression) string { return x.begins(guid[:grantLen]) }
	if i.isBroken() {
		dead = i.asLeft
	}
	old, err := s.giveBack(ctx, l.key, dead)
	if err == nil && old != nil && old.isBroken() && !i.isBroken() { // meanwhile
		return s.freeDead(ctx, l, old)
	}
	return err == nil && old == nil, err
}

// conclude decides what remains of a leftover. That no dead grant holds the key may only
// mean that the request has not arrived yet. So the client reads the key again, less and
// less often, for as long as the request may still arrive, or until it has freed the key
// once for each request.
func (s *leftovers) conclude(ctx context.Context, l *leftover, asked driver.Instant, freed bool, err error) {
	if tell := s.decide(l, asked, freed, err); !tell {
		return
	}
	level := slog.LevelError // the key stays held
	if s.opts.Mode == FailOpen {
		level = slog.LevelWarn
	}
	s.host.Logger().Log(ctx, level, "what a call may have left cannot be removed", "table", s.opts.Table, "key", l.name, "error", err)
}

// decide is conclude without a word about it: tell says that one is due.
func (s *leftovers) decide(l *leftover, asked driver.Instant, freed bool, err error) (tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.queued, l.failed, l.refused = false, transient(err), l.refused && err != nil
	late := asked.Sub(l.unanswered.last) > s.times.late
	switch {
	case transient(err):
		s.dueLocked(l)
		return false
	case err != nil:
		tell = s.refusedLocked(l, asked.Sub(l.noted) > s.times.late, err)
	case l.fresh: // the read may be older than what was added
		s.dueLocked(l)
		return false
	case freed && !l.owed && !l.unanswered.none():
		l.unanswered.requests--
	default:
		l.owed = false
	}
	if err == nil && !l.owed && (late || s.closing && s.opts.Mode == FailOpen) {
		l.unanswered = unanswered{}
	}
	switch {
	case l.nothing():
		s.tidyLocked(l)
	case !s.closing:
		delay, _ := l.delays.Next()
		l.timer = s.host.AfterFunc(delay, func() { s.again(l) })
	}
	return tell
}

// refusedLocked is for errors that another try would not change, and reports whether this is the first for the key. What ends with
// its lease is given up. Elsewhere the error says nothing of the key, which may be held, and will be readable again.
func (s *leftovers) refusedLocked(l *leftover, late bool, err error) (first bool) {
	first, l.refused = !l.refused, true
	if s.opts.Mode == FailOpen && (late || errors.Is(err, ErrTable)) {
		l.unanswered, l.owed = unanswered{}, false
	}
	return first
}

// again is called by a leftover's timer.
func (s *leftovers) again(l *leftover) {
	s.mu.Lock()
	due := !s.closing && l.timer != nil
	if due {
		s.dueLocked(l)
	}
	s.mu.Unlock()
	if due {
		s.start()
	}
}

// settle gives back what it can when the client closes. Where locks expire, one answer
// about each key is enough; otherwise it goes on for the length of a lease. It returns
// when ctx ends.
func (s *leftovers) settle(ctx context.Context) {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	for {
		s.mu.Lock()
		quiet := make(chan struct{})
		s.quiet = quiet
		for _, l := range s.byName {
			if !l.nothing() {
				s.dueLocked(l)
			}
		}
		s.quietLocked()
		s.mu.Unlock()
		for range maxWorkers {
			s.start()
		}
		select {
		case <-quiet:
		case <-ctx.Done():
			return
		}
		if !s.young() || !backoff.Sleep(ctx, s.times.closeAgain, nil) {
			return
		}
	}
}

// young reports whether a request may still arrive that another read would find.
func (s *leftovers) young() bool {
	now := s.host.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.byName {
		if !l.unanswered.none() && !l.refused && now.Sub(l.unanswered.last) <= s.opts.Lease {
			return true
		}
	}
	return false
}

// remaining is the error of a client that closed and may have left keys held.
func (s *leftovers) remaining() error {
	s.mu.Lock()
	names := slices.Sorted(maps.Keys(s.byName))
	s.mu.Unlock()
	if len(names) == 0 {
		return nil
	}
	text := "what calls have left goes with its lease"
	if s.opts.Mode != FailOpen {
		text = "what calls have left may stay until it is broken or reclaimed"
		for _, name := range names {
			s.host.Logger().Error("closed, and the key may stay held", "table", s.opts.Table, "key", name)
		}
	}
	const most = 10
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
	}
	list := strings.Trim(fmt.Sprintf("%q", names[:min(most, len(names))]), "[]")
	return fmt.Errorf("%w: %s: %s%s", holdfast.ErrReleasePending, text, list, more)
}
