package zklock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// A wish that a holder let go is written into the data of its node, in the form of Curator's
// Revoker: its word alone, where the data is empty, as that of a revocable holder of Curator's
// is. Other data stays and is followed by a suffix, so that it is still known whose node it
// is. (The Revoker overwrites it.) ZooKeeper's documentation has another word for the same.
var (
	wish     = []byte("__REVOKE__")
	wishText = []byte("\x00__REVOKE__")
	unlock   = []byte("unlock")
)

// isWish reports whether the data of any node contains a wish.
func isWish(data []byte) bool { return bytes.Equal(data, wish) || bytes.HasSuffix(data, wishText) }

// withWish adds a wish to the data of a node.
func withWish(data []byte) []byte {
	if len(data) == 0 {
		return wish
	}
	return append(bytes.Clone(data), wishText...)
}

// withoutWish removes a wish from the data of a node.
func withoutWish(data []byte) []byte {
	if bytes.Equal(data, wish) {
		return nil
	}
	return bytes.TrimSuffix(data, wishText)
}

// wished reports whether somebody has written a wish to a node that its own client writes
// under an owner name.
func wished(data []byte, owner string) bool {
	return isWish(data) || bytes.Equal(data, unlock) && owner != string(unlock)
}

// checkData refuses data in which a wish would be read.
func checkData(data []byte) error {
	if isWish(data) {
		return driver.Invalid("data", "on ZooKeeper, neither it nor the owner name is %q, and it does not end with a NUL and that", wish)
	}
	return nil
}

// grantPath returns the path of the node of a grant.
func (e *engine) grantPath(info driver.Info) (string, error) {
	impossible := func(r rune) bool { return r == '/' || !allowed(r) }
	if _, ok := parseEntry(info.Grant); !ok || strings.ContainsFunc(info.Grant, impossible) {
		return "", driver.Invalid("info", "%q is not the name of a lock's node", info.Grant)
	}
	return e.paths.lock(info.Key) + "/" + info.Grant, nil
}

// Ask implements [driver.Driver]. The name of a node is that of one grant, so no copy of the
// write reaches another, and its version keeps it from undoing what the holder, or another
// that asks, writes meanwhile.
func (e *engine) Ask(ctx context.Context, info driver.Info) error {
	path, err := e.grantPath(info)
	if err != nil {
		return err
	}
	changed := fmt.Errorf("zookeeper: %s: %w", path, driver.ErrChanged)
	return e.bounded(ctx, func(ctx context.Context, _ *zkconn.Session) error {
		for {
			var node zkconn.Znode
			err := e.ifCurrent(ctx, func() (err error) {
				node, err = e.link.Get(ctx, path)
				if errors.Is(err, zk.ErrNoNode) || err == nil && driver.Token(node.Stat.Czxid) != info.Token {
					err = changed
				}
				return err
			})
			if err != nil || isWish(node.Data) {
				return err
			}
			_, err = e.link.Set(ctx, path, withWish(node.Data), node.Stat.Version)
			switch {
			case errors.Is(err, zk.ErrBadVersion):
				continue
			case errors.Is(err, zk.ErrNoNode):
				e.doubts.ask(path)
				return changed
			}
			return err
		}
	})
}
