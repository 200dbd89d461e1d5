package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A leadership is one call of lead.
type leadership struct {
	lock     *Lock
	ctx      context.Context // that of lead
	end      context.CancelCauseFunc
	began    time.Time
	returned chan struct{}    // closed when lead has returned, before the key is given back
	released error            // what Release returned
	ended    func() time.Time // the time of its first call: ctx has ended
}

// candidate stands once, and leads if elected. It returns the term, or nil if there was none, and what Run is to return if it is
// to end.
func (e *Election) candidate(ctx context.Context, lead func(context.Context, *Lock) error, yield bool) (*leadership, error) {
	standing, end := context.WithCancelCause(ctx)
	defer end(nil)
	if err := e.ask(standing); err != nil {
		end(err)
		e.logUnfit(standing)
		return nil, nil
	}
	watched := e.watch(standing, end)
	defer func() { end(nil); <-watched }()

	lock, err := e.client.acquire(standing, e.key, true, append(slices.Clip(e.opts.Candidacy), func(r *request) { r.yield = yield }))
	switch {
	case err == nil:
		return e.lead(ctx, standing, end, lock, lead)
	case standing.Err() == nil:
		return nil, err
	}
	e.logUnfit(standing)
	return nil, nil
}

// logUnfit logs why this candidate does not stand, if it is for that.
func (e *Election) logUnfit(ctx context.Context) {
	if err := context.Cause(ctx); errors.Is(err, ErrUnfit) {
		e.client.log.Warn("candidate does not stand", "key", e.key, "error", err)
	}
}

// lead calls lead, and gives the key back when it has returned. The candidacy may end before ctx does, which is that of Run.
func (e *Election) lead(
	ctx, standing context.Context, end context.CancelCauseFunc, lock *Lock, lead func(context.Context, *Lock) error,
) (t *leadership, err error) {
	t = &leadership{lock: lock, end: end, began: e.client.clock.Now().Mono, returned: make(chan struct{}), ended: sync.OnceValue(time.Now)}
	termCtx, cancel := lock.Context(standing)
	t.ctx = termCtx
	defer func() {
		cancel()
		releaseCtx, stop := linger(ctx)
		defer stop()
		releaseCtx, stop = context.WithTimeout(releaseCtx, doReleaseTimeout)
		defer stop()
		t.released = lock.Release(releaseCtx)
	}()
	if !e.begin(t) {
		close(t.returned)
		return t, nil
	}
	err = errUnwound
	defer func() { e.finish(t, err) }()
	t.began = e.client.feed.emit(t.lock.event(TermBegan, nil), time.Time{})
	e.client.log.Info("term began", "key", e.key, "owner", t.lock.owner, "token", uint64(t.lock.token))
	stop := context.AfterFunc(termCtx, func() { t.ended() })
	defer stop()
	if e.opts.StepDownWhenAsked {
		go t.stepDownWhenAsked()
	}
	if err = lead(termCtx, lock); t.lostBy(err) {
		err = nil
	}
	return t, err
}

// pending is the error for a key whose release the engine has not confirmed.
func (t *leadership) pending() error {
	if t == nil || !errors.Is(t.released, ErrReleasePending) {
		return nil
	}
	return t.released
}

// begin makes t the present term, unless it is over already or the client is closing.
func (e *Election) begin(t *leadership) bool {
	e.mu.Lock()
	e.last = t
	e.mu.Unlock()
	if t.lock.Err() != nil || t.ctx.Err() != nil {
		return false
	}
	e.client.mu.Lock()
	closed := e.client.closed
	if !closed {
		e.client.terms[t.lock] = t // Close waits for it
	}
	e.client.mu.Unlock()
	if closed {
		return false
	}
	e.mu.Lock()
	e.now = t
	e.mu.Unlock()
	return true
}

// finish notes that lead has returned err, or will not return.
func (e *Election) finish(t *leadership, err error) {
	e.mu.Lock()
	e.now = nil
	e.mu.Unlock()
	cause := cmp.Or(t.lock.Err(), context.Cause(t.ctx))
	event := t.lock.event(TermEnded, err)
	event.Cause = cause
	e.client.feed.emit(event, t.began)
	log := e.client.log.Info
	if errors.Is(cause, ErrLost) || errors.Is(cause, ErrUnfit) {
		log = e.client.log.Warn
	}
	log("term ended", "key", e.key, "owner", t.lock.owner, "token", uint64(t.lock.token), "error", cmp.Or(cause, err))
	e.client.mu.Lock()
	delete(e.client.terms, t.lock)
	e.client.mu.Unlock()
	close(t.returned)
}

// lostBy reports whether an error of lead says no more than that its term has ended.
func (t *leadership) lostBy(err error) bool {
	if err == nil || errors.Is(err, ErrWithdrawn) {
		return false
	}
	if ended := t.lock.Err(); ended != nil && (errors.Is(err, ended) || errors.Is(err, ErrLost) && errors.Is(ended, ErrLost)) {
		return true
	}
	return t.ctx.Err() != nil && (errors.Is(err, t.ctx.Err()) || errors.Is(err, context.Cause(t.ctx)))
}

// stepDownWhenAsked ends the ctx of lead when another client asks for the lock.
func (t *leadership) stepDownWhenAsked() {
	select {
	case <-t.lock.Asked():
		t.end(ErrAsked)
	case <-t.ctx.Done():
	}
}

// unconfirmedYet is the error of a call whose ctx has ended before the engine's confirmation.
func unconfirmedYet(ctx context.Context) error {
	return fmt.Errorf("%w: %w", ErrReleasePending, driver.ContextError(ctx))
}

// ask asks Fit, and bounds the wait for an answer if Fit obeys its ctx.
func (e *Election) ask(ctx context.Context) error {
	if e.opts.Fit == nil || ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.opts.FitEvery, errFitTooLong)
	defer cancel()
	if err := e.opts.Fit(ctx); err != nil {
		return unfit(err)
	}
	if context.Cause(ctx) == errFitTooLong {
		return unfit(errFitTooLong)
	}
	return nil
}

var errFitTooLong = errors.New("the call of Fit takes longer than FitEvery")

func unfit(err error) error { return fmt.Errorf("%w: %w", ErrUnfit, err) }

// watch asks Fit every FitEvery until ctx ends, and ends it when the answer is an error or none. The result is closed when that is
// over and Fit has returned.
func (e *Election) watch(ctx context.Context, end context.CancelCauseFunc) <-chan struct{} {
	over := make(chan struct{})
	if e.opts.Fit == nil {
		close(over)
		return over
	}
	go func() {
		defer close(over)
		defer end(unfit(errUnwound)) // if Fit ends the goroutine; otherwise ctx has ended
		ticks := time.NewTicker(e.opts.FitEvery)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
			case <-ctx.Done():
				return
			}
			late := time.AfterFunc(e.opts.FitEvery, func() { end(unfit(errFitTooLong)) }) // also if it minds no ctx
			err := e.ask(ctx)
			late.Stop()
			if err != nil {
				end(err)
				return
			}
		}
	}()
	return over
}
