package memlock

import (
	"context"

	"github.com/holdfast-go/holdfast/driver"
)

// Observe implements driver.Driver.
func (e *engine) Observe(ctx context.Context, key string, tell func(driver.Info)) error {
	news := make(chan struct{}, 1)
	e.store.observe(key, news)
	defer e.store.unobserve(key, news)
	for {
		err := e.call(ctx, nil, func() error {
			tell(e.store.holderLocked(key))
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

// observe has news of a key sent to a channel, until unobserve.
func (s *Store) observe(key string, news chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.news[key] == nil {
		s.news[key] = make(map[chan struct{}]struct{})
	}
	s.news[key][news] = struct{}{}
}

func (s *Store) unobserve(key string, news chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.news[key], news)
	if len(s.news[key]) == 0 {
		delete(s.news, key)
	}
}
