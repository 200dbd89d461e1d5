package locktest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A reign is one call of lead, which goes on until the case ends it, whatever its ctx says.
type reign struct {
	ctx     context.Context
	lock    *holdfast.Lock
	returns chan func() error // what lead then does
}

// leave makes lead return.
func (r *reign) leave(err error) { r.returns <- func() error { return err } }

// A candidate is an election that runs. Its lead announces each call, and waits.
type candidate struct {
	*holdfast.Election

	e        *env
	reigns   chan *reign
	during   func(*reign)  // called by lead first, if not nil
	calls    atomic.Int64  // of lead, under way
	overlaps atomic.Int64  // calls of lead while there was another
	over     chan struct{} // closed when Run has returned
	err      error         // of Run
	panicked any
	stop     context.CancelFunc // ends the ctx of Run
}

// candidate makes an election that does not run yet, for the key of the case.
func (e *env) candidate(c *Client, o *holdfast.ElectionOptions) *candidate {
	return e.candidateFor(c, e.key, o)
}

func (e *env) candidateFor(c *Client, key string, o *holdfast.ElectionOptions) *candidate {
	el, err := c.Election(key, o)
	e.noError(err, ruleAnswers, "Election")
	return &candidate{Election: el, e: e, reigns: make(chan *reign, 100)}
}

// stands runs a candidate for the key of the case.
func (e *env) stands(c *Client, o *holdfast.ElectionOptions) *candidate {
	return e.candidate(c, o).run()
}

// elected runs a candidate for the key of the case, which is free.
func (e *env) elected(c *Client, o *holdfast.ElectionOptions) (*candidate, *reign) {
	stands := e.stands(c, o)
	return stands, stands.leads(e.engine.Soon, ruleElected)
}

// run calls Run on a goroutine, until the case ends.
func (c *candidate) run() *candidate {
	ctx, stop := context.WithCancel(c.e.ctx)
	c.stop, c.over = stop, make(chan struct{})
	quit := make(chan struct{})
	over := c.over
	go func() {
		defer close(over)
		defer func() { c.panicked = recover() }()
		c.err = c.Run(ctx, func(ctx context.Context, lock *holdfast.Lock) error { return c.lead(ctx, lock, quit) })
	}()
	c.e.Cleanup(func() { // before the client is closed
		stop()
		close(quit)
		c.e.closes(over, c.e.patience())
	})
	return c
}

func (c *candidate) lead(ctx context.Context, lock *holdfast.Lock, quit <-chan struct{}) error {
	if c.calls.Add(1) > 1 {
		c.overlaps.Add(1)
	}
	defer c.calls.Add(-1)
	r := &reign{ctx: ctx, lock: lock, returns: make(chan func() error, 1)}
	if c.during != nil {
		c.during(r)
	}
	select {
	case c.reigns <- r:
	default: // no case looks at so many
	}
	select {
	case f := <-r.returns:
		return f()
	case <-quit:
		return holdfast.ErrWithdrawn
	}
}

// leads insists that the candidate is elected within d.
func (c *candidate) leads(d time.Duration, rule string) *reign {
	select {
	case r := <-c.reigns:
		return r
	case <-c.over:
		c.e.broken(rule, "Run has returned: %v", c.err)
	case <-time.After(d):
		c.e.broken(rule, "lead was not called within %v", d)
	}
	panic("not reached")
}

// follows insists that the candidate does not lead now.
func (c *candidate) follows(rule string) {
	select {
	case r := <-c.reigns:
		c.e.broken(rule, "lead was called, token %v", r.lock.Token())
	default:
	}
}

// returns insists that Run returns within d, with an error that matches want.
func (c *candidate) returns(d time.Duration, rule string, want error) {
	c.e.brokenIf(!c.e.closes(c.over, d), rule, "Run has not returned after %v", d)
	c.e.brokenIf(c.panicked != nil || !errors.Is(c.err, want), rule, "Run: %v, want %v; panic: %v", c.err, want, c.panicked)
}

// ends insists that the ctx of lead ends within d, for a cause.
func (r *reign) ends(e *env, d time.Duration, rule string, causes ...error) {
	e.brokenIf(!e.closes(r.ctx.Done(), d), rule, "the ctx of lead has not ended after %v; Err of the lock: %v", d, r.lock.Err())
	for _, cause := range causes {
		if errors.Is(context.Cause(r.ctx), cause) {
			return
		}
	}
	e.broken(rule, "the cause of the end of lead's ctx is %v, want %v", context.Cause(r.ctx), causes)
}

// turn bounds the time from the end of one term to the next: a hand-over, and what a
// candidate that has just led waits, for others to look.
func (e *env) turn() time.Duration { return e.patience() }

// fitness is a Fit that a case sets, and the number of times it was asked.
type fitness struct {
	unfit atomic.Pointer[error]
	asked atomic.Int64
}

func (f *fitness) set(err error) { f.unfit.Store(&err) }

func (f *fitness) fit(context.Context) error {
	f.asked.Add(1)
	if err := f.unfit.Load(); err != nil {
		return *err
	}
	return nil
}
