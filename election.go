package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/strict"
)

const (
	// termPace is the least time from the beginning of a term to the next candidacy.
	termPace = time.Second
	// defaultFitEvery is the default of ElectionOptions.FitEvery.
	defaultFitEvery = 5 * time.Second
)

// ElectionOptions configure an [Election]. The zero value, like nil, has the defaults.
type ElectionOptions struct {
	// Candidacy has the options of each acquisition. [WithData] is for what others need to know of the leader, such as its
	// address. [WithTTL] limits a term, even if lead has not returned. [WithWait], [WithRandomOrder], [WithShared] and [WithLimit]
	// are refused.
	Candidacy []Option

	// Fit, if set, returns nil if this candidate is able to lead. Run calls it before the candidate stands, and then every
	// FitEvery while it waits and leads, one call at a time. After an error the candidate leaves the queue or steps down, and Fit
	// is asked again FitEvery later. The ctx of a call ends after FitEvery; a longer call counts as an error. Run, but not Close,
	// waits for Fit to return.
	Fit func(ctx context.Context) error

	// FitEvery is the period of Fit. Default 0: 5 s.
	FitEvery time.Duration

	// StepDownWhenAsked ends the ctx of lead, with [ErrAsked] as its cause, at a [Client.Ask]. Default: false; see [Lock.Asked].
	StepDownWhenAsked bool
}

// An Election is a candidate for the leadership of a key, made by [Client.Election]. The holder of the key leads. All methods may
// be called from any goroutine.
type Election struct {
	client *Client
	key    string
	opts   ElectionOptions

	mu      strict.Mutex[strict.Election]
	running bool
	now     *leadership // nil unless lead runs
	last    *leadership // the latest term, also when it is over; nil before the first
}

// Election returns a candidate for the leadership of key; o may be nil. It sends nothing; the candidate stands when Run is called.
// It fails with [ErrInvalid] if the key or an option is out of bounds.
func (c *Client) Election(key string, o *ElectionOptions) (*Election, error) {
	e := &Election{client: c, key: key}
	if o != nil {
		e.opts = *o
	}
	e.opts.Candidacy = slices.Clone(e.opts.Candidacy)
	e.opts.FitEvery = cmp.Or(e.opts.FitEvery, defaultFitEvery)
	if err := e.validate(); err != nil {
		return nil, failed("elect", key, err)
	}
	return e, nil
}

func (e *Election) validate() error {
	r, err := e.client.newRequest(e.key, e.opts.Candidacy)
	switch {
	case err != nil:
		return err
	case r.waitOK:
		return driver.Invalid("wait", "a candidate waits until the ctx of Run ends")
	case r.mode().Shared:
		return driver.Invalid(r.mode().Option(), "one leads at a time")
	case r.shuffle:
		return driver.Invalid("random order", "a candidate stands for one key")
	case e.opts.FitEvery < 0:
		return driver.Invalid("ElectionOptions.FitEvery", "%v is negative", e.opts.FitEvery)
	}
	return nil
}

// Run stands for election, calls lead when elected, and stands again after each term, until ctx ends, the client is closed, or
// lead ends it. lead runs on the goroutine of Run, so terms of one candidate never overlap.
//
// The ctx of lead ends with the term. Its context.Cause is what Lock.Err returns, [ErrResigned], [ErrAsked], [ErrUnfit] with the
// error of Fit, [ErrClosed], or the cause of Run's ctx. It ends before another candidate can be elected, unless another client
// ends a live lease on purpose. lead must return soon then: the key is given back after that, never before. A lead that does not return
// keeps the key until the lock ends otherwise; see [Election.Check].
//
// The result of lead decides what follows:
//
//   - nil: the candidate stands again, behind the present waiters.
//   - an error that matches [ErrWithdrawn]: Run returns nil when the key is given back.
//   - another error: Run returns it. If the term had ended before, an error that matches its cause or that of lead's ctx counts
//     as nil.
//
// A candidate stands at most once per second.
//
// Run returns the error of ctx; [ErrClosed] after Close; [ErrRunning] if it runs already; [ErrReclaimed] if another process
// claimed the owner name by [WithReclaim]; and what makes [Client.Acquire] fail for good, such as [ErrDenied]. Run waits for the
// engine to confirm each release as [Client.Do] does; if the last one is not confirmed, the error matches [ErrReleasePending] too.
// Run may be called again when it has returned. If lead panics or calls runtime.Goexit, the key is given back and the panic goes
// on.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context, term *Lock) error) error {
	if err := e.client.valid(); err != nil {
		return failed("elect", e.key, err)
	}
	if lead == nil {
		return failed("elect", e.key, driver.Invalid("lead", "it is nil"))
	}
	e.mu.Lock()
	running := e.running
	e.running = true
	e.mu.Unlock()
	if running {
		return failed("elect", e.key, ErrRunning)
	}
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.running = false
	}()
	// It is not counted in: Close waits for lead, and lead may close the client.
	ctx, done, err := e.client.bind(ctx)
	if err != nil {
		return failed("elect", e.key, err)
	}
	defer done()
	return e.run(ctx, lead)
}

func (e *Election) run(ctx context.Context, lead func(context.Context, *Lock) error) error {
	var last *leadership
	yield := false
	for {
		term, err := e.candidate(ctx, lead, yield)
		var pause time.Duration
		if term == nil || errors.Is(context.Cause(term.ctx), ErrUnfit) {
			pause = e.opts.FitEvery
		}
		if term != nil {
			last = term
			pause = max(pause, termPace-time.Since(term.began))
		}
		switch {
		case errors.Is(err, ErrWithdrawn):
			return last.pending()
		case err != nil:
			return errors.Join(err, last.pending())
		case ctx.Err() != nil:
			return e.over(ctx, last)
		case term != nil && errors.Is(term.lock.Err(), ErrReclaimed):
			return failed("elect", e.key, term.lock.Err())
		}
		yield = term != nil
		if pause > 0 && !backoff.Sleep(ctx, e.client.clock, pause, nil) {
			return e.over(ctx, last)
		}
	}
}

// over is the error of a Run whose ctx has ended, or whose client is closed.
func (e *Election) over(ctx context.Context, last *leadership) error {
	err := error(ErrClosed)
	if e.client.closing.Err() == nil {
		err = driver.ContextError(ctx)
	}
	return errors.Join(failed("elect", e.key, err), last.pending())
}

// Term returns the lock of the present term; nil if lead does not run or its ctx has ended.
func (e *Election) Term() *Lock {
	if t := e.leads(); t != nil && t.lock.Err() == nil && t.ctx.Err() == nil {
		return t.lock
	}
	return nil
}

// Resign ends the ctx of lead, with [ErrResigned] as its cause, waits for lead to return and for the engine to confirm the
// release, and then returns nil. The candidate stands again, behind the present waiters; to end the candidacy, end the ctx of Run.
//
// ctx bounds only the wait: if it ends first, the error matches [ErrReleasePending] and that of ctx. If the lock had ended
// otherwise, Resign returns [ErrLost] or [ErrTTLExpired] as [Lock.Release] does. lead itself should return instead: Resign waits
// for lead.
func (e *Election) Resign(ctx context.Context) error {
	if ctx == nil {
		return failed("resign", e.key, errNoContext())
	}
	e.mu.Lock()
	t, leads := e.last, e.now != nil
	e.mu.Unlock()
	if t == nil {
		return e.client.valid()
	}
	t.lock.check()     // an end by the clocks was earlier
	t.end(ErrResigned) // also if it is about to begin
	select {
	case <-t.returned:
	case <-ctx.Done():
		return failed("resign", e.key, unconfirmedYet(ctx))
	}
	err := t.lock.Release(ctx)
	if !leads && (errors.Is(err, ErrLost) || errors.Is(err, ErrTTLExpired)) {
		return nil // a term of the past
	}
	return err
}

// Leader describes the leader as [Client.Inspect] does: Held is false if there is none.
func (e *Election) Leader(ctx context.Context) (Info, error) {
	return e.client.Inspect(ctx, e.key)
}

// Observe yields the leader now and at each change, as [Client.Observe] does.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Info, error] {
	return e.client.Observe(ctx, e.key)
}

// Check returns an error that matches [ErrOverdue] if lead still runs although its ctx ended more than grace ago; otherwise nil.
// It sends nothing. It is for a liveness probe, whose failure ends the process: nothing else stops code that ignores its ctx.
func (e *Election) Check(grace time.Duration) error {
	t := e.leads()
	if t == nil {
		return e.client.valid()
	}
	t.lock.check()
	if t.ctx.Err() == nil {
		return nil
	}
	if over := time.Since(t.ended()); over > max(grace, 0) {
		return failed("elect", e.key, fmt.Errorf("%w, for %v: %w", ErrOverdue, over, context.Cause(t.ctx)))
	}
	return nil
}

// leads returns the term whose lead runs, or nil.
func (e *Election) leads() *leadership {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now
}
