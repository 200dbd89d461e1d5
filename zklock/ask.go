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

// A wish that a holder let go is written into the data of its node, in the form of Curator's Revoker: the word alone where the data
// is empty, as Curator's revocable holders leave it; behind other data it is a suffix, which keeps the owner's name.
var (
	wish     = []byte("__REVOKE__")
	wishText = []byte("\x00__REVOKE__")
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

// change calls f with the node of a grant, which it has read at a server that follows its leader. If there is no such node, change
// returns driver.ErrChanged. f may return zk.ErrBadVersion, to be called again.
func (e *engine) change(
	ctx context.Context, info driver.Info, f func(ctx context.Context, sess *zkconn.Session, path string, node zkconn.Znode) error,
) error {
	path, err := e.grantPath(info)
	if err != nil {
		return err
	}
	return e.bounded(ctx, func(ctx context.Context, sess *zkconn.Session) error {
		if err := e.link.Sync(ctx, path); err != nil {
			return err
		}
		for {
			node, err := e.link.Get(ctx, path)
			switch {
			case err != nil:
			case driver.Token(node.Stat.Czxid) != info.Token:
				err = zk.ErrNoNode
			default:
				if err = f(ctx, sess, path, node); errors.Is(err, zk.ErrNoNode) {
					e.doubts.ask(path) // the server may have diverged
				}
			}
			switch {
			case errors.Is(err, zk.ErrNoNode):
				return fmt.Errorf("zookeeper: %s: %w", path, driver.ErrChanged)
			case !errors.Is(err, zk.ErrBadVersion):
				return err
			}
		}
	})
}

// Ask implements [driver.Driver]. The name of a node is that of one grant, so no copy of the write reaches another grant. The version
// of the node keeps the write from undoing what the holder, or another client that asks, writes meanwhile.
func (e *engine) Ask(ctx context.Context, info driver.Info) error {
	return e.change(ctx, info, func(ctx context.Context, _ *zkconn.Session, path string, node zkconn.Znode) error {
		if isWish(node.Data) {
			return nil
		}
		_, err := e.link.Set(ctx, path, withWish(node.Data), node.Stat.Version)
		return err
	})
}

// Break implements [driver.Driver].
func (e *engine) Break(ctx context.Context, info driver.Info) error {
	sent := false
	err := e.change(ctx, info, func(ctx context.Context, sess *zkconn.Session, path string, _ zkconn.Znode) error {
		err := e.link.Delete(ctx, sess, path)
		sent = sent || zkconn.UnknownOutcome(err)
		return err
	})
	if sent && errors.Is(err, driver.ErrChanged) {
		return nil // the request that had no reply has deleted it
	}
	return err
}
