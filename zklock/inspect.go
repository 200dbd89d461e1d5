package zklock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// Inspect implements [driver.Driver].
func (e *engine) Inspect(ctx context.Context, key string) (driver.Info, error) {
	var info driver.Info
	err := e.link.retry(ctx, nil, func(*session) (err error) {
		info, err = e.describe(ctx, e.paths.lock(key), key, true)
		return err
	})
	return info, err
}

// describe reads the queue of a lock. What vanishes while it is read is left
// out.
func (e *engine) describe(ctx context.Context, parent, key string, queue bool) (driver.Info, error) {
	none := driver.Info{Key: key}
	for {
		names, err := e.link.children(ctx, parent)
		if errors.Is(err, zk.ErrNoNode) {
			return none, nil
		}
		if err != nil {
			return none, err
		}
		line, err := e.order(ctx, parent, names, "")
		if err != nil {
			return none, err
		}
		if len(line) == 0 {
			return none, nil
		}
		read := line
		if !queue {
			read = line[:1]
		}
		nodes, err := e.readAll(ctx, parent, read)
		if err != nil {
			return none, err
		}
		holder, ok := nodes[line[0].name]
		if !ok {
			continue // it is the next one's by now
		}
		info := infoOf(key, line[0].name, holder)
		for _, x := range read[1:] {
			if node, ok := nodes[x.name]; ok {
				owner, data := decodeData(node.data)
				info.Queue = append(info.Queue, driver.Waiter{Owner: owner, Since: time.UnixMilli(node.stat.Ctime), Data: data})
			}
		}
		return info, nil
	}
}

// infoOf describes the holder of a key.
func infoOf(key, name string, node znode) driver.Info {
	owner, data := decodeData(node.data)
	return driver.Info{
		Key:   key,
		Held:  true,
		Owner: owner,
		Token: uint64(node.stat.Czxid),
		// Nothing is written at a grant, so when that was nobody knows.
		QueuedAt: time.UnixMilli(node.stat.Ctime),
		Data:     data,
		Grant:    name,
	}
}

// List implements [driver.Driver].
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Info, error] {
	return func(yield func(driver.Info, error) bool) {
		parent, keyOf := e.paths.search(prefix)
		var names []string
		err := e.link.retry(ctx, nil, func(*session) (err error) {
			names, err = e.link.children(ctx, parent)
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
			info, err := e.Inspect(ctx, key)
			if err == nil && !info.Held {
				continue
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// Break implements [driver.Driver]. A node's name has a guid, so it is never
// that of another grant; its czxid is compared all the same, for foreign names.
func (e *engine) Break(ctx context.Context, info driver.Info) error {
	path := e.paths.lock(info.Key) + "/" + info.Grant
	if _, ok := parseEntry(info.Grant); !ok || strings.Contains(info.Grant, "/") {
		return driver.Invalid("info", "%q is not the name of a lock's node", info.Grant)
	}
	sent := false
	return e.link.retry(ctx, nil, func(*session) error {
		now, err := e.describe(ctx, e.paths.lock(info.Key), info.Key, false)
		if err != nil {
			return err
		}
		if now.Grant != info.Grant || now.Token != info.Token {
			if sent {
				return nil // the request of which no reply came has done it
			}
			return fmt.Errorf("zookeeper: %s: %w", path, holdfast.ErrChanged)
		}
		again := sent
		sent = true
		err = e.link.delete(ctx, path)
		switch {
		case errors.Is(err, zk.ErrNoNode) && again:
			return nil // the same, and the list was of a server that is behind
		case errors.Is(err, zk.ErrNoNode):
			e.stale.ask(path)
			return fmt.Errorf("zookeeper: %s: %w", path, holdfast.ErrChanged)
		}
		return err
	})
}
