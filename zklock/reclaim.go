package zklock

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"
)

// reclaim deletes, of the nodes before this contender's, those that other sessions have under the same owner name, while the contender's
// node exists. It returns errStartOver if one of the nodes is gone.
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
		switch err := c.engine.link.Transact(
			ctx, "reclaim", path,
			&zk.CheckVersionRequest{Path: c.path(), Version: -1},
			&zk.SetDataRequest{Path: path, Data: bytes.Clone(node.Data), Version: -1}, // tells the cause: see ownNode.Fired
			&zk.DeleteRequest{Path: path, Version: -1},
		); {
		case err == nil:
			c.engine.host.Logger().Info("lock reclaimed", "key", c.req.Key, "path", path, "owner", c.req.Owner,
				"token", uint64(node.Stat.Czxid))
		case !errors.Is(err, zk.ErrNoNode):
			return err
		default: // that node is gone, or the contender's own node
			if err := c.standing(ctx); err != nil {
				return err
			}
		}
		removed = true
	}
	c.reclaimed = true
	if removed {
		return errStartOver
	}
	return nil
}
