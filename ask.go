package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/driver"
)

// Ask asks the holder of the grant that info describes to release it: [Lock.Asked] closes there. info comes from Inspect, List or
// a HeldError; of several holders of a key, Ask reaches the oldest ([Info.Each] yields each). The holder's program decides what
// follows. [Client.Break] ends a grant without asking.
//
// Ask returns when the engine has recorded the request. A holder that is cut off learns of it when it is connected again. To ask
// again changes nothing. A later grant is never asked: Ask fails with [ErrChanged] if the grant is gone. Other errors are
// [ErrInvalid] if info describes no grant, [ErrClosed], [ErrDisconnected] with ctx's error, and [ErrDenied].
func (c *Client) Ask(ctx context.Context, info Info) error {
	if err := c.onGrant(ctx, info, driver.Driver.Ask); err != nil {
		return failed("ask", info.Key, err)
	}
	c.log.Info("holder asked to let go", "key", info.Key, "owner", info.Owner, "token", uint64(info.Token))
	return nil
}

// Asked returns a channel that closes when another client, or another program in its own form, asks for the lock: see
// [Client.Ask]. The lock lives on; finish the piece of work at hand and call Release, for example. The channel stays open if the
// lock ends first.
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

// tellLocked reports a request for the lock if there is one and the lock is live.
func (k *Lock) tellLocked() {
	if !k.wanted || !k.granted || k.err != nil {
		return
	}
	k.client.feed.emit(k.event(Asked, nil), k.grantedAt) // before the channel closes, as for the end of a lock
	k.client.log.Info("another client asks for the lock", "key", k.key, "owner", k.owner, "token", uint64(k.token))
	if k.asked == nil {
		k.asked = make(chan struct{})
	}
	close(k.asked)
}
