package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// serving is how long a server may take, at most, until it serves clients again: on a machine that stands still now and then,
// an election may need some attempts.
const serving = time.Minute

// residue asks each server for the children of lock znodes until the sessions of killed processes have ended. A node that only one server
// shows was deleted, and that server missed the deletion: a ZooKeeper bug (ZOOKEEPER-5010) that no client can cure.
func (s *ensembleStage) residue(ctx context.Context, _ []string) (left []string, err error) {
	var conns []*zk.Conn
	for _, addr := range s.ensemble.Addrs() {
		conn, _, err := zk.Connect([]string{addr}, 10*zooKeeperLease, zk.WithLogger(silent{}), zk.WithLogInfo(false))
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, conn.Close)() // requests under way then fail
		conns = append(conns, conn)
	}
	for began := time.Now(); ; {
		count := map[string]int{}
		var errs []error
		for _, conn := range conns {
			errs = append(errs, countNodes(conn, count))
		}
		left, err = nil, errors.Join(errs...)
		for node, n := range count {
			if 2*n > zkserver.EnsembleSize {
				left = append(left, node)
			}
		}
		switch waited := time.Since(began); {
		case ctx.Err() != nil:
			return left, context.Cause(ctx)
		case err == nil && (len(count) == 0 || waited > 3*zooKeeperLease), waited > serving:
			return left, err
		}
		sleep(ctx, zooKeeperTick)
	}
}

// countNodes counts the children of all lock znodes that a server shows after a sync with the leader. The lock znodes stay until the server
// reaps them.
func countNodes(conn *zk.Conn, count map[string]int) error {
	if _, err := conn.Sync(zooKeeperRoot); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	parents, _, err := conn.Children(zooKeeperRoot)
	if err != nil {
		return fmt.Errorf("list %s: %w", zooKeeperRoot, err)
	}
	for _, parent := range parents {
		nodes, _, err := conn.Children(zooKeeperRoot + "/" + parent)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return fmt.Errorf("list %s: %w", parent, err)
		}
		for _, node := range nodes {
			count[zooKeeperRoot+"/"+parent+"/"+node]++
		}
	}
	return nil
}

// silent is a logger for go-zookeeper, which would write to standard error.
type silent struct{}

func (silent) Printf(string, ...any) {}
