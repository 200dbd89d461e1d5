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
	if err := e.catchUp(ctx); err != nil {
		return driver.Info{Key: key}, err
	}
	return e.inspect(ctx, key)
}

// inspect is Inspect at a server that may lag behind.
func (e *engine) inspect(ctx context.Context, key string) (info driver.Info, err error) {
	err = e.bounded(ctx, func(ctx context.Context, _ *zkconn.Session) (err error) {
		info, err = e.describe(ctx, e.paths.lock(key), key, everybody)
		return err
	})
	return info, err
}

// catchUp makes the server catch up with the leader. What the client reads after that, on other connections too, is not older.
func (e *engine) catchUp(ctx context.Context) error {
	return e.bounded(ctx, func(ctx context.Context, _ *zkconn.Session) error { return e.link.Sync(ctx, "/") })
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

func everybody(line []entry) ([]entry, error) { return line, nil }

// describe reads the nodes of a queue that choose returns. If choose returns none, the key is described as free. Nodes that vanish
// while they are read are left out.
func (e *engine) describe(
	ctx context.Context, parent, key string, choose func(line []entry) ([]entry, error),
) (driver.Info, error) {
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
		read, err := choose(line)
		if err != nil || len(read) == 0 {
			return none, err
		}
		nodes, err := e.readAll(ctx, parent, read)
		if err != nil {
			return none, err
		}
		first, queue := holders(line)
		info, ok := infoOfAll(key, first, nodes)
		if !ok {
			continue // it is the next one's by now
		}
		info.Queue = waitersOf(queue, nodes)
		return info, nil
	}
}

// waitersOf describes the waiters in a queue, as far as their nodes were read.
func waitersOf(queue []entry, nodes map[string]zkconn.Znode) (all []driver.Waiter) {
	for _, x := range queue {
		if node, ok := nodes[x.name]; ok {
			owner, data := decodeData(node.Data)
			mode := modeOf(x.name)
			all = append(all, driver.Waiter{
				Owner: owner, Since: time.UnixMilli(node.Stat.Ctime), Data: data, Shared: mode.Shared, Limit: mode.Limit,
			})
		}
	}
	return all
}

// infoOfAll describes the holders of a key, as far as their nodes were read; false if no node was.
func infoOfAll(key string, line []entry, nodes map[string]zkconn.Znode) (driver.Info, bool) {
	var all []driver.Holder
	unfenced := false
	for _, x := range line {
		if node, ok := nodes[x.name]; ok {
			all = append(all, holderOf(x.name, node))
			unfenced = unfenced || sequence.Downgraded(x.name)
		}
	}
	if len(all) == 0 {
		return driver.Info{}, false
	}
	mode := modeOf(line[0].name)
	info := driver.Together(key, mode.Limit, all)
	if !mode.Shared {
		info.Shared, info.Holders = false, nil
	}
	info.Unfenced = unfenced
	return info, true
}

// infoOf describes a key that has one holder.
func infoOf(key, name string, node zkconn.Znode) driver.Info {
	info, _ := infoOfAll(key, []entry{{name: name}}, map[string]zkconn.Znode{name: node})
	return info
}

// holderOf describes a holder. ZooKeeper does not know the time of a grant.
func holderOf(name string, node zkconn.Znode) driver.Holder {
	owner, data := decodeData(node.Data)
	return driver.Holder{
		Owner: owner, Token: driver.Token(node.Stat.Czxid), QueuedAt: time.UnixMilli(node.Stat.Ctime), Data: data, Grant: name,
	}
}

// List implements [driver.Driver].
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Info, error] {
	return func(yield func(driver.Info, error) bool) {
		parent, keyOf := e.paths.search(prefix)
		var names []string
		err := e.bounded(ctx, func(ctx context.Context, _ *zkconn.Session) (err error) {
			if err = e.link.Sync(ctx, parent); err == nil {
				names, err = e.link.Children(ctx, parent)
			}
			return err
		})
		if err != nil {
			if !errors.Is(err, zk.ErrNoNode) {
				yield(driver.Info{}, err)
			}
			return
		}
		var keys []string
		for _, name := range names {
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
