package holdfast

import (
	"bytes"
	"cmp"
	"context"

	"github.com/holdfast-go/holdfast/driver"
)

// SetData replaces what [WithData] stored with the hold. Others read it by
// [Client.Inspect] and [Client.List], and [Client.Observe] tells of each change: the
// address that a leader has moved to, the progress of a long job. Data has at most
// [MaxData] bytes, [MaxSharedData] if the hold is shared, and is copied; nil and empty data remove what is there. Owner, token and
// the grant stay as they are, and the lock lives on, whatever comes of the call.
//
// It waits until the engine has confirmed the write, through outages too, until ctx ends
// or the lock does. The write is conditional on this very grant: it never touches that of
// another holder, however late it arrives. Calls on one lock are carried out one after the
// other, and the last one called wins.
//
// It returns nil once every Inspect and List that begins later, by any client, shows the new data or newer; an observer may be
// told of it later. It returns what Err returns if the lock has ended, or ends meanwhile; an [*InvalidError] if data is too large, which sends nothing;
// and otherwise ctx's error and what kept the engine from confirming. Then, and when the
// lock ended meanwhile, others may see the old data or the new, and the new may still
// appear a while later; but never after that of a later SetData, and never beyond the end
// of the grant.
//
// It is meant for facts about the holder that change now and then. What it costs depends
// on the engine: one write, which on ZooKeeper also wakes the clients that are next in
// line, and on DynamoDB is charged by the size of the whole item, as is each heartbeat
// after it.
func (k *Lock) SetData(ctx context.Context, data []byte) error {
	if err := k.setData(ctx, data); err != nil {
		return failed("set data", k.key, err)
	}
	return nil
}

func (k *Lock) setData(ctx context.Context, data []byte) error {
	if err := checkData(data, k.mode); err != nil {
		return err
	}
	if err := k.Err(); err != nil {
		return err
	}
	entered, done, err := k.client.enter(ctx)
	if err != nil {
		return cmp.Or(k.Err(), ofAnother(ctx, err))
	}
	defer done()
	bound, cancel := k.Context(entered)
	defer cancel()
	if len(data) == 0 {
		data = nil
	}
	return k.heed(bound, k.writeData(bound, bytes.Clone(data)))
}

// writeData has the engine write, after the calls before it.
func (k *Lock) writeData(ctx context.Context, data []byte) error {
	k.mu.Lock()
	if k.writing == nil {
		k.writing = make(chan struct{}, 1)
	}
	writing := k.writing
	k.mu.Unlock()
	select {
	case writing <- struct{}{}:
	case <-ctx.Done():
		return driver.ContextError(ctx)
	}
	defer func() { <-writing }()
	if ctx.Err() != nil {
		return driver.ContextError(ctx)
	}
	return k.hold.SetData(ctx, data)
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
