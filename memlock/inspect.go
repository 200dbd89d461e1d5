package memlock

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// Inspect implements driver.Driver.
func (e *engine) Inspect(ctx context.Context, key string) (info driver.Info, err error) {
	err = e.call(ctx, nil, func() error {
		info = e.store.infoLocked(key)
		return nil
	})
	return info, err
}

// List implements driver.Driver. It yields the keys in order.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Info, error] {
	return func(yield func(driver.Info, error) bool) {
		var infos []driver.Info
		err := e.call(ctx, nil, func() error {
			if e.closed {
				return driver.ErrClosed
			}
			for key := range e.store.queues {
				if strings.HasPrefix(key, prefix) {
					infos = append(infos, e.store.infoLocked(key))
				}
			}
			return nil
		})
		if err != nil {
			yield(driver.Info{}, err)
			return
		}
		slices.SortFunc(infos, func(a, b driver.Info) int { return strings.Compare(a.Key, b.Key) })
		for _, info := range infos {
			if !yield(info, nil) {
				return
			}
		}
	}
}

// Ask implements driver.Driver.
func (e *engine) Ask(ctx context.Context, info driver.Info) error {
	return e.call(ctx, nil, func() error {
		c := e.store.granteeLocked(info)
		if c == nil {
			return driver.ErrChanged
		}
		if !c.asked {
			c.asked = true
			c.tellAskedLocked()
		}
		return nil
	})
}

// Break implements driver.Driver.
func (e *engine) Break(ctx context.Context, info driver.Info) error {
	return e.call(ctx, nil, func() error {
		c := e.store.granteeLocked(info)
		if c == nil {
			return driver.ErrChanged
		}
		e.store.evictLocked(c, driver.ErrBroken)
		return nil
	})
}
