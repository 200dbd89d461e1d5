package dynamolock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A doubt is about requests that may have been carried out without our knowing,
// or may be yet.
type doubt struct {
	requests int
	first    driver.Instant // before the first was sent
	last     driver.Instant // after the last was given up
}

func (d *doubt) none() bool { return d.requests == 0 }

func (d *doubt) add(sent, ended driver.Instant) {
	d.merge(doubt{requests: 1, first: sent, last: ended})
}

func (d *doubt) merge(o doubt) {
	switch {
	case o.none():
		return
	case d.none():
		*d = o
		return
	}
	d.requests += o.requests
	if o.first.Sub(d.first) < 0 {
		d.first = o.first
	}
	if o.last.Sub(d.last) > 0 {
		d.last = o.last
	}
}

// signed is for how long DynamoDB takes a request for one of now: its signature
// has the time, by the client's clock, as the SDK has corrected it.
const signed = 15 * time.Minute

// horizon is for how long after a request was given up the client has to reckon
// with it. What it takes after that goes with its lease, which nobody renews;
// where there is none, it is not carried out any more.
func (e *engine) horizon() time.Duration {
	if e.opts.Mode == FailOpen {
		return e.opts.Lease
	}
	return signed
}

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

func newErrands(e *engine) *errands {
	return &errands{engine: e, byName: make(map[string]*errand)}
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

// patience is the longest delay between two questions about the same key.
func (e *engine) patience() time.Duration {
	if e.opts.Mode == FailOpen {
		return e.opts.Lease / 4
	}
	return max(e.opts.Lease/4, time.Minute)
}

// clean sees to one errand after the other until none is due. One that cannot be
// seen to now goes to the end of the queue, and the cleaner waits: so however many
// there are, no more is sent in an outage than a few cleaners send.
func (x *errands) clean() {
	var failing *backoff.Loop
	for {
		x.mu.Lock()
		if len(x.due) == 0 || x.tasks.ctx.Err() != nil {
			x.cleaners--
			x.quietLocked()
			x.mu.Unlock()
			return
		}
		e := x.due[0]
		x.due = x.due[1:]
		e.fresh = false
		x.mu.Unlock()

		asked := x.host.Now()
		freed, err := x.sweep(e.key)
		x.mu.Lock()
		e.queued = false
		x.sweptLocked(e, asked, freed, err)
		x.mu.Unlock()
		if !transient(err) {
			failing = nil
			continue
		}
		if failing == nil {
			failing = backoff.Policy{Initial: x.opts.RetryDelay, Max: x.opts.Lease / 4}.Start()
		}
		x.pause(failing, err)
	}
}

// pause waits before something that failed is tried again: for less if the table
// can be reached, or the client begins to close.
func (x *errands) pause(failing *backoff.Loop, err error) {
	delay, _ := failing.Next()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	closing := x.tasks.open.Done()
	if x.tasks.closing() {
		closing = nil
	}
	select {
	case <-timer.C:
	case <-x.wake(err):
	case <-closing:
	case <-x.tasks.ctx.Done():
	}
}

// sweep frees a key if a grant of this client has it that nobody has any more.
func (x *errands) sweep(key attributes) (freed bool, err error) {
	ctx := x.tasks.ctx
	i, err := x.get(ctx, key, true)
	switch {
	case errors.Is(err, ErrItem):
		return false, nil // another program's
	case err != nil || !i.held() || !i.belongs(x.id):
		return false, err
	}
	grant := i.guid[:grantLen]
	if x.alive(grant) {
		return false, nil
	}
	old, err := x.giveBack(ctx, key, func(e *expression) string { return e.begins(grant) })
	return err == nil && old == nil, err
}

// sweptLocked says what is left of an errand. That the key was not held by a dead grant
// may only mean that the request has not arrived yet. So the client goes on asking,
// seldomer and seldomer, for as long as it has to reckon with that, or until it has
// freed the key once for each request.
func (x *errands) sweptLocked(e *errand, asked driver.Instant, freed bool, err error) {
	late := asked.Sub(e.doubt.last) > x.horizon()
	switch {
	case transient(err):
		x.dueLocked(e)
		return
	case err != nil:
		x.refusedLocked(e, late, err)
	case e.fresh: // the answer may be older
		x.dueLocked(e)
		return
	case freed && !e.owed && !e.doubt.none():
		e.doubt.requests--
	default:
		e.owed = false
	}
	if err == nil && !e.owed && (late || x.closing && x.opts.Mode == FailOpen) {
		e.doubt = doubt{}
	}
	switch {
	case e.doubt.none() && !e.owed:
		x.tidyLocked(e)
	case !x.closing:
		delay, _ := e.delays.Next()
		e.timer = x.host.AfterFunc(delay, func() { x.again(e) })
	}
}

// refusedLocked is for answers that will be the same next time, unless somebody changes
// something. What goes with its lease is let go.
func (x *errands) refusedLocked(e *errand, late bool, err error) {
	level := slog.LevelError // it stays
	if x.opts.Mode == FailOpen {
		level = slog.LevelWarn
	}
	if !e.logged {
		e.logged = true
		x.host.Logger().Log(x.tasks.ctx, level, "what a call may have left cannot be removed",
			"table", x.opts.Table, "key", e.name, "error", err)
	}
	if errors.Is(err, ErrTable) || late && (x.opts.Mode == FailOpen || !e.owed) {
		e.doubt, e.owed = doubt{}, false
	}
}

// again is called by an errand's timer.
func (x *errands) again(e *errand) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closing || e.timer == nil {
		return
	}
	x.dueLocked(e)
	x.startLocked()
}

// settle is for a client that closes. Of a lock that expires it is content with one
// answer about each key; otherwise it asks for a lease. When ctx ends it returns.
func (x *errands) settle(ctx context.Context) {
	x.mu.Lock()
	x.closing = true
	x.mu.Unlock()
	for {
		x.mu.Lock()
		quiet := make(chan struct{})
		x.quiet = quiet
		for _, e := range x.byName {
			if !e.doubt.none() || e.owed {
				x.dueLocked(e)
			}
		}
		for range min(mostCleaners, len(x.due)) {
			x.startLocked()
		}
		x.quietLocked()
		x.mu.Unlock()
		select {
		case <-quiet:
		case <-ctx.Done():
			return
		}
		if !x.young() || !backoff.Sleep(ctx, x.opts.Lease/8, nil) {
			return
		}
	}
}

// young reports whether there is a doubt that another question might settle.
func (x *errands) young() bool {
	now := x.host.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.byName {
		if !e.doubt.none() && !e.logged && now.Sub(e.doubt.last) <= x.opts.Lease {
			return true
		}
	}
	return false
}

// remaining says which keys a client that has closed may have left held.
func (x *errands) remaining() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var names []string
	for name := range x.byName {
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	const most = 10
	var list []string
	for _, name := range names[:min(most, len(names))] {
		list = append(list, fmt.Sprintf("%q", name))
	}
	if len(names) > most {
		list = append(list, fmt.Sprintf("and %d more", len(names)-most))
	}
	text := "what calls have left goes with its lease"
	if x.opts.Mode != FailOpen {
		text = "what calls have left may stay until it is broken or reclaimed"
		for _, name := range names {
			x.host.Logger().Error("closed, and the key may stay held", "table", x.opts.Table, "key", name)
		}
	}
	return fmt.Errorf("%w: %s: %s", holdfast.ErrReleasePending, text, strings.Join(list, ", "))
}
