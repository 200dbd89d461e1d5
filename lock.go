package holdfast

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// tie is unexported, or users would see what Lock embeds for engines.
type tie = driver.Granted

// A Lock is one grant of one key. It is live until its one end, which never changes: see [Lock.Err]. All methods are safe for use
// by any goroutine, and compare the clocks, so that a process that was stopped sees at its first call that its lock is lost.
type Lock struct {
	tie // for driver.HoldOf

	client  *Client
	key     string
	owner   string
	mode    driver.Mode
	token   Token
	lease   driver.Tenant
	hold    driver.Hold
	done    chan struct{}
	writing chan struct{} // full while SetData writes

	id        uint64 // of the acquisition, for events
	grantedAt time.Time

	mu       strict.Mutex[strict.Lock]
	lostWhy  error          // the first cause that the engine reported, before or after the grant
	wanted   bool           // another client has asked for it, before or after the grant
	asked    chan struct{}  // of Asked; nil before its first use
	granted  bool           // token, lease and hold are set, and the lock can end
	err      error          // nil while live
	endedAt  time.Time      // set with err
	ttl      driver.Instant // zero: none
	ttlTimer driver.Timer
	cancels  map[*context.CancelCauseFunc]struct{} // of Context

	givenBack chan struct{} // closed when releErr is set
	releErr   error
}

// Key returns the key.
func (k *Lock) Key() string { return k.key }

// Owner returns the owner name of this hold.
func (k *Lock) Owner() string { return k.owner }

// Shared reports whether others may hold the key at the same time, by [WithShared] or [WithLimit].
func (k *Lock) Shared() bool { return k.mode.Shared }

// Limit returns the limit of [WithLimit], or 0.
func (k *Lock) Limit() int { return k.mode.Limit }

// Token returns the fencing token, fixed at the grant. See [Token].
func (k *Lock) Token() Token { return k.token }

// Done returns a channel that closes when the lock ends.
func (k *Lock) Done() <-chan struct{} {
	k.check()
	if k.client == nil {
		return noEvents.done
	}
	return k.done
}

// errNotAcquired is the end of a lock, or of locks, that no client has returned.
func errNotAcquired() error { return driver.Invalid("lock", "it was not acquired") }

// Err returns nil while the lock is live, and then the reason of its end, which never changes: [ErrReleased], [ErrTTLExpired], or
// a [*LostError], which matches [ErrLost] and its cause.
func (k *Lock) Err() error {
	if k.client == nil {
		return errNotAcquired()
	}
	k.check()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// Deadline returns when the lock ends without further word from the engine: at the end of the lease, less the margin, or of the
// TTL. It moves as the lease is renewed and the TTL extended.
func (k *Lock) Deadline() time.Time {
	k.check()
	deadline := k.lease.Deadline()
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ttl.IsZero() && k.ttl.Mono.Before(deadline) {
		deadline = k.ttl.Mono
	}
	if k.err != nil && k.endedAt.Before(deadline) {
		deadline = k.endedAt
	}
	return deadline
}

// Verify asks the engine's quorum whether the grant stands. It returns nil if it stands and the lock is live; the result of Err
// if the lock has ended; and otherwise the error that prevented an answer, which says nothing about the lock.
func (k *Lock) Verify(ctx context.Context) error {
	return failed("verify", k.key, k.call(ctx, func(ctx context.Context) error { return k.hold.Verify(ctx) }))
}

// call calls the engine about the grant, until ctx or the lock ends. The answer may end the lock. It returns what Err returns if the
// lock has ended, and otherwise the answer.
func (k *Lock) call(ctx context.Context, f func(context.Context) error) error {
	if err := k.Err(); err != nil {
		return err
	}
	entered, done, err := k.client.enter(ctx)
	if err != nil {
		return cmp.Or(k.Err(), err)
	}
	defer done()
	bound, cancel := k.Context(entered)
	defer cancel()
	err = f(bound)
	if cause := lossCause(err); cause != nil && (bound.Err() == nil || !errors.Is(err, bound.Err())) {
		k.lose(cause)
	}
	return cmp.Or(k.Err(), k.client.explain(bound, err))
}

// Release ends the lock for its holder and then tells the engine, even if ctx has ended: ctx bounds only the wait for the
// confirmation. It returns
//
//   - nil: the engine has confirmed; no later Inspect or List shows the grant;
//   - [ErrReleasePending], with ctx's error: delivery goes on in the background;
//   - [ErrTTLExpired] or [ErrLost]: the lock had ended before.
//
// Further calls return the same result.
func (k *Lock) Release(ctx context.Context) error {
	switch {
	case k.client == nil:
		return failed("release", k.key, errNotAcquired())
	case ctx == nil:
		return failed("release", k.key, errNoContext())
	}
	k.endReleased()
	k.mu.Lock()
	ended := k.err
	k.mu.Unlock()
	if !errors.Is(ended, ErrReleased) {
		return failed("release", k.key, ended)
	}
	select {
	case <-k.givenBack:
	default:
		select {
		case <-k.givenBack:
		case <-ctx.Done():
			return failed("release", k.key, unconfirmedYet(ctx))
		}
	}
	return failed("release", k.key, k.releErr)
}

// endReleased ends the lock, if nothing has ended it before, and starts the release in the engine.
func (k *Lock) endReleased() {
	k.check()
	k.end(ErrReleased, Released)
}

// grant makes the lock live with what the engine returned, or returns why the grant is over already.
func (k *Lock) grant(g driver.Grant, ttl time.Duration, a *acquisition) error {
	k.token, k.hold, k.tie = g.Token, g.Hold, driver.NewGranted(k.client.host, g.Hold)
	k.mu.Lock()
	err := g.Lease.Attach(&k.lease, k.check)
	if err == nil && k.lostWhy != nil {
		k.lease.Detach()
		err = k.lostWhy
	}
	if k.err = err; err != nil {
		k.mu.Unlock()
		return err
	}
	k.granted = true
	a.granted(k) // before anything can end it
	if ttl > 0 {
		k.setTTLLocked(ttl)
	}
	k.tellLocked()
	k.mu.Unlock()
	k.check() // the lease may have run out since Attach, when there was nothing to end
	return nil
}

// lose is what the engine calls: see driver.Request.Lost.
func (k *Lock) lose(cause error) {
	k.mu.Lock()
	if k.lostWhy == nil {
		k.lostWhy = cause
	}
	granted := k.granted
	k.mu.Unlock()
	if granted {
		k.check() // an end by the clocks was earlier
		k.end(cause, Lost)
	}
}

// check ends the lock if a clock says so.
func (k *Lock) check() {
	k.mu.Lock()
	if k.err != nil || !k.granted {
		k.mu.Unlock()
		return
	}
	ttl := k.ttl
	k.mu.Unlock()

	if lost := k.lease.Ended(); lost != nil {
		k.end(lost, Lost)
	} else if k.over(ttl) {
		k.end(ErrTTLExpired, TTLExpired)
	}
}

// end ends the lock, once. For Lost, cause is the cause within a LostError; otherwise Err returns it.
func (k *Lock) end(cause error, kind EventKind) {
	err := cause
	if kind == Lost {
		err = &LostError{Key: k.key, Owner: k.owner, Token: k.token, Cause: cause}
	}
	k.mu.Lock()
	if k.err != nil || !k.granted {
		k.mu.Unlock()
		return
	}
	if kind == TTLExpired && !k.over(k.ttl) {
		k.mu.Unlock() // extended since the caller looked
		return
	}
	k.err = err
	k.endedAt = k.client.clock.Now().Mono
	// The holder knows first: all of this happens before the engine gets the key back. The event comes before Done, or a
	// subscription made after Done would report it.
	k.client.feed.emit(k.event(kind, err), k.grantedAt)
	close(k.done)
	if k.ttlTimer != nil {
		k.ttlTimer.Stop()
		k.ttlTimer = nil
	}
	cancels := k.cancels
	k.cancels = nil
	k.mu.Unlock()

	for cancel := range cancels {
		(*cancel)(err)
	}
	k.lease.Detach()
	k.logEnd(err)
	k.client.lockEnded(k)
}

// logEnd logs the end of a lock.
func (k *Lock) logEnd(err error) {
	log := k.client.log
	switch {
	case errors.Is(err, ErrReleased):
		log.Debug("lock released", "key", k.key, "owner", k.owner, "token", uint64(k.token))
	case errors.Is(err, ErrTTLExpired):
		log.Warn("lock reached its TTL", "key", k.key, "owner", k.owner, "token", uint64(k.token))
	default:
		log.Warn("lock lost", "key", k.key, "owner", k.owner, "token", uint64(k.token), "error", err)
	}
}
