package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// serving is how long a server may take, at most, until it serves clients again: on a machine that stands still now and then,
// an election may need some attempts.
const serving = time.Minute

// residue asks each server for the children of lock znodes until the sessions of killed processes have ended.
func (s *ensembleStage) residue(ctx context.Context, _ []string) (left, diverged []string, err error) {
	var conns []*zk.Conn
	for _, addr := range s.ensemble.Addrs() {
		conn, _, err := zk.Connect([]string{addr}, 10*zooKeeperLease, zk.WithLogger(silent{}), zk.WithLogInfo(false))
		if err != nil {
			return nil, nil, err
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, conn.Close)() // requests under way then fail
		conns = append(conns, conn)
	}
	for began := time.Now(); ; {
		var shown [][]string
		shown, err = listings(conns, zooKeeperRoot)
		left, diverged = compareListings(shown)
		switch {
		case ctx.Err() != nil:
			return left, diverged, context.Cause(ctx)
		case err == nil && (len(left)+len(diverged) == 0 || time.Since(began) > 3*zooKeeperLease), time.Since(began) > serving:
			return left, diverged, err
		}
		sleep(ctx, zooKeeperTick)
	}
}

// listings are the children of all lock znodes, as each server shows them after a sync with the leader.
func listings(conns []*zk.Conn, root string) ([][]string, error) {
	var shown [][]string
	for i, conn := range conns {
		_, err := conn.Sync(root)
		var nodes []string
		if err == nil {
			nodes, err = nodesBelow(conn, root)
		}
		if err != nil {
			return nil, fmt.Errorf("server %d: list %s: %w", i, root, err)
		}
		shown = append(shown, nodes)
	}
	return shown, nil
}

// compareListings separates leftovers from nodes that only some servers show. A node that only a minority shows was deleted,
// and these servers have missed the deletion for good: a ZooKeeper bug (ZOOKEEPER-5010) that no client can cure.
func compareListings(shown [][]string) (left, diverged []string) {
	count := map[string]int{}
	var all []string // in the order of the listings
	for _, nodes := range shown {
		for _, node := range nodes {
			if count[node]++; count[node] == 1 {
				all = append(all, node)
			}
		}
	}
	few := func(node string) bool { return 2*count[node] < len(shown) }
	for _, node := range all {
		if !few(node) {
			left = append(left, node)
		}
	}
	for i, nodes := range shown {
		var alone []string
		for _, node := range nodes {
			if few(node) {
				alone = append(alone, node)
			}
		}
		if n := len(alone); n > 0 {
			what := "1 znode"
			if n > 1 {
				what = fmt.Sprintf("%d znodes", n)
			}
			diverged = append(diverged, fmt.Sprintf("server %d shows %s that the others lack (ZOOKEEPER-5010): %s", i, what, strings.Join(alone, ", ")))
		}
	}
	return left, diverged
}

// nodesBelow lists the children of all lock znodes. The lock znodes stay until the server reaps them.
func nodesBelow(conn *zk.Conn, root string) ([]string, error) {
	parents, _, err := conn.Children(root)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, parent := range parents {
		nodes, _, err := conn.Children(root + "/" + parent)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, fmt.Errorf("%s: %w", parent, err)
		}
		for _, node := range nodes {
			found = append(found, root+"/"+parent+"/"+node)
		}
	}
	return found, nil
}

// silent is a logger for go-zookeeper, which would write to standard error.
type silent struct{}

func (silent) Printf(string, ...any) {}
