package zklock

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"
)

// reclaim deletes the nodes among those before this one that other sessions have under the
// same owner name. It reports whether any of them is gone.
func (c *contender) reclaim(ctx context.Context, ahead []entry) (removed bool, err error) {
	nodes, err := c.engine.readAll(ctx, c.parent, ahead)
	if err != nil {
		return false, err
	}
	// From the back, or one that is reclaimed would let in the next that is to be.
	for _, x := range slices.Backward(ahead) {
		node, ok := nodes[x.name]
		if !ok {
			removed = true // by itself
			continue
		}
		owner, _ := decodeData(node.Data)
		if (bytes.Equal(node.Data, wish) || bytes.Equal(node.Data, unlock)) && marked(x.name, c.req.Owner) {
			owner = c.req.Owner // it has been overwritten
		}
		if owner != c.req.Owner || node.Stat.EphemeralOwner == c.sess.ID {
			continue
		}
		path := c.parent + "/" + x.name
		switch err := c.evict(ctx, path, node.Data); {
		case err == nil:
			c.engine.host.Logger().Info("lock reclaimed", "key", c.req.Key, "path", path, "owner", owner, "token", uint64(node.Stat.Czxid))
		case !errors.Is(err, zk.ErrNoNode):
			return false, err
		case !c.engine.link.InSession(c.sess): // with which its own node has gone
			return false, errStartOver
		}
		removed = true
	}
	return removed, nil
}

// evict deletes a node in such a way that its client can tell that it was
// reclaimed: it writes to it in the same transaction. See ownNode.whyGone.
//
// It does so only while the contender's own node stands.
func (c *contender) evict(ctx context.Context, path string, data []byte) error {
	const step = "reclaim"
	link := c.engine.link
	own, gone := &zk.CheckVersionRequest{Path: c.path(), Version: -1}, &zk.DeleteRequest{Path: path, Version: -1}
	err := link.Transact(ctx, step, path, own, &zk.SetDataRequest{Path: path, Data: bytes.Clone(data), Version: -1}, gone)
	if errors.Is(err, zk.ErrNoAuth) { // to write; to delete may be allowed
		err = link.Transact(ctx, step, path, own, gone)
	}
	return err
}
