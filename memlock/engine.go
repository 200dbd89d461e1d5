package memlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// engine implements driver.Driver for one client.
type engine struct {
	store *Store
	host  driver.Host
	lease time.Duration

	// Guarded by store.mu.
	network
	session *session // nil before the first request; replaced when it is over
	closed  bool
}

// CheckKey implements driver.Driver: the portable rules are enough.
func (e *engine) CheckKey(string, driver.Mode) error { return nil }

// Close implements driver.Driver. The session still has contenders if the client is cut off.
func (e *engine) Close(ctx context.Context) error {
	e.store.mu.Lock()
	e.closed = true
	s := e.session
	idle := s == nil || s.over || len(s.contenders) == 0
	e.store.mu.Unlock()
	if idle {
		return nil
	}
	err := e.call(ctx, s.lapsed, func() error {
		for c := range s.contenders {
			e.store.removeLocked(c, holdfast.ErrReleased)
		}
		return nil
	})
	if err != nil && !errors.Is(err, driver.ErrSessionExpired) {
		return fmt.Errorf("unconfirmed requests will expire with the lease, in at most %v: %w", e.lease, err)
	}
	return nil
}
