package dynamolock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// patience is the longest delay between two questions about the same key.
func (b *engine) patience() time.Duration {
	if b.opts.Mode == FailOpen {
		return b.opts.Lease / 4
	}
	return max(b.opts.Lease/4, time.Minute)
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
