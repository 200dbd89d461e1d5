package memlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// hold implements driver.Hold.
type hold struct{ place *place }

// Verify implements driver.Hold. An answer is as good as a heartbeat.
func (h *hold) Verify(ctx context.Context) error {
	n := h.place.session
	var sent driver.Instant
	err := n.engine.call(ctx, nil, func() error {
		if h.place.gone != nil {
			return h.place.gone
		}
		sent = n.engine.host.Now()
		n.renewLocked()
		return nil
	})
	if err == nil {
		n.lease.Renew(sent)
	}
	return err
}

// Release implements driver.Hold. Once the lease has passed while the client
// was cut off, there is nothing left to give back.
func (h *hold) Release(ctx context.Context) error {
	n := h.place.session
	s := n.engine.store
	s.mu.Lock()
	began := s.removed
	s.mu.Unlock()
	err := n.engine.call(ctx, n.lapsed, func() error {
		if h.place.gone != nil && h.place.goneSeq <= began {
			return fmt.Errorf("%w: %w", holdfast.ErrLost, h.place.gone)
		}
		s.removeLocked(h.place, holdfast.ErrReleased)
		return nil
	})
	if errors.Is(err, errLapsed) {
		return nil
	}
	return err
}
