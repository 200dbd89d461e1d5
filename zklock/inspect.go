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
func (b *engine) Inspect(ctx context.Context, key string) (driver.Info, error) {
	return retry(ctx, b.link, func(ctx context.Context) (driver.Info, error) {
		return b.describe(ctx, b.paths.lock(key), key, true)
	})
}

// describe reads the queue of a lock. What vanishes while it is read is left
// out.
func (b *engine) describe(ctx context.Context, parent, key string, queue bool) (driver.Info, error) {
	none := driver.Info{Key: key}
	for {
		names, err := b.link.children(ctx, parent)
		if errors.Is(err, zk.ErrNoNode) {
			return none, nil
		}
		if err != nil {
			return none, stepError("list", parent, err)
		}
		line, err := b.order(ctx, parent, names, "")
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
		nodes, err := b.readAll(ctx, parent, read)
		if err != nil {
			return none, err
		}
		holder, ok := nodes[line[0].name]
		if !ok {
			continue // it is the next one's by now
		}
		info := infoOf(key, line[0].name, holder)
		for _, c := range read[1:] {
			if node, ok := nodes[c.name]; ok {
				owner, data := decodeData(node.data)
				info.Queue = append(info.Queue, driver.Waiter{Owner: owner, Since: time.UnixMilli(node.stat.Ctime), Data: data})
			}
		}
		return info, nil
	}
}

// infoOf describes the holder of a key.
func infoOf(key, name string, node read) driver.Info {
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
func (b *engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Info, error] {
	return func(yield func(driver.Info, error) bool) {
		parent, keyOf := b.paths.search(prefix)
		names, err := retry(ctx, b.link, func(ctx context.Context) ([]string, error) {
			return b.link.children(ctx, parent)
		})
		if err != nil {
			if !errors.Is(err, zk.ErrNoNode) {
				yield(driver.Info{}, stepError("list", parent, err))
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
			info, err := b.Inspect(ctx, key)
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
func (b *engine) Break(ctx context.Context, info driver.Info) error {
	path := b.paths.lock(info.Key) + "/" + info.Grant
	if _, ok := parseContender(info.Grant); !ok || strings.Contains(info.Grant, "/") {
		return driver.Invalid("info", "%q is not the name of a lock's node", info.Grant)
	}
	sent := false
	_, err := retry(ctx, b.link, func(ctx context.Context) (struct{}, error) {
		now, err := b.describe(ctx, b.paths.lock(info.Key), info.Key, false)
		if err != nil {
			return struct{}{}, err
		}
		if now.Grant != info.Grant || now.Token != info.Token {
			if sent {
				return struct{}{}, nil // the request of which no reply came has done it
			}
			return struct{}{}, fmt.Errorf("zookeeper: %s: %w", path, holdfast.ErrChanged)
		}
		again := sent
		sent = true
		_, err = call(ctx, b.link, func() (struct{}, error) { return struct{}{}, b.link.conn.Delete(path, -1) })
		switch {
		case errors.Is(err, zk.ErrNoNode) && again:
			return struct{}{}, nil // the same, and the list was of a server that is behind
		case errors.Is(err, zk.ErrNoNode):
			b.doubts.about(path)
			return struct{}{}, fmt.Errorf("zookeeper: %s: %w", path, holdfast.ErrChanged)
		}
		return struct{}{}, stepError("delete", path, err)
	})
	return err
}
