package memlock

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
)

// network simulates the network between a client and the store. The store's mu guards it.
type network struct {
	cut     bool
	healed  chan struct{} // closed when cut ends; nil while it is not
	pushed  []func()      // to be called one after the other, once the client is healed
	pushing bool          // deliver calls them
}

var (
	errCut    = fmt.Errorf("%w: the client is cut off from its store", driver.ErrDisconnected)
	errLapsed = fmt.Errorf("%w while the client was cut off", driver.ErrSessionExpired)
)

// Cut cuts a client off: none of its requests arrives, and it hears nothing, until [Store.Heal]. When its lease has passed, the store
// gives its locks to others and removes it from all queues; the client's own locks have ended by then. The client's calls wait as
// long as their ctx allows. Cut returns at once. It does nothing if the client is cut off already, or belongs to another store.
func (s *Store) Cut(c *Client) { s.setCut(c, true) }

// Heal undoes [Store.Cut]: waiting calls go on, and the client learns what it has missed. Heal returns at once.
func (s *Store) Heal(c *Client) { s.setCut(c, false) }

// Expire ends the client's session now, as if its lease had passed: its locks go to others at once, and it leaves all queues. The
// client learns of it at the same moment, or when it is healed, or when its own lease is over, whichever is first. Expire returns at
// once. It does nothing if the client belongs to another store.
func (s *Store) Expire(c *Client) {
	if c.engine == nil || c.engine.store != s {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if session := c.engine.session; session != nil && !session.over {
		session.expireLocked()
	}
}

func (s *Store) setCut(c *Client, cut bool) {
	e := c.engine
	if e == nil || e.store != s {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.cut == cut {
		return
	}
	e.cut = cut
	if cut {
		e.healed = make(chan struct{})
	} else {
		close(e.healed)
		e.healed = nil
		e.pushLocked(func() {}) // delivers what was pushed before, too
		for key := range s.news {
			s.changedLocked(key) // or is stale no longer
		}
	}
	e.host.SetConnected(!cut) // with mu, so that reports keep their order
}

// pushLocked has the client call f after what was pushed before: on another goroutine, timed by the client's clock, or once the
// client is healed.
func (e *engine) pushLocked(f func()) {
	e.pushed = append(e.pushed, f)
	if !e.cut && !e.pushing {
		e.pushing = true
		e.host.AfterFunc(0, e.deliver)
	}
}

func (e *engine) deliver() {
	for {
		e.store.mu.Lock()
		if e.cut || len(e.pushed) == 0 {
			e.pushing = false
			e.store.mu.Unlock()
			return
		}
		f := e.pushed[0]
		e.pushed = e.pushed[1:]
		e.store.mu.Unlock()
		f()
	}
}

// call runs f in the store, as one request. While the client is cut off it waits until it is healed, stop closes (nil never does), or
// ctx ends.
func (e *engine) call(ctx context.Context, stop <-chan struct{}, f func() error) error {
	for {
		e.store.mu.Lock()
		if !e.cut {
			err := f()
			e.store.mu.Unlock()
			return err
		}
		healed := e.healed
		e.store.mu.Unlock()
		select {
		case <-healed:
		case <-stop:
			return errLapsed
		case <-ctx.Done():
			return errCut
		}
	}
}
