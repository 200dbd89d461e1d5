package dynamolock

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
)

// hold implements driver.Hold.
type hold struct {
	*engine
	name       string     // the key as the user knows it
	key        attributes // the same, as the table does
	grant      string
	token      driver.Token
	owner      string
	lease      *driver.Lease
	lose       func(error)
	asked      func()
	begun      driver.Instant // before the write was sent that took it
	unanswered unanswered     // earlier requests of the acquisition

	entry  *holder // in a shared item; nil if the hold is exclusive. Only beats touch it once they have begun
	others int     // who shared the key too when that was last known

	cleared string // the attribute of the table's Time to Live that its last write removed
	touches uint64 // how many guids the grant has had; only one heartbeat is under way at a time
	heartbeat
}

// start registers the hold and starts its heartbeats.
func (h *hold) start() {
	h.grants.got(h)
	h.lines.callOwn(h.name, h.owner)
	h.schedule()
}

// Verify implements driver.Hold, by a consistent read. It renews nothing. It stops trying
// when the lease is over.
func (h *hold) Verify(ctx context.Context) error {
	return h.persist(ctx, func() error {
		i, err := h.get(ctx, h.key, true)
		switch {
		case err == nil:
			return h.check(i)
		case errors.Is(err, ErrItem):
			return fmt.Errorf("%w: %w", driver.ErrBroken, err)
		case transient(err) && !h.lease.Live():
			return driver.ErrLeaseExpired
		}
		return err
	})
}

// check says why an item is not this hold's any more; nil if it still is.
func (h *hold) check(i *item) error {
	switch {
	case i.form == absent && !h.lease.Live():
		return driver.ErrLeaseExpired // and the table's Time to Live has deleted it
	case h.entry != nil:
		return h.checkShared(i)
	case i.held() && i.belongs(h.grant) && i.token == h.token:
		return nil
	case i.form == absent:
		return driver.ErrBroken
	case i.sameGrant(h.token):
		return driver.ErrBroken // Break wrote another guid
	case h.token != 0 && i.broken == h.token:
		return driver.ErrBroken // and others took the key
	case i.belongs(h.grant):
		return h.takenAgain()
	case h.reclaimed(i):
		return driver.ErrReclaimed
	case h.opts.Mode != FailOpen:
		return driver.ErrBroken // it cannot have expired
	}
	return driver.ErrTakenOver
}

// takenAgain is why a hold was over before a late request of its acquisition took the key again.
func (h *hold) takenAgain() error {
	if h.lease.Live() {
		return driver.ErrBroken // how else
	}
	return driver.ErrLeaseExpired // and others may have had the key in between
}

// brokenIn reports whether an item shows that somebody has broken this hold: it still has that, as Break left it, or others took the key.
func (h *hold) brokenIn(i *item) bool {
	if h.token != 0 && i.broken == h.token {
		return true
	}
	if own := i.holder(h.grant); h.entry != nil {
		return own != nil && own.token == h.token
	}
	return i.sameGrant(h.token)
}

// remains reports whether an item is still this hold's: Break left it so, or a late request of the acquisition took the key again.
func (h *hold) remains(i *item) bool {
	if h.entry != nil {
		return i.holder(h.grant) != nil
	}
	return i.held() && (i.sameGrant(h.token) || i.belongs(h.grant))
}

// Release implements driver.Hold. It sends nothing before the heartbeats have ended. It
// repeats a request that got no answer; what the repetition meets shows whether the first
// was carried out. A release that is refused for another reason becomes a leftover, and so
// does what is left of a lock that somebody broke.
func (h *hold) Release(ctx context.Context) error {
	h.grants.enter(h.grant) // nobody has a lock on it any more
	h.stop()
	owed, err := h.release(ctx)
	h.grants.forget(h.grant, func() {
		h.leftovers.add(h.name, h.key, h.unanswered.handOver(), owed)
	})
	h.leftovers.start()
	return err
}

// release reports with its error whether the item may still be this hold's.
func (h *hold) release(ctx context.Context) (owed bool, err error) {
	if broken, why := h.learned(); why != nil {
		owed = broken != nil && !h.clear(ctx, broken)
		return owed, fmt.Errorf("%w: %w", driver.ErrLost, why)
	}
	unanswered := false
	var left *item
	err = h.persist(ctx, func() error {
		slot, ok := h.releases.take(ctx, h.name)
		if !ok {
			return errNoAnswer
		}
		old, err := h.sendRelease(ctx)
		slot.leave()
		switch {
		case maybeDone(err):
			unanswered = true
			return err
		case errors.Is(err, ErrItem):
			return fmt.Errorf("%w: %w: %w", driver.ErrLost, driver.ErrBroken, err)
		case err != nil, old == nil:
			return err
		case h.entry == nil && !old.held() && old.belongs(h.grant) && old.token == h.token:
			h.turns.giveWay(h.name, old)
			return nil
		}
		why := h.check(old)
		if why == nil {
			return errOvertaken
		}
		if h.remains(old) {
			left = old
		}
		if unanswered && !h.brokenIn(old) {
			return nil // it was carried out, and what is there now came later
		}
		return fmt.Errorf("%w: %w", driver.ErrLost, why)
	})
	owed = left != nil && !h.clear(ctx, left)
	return owed || err != nil && !errors.Is(err, driver.ErrLost), err
}

// sendRelease sends the request that gives the key back. If the hold is gone, it returns the item.
func (h *hold) sendRelease(ctx context.Context) (old *item, err error) {
	if h.entry != nil {
		return h.depart(ctx, h.key, h.grant, h.token, h.others, leaves)
	}
	return h.giveBack(ctx, h.key, h.unchanged)
}

// unchanged is the condition that the item is still this hold's. The token distinguishes
// it from a grant that a late request of the same acquisition made.
func (h *hold) unchanged(x *expression) string {
	if h.entry != nil {
		return all(x.holds(h.grant, h.token), x.unbroken(h.grant))
	}
	if h.opts.Mode == FailClosed {
		return x.begins(h.grant)
	}
	return all(x.is(attrToken, token(h.token)), x.begins(h.grant))
}

// giveBack sends the request that frees the key on a condition. If the condition is
// false, it returns the item.
func (e *engine) giveBack(ctx context.Context, key attributes, ours func(*expression) string) (old *item, err error) {
	var released attributes
	if e.opts.Mode == FailClosed {
		x := &expression{}
		x.cond = ours(x)
		released, old, err = e.remove(ctx, key, x)
	} else {
		released, old, err = e.update(ctx, key, e.releaseIf(ours, e.host.Now()))
	}
	if err == nil && old == nil {
		if i, err := decode(e.opts.Table, released); err == nil {
			e.turns.giveWay(e.opts.Keys.name(key), i)
		}
	}
	return old, err
}

// clear frees the item of a lock that somebody broke. The item still has its lease so that
// the holder learns of the break, which it has by now. clear tries once, and reports whether
// it was answered.
func (h *hold) clear(ctx context.Context, left *item) bool {
	var err error
	if own := left.holder(h.grant); own != nil {
		_, err = h.depart(ctx, h.key, h.grant, own.token, len(left.sharing.holders)-1, tidied)
	} else {
		_, _, err = h.update(ctx, h.key, h.releaseIf(left.asLeft, h.host.Now()))
	}
	return err == nil
}
