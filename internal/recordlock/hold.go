package recordlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
)

// hold implements driver.Hold.
type hold struct {
	*Engine
	req   *driver.Request
	token driver.Token
	lease *driver.Lease
	own   Holder    // as the next beat writes it; only beats and, after stop, Release use it and rec
	rec   Record    // as seen last
	open  []attempt // writes of the acquisition that may still be carried out
	heartbeat
}

// newHold makes a hold of a record that shows the contender's grant; sent is a moment before the write that got or renewed it.
func newHold(c *contender, rec Record, sent driver.Instant) *hold {
	h := &hold{
		Engine: c.Engine, req: c.req, own: *rec.Holder(c.grant), rec: rec, open: c.open,
		lease: driver.NewLease(c.host, c.lease(), driver.ErrLeaseExpired),
	}
	h.token, h.beats = h.own.Token, c.beats
	h.lease.Renew(sent)
	h.heard = sent
	return h
}

// start registers the lock and starts its beats.
func (h *hold) start() {
	h.claim(h.own.Grant, h.req.Key, h.req.Owner)
	if h.own.Asked {
		h.req.Asked()
	}
	h.schedule()
}

// check says why a record does not have this grant any more, as a *lost; nil if it has.
func (h *hold) check(rec *Record) error {
	own := rec.Holder(h.own.Grant)
	expired := !h.opts.NeverExpires && !h.lease.Live()
	switch {
	case own != nil && own.Token == h.token && !own.Broken:
		return nil
	case own != nil && own.Token != h.token && expired: // a late write of the acquisition took the key again
		return &lost{driver.ErrLeaseExpired}
	case rec.Version == nil && expired: // the store forgot the record
		return &lost{driver.ErrLeaseExpired}
	case own != nil, rec.Version == nil, h.token != 0 && (rec.Broken == h.token || rec.Token == h.token):
		return &lost{driver.ErrBroken}
	}
	for _, other := range rec.Holders {
		if other.Owner == h.req.Owner && clientOf(other.Grant) != h.client && (other.Token > h.token || h.token == 0) {
			return &lost{driver.ErrReclaimed}
		}
	}
	if h.opts.NeverExpires {
		return &lost{driver.ErrBroken}
	}
	return &lost{driver.ErrTakenOver}
}

// lost is why a grant is gone.
type lost struct{ why error }

func (l *lost) Error() string   { return fmt.Sprintf("%v: %v", driver.ErrLost, l.why) }
func (l *lost) Unwrap() []error { return []error{driver.ErrLost, l.why} }

// corrupt makes a record that the store cannot read the end of a grant.
func corrupt(err error) error {
	if errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("%w: %w", &lost{driver.ErrBroken}, err)
	}
	return err
}

// Verify implements driver.Hold, by a read. It ends when the lease is over.
func (h *hold) Verify(ctx context.Context) error {
	return h.pauses.Retry(ctx, h.host, func() error {
		rec, err := h.read(ctx, h.req.Key, true)
		switch {
		case err == nil:
			return h.check(&rec)
		case transient(err) && !h.lease.Live():
			return driver.ErrLeaseExpired
		}
		return corrupt(err)
	})
}

// Release implements driver.Hold. It also removes what is left of a broken grant: the holder knows by now.
func (h *hold) Release(ctx context.Context) error {
	h.claim(h.own.Grant, h.req.Key, "")
	why := h.stop()
	known := &h.rec
	if len(h.rec.Holders) > 1 || why != nil { // the other holders have renewed since
		known = nil
	}
	sent, unanswered := false, false
	err := h.pauses.Retry(ctx, h.host, func() error {
		var left Intent // a store may forget it with a vacant record
		_, err := h.change(ctx, h.req.Key, known, func(rec Record) (Record, error) {
			left = rec.Intent
			broken := h.token != 0 && rec.Broken == h.token
			released := sent && !broken && (unanswered || len(rec.Holders) == 0 && rec.Token == h.token && h.token != 0)
			if gone := h.check(&rec); gone != nil && why == nil && !released {
				why = gone
			}
			if rec.Holder(h.own.Grant) == nil {
				return rec, errSettled
			}
			sent = true
			return rec.without(func(o *Holder) bool { return o.Grant == h.own.Grant }), nil
		})
		known, unanswered = nil, unanswered || classIs(err, Unknown)
		if err == nil {
			h.yield(h.req.Key, h.req.Mode, left)
		}
		return err
	})
	h.settle(h.req.Key, h.own.Grant, h.open, err != nil && !errors.Is(err, ErrCorrupt))
	return cmp.Or(why, corrupt(err))
}

// HeldBy returns grant and token of a hold of this package, and its mode.
func HeldBy(of driver.Hold) (grant Holder, m driver.Mode, ok bool) {
	h, ok := of.(*hold)
	if !ok {
		return grant, m, false
	}
	return Holder{Grant: h.own.Grant, Token: h.token}, h.req.Mode, true
}
