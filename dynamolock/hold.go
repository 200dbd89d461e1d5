package dynamolock

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// hold implements driver.Hold.
type hold struct {
	*engine
	name       string     // the key as the user knows it
	key        attributes // the same, as the table does
	grant      string
	token      uint64
	owner      string
	lease      driver.Lease
	lose       func(error)
	begun      driver.Instant // before the write was sent that took it
	unanswered unanswered     // requests before that one

	cleared string // the attribute of the table's Time to Live, as its last write knew it
	touches uint64 // how many guids the grant has had; only one heartbeat is under way at a time
	heartbeat
}

// start enters the hold into the register, and has it kept alive.
func (h *hold) start() {
	h.engine.mu.Lock()
	h.grants[h.grant] = h
	h.engine.mu.Unlock()
	h.schedule()
}

// Verify implements driver.Hold, by a consistent read. It renews nothing, and
// goes on trying for no longer than there is something to be verified.
func (h *hold) Verify(ctx context.Context) error {
	return h.persist(ctx, func() error {
		i, err := h.get(ctx, h.key, true)
		switch {
		case err == nil:
			return h.check(i)
		case errors.Is(err, ErrItem):
			return fmt.Errorf("%w: %w", holdfast.ErrBroken, err)
		case transient(err) && !h.lease.Live():
			return holdfast.ErrLeaseExpired
		}
		return err
	})
}

// check says why an item is not that of this hold any more; nil if it is.
func (h *hold) check(i *item) error {
	switch {
	case i.held() && i.belongs(h.grant) && i.token == h.token:
		return nil
	case i.form == absent:
		return holdfast.ErrBroken
	case i.sameGrant(h.token):
		return holdfast.ErrBroken // with somebody else's guid
	case i.belongs(h.grant):
		return holdfast.ErrBroken // and then taken by a late request of its own contender
	case h.token != 0 && i.broken == h.token:
		return holdfast.ErrBroken // and then had by others
	case i.owner == h.owner && !i.belongs(h.id):
		return holdfast.ErrReclaimed
	case h.opts.Mode != FailOpen:
		return holdfast.ErrBroken // it cannot have expired
	}
	return holdfast.ErrTakenOver
}

// remains reports whether an item is what is left of this hold, and nobody else's,
// after somebody broke it.
func (h *hold) remains(i *item) bool {
	return i.held() && (i.sameGrant(h.token) || i.belongs(h.grant))
}

// Release implements driver.Hold. The heartbeats have come to an end before it
// sends anything. A request that got no answer is repeated; what the repetition
// meets shows whether the first was carried out. What is refused for another reason
// becomes a leftover.
func (h *hold) Release(ctx context.Context) error {
	h.stop()
	err := h.release(ctx)
	h.forget(h.grant)
	h.leftovers.add(h.name, h.key, h.unanswered, err != nil && !errors.Is(err, holdfast.ErrLost))
	return err
}

func (h *hold) release(ctx context.Context) error {
	if broken, why := h.learned(); why != nil {
		if broken != nil {
			h.clear(ctx, broken)
		}
		return fmt.Errorf("%w: %w", holdfast.ErrLost, why)
	}
	unanswered := false
	return h.persist(ctx, func() error {
		select {
		case h.releases <- struct{}{}:
		case <-ctx.Done():
			return errNoAnswer
		}
		old, err := h.giveBack(ctx, h.key, h.unchanged)
		<-h.releases
		switch {
		case maybeDone(err):
			unanswered = true
			return err
		case errors.Is(err, ErrItem):
			return fmt.Errorf("%w: %w: %w", holdfast.ErrLost, holdfast.ErrBroken, err)
		case err != nil, old == nil:
			return err
		case !old.held() && old.belongs(h.grant) && old.token == h.token:
			return nil
		}
		why := h.check(old)
		if unanswered && !old.sameGrant(h.token) {
			return nil // it was carried out, and what is there now came after it
		}
		if h.remains(old) {
			h.clear(ctx, old)
		}
		return fmt.Errorf("%w: %w", holdfast.ErrLost, why)
	})
}

// unchanged is the condition that the item is still of this hold. The token tells
// it from one that a late request of the same contender has taken anew.
func (h *hold) unchanged(x *expression) string {
	if h.opts.Mode == FailClosed {
		return x.begins(h.grant)
	}
	return all(x.is(attrToken, token(h.token)), x.begins(h.grant))
}

// giveBack sends the request that frees the key on a condition. It returns the
// item that it met otherwise.
func (e *engine) giveBack(ctx context.Context, key attributes, ours func(*expression) string) (old *item, err error) {
	if e.opts.Mode == FailClosed {
		x := &expression{}
		x.cond = ours(x)
		return e.remove(ctx, key, x)
	}
	_, old, err = e.update(ctx, key, e.releaseIf(ours, e.host.Now()))
	return old, err
}

// clear frees the item of a lock that somebody broke: the lease that it still
// has is there for the holder to learn of it, which it has. It tries once: if it
// fails, the lease runs out.
func (h *hold) clear(ctx context.Context, left *item) {
	asLeft := func(x *expression) string {
		return all(x.is(attrGUID, left.guidVal), x.is(attrToken, token(left.token)))
	}
	if _, _, err := h.update(ctx, h.key, h.releaseIf(asLeft, h.host.Now())); err != nil {
		h.host.Logger().Debug("a broken lock is left to its lease",
			"key", h.name, "owner", h.owner, "token", uint64(h.token), "error", err)
	}
}
