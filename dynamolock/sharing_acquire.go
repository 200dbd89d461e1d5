package dynamolock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// maxReaders is how many may share a key: a heartbeat of one costs as much as the item of
// all is large, and the heartbeats of all have to fit into what one item takes.
const maxReaders = holdfast.MaxLimit

// holderLeft returns how long an entry has to stay unchanged before its grant is over.
func (e *engine) holderLeft(o *observation, h *holder, now driver.Instant) time.Duration {
	if h.grant[:clientLen] == e.id && !e.grants.alive(h.grant) {
		return 0 // no lock and no call has it any more
	}
	left := h.lease - now.Sub(o.entries[h.grant])
	if e.opts.TrustLocalTime {
		left = min(left, h.touched.Add(h.lease+e.host.Margin(h.lease)).Sub(now.Wall))
	}
	return left
}

// reclaims reports whether the request may end a grant that shares the key.
func (c *contender) reclaims(h *holder) bool {
	return c.req.Reclaim && h.owner == c.req.Owner && h.grant[:clientLen] != c.id
}

// gone returns those of the holders of a shared key who are over by what was seen, or whom
// the request may end; not more than one request can remove.
func (c *contender) gone(o *observation) []holder {
	now := c.host.Now()
	var gone []holder
	for _, h := range o.item.sharing.holders {
		if (c.reclaims(&h) || c.holderLeft(o, &h, now) <= 0) && len(gone) < maxGone {
			gone = append(gone, h)
		}
	}
	return gone
}

// reclaimRest ends what the request reclaims and its write had no room for. Its own grant, which is there by now, tells those who had
// that why. What is later than that is no former self.
func (c *contender) reclaimRest(ctx context.Context) error {
	if !c.req.Reclaim || c.joined == nil {
		return nil
	}
	own := c.joined.holder(c.grant)
	earlier := func(h *holder) bool { return c.reclaims(h) && h.token < own.token }
	for {
		_, err := c.giveBackShared(ctx, c.key, c.joined, earlier)
		if err == nil {
			return nil
		}
		if err := c.again(ctx, err); err != nil {
			return err
		}
	}
}

// evictFormer ends what the request reclaims from a shared key that it has to wait for all the same: behind a writer that keeps readers
// out, or for others. Otherwise whoever is before it may wait for its former self, which may be alive. It reports whether there was any.
func (c *contender) evictFormer(ctx context.Context, met *observation) (found bool, err error) {
	if i := met.item; !c.req.Reclaim || i == nil || !i.held() || i.sharing == nil || c.ripe(met) || c.owns(i) {
		return false, nil
	}
	for _, h := range met.item.sharing.holders {
		if !c.reclaims(&h) {
			continue
		}
		_, err := c.depart(ctx, c.key, h.grant, h.token, len(met.item.sharing.holders)-1, evicted)
		switch {
		case err != nil && ctx.Err() != nil:
			return found, c.waitedFor()
		case err != nil:
			return found, err
		}
		found = true
	}
	return found, nil
}

// allGone reports whether nobody has a shared key any more, by what was seen.
func (c *contender) allGone(o *observation) bool {
	now := c.host.Now()
	for _, h := range o.item.sharing.holders {
		if !c.reclaims(&h) && c.holderLeft(o, &h, now) > 0 {
			return false
		}
	}
	return true
}

// vacant reports whether the key may be taken by what was seen, as if nobody had it.
func (c *contender) vacant(o *observation) bool {
	switch {
	case o.item == nil:
		return false
	case o.item.held() && o.item.sharing != nil:
		return c.allGone(o)
	}
	return c.takeable(o)
}

// enterable reports whether a write may get the key for the request, by what was seen.
func (c *contender) enterable(o *observation) bool {
	switch {
	case o.item == nil:
		return false
	case !c.req.Mode.Shared:
		return c.vacant(o)
	case o.item.intent != "" && !c.intentOver(o):
		return false
	case c.vacant(o) || c.reclaimable(o.item):
		return true
	}
	return c.joins(o)
}

// joins reports whether the request may join those who have the key, by what was seen.
func (c *contender) joins(o *observation) bool {
	i := o.item
	return i != nil && i.sharing != nil && c.req.Mode.Shared && i.sharing.limit == c.req.Mode.Limit &&
		len(i.sharing.holders)-len(c.gone(o)) < room(c.req.Mode)
}

// sentAs returns a moment before the request with a number was sent, whoever may have repeated it.
func (c *contender) sentAs(number string) driver.Instant {
	first := c.touches - uint64(len(c.sends)) + 1
	for i, sent := range c.sends {
		if number == ordered(first+uint64(i)) {
			return sent
		}
	}
	return c.began // of an entry that somebody has broken, or long ago
}
