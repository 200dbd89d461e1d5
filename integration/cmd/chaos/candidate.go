package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// candidate is one call of Election.Run by a worker. In the history, each candidacy is an acquisition, a term is the hold of
// its grant, and what Run does after lead is its release.
type candidate struct {
	*worker
	election *holdfast.Election
	rec      history.Record // of each candidacy
	standing *call          // the present candidacy
	terms    int            // to be led, at most
	resigns  sync.WaitGroup
}

// stands reports whether the worker stands for election now.
func (w *worker) stands() bool { return len(w.former) == 0 && w.one(12) }

// stand stands for election, leads some terms, and withdraws.
func (w *worker) stand() {
	lease := w.config.Login.Lease
	c := &candidate{worker: w, terms: 1 + w.random.IntN(3)}
	c.rec = history.Record{Call: history.Acquire, Key: w.anyKey(), Owner: w.config.Owner, Stands: true}
	o := &holdfast.ElectionOptions{FitEvery: lease / 4}
	if w.one(6) {
		ttl := w.between(lease/40, lease)
		o.Candidacy = append(o.Candidacy, holdfast.WithTTL(ttl))
		c.rec.TTL = int64(ttl)
	}
	if w.one(12) {
		o.Candidacy = append(o.Candidacy, holdfast.WithOwner(w.config.Owner), holdfast.WithReclaim())
		c.rec.Reclaim = true
	}
	if w.one(3) {
		random := rand.New(rand.NewPCG(w.random.Uint64(), 0)) // Fit has a goroutine of its own
		o.Fit = func(context.Context) error {
			if random.IntN(20) == 0 {
				return errors.New("not now")
			}
			return nil
		}
	}
	var err error
	if c.election, err = w.locker.Election(c.rec.Key, o); err != nil {
		panic(err) // the options are valid
	}
	ctx, cancel := context.WithTimeout(w.stopping, w.between(lease, 8*lease))
	defer cancel()
	c.standing = w.report.invoke(c.rec)
	err = c.election.Run(ctx, c.lead)
	switch {
	case err == nil || errors.Is(err, holdfast.ErrReclaimed) || errors.Is(err, holdfast.ErrReleasePending):
		err = context.Canceled // this candidacy was never begun
	case errors.Is(err, context.Canceled) && ctx.Err() == nil: // that is of a term which it had lost
		err = fmt.Errorf("after a loss, Run returned %v", err)
	}
	c.standing.returned(err, 0, "")
	c.resigns.Wait()
}

// lead leads a term.
func (c *candidate) lead(ctx context.Context, lock *holdfast.Lock) error {
	c.resigns.Wait() // or a late call might end this term
	h := c.newHold(lock)
	h.term = ctx
	c.standing.returned(nil, h.token, lock.Owner())
	led := c.report.invoke(history.Record{Call: history.Lead, Key: h.key, Token: h.token})
	if c.one(4) {
		c.resign(h)
	}
	live := h.keep()
	h.calls.Wait()
	if live {
		h.tell()
		led.returned(nil, h.token, "")
		c.released(h)
	} else {
		h.ends()
		led.returned(holdfast.ErrLost, h.token, "")
	}
	c.standing = c.report.invoke(c.rec)
	if c.terms--; c.terms == 0 {
		return holdfast.ErrWithdrawn
	}
	if c.one(2) {
		return ctx.Err()
	}
	return nil
}

// resign resigns a term, soon. Some do not wait for the confirmation.
func (c *candidate) resign(h *hold) {
	after, bound := c.between(0, c.config.Login.Lease/60), 3*c.config.Login.Lease
	if c.one(4) {
		bound = c.between(time.Microsecond, 5*time.Millisecond)
	}
	c.resigns.Go(func() {
		sleep(c.stopping, after)
		ctx, cancel := context.WithTimeout(c.ctx, bound)
		defer cancel()
		invoked := c.report.invoke(history.Record{Call: history.Resign, Key: h.key, Token: h.token})
		err := c.election.Resign(ctx)
		if err == nil && !errors.Is(context.Cause(h.term), holdfast.ErrResigned) {
			err = holdfast.ErrReleased // it came too late: the term had ended otherwise
		}
		invoked.returned(err, h.token, "")
	})
}

// released reports that Run is about to give a key back, and its confirmation.
func (c *candidate) released(h *hold) {
	invoked := c.report.invoke(history.Record{Call: history.Release, Key: h.key, Token: h.token})
	c.tasks.Go(func() {
		<-h.lock.Done() // before, the call would itself give it back
		ctx, cancel := context.WithTimeout(c.ctx, 3*c.config.Login.Lease)
		defer cancel()
		invoked.returned(h.lock.Release(ctx), h.token, "")
	})
}
