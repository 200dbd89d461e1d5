package memlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// hold implements driver.Hold.
type hold struct{ *contender }

// Verify implements driver.Hold. An answer is as good as a heartbeat.
func (h *hold) Verify(ctx context.Context) error {
	return h.whileHeld(ctx, func() {})
}

// SetData implements driver.Hold.
func (h *hold) SetData(ctx context.Context, data []byte) error {
	return h.whileHeld(ctx, func() {
		h.data = data
		h.session.engine.store.changedLocked(h.key)
	})
}

// whileHeld runs f in the store if the grant stands.
func (h *hold) whileHeld(ctx context.Context, f func()) error {
	e := h.session.engine
	var sent driver.Instant
	err := e.call(ctx, nil, func() error {
		if h.gone != nil {
			return h.gone
		}
		f()
		sent = e.host.Now()
		h.session.renewLocked()
		return nil
	})
	if err == nil {
		h.session.lease.Renew(sent)
	}
	return err
}

// Release implements driver.Hold. A session that has expired, perhaps while the client was cut off, has given the key back.
func (h *hold) Release(ctx context.Context) error {
	e := h.session.engine
	err := e.call(ctx, h.session.lapsed, func() error {
		if h.gone != nil {
			return fmt.Errorf("%w: %w", driver.ErrLost, h.gone)
		}
		e.store.removeLocked(h.contender, holdfast.ErrReleased)
		return nil
	})
	if errors.Is(err, driver.ErrSessionExpired) {
		return nil
	}
	return err
}
