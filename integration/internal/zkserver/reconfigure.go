package zkserver

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"
)

// Remove takes server i out of a reconfigurable ensemble. The server goes on running, follows without a vote, and serves its
// clients.
func (e *Ensemble) Remove(ctx context.Context, i int) error {
	return e.reconfigure(ctx, nil, []string{strconv.Itoa(i + 1)})
}

// Add puts a removed server back into the ensemble.
func (e *Ensemble) Add(ctx context.Context, i int) error {
	return e.reconfigure(ctx, e.members[i:i+1], nil)
}

// reconfigure retries until it succeeds: an election may be under way, and a leader refuses a member that does not follow it
// yet.
func (e *Ensemble) reconfigure(ctx context.Context, joining, leaving []string) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		err := reconfigure(ctx, e.Addrs(), joining, leaving)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("zookeeper ensemble: reconfigure, joining %q, leaving %q: %w: %w", joining, leaving, context.Cause(ctx), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func reconfigure(ctx context.Context, servers, joining, leaving []string) error {
	conn, _, err := zk.Connect(servers, startPatience, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, conn.Close)
	defer stop()
	_, err = conn.IncrementalReconfig(joining, leaving, -1)
	return err
}

// silent keeps go-zookeeper from writing to stderr.
type silent struct{}

func (silent) Printf(string, ...any) {}
