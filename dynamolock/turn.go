package dynamolock

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// A client that releases a key knows at once that it is free, while the others poll. One that wants it again and again would have it
// for ever. So a client that has seen others hold it for some polls asks for a turn, by an attribute of the item, and who then
// releases the key lets the others look first. Nobody has to: no lock depends on it.

// deniedPolls is for how many polls a client sees others hold a key before it asks for a turn. Meanwhile they may pass it on without
// a pause. It asks at one in askOdds of its later looks: of thousands, who cannot see yet that one has asked, few do.
const (
	deniedPolls = 4
	askOdds     = 4
)

// askTurn asks whoever holds the key for a turn, if it is time to and nobody does. A failure costs the caller nothing.
func (c *contender) askTurn(ctx context.Context, seen *observation) {
	if !c.denied(seen) || c.host.Now().Sub(c.askedTurn) < c.opts.Poll || rand.N(askOdds) > 0 {
		return
	}
	c.askedTurn = c.host.Now()
	ctx, cancel := context.WithTimeout(ctx, c.opts.Poll/2)
	defer cancel()
	for range 2 { // what was seen may be an old replica's, and what a refusal shows is not
		if i := seen.item; !i.held() || i.turn > 0 || c.shares(i) {
			return
		}
		updated, now, err := c.update(ctx, c.key, c.turnAsked(seen.item))
		done := err == nil && now == nil
		if done {
			now, err = decode(c.opts.Table, updated)
		}
		if err != nil {
			c.host.Logger().Debug("a turn was not asked for", "key", c.req.Key, "error", err)
			return
		}
		if *seen = c.lines.record(c.req.Key, now); done {
			return
		}
	}
}

// turnAsked is the write that asks for a turn. It touches nothing that others compare.
func (c *contender) turnAsked(i *item) *expression {
	x := &expression{returns: types.ReturnValueAllNew}
	if i.sharing != nil {
		x.cond = x.shared()
	} else {
		x.cond = i.grant().present(x)
	}
	x.set(attrTurn, number(c.opts.Poll.Milliseconds()))
	return x
}

// denied reports whether others have had the key for some polls, whenever its line looked.
func (c *contender) denied(seen *observation) bool {
	i := seen.item
	return c.lines.denied(c.req.Key, i != nil && i.held() && !c.shares(i))
}

// shares reports whether this client is among the holders of an item.
func (e *engine) shares(i *item) bool {
	if i.sharing == nil {
		return i.belongs(e.id)
	}
	return slices.ContainsFunc(i.sharing.holders, func(h holder) bool { return h.grant[:clientLen] == e.id })
}

// turns are the keys that this client leaves to others for a while.
type turns struct {
	host  driver.Host
	lease time.Duration

	mu    strict.Mutex[strict.Turns]
	until map[string]driver.Instant
}

func newTurns(e *engine) *turns {
	return &turns{host: e.host, lease: e.opts.Lease, until: make(map[string]driver.Instant)}
}

// giveWay is for who has just released a key, as it left the item: if somebody has asked for a turn, this client does not take the
// key before all have looked, or for a lease at most. Other releases meanwhile, of permits, do not prolong that.
func (t *turns) giveWay(key string, released *item) {
	if released.turn == 0 {
		return
	}
	gap := min(gapOf(released.turn), t.lease)
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, gives := t.until[key]; gives {
		return
	}
	t.until[key] = t.host.Now().Add(gap)
	t.host.AfterFunc(gap, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.until, key)
	})
}

// left is how long others are still to take a key first; 0 if they are not.
func (t *turns) left(key string) time.Duration {
	t.mu.Lock()
	until, gives := t.until[key]
	t.mu.Unlock()
	if !gives {
		return 0
	}
	return max(until.Sub(t.host.Now()), 0)
}

// varied is a poll's period: at random, up to an eighth more or less. Otherwise one who waits may keep pace with those who have the
// key in turn, and never see it free.
func varied(poll time.Duration) time.Duration { return poll - poll/8 + rand.N(poll/4) }

// gapOf is how long a key stays free so that all see it who look about once per poll.
func gapOf(poll time.Duration) time.Duration { return 2 * poll }

// yields reports whether others are to take the key first. Who has not the time to wait for that takes its chance.
func (c *contender) yields(ctx context.Context) bool {
	left := c.turns.left(c.req.Key)
	end, ends := ctx.Deadline()
	return left > 0 && (!ends || time.Until(end) > left+c.opts.Timeout)
}

// pauseFor waits for others to look. For a call that ends meanwhile the key is theirs.
func (c *contender) pauseFor(ctx context.Context, d time.Duration) error {
	if !backoff.Sleep(ctx, d, nil) {
		return driver.Held(driver.Info{Key: c.req.Key, Held: true})
	}
	return nil
}
