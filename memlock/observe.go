package memlock

import (
	"context"

	"github.com/holdfast-go/holdfast/driver"
)

// Observe implements driver.Driver.
func (e *engine) Observe(ctx context.Context, key string, tell func(driver.Info)) error {
	news := make(chan struct{}, 1)
	s := e.store
	s.mu.Lock()
	if s.news[key] == nil {
		s.news[key] = make(map[chan struct{}]struct{})
	}
	s.news[key][news] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if delete(s.news[key], news); len(s.news[key]) == 0 {
			delete(s.news, key)
		}
	}()
	for {
		err := e.call(ctx, nil, func() error {
			tell(s.holderLocked(key))
			return nil
		})
		if err != nil {
			return err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return driver.ContextError(ctx)
		}
	}
}
