package locktest

import (
	"context"
	"errors"
	"iter"
	"math"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

type leadFunc = func(context.Context, *holdfast.Lock) error

// A faultyElection is an election some of whose calls are replaced.
type faultyElection struct {
	election
	run    func(ctx context.Context, lead leadFunc) error
	resign func(ctx context.Context) error
	check  func(grace time.Duration) error
	leader func(ctx context.Context) (holdfast.Info, error)
	term   func() *holdfast.Lock
	watch  func(ctx context.Context) iter.Seq2[holdfast.Info, error]
}

func (f *faultyElection) Run(ctx context.Context, lead leadFunc) error { return f.run(ctx, lead) }
func (f *faultyElection) Resign(ctx context.Context) error             { return f.resign(ctx) }
func (f *faultyElection) Check(grace time.Duration) error              { return f.check(grace) }
func (f *faultyElection) Term() *holdfast.Lock                         { return f.term() }
func (f *faultyElection) Observe(ctx context.Context) iter.Seq2[holdfast.Info, error] {
	return f.watch(ctx)
}

func (f *faultyElection) Leader(ctx context.Context) (holdfast.Info, error) {
	return f.leader(ctx)
}

// electing makes a client whose elections are faulty.
func electing(replace func(f *faultyElection)) func(*Client) {
	return func(c *Client) {
		c.falsify = func(e *holdfast.Election, _ *Client, _ string, _ *holdfast.ElectionOptions) election {
			f := &faultyElection{election: e, run: e.Run, resign: e.Resign, check: e.Check, leader: e.Leader, term: e.Term, watch: e.Observe}
			replace(f)
			return f
		}
	}
}

// leading makes a client whose elections call another function in place of lead.
func leading(change func(lead leadFunc) leadFunc) func(*Client) {
	return electing(func(f *faultyElection) {
		run := f.run
		f.run = func(ctx context.Context, lead leadFunc) error {
			if lead == nil {
				return run(ctx, nil)
			}
			return run(ctx, change(lead))
		}
	})
}

// standing makes a client whose elections have other options.
func standing(change func(o *holdfast.ElectionOptions)) func(*Client) {
	return func(c *Client) {
		c.falsify = func(e *holdfast.Election, c *Client, key string, o *holdfast.ElectionOptions) election {
			changed := holdfast.ElectionOptions{}
			if o != nil {
				changed = *o
			}
			change(&changed)
			if other, err := c.Election(key, &changed); err == nil {
				return other
			}
			return e
		}
	}
}

// goOn calls lead on a goroutine, and goes on when the ctx has ended or lead has returned.
func goOn(lead leadFunc) leadFunc {
	return func(ctx context.Context, lock *holdfast.Lock) error {
		result := make(chan error, 1)
		go func() {
			defer func() {
				if recover() != nil {
					result <- errors.New("lead panicked")
				}
			}()
			result <- lead(ctx, lock)
		}()
		select {
		case err := <-result:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// faultyElections are the faults in elections that the suite must catch.
var faultyElections = []fault{
	{name: "the key is given back when the ctx of lead ends", breaks: "G15", client: leading(func(lead leadFunc) leadFunc {
		return func(ctx context.Context, lock *holdfast.Lock) error {
			stop := context.AfterFunc(ctx, func() { _ = lock.Release(context.WithoutCancel(ctx)) })
			defer stop()
			return lead(ctx, lock)
		}
	})},
	{name: "a candidate leads again while its lead runs", breaks: "G15", client: leading(goOn)},
	{name: "the ctx of lead does not end with the lock", breaks: "G15", client: leading(func(lead leadFunc) leadFunc {
		return func(ctx context.Context, lock *holdfast.Lock) error {
			own, end := context.WithCancelCause(context.WithoutCancel(ctx))
			defer context.AfterFunc(ctx, func() {
				if lock.Err() == nil {
					end(context.Cause(ctx))
				}
			})()
			return lead(own, lock)
		}
	})},
	{name: "the ctx of lead ends without its cause", breaks: "G15", client: leading(func(lead leadFunc) leadFunc {
		return func(ctx context.Context, lock *holdfast.Lock) error {
			own, end := context.WithCancel(context.WithoutCancel(ctx))
			defer context.AfterFunc(ctx, end)()
			return lead(own, lock)
		}
	})},
	{name: "the ctx of lead ends a moment after the lease", breaks: "G15", client: leading(func(lead leadFunc) leadFunc {
		return func(ctx context.Context, lock *holdfast.Lock) error {
			own, end := context.WithCancelCause(context.WithoutCancel(ctx))
			late := make(chan struct{})
			stop := context.AfterFunc(ctx, func() {
				defer close(late)
				time.Sleep(lease / 10) // longer than the margin
				end(context.Cause(ctx))
			})
			defer func() {
				if !stop() {
					<-late
				}
			}()
			return lead(own, lock)
		}
	})},
	{name: "a candidate that lost its term stands no more", breaks: "G15", client: leading(func(lead leadFunc) leadFunc {
		return func(ctx context.Context, lock *holdfast.Lock) error {
			err := lead(ctx, lock)
			if errors.Is(lock.Err(), holdfast.ErrLost) {
				return holdfast.ErrWithdrawn
			}
			return err
		}
	})},
	{name: "the loss of a term is an error", breaks: "G15", client: leading(func(lead leadFunc) leadFunc {
		return func(ctx context.Context, lock *holdfast.Lock) error {
			err := lead(ctx, lock)
			if err != nil && lock.Err() != nil {
				return errors.New("lost")
			}
			return err
		}
	})},
	{name: "a leader that steps down leads on", breaks: "G15", client: leading(func(lead leadFunc) leadFunc {
		return func(ctx context.Context, lock *holdfast.Lock) error {
			for {
				if err := lead(ctx, lock); err != nil || ctx.Err() != nil {
					return err
				}
				time.Sleep(time.Millisecond)
			}
		}
	})},
	{
		name: "without a queue, who stepped down is first again", breaks: "G15",
		set: func(e *Engine) { e.Ordered = false },
		engine: func(host driver.Host, d driver.Driver) driver.Driver {
			eager := polling(host, d).(*faulty)
			acquire := eager.acquire
			eager.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
				changed := *req
				changed.Yield = false
				return acquire(ctx, &changed)
			}
			return eager
		},
	},
	{name: "the unfit stand", breaks: "G15", client: standing(func(o *holdfast.ElectionOptions) { o.Fit = nil })},
	{name: "fitness counts only before standing", breaks: "G15", client: standing(func(o *holdfast.ElectionOptions) {
		o.FitEvery = math.MaxInt64
	})},
	{name: "a Fit that does not answer is waited for", breaks: "G15", client: standing(func(o *holdfast.ElectionOptions) {
		if fit := o.Fit; fit != nil {
			o.Fit = func(ctx context.Context) error {
				short, cancel := context.WithTimeout(ctx, time.Millisecond) // and given up, as if it had said yes
				defer cancel()
				answer := make(chan error, 1)
				go func() { answer <- fit(short) }()
				select {
				case err := <-answer:
					if short.Err() != nil {
						return nil
					}
					return err
				case <-short.Done():
					return nil
				}
			}
		}
	})},
	{name: "a leader that is asked leads on", breaks: "G15", client: standing(func(o *holdfast.ElectionOptions) {
		o.StepDownWhenAsked = false
	})},
	{name: "a leader that is asked steps down in any case", breaks: "G15", client: standing(func(o *holdfast.ElectionOptions) {
		o.StepDownWhenAsked = true
	})},
	{name: "Resign forgets", breaks: "G15", client: electing(func(f *faultyElection) { f.resign = nothing })},
	{name: "Resign does not wait", breaks: "G15", client: electing(func(f *faultyElection) {
		resign := f.resign
		f.resign = func(ctx context.Context) error {
			go resign(context.WithoutCancel(ctx))
			return nil
		}
	})},
	{name: "Resign does nothing once its ctx is done", breaks: "G15", client: electing(func(f *faultyElection) {
		resign := f.resign
		f.resign = func(ctx context.Context) error {
			if ctx.Err() != nil {
				return errors.Join(holdfast.ErrReleasePending, ctx.Err())
			}
			return resign(ctx)
		}
	})},
	{name: "Resign fails if there is no term", breaks: "G15", client: electing(func(f *faultyElection) {
		resign := f.resign
		f.resign = func(ctx context.Context) error {
			if f.term() == nil {
				return errors.New("not leading")
			}
			return resign(ctx)
		}
	})},
	{name: "Check never fails", breaks: "G15", client: electing(func(f *faultyElection) {
		f.check = func(time.Duration) error { return nil }
	})},
	{name: "Check knows no grace", breaks: "G15", client: electing(func(f *faultyElection) {
		check := f.check
		f.check = func(time.Duration) error { return check(0) }
	})},
	{name: "Check fails if this candidate does not lead", breaks: "G15", client: electing(func(f *faultyElection) {
		f.check = func(time.Duration) error {
			if f.term() == nil {
				return holdfast.ErrOverdue
			}
			return nil
		}
	})},
	{name: "an error of lead is like nil", breaks: "G15", client: leading(func(lead leadFunc) leadFunc {
		return func(ctx context.Context, lock *holdfast.Lock) error {
			if err := lead(ctx, lock); errors.Is(err, holdfast.ErrWithdrawn) {
				return err
			}
			return nil
		}
	})},
	{name: "a timeout of lead's own is the end of its term", breaks: "G15", client: leading(func(lead leadFunc) leadFunc {
		return func(ctx context.Context, lock *holdfast.Lock) error {
			err := lead(ctx, lock)
			if errors.Is(err, context.DeadlineExceeded) {
				return nil
			}
			return err
		}
	})},
	{name: "a panic of lead is swallowed", breaks: "G15", client: leading(func(lead leadFunc) leadFunc {
		return func(ctx context.Context, lock *holdfast.Lock) error {
			defer func() { _ = recover() }()
			return lead(ctx, lock)
		}
	})},
	{name: "the leader's data is left out", breaks: "G15", client: standing(func(o *holdfast.ElectionOptions) { o.Candidacy = nil })},
	{name: "each takes itself for the leader", breaks: "G15", client: electing(func(f *faultyElection) {
		leader := f.leader
		f.leader = func(ctx context.Context) (holdfast.Info, error) {
			info, err := leader(ctx)
			if f.term() == nil {
				info.Held = false
			}
			return info, err
		}
	})},
	{name: "only the first leader is told", breaks: "G15", client: electing(func(f *faultyElection) {
		watch := f.watch
		f.watch = func(ctx context.Context) iter.Seq2[holdfast.Info, error] {
			return func(yield func(holdfast.Info, error) bool) {
				for info, err := range watch(ctx) {
					yield(info, err)
					return
				}
			}
		}
	})},
	{name: "Term goes on after the term", breaks: "G15", client: electing(func(f *faultyElection) {
		term := f.term
		var last *holdfast.Lock
		f.term = func() *holdfast.Lock {
			if now := term(); now != nil {
				last = now
			}
			return last
		}
	})},
	{name: "Run goes on when its ctx has ended", breaks: "G15", client: electing(func(f *faultyElection) {
		run := f.run
		f.run = func(ctx context.Context, lead leadFunc) error { return run(context.WithoutCancel(ctx), lead) }
	})},
	{name: "an election runs twice", breaks: "G15", client: func(c *Client) {
		c.falsify = func(_ *holdfast.Election, c *Client, key string, o *holdfast.ElectionOptions) election {
			first, _ := c.Election(key, o)
			f := &faultyElection{resign: first.Resign, check: first.Check, leader: first.Leader, term: first.Term, watch: first.Observe}
			f.run = func(ctx context.Context, lead leadFunc) error {
				err := first.Run(ctx, lead)
				if errors.Is(err, holdfast.ErrRunning) {
					again, _ := c.Election(key, o)
					return again.Run(ctx, lead)
				}
				return err
			}
			return f
		}
	}},
	{name: "the end of a term is not reported", breaks: "G15", onEvent: dropped(holdfast.TermEnded)},
	{name: "the end of a term is reported without its cause", breaks: "G15", onEvent: altered(func(e *holdfast.Event) bool {
		e.Cause = nil
		return true
	}, holdfast.TermEnded)},
	{name: "what lead returned is not reported", breaks: "G15", onEvent: altered(func(e *holdfast.Event) bool {
		e.Err = nil
		return true
	}, holdfast.TermEnded)},
	{name: "a term is reported to take no time", breaks: "G15", onEvent: altered(func(e *holdfast.Event) bool {
		e.Took = 0
		return true
	}, holdfast.TermEnded)},
}
