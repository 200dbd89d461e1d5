package holdfast

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Ask asks the holder of the grant that info describes, as returned by Inspect or List or
// in a HeldError, to let go: [Lock.Asked] closes there. It is a wish. Nothing ends, and what
// comes of it is up to the holder's program; [Client.Break] asks nobody. It reaches no later
// grant, not even one of the same owner: [ErrChanged] if the grant is gone by now. Of several
// that share the key it is the oldest, as for Break; [Info.Each] yields each.
//
// It returns once the engine has recorded the wish, not once the holder has heard of it. A holder
// that is cut off hears of it when it is back, if it has its lock then. To ask again changes
// nothing. Other errors: [ErrInvalid] if info describes no grant, [ErrClosed],
// [ErrDisconnected] with ctx's error, [ErrDenied], and the engine's own.
func (c *Client) Ask(ctx context.Context, info Info) error {
	if err := c.onGrant(ctx, info, driver.Driver.Ask); err != nil {
		return failed("ask", info.Key, err)
	}
	c.log.Info("holder asked to let go", "key", info.Key, "owner", info.Owner, "token", uint64(info.Token))
	return nil
}

// Asked returns a channel that is closed when somebody has asked, by [Client.Ask] or in the
// form of another program, that the holder let go. The lock lives on, and whether to do so is
// up to the holder: finish the piece of work at hand, then call Release, say. It is closed
// once, however often somebody asks, and stays open if nobody has asked before the lock
// ended. See [Events.Asked] and [Hooks].
func (k *Lock) Asked() <-chan struct{} {
	k.check()
	if k.client == nil {
		return noEvents.done
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked == nil {
		k.asked = make(chan struct{})
	}
	return k.asked
}

// ask is what the engine calls: see driver.Request.Asked.
func (k *Lock) ask() {
	k.check() // an end that the clocks have seen comes first
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.wanted {
		k.wanted = true
		k.tellLocked()
	}
}

// tellLocked tells the holder that somebody has asked for its lock, if that is so and the
// lock is live.
func (k *Lock) tellLocked() {
	if !k.wanted || !k.granted || k.err != nil {
		return
	}
	k.client.feed.asked(k) // before the channel closes, as for the end of a lock
	if k.asked == nil {
		k.asked = make(chan struct{})
	}
	close(k.asked)
}

// A Wish is that of somebody who has asked for a lock, by [Client.Ask] or in the form of
// another program. Who that is, no engine records.
type Wish struct {
	ID    uint64 // of the acquisition
	Time  time.Time
	Key   string
	Owner string // of the hold
	Token Token
	Held  time.Duration // from the grant to Time
}

// asked reports that somebody has asked for a live lock. It logs on a goroutine, as engines
// report from under their locks.
func (f *feed) asked(k *Lock) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	event := f.stampLocked(Event{Kind: Asked, Key: k.key, Owner: k.owner, Token: k.token})
	for e := range f.subs {
		e.asked.push(event)
	}
	callLocked(f, f.hooks.Asked, Wish{
		ID: k.id, Time: event.Time, Key: k.key, Owner: k.owner, Token: k.token, Held: event.Time.Sub(k.grantedAt),
	})
	if !f.silent {
		f.logs.push(func() {
			f.log.Info("somebody asks for the lock", "key", k.key, "owner", k.owner, "token", uint64(k.token))
		})
	}
}
