package dynamolock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// A heartbeat keeps one hold alive, by a write each period. A lock that never expires can
// only be broken, so there it is a read, unless there is data to be written. It is a timer; a goroutine exists only while a
// request is under way. At most one is, and none after stop has returned, so that no
// heartbeat overtakes a release.
//
// A failed try says nothing about the lock. It is repeated until it succeeds or the lease
// is over by the holder's own clock.
type heartbeat struct {
	mu      strict.Mutex[strict.Heartbeats]
	stopped bool
	timer   driver.Timer
	cancel  context.CancelFunc // of the request that is under way
	idle    chan struct{}      // closed when that request is over; nil if there is none
	due     driver.Instant     // of the next regular beat
	series  *backoff.Loop      // nil while all goes well

	change *change        // to be carried out by the next beat; nil: none
	heard  driver.Instant // before the last beat that was carried out; only beats touch it
	pace   pulse          // how fast beats of this lock are answered

	lost   error // what was found out about the item
	broken *item // the item as somebody who broke the lock has left it
}

// schedule sets the first beat.
func (h *hold) schedule() {
	h.heartbeat.mu.Lock()
	defer h.heartbeat.mu.Unlock()
	h.heard = h.begun
	h.pace.fast = true
	h.due = h.begun.Add(firstBeat(h.opts.Heartbeat, h.beats.Add(1)))
	h.armLocked(h.due.Sub(h.host.Now()))
}

func (h *hold) armLocked(d time.Duration) {
	if !h.stopped {
		h.timer = h.host.AfterFunc(max(d, 0), h.beat)
	}
}

// stop ends the beats, and waits for one that is under way.
func (h *hold) stop() {
	h.heartbeat.mu.Lock()
	h.stopped = true
	if h.timer != nil {
		h.timer.Stop()
	}
	if h.cancel != nil {
		h.cancel()
	}
	idle := h.idle
	h.heartbeat.mu.Unlock()
	if idle != nil {
		<-idle
	}
}

// learned returns what the heartbeats have found out.
func (h *hold) learned() (broken *item, lost error) {
	h.heartbeat.mu.Lock()
	defer h.heartbeat.mu.Unlock()
	return h.broken, h.lost
}

func (h *hold) beat() {
	h.heartbeat.mu.Lock()
	if h.stopped {
		h.heartbeat.mu.Unlock()
		return
	}
	c := h.change
	// What keeps the change from being written must not cost the lock, nor hide its end.
	plain := c != nil && h.host.Now().Sub(h.heard) > h.opts.Heartbeat
	if plain {
		c = nil
	}
	ctx, cancel := context.WithCancel(h.tasks.Context())
	defer cancel()
	h.cancel, h.idle = cancel, make(chan struct{})
	idle := h.idle
	h.heartbeat.mu.Unlock()

	began := h.host.Now()
	confirmed, err := h.renew(ctx, c)
	live := h.lease.Live()

	h.heartbeat.mu.Lock()
	h.cancel, h.idle = nil, nil
	more := h.settleLocked(c, confirmed, err)
	if h.lost == nil && live {
		next := h.nextLocked(began, err)
		if more && (confirmed || !plain) {
			next = 0
		}
		h.armLocked(next)
	}
	h.heartbeat.mu.Unlock()
	close(idle)
}

// nextLocked returns the delay before the next beat, after one that began at some time.
// The time that a beat waited in vain for its answer counts as part of the delay.
func (h *hold) nextLocked(began driver.Instant, err error) time.Duration {
	now := h.host.Now()
	for h.due.Sub(now) <= 0 { // in the same phase, so that the beats of many locks stay spread
		h.due = h.due.Add(h.opts.Heartbeat)
	}
	regular := h.due.Sub(now)
	if !transient(err) {
		h.series = nil
		return regular
	}
	if conflicting(err) {
		return conflictDelay()
	}
	if h.series == nil {
		h.series = h.times.beats.Start()
	}
	delay, _ := h.series.Next()
	if unheard(err) {
		delay = max(delay-now.Sub(began), 0)
	}
	return min(delay, regular)
}

// renew sends one beat, and reports whether it was carried out. The lease is counted from
// before that.
func (h *hold) renew(ctx context.Context, c *change) (confirmed bool, err error) {
	if !h.lease.Live() {
		return false, nil // too late: the lock ends by itself
	}
	h.lookAtTTL()
	sent := h.host.Now()
	i, err := h.askInTime(ctx, sent, c)
	switch {
	case err == nil && i == nil:
		h.renewed(sent)
		h.heard = sent
		h.tell(sent, nil)
		return true, nil
	case err == nil:
		h.found(sent, i, h.check(i))
	case errors.Is(err, ErrItem):
		h.found(sent, &item{}, driver.ErrBroken)
	default:
		if ctx.Err() == nil {
			h.tell(sent, err)
			h.host.Logger().Debug("heartbeat failed", "key", h.name, "owner", h.owner, "token", uint64(h.token), "error", err)
		}
		return false, err
	}
	return false, nil
}

// renewed extends the lease, and reports whether it was live until now. One that was over stays so: by the time at which such a beat
// was carried out, observers may have been told that nobody holds the key, and no token comes back that was over.
func (h *hold) renewed(sent driver.Instant) bool {
	if !h.lease.Live() {
		return false
	}
	h.lease.Renew(sent)
	return true
}

// prove renews a grant before its caller has it, if it began long ago: that was by a request without an answer, and so much of the
// lease may have passed since that it would be lost before the first beat is answered. That somebody asks for
// it is told when the caller gets it: the caller may get another.
func (c *contender) prove(ctx context.Context, h *hold) error {
	wanted := false
	h.asked = func() { wanted = true }
	if err := c.renewFirst(ctx, h); err != nil {
		return err
	}
	h.asked = c.req.Asked
	if wanted {
		h.asked()
	}
	return nil
}

// renewFirst is the renewal of prove.
func (c *contender) renewFirst(ctx context.Context, h *hold) error {
	for c.opts.Mode == FailOpen && c.host.Now().Since(h.begun) > c.opts.Heartbeat {
		if !h.lease.Live() {
			return errGrantOver
		}
		sent := c.host.Now()
		i, err := h.askInTime(ctx, sent, nil)
		switch {
		case err == nil && i == nil:
			if !h.renewed(sent) {
				return errGrantOver
			}
			h.begun = sent
			return nil
		case err == nil && errors.Is(h.check(i), driver.ErrReclaimed) && (c.req.Reclaim || h.lease.Live()):
			return driver.ErrReclaimed // by another, which this call must not reclaim it from
		case err == nil && h.check(i) != nil, errors.Is(err, ErrItem):
			return errGrantOver
		case err != nil:
			if err := c.again(ctx, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell reports a Heartbeat. A beat that renews no lease is none.
func (h *hold) tell(sent driver.Instant, err error) {
	if h.opts.Mode == FailOpen {
		h.host.Heartbeat(h.name, sent, err)
	}
}

// limit is the time limit of the next beat. The table's other keys say nothing of the one partition that is slow: what this key's
// answers took counts as well. And before the lease is over, one beat has all the time that there is: it begins when another short one,
// or a pause, would leave too little.
func (h *hold) limit(now driver.Instant) time.Duration {
	lease, most := h.opts.Lease, h.opts.Timeout
	short := max(h.pulse.limit(most), h.pace.limit(most))
	if left := lease - h.host.Margin(lease) - now.Sub(h.heard); left < most+max(short, h.times.beats.Max) {
		return most
	}
	return short
}

// askInTime is ask, with the time limit of a heartbeat.
func (h *hold) askInTime(ctx context.Context, now driver.Instant, c *change) (*item, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, paceKey{}, &h.pace), h.limit(now))
	defer cancel()
	i, err := h.ask(ctx, now, c)
	if !errors.Is(err, context.DeadlineExceeded) {
		return i, err
	}
	h.pace.missed(now, h.host.Now())
	if h.pulse.missed(now, h.host.Now()) >= h.opts.Timeout {
		op := opUpdate
		if h.opts.Mode != FailOpen {
			op = opGet // mostly
		}
		h.health.down(op, h.key, now, err)
	}
	return i, err
}

// ask sends the request of a beat, and returns the item if it is not this hold's any more.
func (h *hold) ask(ctx context.Context, now driver.Instant, c *change) (*item, error) {
	if h.opts.Mode == FailOpen {
		renewal := h.renewal
		if h.entry != nil {
			renewal = h.renewalShared
		}
		updated, old, err := h.update(ctx, h.key, renewal(now, c))
		if err == nil && old == nil {
			h.heed(updated)
		}
		if c != nil && h.entry != nil && (err == nil && old == nil || maybeDone(err)) {
			h.entry.data = c.data // others may have read it, and each beat writes what is here
		}
		return old, err
	}
	if foreign := h.foreignTTL(); c != nil || foreign != h.cleared {
		write := h.immortal
		if c != nil {
			write = func(now driver.Instant) *expression { return h.describing(now, c) }
		}
		updated, old, err := h.update(ctx, h.key, write(now))
		if err == nil && old == nil {
			h.cleared = foreign
			h.heed(updated)
		}
		return old, err
	}
	i, err := h.get(ctx, h.key, true)
	if err != nil || h.check(i) != nil {
		return i, err
	}
	if i.asked {
		h.asked()
	}
	return nil, nil
}

// heed looks in an item of this hold whether somebody asks for it.
func (h *hold) heed(attrs attributes) {
	i, err := decode(h.opts.Table, attrs)
	if err != nil {
		return
	}
	own := i.holder(h.grant)
	if own != nil {
		h.others = len(i.sharing.holders) - 1
	}
	if i.asked && own == nil || own != nil && own.asked {
		h.asked()
	}
}

// errOvertaken is why a beat did not change an item that is still this hold's.
var errOvertaken = errors.New("overtaken by another request of the same hold")

// found reports the item that a beat, sent at sent, found instead of its own.
func (h *hold) found(sent driver.Instant, i *item, why error) {
	if why == nil { // the item was read after the condition failed, and is ours again
		h.tell(sent, errOvertaken)
		return
	}
	h.tell(sent, why)
	h.heartbeat.mu.Lock()
	h.lost = why
	if h.remains(i) {
		h.broken = i
	}
	h.heartbeat.mu.Unlock()
	h.lose(why)
}
