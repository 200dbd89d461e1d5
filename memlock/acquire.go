package memlock

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// Acquire implements driver.Driver.
func (e *engine) Acquire(ctx context.Context, req *driver.Request) (driver.Grant, error) {
	for {
		c, err := e.join(req)
		if err == nil {
			err = e.wait(ctx, c)
		}
		switch {
		case err == nil:
			return driver.Grant{Token: c.token, Lease: c.session.lease, Hold: &hold{c}}, nil
		case errors.Is(err, driver.ErrHeld), errors.Is(err, driver.ErrReclaimed), ctx.Err() != nil:
			return driver.Grant{}, err
		}
		if err := req.Retry(ctx, err, e.whenHealed()); err != nil {
			return driver.Grant{}, err
		}
	}
}

// join puts a contender into the queue, unless it would have to wait and does not.
func (e *engine) join(req *driver.Request) (*contender, error) {
	sent := e.host.Now()
	s := e.store
	s.mu.Lock()
	if e.cut {
		s.mu.Unlock()
		return nil, errCut
	}
	if e.session == nil || e.session.over {
		e.session = e.newSession()
	}
	if req.Reclaim {
		e.reclaimLocked(req)
	}
	if !req.Wait && !mayHold(req.Mode, s.queues[req.Key]) {
		info := s.infoLocked(req.Key)
		s.mu.Unlock()
		return nil, driver.Held(info)
	}
	c := &contender{
		key:     req.Key,
		owner:   req.Owner,
		data:    req.Data,
		mode:    req.Mode,
		lose:    req.Lost,
		onAsked: req.Asked,
		news:    make(chan struct{}),
		session: e.session,
	}
	s.joinLocked(c)
	var ahead []*contender
	if queue := s.queues[c.key]; !c.told {
		ahead = slices.Clone(queue[:len(queue)-1])
	}
	s.mu.Unlock()
	c.session.lease.Renew(sent)
	if len(ahead) > 0 {
		e.tellPlace(c, req, ahead)
	}
	return c, nil
}

// tellPlace reports the requests ahead of a contender. The contender leaves the queue if a log handler panics.
func (e *engine) tellPlace(c *contender, req *driver.Request, ahead []*contender) {
	returned := false
	defer func() {
		if !returned {
			e.store.mu.Lock()
			defer e.store.mu.Unlock()
			e.store.removeLocked(c, holdfast.ErrReleased)
		}
	}()
	req.Queued(len(ahead))
	if i := slices.IndexFunc(ahead, func(x *contender) bool { return x.mode.Limit != c.mode.Limit }); i >= 0 {
		req.Behind(ahead[i].mode)
	}
	returned = true
}

// reclaimLocked ends what other clients have under the same owner name.
func (e *engine) reclaimLocked(req *driver.Request) {
	var mine []*contender
	for _, c := range e.store.queues[req.Key] {
		if c.owner == req.Owner && c.session.engine != e {
			mine = append(mine, c)
		}
	}
	// From the back, so that none of them gets the key just before it is removed.
	for i := len(mine) - 1; i >= 0; i-- {
		e.store.evictLocked(mine[i], driver.ErrReclaimed)
	}
}

// wait waits until the contender holds the key.
func (e *engine) wait(ctx context.Context, c *contender) error {
	select {
	case <-c.news:
	case <-ctx.Done():
	}
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	switch {
	case ctx.Err() != nil && e.cut:
		// The store learns that the contender gave up when the client is healed. If
		// that takes longer than the lease, the contender is gone by then.
		e.missed = append(e.missed, func() {
			e.store.mu.Lock()
			defer e.store.mu.Unlock()
			e.store.removeLocked(c, holdfast.ErrReleased)
		})
		return errCut
	case c.gone != nil:
		return c.gone
	case ctx.Err() != nil:
		holder := driver.Info{Key: c.key}
		if c.token == 0 { // else it was granted in the same moment
			holder = e.store.infoLocked(c.key)
		}
		e.store.removeLocked(c, holdfast.ErrReleased)
		return driver.Held(holder)
	}
	c.returned = true
	c.wishLocked()
	return nil
}
