package zklock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sequence"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// Inspect implements [driver.Driver]. The server catches up first, so that Inspect shows what was confirmed to other clients.
func (e *engine) Inspect(ctx context.Context, key string) (driver.Info, error) {
	if err := e.bounded(ctx, func(ctx context.Context, _ *zkconn.Session) error { return e.link.Sync(ctx, "/") }); err != nil {
		return driver.Info{Key: key}, err
	}
	return e.inspect(ctx, key)
}

// inspect is Inspect at a server that may lag behind.
func (e *engine) inspect(ctx context.Context, key string) (info driver.Info, err error) {
	err = e.bounded(ctx, func(ctx context.Context, _ *zkconn.Session) (err error) {
		info, err = e.describe(ctx, e.paths.lock(key), key, func(_ *zk.Stat, line []entry) ([]entry, error) { return line, nil })
		return err
	})
	return info, err
}

// bounded is Retry for what takes a moment. A ctx without a deadline bounds it by a session timeout: the client may never reach a
// server that follows its leader.
func (e *engine) bounded(ctx context.Context, f func(ctx context.Context, sess *zkconn.Session) error) error {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if _, ok := ctx.Deadline(); !ok {
		limited, cancel = context.WithTimeout(ctx, e.link.Times().Session)
	}
	defer cancel()
	err := e.link.Retry(limited, nil, func(sess *zkconn.Session) error { return zkconn.AsDisconnected(limited, f(limited, sess)) })
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("zookeeper: %w: no answer for a session timeout", driver.ErrDisconnected)
	}
	return err
}

// A chooser chooses nodes of a line. It gets the Stat of their parent.
type chooser = func(parent *zk.Stat, line []entry) ([]entry, error)

// describe reads the nodes of a queue that choose returns. If choose returns none, the key is described as free. Nodes that vanish
// while they are read are left out.
func (e *engine) describe(ctx context.Context, parent, key string, choose chooser) (driver.Info, error) {
	none := driver.Info{Key: key}
	for {
		listed, err := e.link.List(ctx, parent)
		if errors.Is(err, zk.ErrNoNode) {
			return none, nil
		}
		if err != nil {
			return none, err
		}
		line, err := e.order(ctx, parent, listed.Names, "")
		if err != nil {
			return none, err
		}
		read, err := choose(listed.Stat, line)
		if err != nil || len(read) == 0 {
			return none, err
		}
		nodes, err := e.readAll(ctx, parent, read)
		if err != nil {
			return none, err
		}
		if info, ok := infoOf(key, line, nodes); ok {
			return info, nil
		} // otherwise the holder has changed
	}
}

// infoOf describes a key, as far as the nodes of its queue were read; false if no node of a holder was.
func infoOf(key string, line []entry, nodes map[string]zkconn.Znode) (driver.Info, bool) {
	var all []driver.Holder
	var waiters []driver.Waiter
	unfenced := false
	first, _ := holders(line)
	for i, x := range line {
		node, read := nodes[x.name]
		if !read {
			continue
		}
		owner, data := decodeData(node.Data)
		joined, mode := time.UnixMilli(node.Stat.Ctime), modeOf(x.name)
		if i >= len(first) {
			waiters = append(waiters, driver.Waiter{Owner: owner, Since: joined, Data: data, Shared: mode.Shared, Limit: mode.Limit})
			continue
		}
		all = append(all, driver.Holder{Owner: owner, Token: driver.Token(node.Stat.Czxid), QueuedAt: joined, Data: data, Grant: x.name})
		unfenced = unfenced || sequence.Downgraded(x.name)
	}
	if len(all) == 0 {
		return driver.Info{}, false
	}
	mode := modeOf(line[0].name)
	info := driver.Together(key, mode.Limit, all)
	if !mode.Shared {
		info.Shared, info.Holders = false, nil
	}
	info.Unfenced, info.Queue = unfenced, waiters
	return info, true
}

// List implements [driver.Driver].
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Info, error] {
	return func(yield func(driver.Info, error) bool) {
		parent, keyOf := e.paths.search(prefix)
		var listed zkconn.Listing
		var keys []string
		err := e.bounded(ctx, func(ctx context.Context, _ *zkconn.Session) (err error) {
			if err = e.link.Sync(ctx, parent); err == nil {
				listed, err = e.link.List(ctx, parent)
			}
			return err
		})
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			yield(driver.Info{}, err)
		}
		for _, name := range listed.Names {
			if key, ok := keyOf(name); ok {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			info, err := e.inspect(ctx, key)
			if err == nil && !info.Held {
				continue
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}
