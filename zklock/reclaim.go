package zklock

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"
)

// reclaim deletes, of the nodes before this contender's, those that other sessions have under the same owner name. It returns
// errStartOver if one of the nodes is gone.
func (c *contender) reclaim(ctx context.Context, ahead []entry) error {
	nodes, err := c.engine.readAll(ctx, c.parent, ahead)
	if err != nil {
		return err
	}
	removed := len(nodes) < len(ahead)
	for _, x := range slices.Backward(ahead) { // forward, each deletion could grant the lock to the next node that is to be deleted
		node, ok := nodes[x.name]
		owner, _ := decodeData(node.Data)
		if !ok || owner != c.req.Owner || node.Stat.EphemeralOwner == c.sess.ID {
			continue
		}
		path := c.parent + "/" + x.name
		switch err := c.evict(ctx, path, node.Data); {
		case err == nil:
			c.engine.host.Logger().Info("lock reclaimed", "key", c.req.Key, "path", path, "owner", c.req.Owner,
				"token", uint64(node.Stat.Czxid))
		case !errors.Is(err, zk.ErrNoNode):
			return err
		case !c.engine.link.InSession(c.sess): // the contender's own node is gone with its session
			return errStartOver
		}
		removed = true
	}
	c.reclaimed = true
	if removed {
		return errStartOver
	}
	return nil
}

// evict deletes a node while the contender's own node exists. It writes to the node in the same transaction, which tells the client
// of the node that the cause is a reclaim: see ownNode.whyMissing.
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
