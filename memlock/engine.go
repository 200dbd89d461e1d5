package memlock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// beatsPerLease is how often the lease is renewed within its own length.
const beatsPerLease = 6

// engine implements driver.Driver for one client.
type engine struct {
	store *Store
	host  driver.Host
	lease time.Duration

	// Guarded by store.mu.
	link
	session *session // nil before the first request; replaced when it is over
	beating bool     // a heartbeat is scheduled
	closed  bool
}

func newEngine(store *Store, host driver.Host, lease time.Duration) *engine {
	return &engine{store: store, host: host, lease: lease}
}

// CheckKey implements driver.Driver: the portable rules are enough.
func (e *engine) CheckKey(string) error { return nil }

// Acquire implements driver.Driver.
func (e *engine) Acquire(ctx context.Context, req *driver.Request) (driver.Grant, error) {
	for {
		p, err := e.stand(req)
		if err == nil {
			err = e.await(ctx, p)
		}
		switch {
		case err == nil:
			return driver.Grant{Token: p.token, Lease: p.session.lease, Hold: &hold{p}}, nil
		case errors.Is(err, holdfast.ErrHeld), errors.Is(err, holdfast.ErrReclaimed):
			return driver.Grant{}, err
		case ctx.Err() != nil:
			return driver.Grant{}, err
		}
		if err := req.Retry(ctx, err, e.whenHealed()); err != nil {
			return driver.Grant{}, err
		}
	}
}

// stand takes a place in the queue, unless the request is not to wait and the
// key is held.
func (e *engine) stand(req *driver.Request) (*place, error) {
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
	if !req.Wait && len(s.queues[req.Key]) > 0 {
		info := s.infoLocked(req.Key)
		s.mu.Unlock()
		return nil, &driver.HeldError{Holder: info}
	}
	p := &place{
		key:     req.Key,
		owner:   req.Owner,
		data:    req.Data,
		lose:    req.Lost,
		news:    make(chan struct{}),
		session: e.session,
	}
	s.enterLocked(p)
	ahead := len(s.queues[p.key]) - 1
	s.mu.Unlock()
	p.session.lease.Renew(sent)
	if ahead > 0 {
		req.Queued(ahead)
	}
	return p, nil
}

// reclaimLocked ends what other clients have under the same owner name.
func (e *engine) reclaimLocked(req *driver.Request) {
	var mine []*place
	for _, p := range e.store.queues[req.Key] {
		if p.owner == req.Owner && p.session.engine != e {
			mine = append(mine, p)
		}
	}
	// From the back: a place that is about to go is not given the key first.
	for i := len(mine) - 1; i >= 0; i-- {
		e.store.evictLocked(mine[i], holdfast.ErrReclaimed)
	}
}

// await waits until the place holds the key.
func (e *engine) await(ctx context.Context, p *place) error {
	select {
	case <-p.news:
	case <-ctx.Done():
	}
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	switch {
	case ctx.Err() != nil && e.cut:
		// The store cannot be told that the place is given up until the link
		// is healed; if that takes longer than the lease, it need not be.
		e.held = append(e.held, func() {
			e.store.mu.Lock()
			defer e.store.mu.Unlock()
			e.store.removeLocked(p, holdfast.ErrReleased)
		})
		return errCut
	case p.gone != nil:
		return p.gone
	case ctx.Err() != nil:
		holder := driver.Info{Key: p.key}
		if p.token == 0 { // else it was granted in the same moment
			holder = e.store.infoLocked(p.key)
		}
		e.store.removeLocked(p, holdfast.ErrReleased)
		return &driver.HeldError{Holder: holder}
	}
	p.taken = true
	return nil
}

// whenHealed returns a channel that closes when the link is healed, or nil if
// it is not cut.
func (e *engine) whenHealed() <-chan struct{} {
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	return e.healed
}

// beatLocked sees to it that the next heartbeat is scheduled.
func (e *engine) beatLocked() {
	if e.beating {
		return
	}
	e.beating = true
	e.host.AfterFunc(e.lease/beatsPerLease, e.beat)
}

// beat renews the session, as long as it has places.
func (e *engine) beat() {
	sent := e.host.Now()
	e.store.mu.Lock()
	e.beating = false
	n := e.session
	if e.closed || n.over || len(n.places) == 0 {
		e.store.mu.Unlock()
		return
	}
	arrived := !e.cut
	if arrived {
		n.renewLocked()
	}
	e.beatLocked()
	e.store.mu.Unlock()
	if arrived {
		n.lease.Renew(sent)
	}
}

// Inspect implements driver.Driver.
func (e *engine) Inspect(ctx context.Context, key string) (info driver.Info, err error) {
	err = e.call(ctx, nil, func() error {
		info = e.store.infoLocked(key)
		return nil
	})
	return info, err
}

// List implements driver.Driver.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Info, error] {
	return func(yield func(driver.Info, error) bool) {
		var infos []driver.Info
		err := e.call(ctx, nil, func() error {
			if e.closed {
				return holdfast.ErrClosed
			}
			infos = e.store.listLocked(prefix)
			return nil
		})
		if err != nil {
			yield(driver.Info{}, err)
			return
		}
		for _, info := range infos {
			if !yield(info, nil) {
				return
			}
		}
	}
}

// Break implements driver.Driver.
func (e *engine) Break(ctx context.Context, info driver.Info) error {
	return e.call(ctx, nil, func() error {
		queue := e.store.queues[info.Key]
		if len(queue) == 0 || queue[0].grant() != info.Grant {
			return holdfast.ErrChanged
		}
		e.store.evictLocked(queue[0], holdfast.ErrBroken)
		return nil
	})
}

// Close implements driver.Driver. What the session still has could not be
// given up before, for want of a link.
func (e *engine) Close(ctx context.Context) error {
	e.store.mu.Lock()
	e.closed = true
	n := e.session
	idle := n == nil || n.over || len(n.places) == 0
	e.store.mu.Unlock()
	if idle {
		return nil
	}
	err := e.call(ctx, n.lapsed, func() error {
		for p := range n.places {
			e.store.removeLocked(p, holdfast.ErrReleased)
		}
		return nil
	})
	switch {
	case errors.Is(err, holdfast.ErrSessionExpired):
		return nil
	case err != nil:
		return fmt.Errorf("what is left goes with the lease, in at most %v: %w", e.lease, err)
	}
	return nil
}
