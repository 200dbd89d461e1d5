package dynamolock

import (
	"context"

	"github.com/holdfast-go/holdfast/driver"
)

// checkShared is check for one who shares the key.
func (h *hold) checkShared(i *item) error {
	own := i.holder(h.grant)
	switch {
	case own != nil && own.token == h.token && !own.broken():
		return nil
	case own != nil && own.token == h.token, i.form == absent, i.broken == h.token:
		return driver.ErrBroken
	case own != nil:
		return h.takenAgain()
	case h.reclaimed(i):
		return driver.ErrReclaimed
	}
	return driver.ErrTakenOver
}

// reclaimed reports whether another client has the key under the same owner since.
func (h *hold) reclaimed(i *item) bool {
	if i.sharing == nil {
		return i.owner == h.owner && !i.belongs(h.id)
	}
	for _, other := range i.sharing.holders {
		if other.owner == h.owner && other.token > h.token && other.grant[:clientLen] != h.id {
			return true
		}
	}
	return false
}

// departure says who removes a grant from those who share a key.
type departure int

const (
	leaves  departure = iota // its holder, unless somebody has broken it
	tidied                   // whoever finds what is left of it
	evicted                  // BreakNow, or a reclaim
)

// depart removes a grant from those who share a key; others is how many they are besides,
// as far as that is known. If the grant is not among them, or its holder may not remove it,
// it returns the item.
func (e *engine) depart(ctx context.Context, key attributes, grant string, t driver.Token, others int, how departure) (old *item, err error) {
	guid := binary(touch(grant, 0))
	for {
		updated, old, err := e.update(ctx, key, e.leaving(grant, t, others == 0, how, guid, e.host.Now()))
		switch {
		case err != nil:
			return nil, err
		case old == nil:
			if i, err := decode(e.opts.Table, updated); err == nil {
				e.lines.record(e.opts.Keys.name(key), i)
				e.turns.giveWay(e.opts.Keys.name(key), i)
			}
			return nil, nil
		}
		own := old.holder(grant)
		if own == nil || own.token != t || how == leaves && own.broken() {
			return old, nil
		}
		others = len(old.sharing.holders) - 1
	}
}

// giveBackShared removes those of the holders of an item that are to be removed, and reports
// whether there were any.
func (e *engine) giveBackShared(ctx context.Context, key attributes, i *item, which func(*holder) bool) (freed bool, err error) {
	others := len(i.sharing.holders) - 1
	for k := range i.sharing.holders {
		h := &i.sharing.holders[k]
		if !which(h) {
			continue
		}
		old, err := e.depart(ctx, key, h.grant, h.token, others, tidied)
		if err != nil {
			return freed, err
		}
		freed = freed || old == nil
		others--
	}
	return freed, nil
}

// breakShared ends a grant that shares a key, and no other: its entry gets a mark that no
// heartbeat can replace. With now it is removed at once.
func (e *engine) breakShared(ctx context.Context, key attributes, id grantID, now bool) error {
	guid := stranger()
	unanswered := false
	try := func() (done bool, err error) {
		i, err := e.get(ctx, key, true)
		if err != nil {
			return false, err
		}
		h := i.holder(id.grant)
		switch {
		case h == nil && unanswered:
			return true, nil // an earlier try was carried out
		case h == nil || h.token != id.token:
			return false, driver.ErrChanged
		case !now && h.broken():
			return true, nil
		}
		var old *item
		if now {
			old, err = e.depart(ctx, key, id.grant, id.token, len(i.sharing.holders)-1, evicted)
		} else {
			_, old, err = e.update(ctx, key, e.marking(id, h, binary(guid)))
		}
		unanswered = unanswered || maybeDone(err)
		return old == nil, err
	}
	return e.persist(ctx, func() error {
		for {
			if done, err := try(); done || err != nil {
				return err
			} // a heartbeat came in between
		}
	})
}

// aliveAt returns those of the holders of a shared item that are not over, by what was seen
// when a read was sent.
func (e *engine) aliveAt(o *observation, sent driver.Instant) (holders []holder, soonest driver.Instant) {
	for _, h := range o.item.sharing.holders {
		left := e.holderLeft(o, &h, sent)
		if left <= 0 {
			continue
		}
		if at := sent.Add(left); len(holders) == 0 || at.Sub(soonest) < 0 {
			soonest = at
		}
		holders = append(holders, h)
	}
	return holders, soonest
}
