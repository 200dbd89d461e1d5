package memlock

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast"
)

// network is what lies between a client and the store, and can be cut. The store's
// mu guards it.
type network struct {
	cut    bool
	healed chan struct{} // closed when cut ends; nil while it is not
	held   []func()      // what the client is to be told when it is healed
}

var (
	errCut    = fmt.Errorf("%w: the client is cut off from its store", holdfast.ErrDisconnected)
	errLapsed = fmt.Errorf("%w while the client was cut off", holdfast.ErrSessionExpired)
)

// Cut cuts a client off: none of its requests arrives, and it hears nothing,
// until [Store.Heal]. When its lease has passed, the store gives its locks and
// places to others; the client's own locks have ended by then. Calls wait
// as long as their ctx allows. It returns at once. A client that is
// cut off already, or of another store, is left alone.
func (s *Store) Cut(c *Client) { s.setCut(c, true) }

// Heal undoes [Store.Cut]: calls that wait go on, and the client learns what
// it has missed. It returns at once.
func (s *Store) Heal(c *Client) { s.setCut(c, false) }

// Expire ends the client's session now, as if its lease had passed: its locks
// and places go to others at once. The client learns of it in the same moment,
// or when it is healed, or when its own lease is over, whichever is first. It
// returns at once. A client of another store is left alone.
func (s *Store) Expire(c *Client) {
	if c.engine.store != s {
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
	if e.store != s {
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
		missed := e.held
		e.healed, e.held = nil, nil
		e.host.AfterFunc(0, func() {
			for _, f := range missed {
				f()
			}
		})
	}
	e.host.SetConnected(!cut) // with mu, so that reports keep their order
}

// pushLocked tells the client something: soon, on a goroutine of its own and
// on the client's clock, or once it is healed.
func (e *engine) pushLocked(f func()) {
	if e.cut {
		e.held = append(e.held, f)
		return
	}
	e.host.AfterFunc(0, f)
}

// call runs f in the store, as one request. While the client is cut off it
// waits until it is healed, stop closes (nil never does), or ctx ends.
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

// whenHealed returns a channel that closes when the client is healed, or nil
// if it is not cut off.
func (e *engine) whenHealed() <-chan struct{} {
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	return e.healed
}
