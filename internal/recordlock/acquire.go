package recordlock

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A contender is one call of Acquire for one grant.
type contender struct {
	*Engine
	req   *driver.Request
	grant string
	began driver.Instant
	place *waiter // in the line of the key; nil for a try

	seen     observation // of the line when the step began; of a try, its own since its first request
	looked   bool        // seen is from a request of this call
	behind   bool        // it waits for others
	doubt    bool        // a write was not answered, and the record was not read since
	doubted  bool        // a write was not answered at some time
	beats    uint64
	open     []attempt      // its writes without an answer that may still be carried out
	intended driver.Instant // before its intent was written last; zero if it was not
	owed     bool           // the record may have the grant
	left     bool           // its last write goes on in the background, which settles the rest
	baffled  int            // writes in a row that were refused by the record that they named
}

// An attempt is a write of a contender.
type attempt struct {
	beat string
	sent driver.Instant
}

// errOver is why a call begins again: its grant was broken, or its lease was over, before the call knew of the grant.
var errOver = errors.New("the grant was over before it was known")

// Acquire implements driver.Driver.
func (e *Engine) Acquire(ctx context.Context, req *driver.Request) (driver.Grant, error) {
	for {
		h, err := e.acquire(ctx, req)
		if err == nil {
			return driver.Grant{Token: h.token, Lease: h.lease, Hold: h}, nil
		} else if !errors.Is(err, errOver) {
			return driver.Grant{}, err
		}
	}
}

// acquire is Acquire for one grant. If the call does not end with a lock, the holder that it may have left in the record is removed, also
// if the caller's Retry panics.
func (e *Engine) acquire(ctx context.Context, req *driver.Request) (h *hold, err error) {
	c := &contender{Engine: e, req: req, grant: e.client + random(GrantLen-ClientLen), began: e.host.Now()}
	e.claim(c.grant, req.Key, "")
	defer func() {
		if h == nil && !c.left {
			e.settle(req.Key, c.grant, c.open, c.owed || !c.intended.IsZero())
		}
	}()
	if req.Wait {
		if req.Yield && !backoff.Sleep(ctx, e.host, 2*e.opts.Poll, nil) {
			return nil, c.waitedFor()
		}
		c.place = e.join(req.Key, c.grant)
		defer e.leave(req.Key, c.place)
	} else {
		c.seen = e.observed(req.Key)
	}
	for {
		if h, err = c.step(ctx); h != nil {
			h.start()
			return h, nil
		}
		switch {
		case err == nil:
		case c.left, ctx.Err() != nil && !errors.Is(err, driver.ErrHeld):
			return nil, c.waitedFor()
		case !transient(err):
			return nil, err
		default:
			if err = c.retry(ctx, err); err != nil {
				return nil, err
			}
		}
	}
}

// retry waits for the caller's Retry. Others of the line go on meanwhile.
func (c *contender) retry(ctx context.Context, err error) error {
	if c.place != nil {
		c.rest(c.req.Key, c.place, true)
		defer c.rest(c.req.Key, c.place, false)
	}
	return c.req.Retry(ctx, err, nil)
}

// step sends one request, or waits for what it depends on.
func (c *contender) step(ctx context.Context) (*hold, error) {
	leads := true
	if c.place != nil {
		c.withLine(c.req.Key, func(l *line, _ driver.Instant) {
			c.seen, leads = l.seen, l.lead() == c.place
			c.looked = c.looked || l.err == nil && l.at.Sub(c.began) > 0
		})
	}
	own := c.seen.rec.Holder(c.grant)
	plan := c.plan()
	free := plan.may || !c.seen.known
	switch {
	case own != nil && own.Broken:
		return nil, errOver
	case own != nil:
		return c.confirm(ctx, own)
	case c.doubt, !c.looked && !leads && c.req.Reclaim, !c.looked && leads && c.seen.known && !c.seen.rec.Vacant():
		return nil, c.look(ctx) // the line may remember what is over
	case c.req.Reclaim && len(plan.reclaimed) > 0 && !plan.may:
		return nil, c.evict(ctx, plan)
	case c.req.Reclaim && c.place != nil && c.holds(c.req.Key, c.req.Owner):
		return nil, driver.Held(driver.Info{Key: c.req.Key, Held: true, Holder: driver.Holder{Owner: c.req.Owner}})
	case !leads: // the leader signals
		c.behind = true
		select {
		case <-c.place.up:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case free:
		if left := c.yields(ctx); left > 0 {
			return nil, c.giveWay(ctx, left)
		}
		return c.write(ctx, plan)
	case c.place == nil:
		return nil, c.inTheWay()
	}
	c.behind = true
	return nil, c.poll(ctx)
}

// A plan is what a contender may do by what it has seen.
type plan struct {
	may       bool     // it may hold the key
	next      Record   // the record then, and otherwise without the grants that are over or reclaimed
	reclaimed []Holder // the live grants that the request ends
}

// plan says whether the contender may hold the key. All live holders and a live intent must be of its own mode, and there must be room.
func (c *contender) plan() plan {
	p, now := plan{next: c.seen.rec}, c.host.Now()
	if !c.seen.known {
		return p
	}
	p.next.Holders = nil
	for _, h := range c.live(&c.seen, now) {
		if c.req.Reclaim && h.Owner == c.req.Owner && clientOf(h.Grant) != c.client {
			p.reclaimed = append(p.reclaimed, h)
		} else {
			p.next.Holders = append(p.next.Holders, h)
		}
	}
	room := c.req.Mode.Limit
	if room == 0 {
		room = holdfast.MaxLimit
	}
	intent := &c.seen.rec.Intent
	switch held := len(p.next.Holders); {
	case held > 0 && !c.req.Mode.SharesWith(p.next.Mode), held >= room:
	case intent.Grant != c.grant && intent.Mode != c.req.Mode && c.intentLeft(&c.seen, now) > 0:
	default:
		p.may = true
	}
	return p
}

// look reads the record, which settles doubts.
func (c *contender) look(ctx context.Context) error {
	seen, err := c.lookAt(ctx, c.req.Key)
	if err == nil {
		c.doubt, c.seen, c.looked = false, seen, true
	}
	return err
}

// evict ends grants that the request reclaims, though others keep it from the key.
func (c *contender) evict(ctx context.Context, p plan) error {
	next := p.next
	next.Broken = p.reclaimed[len(p.reclaimed)-1].Token
	return c.paced(ctx, c.req.Key, writes, func() error {
		named := c.seen.rec
		now, done, err := c.swap(ctx, c.req.Key, named, next)
		if err != nil {
			return err
		}
		c.seen, c.looked = c.saw(c.req.Key, now), true
		if !done {
			return c.refused(named.Version, now.Version)
		}
		return nil
	})
}

// poll reads if the next read is due. Otherwise it leaves an intent if need be, and waits until then, or until a grant or an intent is
// over, or a signal comes. The read may show an earlier record: the Swap that follows names it, and is refused then.
func (c *contender) poll(ctx context.Context) error {
	var due driver.Instant
	early := false
	c.withLine(c.req.Key, func(l *line, now driver.Instant) {
		due, early = l.nextPoll, l.nextPoll.Sub(now) > 0
		if !early { // a waiter does not keep pace with holders that take turns
			l.nextPoll = now.Add(c.opts.Poll - c.opts.Poll/8 + rand.N(c.opts.Poll/4))
		}
	})
	if early {
		c.intend(ctx)
		now := c.host.Now()
		if !backoff.Sleep(ctx, c.host, c.nextEnd(&c.seen, now, max(due.Sub(now), 0)), c.place.up) {
			return ctx.Err()
		}
		return nil
	}
	return c.paced(ctx, c.req.Key, reads, func() error {
		rec, err := c.read(ctx, c.req.Key, false)
		if err == nil {
			c.saw(c.req.Key, rec)
		}
		return err
	})
}

// waitedFor is the error of a call that ended before it was granted the key: the latest failure, the holder in the way, or neither.
func (c *contender) waitedFor() error {
	var at driver.Instant
	err := error(nil)
	c.withLine(c.req.Key, func(l *line, _ driver.Instant) {
		at, err = l.at, l.err
		if c.place != nil {
			c.seen = l.seen
		}
	})
	recent := c.looked || c.began.Sub(at) < 2*c.opts.Poll
	switch {
	case err != nil && recent:
		return err
	case c.seen.known && recent && (c.behind || c.looked && len(c.seen.rec.Holders) > 0):
		return c.inTheWay()
	}
	return errNoAnswer
}

// inTheWay is the error over the holders, or over a waiter of another mode.
func (c *contender) inTheWay() error {
	info := c.seen.rec.info(c.req.Key, c.seen.rec.Holders)
	info.Held = true
	return driver.Held(info)
}
