package dynamolock

import (
	"log/slog"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A doubt is about requests of one grant that may have been carried out without
// our knowing, or may be yet.
type doubt struct {
	requests int
	first    holdfast.Instant // before the first was sent
	last     holdfast.Instant // after the last was given up
}

func (d *doubt) none() bool { return d.requests == 0 }

func (d *doubt) add(sent, ended holdfast.Instant) {
	if d.none() {
		d.first = sent
	}
	d.requests++
	d.last = ended
}

// undo gives back, in the background, what a grant that nobody has may have
// taken.
func (b *backend) undo(key attributes, grant string, d doubt) {
	if !d.none() && b.tasks.begin() {
		go func() {
			defer b.tasks.end()
			b.clean(key, grant, d)
		}()
	}
}

// clean frees the key if the grant has it, once for each request that may have
// taken it. That it has not may only mean that the request has not arrived yet, so
// it goes on asking for a lease, seldomer and seldomer; a request that is later
// still leaves a lease that nobody renews. A client that closes is content with
// one answer.
func (b *backend) clean(key attributes, grant string, d doubt) {
	if d.none() {
		return
	}
	ours := func(e *expression) string { return e.begins(grant) }
	loop := backoff.Policy{Initial: b.opts.RetryDelay, Max: b.opts.Lease / 4}.Start()
	for {
		asked := b.host.Now()
		old, err := b.giveBack(b.tasks.ctx, key, ours)
		if err == nil && old == nil {
			d.requests--
		}
		switch {
		case err == nil && (d.none() || b.tasks.closing() || asked.Sub(d.last) > b.opts.Lease):
			return
		case err != nil && !transient(err):
			level := slog.LevelWarn // what is left goes with its lease
			if b.opts.Mode != FailOpen {
				level = slog.LevelError // it stays
			}
			b.host.Logger().Log(b.tasks.ctx, level, "what an acquisition may have left cannot be removed",
				"table", b.opts.Table, "key", b.opts.Keys.name(key), "error", err)
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
