package doctor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// A server may show a contender that all others have deleted for as long as it follows (ZOOKEEPER-5010), or belong to another ensemble. No
// single server can tell. So doctor compares the servers, and asks the leader about differences in a transaction.

// A difference must persist for this many looks, with a pause between them, because it may be a change in progress. A contender's name
// comes once and goes once, so two looks would be enough if a server's sync worked.
const (
	looks     = 3
	lookPause = 200 * time.Millisecond
)

// agreement compares what the servers show of locks.
func (e *ensemble) agreement(ctx context.Context) ([]Finding, error) {
	servers := e.reached()
	switch {
	case len(e.servers) == 1:
		return only(ok("one server: there is none to compare it with"))
	case len(servers) == 1:
		return only(skipped("see to the other servers", "one server gives a session: there is none to compare it with"))
	}
	strangers, err := e.strangers(ctx, servers)
	if err != nil || len(strangers) > 0 {
		return strangers, err
	}
	paths, err := e.differing(ctx, servers)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, s := range servers {
		var wrong []string
		for _, path := range paths {
			shown, real, err := e.compare(ctx, s, path)
			switch {
			case err != nil:
				return nil, err
			case shown && !real:
				wrong = append(wrong, "shows "+path)
			case real && !shown:
				wrong = append(wrong, "lacks "+path)
			}
		}
		if len(wrong) > 0 {
			findings = append(findings, problem(
				"restart "+s.addr+"; if that does not help, empty its data directory (docs/operations.md, A stale (diverged) server)",
				"%s has diverged from its ensemble: unlike the leader, it %s", s.addr, some(wrong),
			))
		}
	}
	if len(findings) > 0 {
		return findings, nil
	}
	set, err := e.locks(ctx)
	if err != nil {
		return nil, err
	}
	return well(set, "%d servers show the same contenders", len(servers))
}

// strangers looks for servers of another ensemble: they do not show the probe.
func (e *ensemble) strangers(ctx context.Context, servers []*server) ([]Finding, error) {
	if !e.written {
		return nil, nil // for want of permissions
	}
	var findings []Finding
	for _, s := range servers {
		stat, err := s.fresh(ctx, e.probe)
		if err != nil {
			return nil, err
		}
		if stat == nil {
			findings = append(findings, problem("name the servers of one ensemble in --servers",
				"%s does not show what was just written to %s: they are not of one ensemble", s.addr, e.main.addr))
		}
	}
	return findings, nil
}

// fresh is exists after a sync.
func (s *server) fresh(ctx context.Context, path string) (*zk.Stat, error) {
	err := do(ctx, s, func() error { _, err := s.conn().Sync(path); return err })
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, step("sync", path, err)
	}
	return s.exists(ctx, path)
}

// differing returns the contenders that only some servers show.
func (e *ensemble) differing(ctx context.Context, servers []*server) ([]string, error) {
	shown := make(map[string]int) // by how many
	for _, s := range servers {
		if _, err := s.fresh(ctx, e.root); err != nil {
			return nil, err
		}
		set, err := e.read(ctx, s)
		if err != nil && !refusedByZooKeeper(err) {
			return nil, err
		}
		for _, l := range set {
			for _, name := range l.children {
				if contends(name) {
					shown[join(l.path, name)]++
				}
			}
		}
	}
	var paths []string
	for path, n := range shown {
		if n < len(servers) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// compare looks at a znode through a server and through the leader, a few times at most, until they agree.
func (e *ensemble) compare(ctx context.Context, s *server, path string) (shown, real bool, err error) {
	for range looks {
		if real, err = e.main.known(ctx, path); err != nil {
			return false, false, err
		}
		stat, err := s.fresh(ctx, path)
		if err != nil {
			return false, false, err
		}
		if shown = stat != nil; shown == real {
			break
		}
		select {
		case <-time.After(lookPause):
		case <-ctx.Done():
			return false, false, context.Cause(ctx)
		}
	}
	return shown, real, nil
}

// known asks the leader about a znode: the leader's tree decides on a transaction.
func (s *server) known(ctx context.Context, path string) (bool, error) {
	err := do(ctx, s, func() error {
		_, err := s.conn().Multi(&zk.CheckVersionRequest{Path: path, Version: -1})
		return err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return err == nil, step("ask the leader about", path, err)
}
