package zkserver

import (
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
)

//go:embed Member.java
var memberSource string

// Plant makes server i, which must be a follower, show a znode that no other server has: an ephemeral node at path, owned by
// a session that does not exist. It returns when the server's clients can read the node. The ensemble must have been started
// with [Config.Plantable], and the parent must have reached the server (a Sync through it sees to that).
//
// This is what ZOOKEEPER-5010 leaves behind: a follower that keeps the ephemeral node of an ended session after its leader
// has changed. No transaction created the node, so
//
//   - clients of server i read it, list it and get the events of its creation, and a Sync does not remove it;
//   - writes go by the leader's tree, which lacks it: a delete, or a check of its version, fails with no node through every
//     server;
//   - no session's end removes it, because no server knows its owner.
//
// The parent's counter does not change: sequential children are numbered as if the node were absent. Clients of server i see
// one child more in the parent's Stat, and Stat.Cversion one less, because servers compute it from both. The node's Czxid is
// the parent's. The node stays when the leader changes and server i follows the next one; a restart of the process may lose
// it.
//
// Plant refuses a leader: its tree decides writes, so they would see the node. If ctx ends first, the node may still appear.
// No client may create path afterwards: server i could not apply the transaction.
func (e *Ensemble) Plant(ctx context.Context, i int, path string, data []byte) error {
	s := e.servers[i]
	err := errors.New("the ensemble was not started with Config.Plantable")
	if s.control != nil {
		// A server makes session ids of its own id in the highest byte and the time of day below.
		owner := int64(i+1)<<56 | 1
		err = s.control.request(ctx, fmt.Sprintf("plant %d %s %s", owner, base64.StdEncoding.EncodeToString(data), path))
	}
	if err != nil {
		return fmt.Errorf("zookeeper %s: plant %s: %w", s.Addr(), path, err)
	}
	return nil
}
