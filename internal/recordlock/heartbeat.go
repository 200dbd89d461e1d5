package recordlock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/task"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// A heartbeat keeps a hold alive. At most one beat is in flight, and none after stop, so that no beat overtakes the release. A beat that
// fails says nothing about the grant: it is repeated until the lease is over.
type heartbeat struct {
	beats  uint64         // the number of the latest
	heard  driver.Instant // before the latest beat that was confirmed; only beats use it and the next three
	due    driver.Instant // of the next regular beat
	silent int            // beats in a row without an answer
	slow   time.Duration  // how long the latest answer took

	repeat *task.Repeated

	mu      strict.Mutex[strict.Heartbeats]
	failing *backoff.Loop // nil while beats succeed
	pending *change       // for the next beat; nil if there is none
	gone    error         // why the store does not have the grant any more
}

// A change is a call of SetData, for the next beat.
type change struct {
	data []byte
	done chan error
	last error // of the latest try; nil if it was not answered
}

// schedule sets the first beat. The multiples of the golden ratio, less their whole parts, fill the period evenly, however many locks a
// client has.
func (h *hold) schedule() {
	const golden = 0x9E3779B97F4A7C15 // 2^64 / golden ratio
	part := float64(h.count.Add(1)*golden) / (1 << 64)
	h.due = h.heard.Add(time.Duration((1 - part) * float64(h.opts.Heartbeat)))
	now := h.host.Now()
	if now.Since(h.heard) > h.opts.Heartbeat { // the machine was suspended during the acquisition
		h.due = now
	}
	h.repeat = task.Repeat(h.tasks.Context(), h.host, max(h.due.Sub(now), 0), h.beat)
}

// stop ends the beats, waits for one in flight, and returns why the grant is gone.
func (h *hold) stop() error {
	h.repeat.Stop()
	h.heartbeat.mu.Lock()
	defer h.heartbeat.mu.Unlock()
	return h.gone
}

// beat makes one beat, and returns the pause before the next one.
func (h *hold) beat(ctx context.Context) time.Duration {
	h.heartbeat.mu.Lock()
	c := h.pending
	if h.failing != nil && h.host.Now().Sub(h.heard) > h.opts.Heartbeat { // what keeps the data from being written must not cost the lock
		c = nil
	}
	h.heartbeat.mu.Unlock()

	began := h.host.Now()
	err := errLate
	if h.lease.Live() {
		err = h.renew(ctx, began, c)
	}
	live := h.lease.Live()

	h.heartbeat.mu.Lock()
	if errors.Is(err, driver.ErrLost) {
		h.gone = err
	}
	h.answerLocked(c, err)
	next := time.Duration(-1)
	if h.gone == nil && live {
		next = max(h.nextLocked(began, c, err), 0)
	}
	gone := h.gone
	h.heartbeat.mu.Unlock()
	if l := (*lost)(nil); errors.As(gone, &l) {
		h.req.Lost(l.why)
	}
	return next
}

// errLate is the result of a beat that would come after the lease.
var errLate = errors.New("the lease is over")

// answerLocked tells SetData what came of its change.
func (h *hold) answerLocked(c *change, err error) {
	switch {
	case c == nil && h.pending != nil && (h.gone != nil || err != nil && !transient(err) && !errors.Is(err, errLate)):
		h.pending.done <- err
		h.pending = nil
	case c == nil, errors.Is(err, errLate):
	case transient(err):
		c.last = err
	default:
		c.done <- err
		if h.pending == c {
			h.pending = nil
		}
	}
}

// nextLocked is the time until the next beat, after one that began at some time. The time that a beat has waited counts as part of the
// pause after its failure.
func (h *hold) nextLocked(began driver.Instant, c *change, err error) time.Duration {
	now := h.host.Now()
	for h.due.Sub(now) <= 0 { // in phase, so that the beats of many locks stay spread
		h.due = h.due.Add(h.opts.Heartbeat)
	}
	if !transient(err) {
		h.failing = nil
	}
	switch {
	case !transient(err) && h.pending != nil:
		return 0
	case !transient(err):
		return h.due.Sub(now)
	case c != h.pending && c != nil:
		return 0
	case classIs(err, Busy): // the record can be written again as soon as the other write is over
		return min(h.opts.RetryDelay, 50*time.Millisecond)
	}
	if h.failing == nil {
		h.failing = backoff.Policy{Initial: h.opts.RetryDelay, Max: h.beatPause()}.Start(h.host)
	}
	pause, _ := h.failing.Next()
	if classIs(err, Unknown) {
		pause = max(pause-now.Sub(began), 0)
	}
	return min(pause, h.due.Sub(now))
}

func (e *Engine) beatPause() time.Duration { return max(e.opts.RetryDelay, e.opts.Heartbeat/4) }

// minBeatTimeout is enough to make a connection and send a request on it, within a region.
const minBeatTimeout = 250 * time.Millisecond

// limit is the time limit of the next beat. It is short at first, so that some dead connections in a row cost no lock. It grows with the
// beats that are not answered, and is at least three times what the latest answer took. A beat that is the last in time has Timeout.
func (h *hold) limit(now driver.Instant) time.Duration {
	most := h.opts.Timeout
	short := min(most, max(most>>max(3-h.silent/4, 0), minBeatTimeout, 3*h.slow))
	if left := h.opts.Lease - h.host.Margin(h.opts.Lease) - now.Sub(h.heard); left < most+max(short, h.beatPause()) {
		return most
	}
	return short
}

// renew sends one beat, with the data of a change if there is one. It returns a *lost if the store does not have the grant any more.
func (h *hold) renew(ctx context.Context, sent driver.Instant, c *change) error {
	var rec Record
	err := h.timed(ctx, h.req.Key, h.limit(sent), func(ctx context.Context) (err error) {
		rec, err = h.ask(ctx, c)
		return err
	})
	switch {
	case classIs(err, Unknown):
		h.silent++
	case transient(err):
		h.silent = 0
	default:
		h.silent, h.slow = 0, h.host.Now().Sub(sent)
	}
	if err == nil {
		h.rec = rec
		if err = h.check(&rec); err == nil {
			h.heard = sent
			h.lease.Renew(sent)
			if rec.Holder(h.own.Grant).Asked {
				h.req.Asked()
			}
		}
	}
	err = corrupt(err)
	if ctx.Err() == nil || err == nil {
		if !h.opts.NeverExpires { // a check renews no lease
			h.host.Heartbeat(h.req.Key, sent, err)
		}
		if err != nil {
			h.host.Logger().Debug("heartbeat failed", "key", h.req.Key, "owner", h.req.Owner, "token", uint64(h.token), "error", err)
		}
	}
	return err
}

// ask sends the request of a beat, and returns the record then. Where leases never expire it is a read, unless there is something to
// write.
func (h *hold) ask(ctx context.Context, c *change) (Record, error) {
	if h.opts.NeverExpires && c == nil && !h.rec.Rewrite {
		return h.store.Read(ctx, h.req.Key, true)
	}
	h.beats++
	next := h.own
	next.Beat, next.Touched = beat(h.beats), h.host.Now().Wall
	if c != nil {
		next.Data = c.data
	}
	rec, done, err := h.store.Renew(ctx, h.req.Key, next, h.req.Mode)
	if c != nil && (done || classIs(err, Unknown)) { // others may have read it
		h.own.Data = c.data
	}
	if err == nil && !done && h.check(&rec) == nil {
		return rec, &Error{NotDone, errors.New("refused by a record that has the grant")}
	}
	return rec, err
}

// SetData implements driver.Hold, by a beat out of turn. So the writes of a hold come one after the other, and a late copy finds a later
// beat.
func (h *hold) SetData(ctx context.Context, data []byte) error {
	c := &change{data: data, done: make(chan error, 1)}
	h.heartbeat.mu.Lock()
	if h.gone != nil {
		defer h.heartbeat.mu.Unlock()
		return h.gone
	}
	h.pending = c
	h.heartbeat.mu.Unlock()
	h.repeat.Now()
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
	}
	h.heartbeat.mu.Lock()
	defer h.heartbeat.mu.Unlock()
	h.pending = nil
	select {
	case err := <-c.done:
		return err
	default:
	}
	return cmp.Or(c.last, errNoAnswer)
}
