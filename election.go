package holdfast

import (
	"context"
	"errors"
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
	// Candidacy has the options of each acquisition of the key. [WithData] is for what
	// others have to know of the leader, such as its address. [WithTTL] limits a term: when
	// it has passed the key goes to the next candidate, even if lead has not returned.
	// [WithWait], [WithRandomOrder], [WithShared] and [WithLimit] are refused.
	Candidacy []Option

	// Fit, if set, says whether this candidate is able to lead: nil if it is. It is asked
	// before the candidate stands, and then every FitEvery while it waits and while it
	// leads. After an error it does not stand, leaves the queue, or steps down, and is asked
	// again FitEvery later. Its ctx ends FitEvery after the call: a Fit that takes longer
	// counts as an error. It is called on a goroutine of its own, one call at a time, and
	// must return when its ctx ends: Run waits for it, and Close does so for 1 s. No call
	// begins after Close has. A call of runtime.Goexit counts as an error; a panic ends the process.
	Fit func(ctx context.Context) error

	// FitEvery is the period of Fit. Default 0: 5 s.
	FitEvery time.Duration

	// StepDownWhenAsked ends the ctx of lead, with [ErrAsked] as its cause, when somebody
	// asks for the lock by [Client.Ask]. Default false: lead may look at [Lock.Asked].
	StepDownWhenAsked bool
}

// An Election is a candidate for the leadership of a key, made by [Client.Election].
// Whoever holds the key leads. All methods may be called from any goroutine.
type Election struct {
	client    *Client
	key       string
	candidacy []Option
	fit       func(context.Context) error
	fitEvery  time.Duration
	whenAsked bool // StepDownWhenAsked

	mu      strict.Mutex[strict.Election]
	running bool
	now     *leadership // nil unless lead runs
	last    *leadership // the latest term, also when it is over; nil before the first
}

// Election returns a candidate for the leadership of key; o may be nil. It sends
// nothing, and the candidate does not stand before [Election.Run]. It fails with
// [ErrInvalid] if the key or an option is out of bounds.
func (c *Client) Election(key string, o *ElectionOptions) (*Election, error) {
	if o == nil {
		o = &ElectionOptions{}
	}
	e := &Election{
		client: c, key: key, candidacy: slices.Clone(o.Candidacy),
		fit: o.Fit, fitEvery: o.FitEvery, whenAsked: o.StepDownWhenAsked,
	}
	if e.fitEvery == 0 {
		e.fitEvery = defaultFitEvery
	}
	if err := e.validate(); err != nil {
		return nil, failed("elect", key, err)
	}
	return e, nil
}

func (e *Election) validate() error {
	r, err := e.client.newRequest(e.key, e.candidacy)
	switch {
	case err != nil:
		return err
	case r.waitOK:
		return driver.Invalid("wait", "a candidate waits until the ctx of Run ends")
	case r.mode().Shared:
		return driver.Invalid(r.mode().Option(), "one leads at a time")
	case r.shuffle:
		return driver.Invalid("random order", "a candidate stands for one key")
	case e.fitEvery < 0:
		return driver.Invalid("ElectionOptions.FitEvery", "%v is negative", e.fitEvery)
	}
	return nil
}

// Run stands for election, calls lead when elected, and stands again after each term,
// until ctx ends, the client is closed, or lead ends it. lead runs on the goroutine of
// Run, so terms of one candidate never overlap.
//
// The ctx of lead ends with the term, and context.Cause tells why: it is what Lock.Err
// returns if the lock ended, [ErrResigned], [ErrAsked], [ErrUnfit] with the error of Fit,
// [ErrClosed], or the cause of the given ctx. It ends before anybody else can be elected, unless
// somebody ended a live lease on purpose. lead must return soon then: the key is given back
// when lead has returned, never before. A lead that does not return keeps the key, whose
// lease goes on being renewed, until the lock ends otherwise; see [Election.Check].
//
// What lead returns decides what follows:
//
//   - nil: it has stepped down. The candidate stands again, behind those who wait. (Where
//     there is no queue, it lets them look first.)
//   - an error that matches [ErrWithdrawn]: Run returns nil when the key is given back.
//   - any other error: Run returns it; but if the term had ended before, an error that
//     matches that of lead's ctx, its cause, or the end of the lock, is like nil: to
//     lose a term is no error, and the candidate stands again.
//
// After a term of less than a second, what is left of the second passes before the
// candidate stands again, so that a lead that always returns at once is no load.
//
// Run returns an error that matches that of ctx when ctx has ended and lead has returned;
// [ErrClosed] after Close; [ErrRunning] if it runs already; [ErrReclaimed] if another
// process claimed the candidate's owner name by [WithReclaim]; and what makes
// [Client.Acquire] fail for good, such as [ErrDenied] or a [WithRetry] that is used up.
// When lead has returned, Run waits for the engine to confirm that it has the key back,
// as [Client.Do] does; if no confirmation came of the last term, the error of Run matches
// [ErrReleasePending] too.
//
// If lead panics, or calls runtime.Goexit, the key is given back and the panic goes on.
// Run may be called again when it has returned.
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
			pause = e.fitEvery
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
		if pause > 0 && !backoff.Sleep(ctx, pause, nil) {
			return e.over(ctx, last)
		}
	}
}

// over is the error of a Run whose ctx has ended, or whose client is closed.
func (e *Election) over(ctx context.Context, last *leadership) error {
	err := error(ErrClosed)
	if !e.client.closedUnder(ctx) {
		err = driver.ContextError(ctx)
	}
	return errors.Join(failed("elect", e.key, err), last.pending())
}

// Term returns the lock of the present term, or nil if this candidate does not lead: lead
// does not run, or its ctx has ended.
func (e *Election) Term() *Lock {
	if t := e.leads(); t != nil && t.lock.Err() == nil && t.ctx.Err() == nil {
		return t.lock
	}
	return nil
}

// Resign ends the ctx of lead, with [ErrResigned] as its cause, waits until lead has
// returned, and then for the engine to confirm that it has the key back. It returns nil
// then. If lead has returned before, it waits for that confirmation only. The candidate stands again, behind those who wait; to
// end the candidacy, end the ctx of Run.
//
// ctx bounds only the wait: when it ends first, the error matches [ErrReleasePending] and
// that of ctx, and the term ends all the same. If the lock had ended otherwise,
// Resign waits for lead and returns [ErrLost] or [ErrTTLExpired], as [Lock.Release] does.
//
// lead should return instead. If it calls Resign with its own ctx, that ends in the
// call, which therefore does not wait; with another ctx, it waits for itself.
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
	t.lock.check()     // what has ended it before comes first
	t.end(ErrResigned) // also if it is about to begin
	select {
	case <-t.returned:
	default:
		select {
		case <-t.returned:
		case <-ctx.Done():
			return failed("resign", e.key, unconfirmedYet(ctx))
		}
	}
	if leads {
		return t.lock.Release(ctx)
	}
	t.lock.endReleased()
	if errors.Is(t.lock.Err(), ErrLost) {
		return nil // the key was not left to be given back
	}
	if err := t.lock.delivered(ctx); errors.Is(err, ErrReleasePending) {
		return failed("resign", e.key, err)
	}
	return nil
}

// Leader tells who leads, as [Client.Inspect] does: Held is false if nobody does, and
// Data is what the leader gave [WithData].
func (e *Election) Leader(ctx context.Context) (Info, error) {
	return e.client.Inspect(ctx, e.key)
}

// Observe tells who leads, now and at each change, as [Client.Observe] does.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Info, error] {
	return e.client.Observe(ctx, e.key)
}

// Check returns an error that matches [ErrOverdue] if lead still runs although its ctx
// ended more than grace ago, as seen by this process; otherwise nil, whether this
// candidate leads or not. It sends nothing. It is for a liveness probe, whose failure ends
// the process: nothing else stops code that ignores its ctx.
func (e *Election) Check(grace time.Duration) error {
	t := e.leads()
	if t == nil {
		return e.client.valid()
	}
	t.lock.check()
	if over := t.overdue(); over > max(grace, 0) {
		return failed("elect", e.key, overdueBy(over, context.Cause(t.ctx)))
	}
	return nil
}

// leads returns the term whose lead runs, or nil.
func (e *Election) leads() *leadership {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now
}
