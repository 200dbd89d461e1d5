package memlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// Acquire implements driver.Driver.
func (e *engine) Acquire(ctx context.Context, req *driver.Request) (driver.Grant, error) {
	for {
		sent := e.host.Now()
		c, healed, err := e.join(req)
		if err == nil {
			c.session.lease.Renew(sent)
			err = e.wait(ctx, c)
		}
		switch {
		case err == nil:
			return driver.Grant{Token: c.token, Lease: c.session.lease, Hold: &hold{c}}, nil
		case errors.Is(err, driver.ErrHeld), errors.Is(err, driver.ErrReclaimed), ctx.Err() != nil:
			return driver.Grant{}, err
		}
		if err := req.Retry(ctx, err, healed); err != nil {
			return driver.Grant{}, err
		}
	}
}

// join puts a contender into the queue, unless it would have to wait and does not. healed closes when a client that is cut off is healed.
func (e *engine) join(req *driver.Request) (c *contender, healed <-chan struct{}, err error) {
	s := e.store
	s.mu.Lock()
	if e.cut {
		defer s.mu.Unlock()
		return nil, e.healed, errCut
	}
	if e.session == nil || e.session.over {
		e.session = e.newSession()
	}
	if req.Reclaim {
		e.reclaimLocked(req)
	}
	ahead := s.queues[req.Key]
	granted := mayHold(req.Mode, ahead)
	if !req.Wait && !granted {
		defer s.mu.Unlock()
		return nil, nil, driver.Held(s.infoLocked(req.Key))
	}
	c = &contender{
		key: req.Key, owner: req.Owner, data: req.Data, mode: req.Mode, lose: req.Lost, onAsked: req.Asked,
		news: make(chan struct{}), session: e.session, queued: time.Now(),
	}
	i := slices.IndexFunc(ahead, func(x *contender) bool { return x.mode.Limit != c.mode.Limit })
	var behind driver.Mode
	if i >= 0 {
		behind = ahead[i].mode
	}
	s.queues[c.key] = append(ahead, c)
	c.session.addLocked(c)
	if granted {
		s.grantLocked(c)
		c.told = true // by the answer itself
		close(c.news)
	}
	s.mu.Unlock()
	if !granted {
		req.Queued(len(ahead))
		if i >= 0 {
			req.Behind(behind)
		}
	}
	return c, nil, nil
}

// reclaimLocked ends the requests and grants of other clients under the same owner name.
func (e *engine) reclaimLocked(req *driver.Request) {
	for _, c := range slices.Backward(slices.Clone(e.store.queues[req.Key])) { // else one could get the key before it is removed
		if c.owner == req.Owner && c.session.engine != e {
			e.store.evictLocked(c, driver.ErrReclaimed)
		}
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
		// The store learns that the contender gave up when the client is healed, unless the session has expired by then.
		e.pushLocked(func() {
			e.store.mu.Lock()
			defer e.store.mu.Unlock()
			e.store.removeLocked(c, holdfast.ErrReleased)
		})
		return errCut
	case c.gone != nil:
		return c.gone
	case ctx.Err() != nil:
		e.store.removeLocked(c, holdfast.ErrReleased)
		return driver.Held(e.store.infoLocked(c.key))
	}
	c.returned = true
	c.tellAskedLocked()
	return nil
}
