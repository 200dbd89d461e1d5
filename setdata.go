package holdfast

import (
	"bytes"
	"context"

	"github.com/holdfast-go/holdfast/driver"
)

// SetData replaces the data that [WithData] stored. Others read it by [Client.Inspect], [Client.List] and [Client.Observe]. Data
// has at most [MaxData] bytes, [MaxSharedData] if the hold is shared, and is copied; empty data removes it. The write is
// conditional on this grant and never touches another. Calls on one lock run one after the other; the last one wins.
//
// SetData waits until the engine has confirmed, through outages, until ctx or the lock ends. It returns nil if every later Inspect
// and List shows the new data; the result of Err if the lock ends; an [*InvalidError] if data is too large; and otherwise ctx's
// error with what prevented the confirmation. After an error the new data may still appear, but never after that of a later
// SetData, and never after the grant.
//
// A call costs one write. On ZooKeeper it also wakes the next waiters; DynamoDB charges it, and each later heartbeat, by the size
// of the item.
func (k *Lock) SetData(ctx context.Context, data []byte) error {
	if err := checkData(data, k.mode); err != nil {
		return failed("set data", k.key, err)
	}
	if data = bytes.Clone(data); len(data) == 0 {
		data = nil
	}
	return failed("set data", k.key, k.call(ctx, func(ctx context.Context) error {
		select {
		case k.writing <- struct{}{}:
		case <-ctx.Done():
			return driver.ContextError(ctx)
		}
		defer func() { <-k.writing }()
		if ctx.Err() != nil {
			return driver.ContextError(ctx)
		}
		return k.hold.SetData(ctx, data)
	}))
}

// checkData is the rule for data, of WithData and of SetData.
func checkData(data []byte, mode driver.Mode) error {
	switch n := len(data); {
	case n > MaxData:
		return driver.Invalid("data", "%d bytes, at most %d are allowed", n, MaxData)
	case mode.Shared && n > MaxSharedData:
		return driver.Invalid("data", "%d bytes, at most %d are allowed where others share the key", n, MaxSharedData)
	}
	return nil
}
