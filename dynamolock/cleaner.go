package dynamolock

import (
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A doubt is about requests of one grant that may have been carried out without
// our knowing, or may be yet.
type doubt struct {
	first holdfast.Instant // before the first was sent
	last  holdfast.Instant // after the last was given up; zero if there is no doubt
}

func (d *doubt) add(sent, ended holdfast.Instant) {
	if d.last.IsZero() {
		d.first = sent
	}
	d.last = ended
}

// undo gives back, in the background, what a grant that nobody has may have
// taken.
func (b *backend) undo(key attributes, grant string, d doubt) {
	if !d.last.IsZero() && b.tasks.begin() {
		go func() {
			defer b.tasks.end()
			b.clean(key, grant, d)
		}()
	}
}

// clean frees the key if the grant has it. That it has not may only mean that
// the request has not arrived yet, so it goes on asking for a lease, seldomer and
// seldomer; a request that is later still leaves a lease that nobody renews. A
// client that closes is content with one answer.
func (b *backend) clean(key attributes, grant string, d doubt) {
	if d.last.IsZero() {
		return
	}
	loop := backoff.Policy{Initial: b.opts.RetryDelay, Max: b.opts.Lease}.Start()
	for {
		old, err := b.giveBack(b.tasks.ctx, key, grant)
		switch {
		case err == nil && old == nil:
			return
		case err == nil && (b.tasks.closing() || b.host.Now().Sub(d.last) > b.opts.Lease):
			return
		case err != nil && !transient(err):
			b.host.Logger().Warn("what an acquisition may have left cannot be removed", "error", err)
			return
		}
		wake := b.tasks.open.Done()
		if b.tasks.closing() {
			wake = nil
		}
		if !loop.Wait(b.tasks.ctx, wake) {
			return
		}
	}
}
