package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// A server may go on showing a contender that all others have deleted, for as
// long as it follows (ZOOKEEPER-5010), or be of another ensemble altogether.
// Nothing that it is asked alone tells. So the servers are compared with one
// another, and what differs is put to the leader, by a transaction.

// A difference between servers is looked at so many times, with a pause between
// two looks, before it is taken for more than a change under way. The name of a
// contender comes once and goes once, so that two looks would do if a server's
// sync did.
const (
	looks     = 3
	lookPause = 200 * time.Millisecond
)

// agreement compares what the servers show of locks.
func (e *ensemble) agreement(ctx context.Context) ([]Finding, error) {
	servers := e.reached()
	if len(servers) == 1 {
		return only(ok("one server: there is none to compare it with"))
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
		lasting, err := e.lasting(ctx, s, paths)
		if err != nil {
			return nil, err
		}
		findings = append(findings, lasting...)
	}
	if len(findings) > 0 {
		return findings, nil
	}
	return only(ok("%d servers show the same contenders", len(servers)))
}

// strangers looks for servers that do not show this client's own probe: they
// belong to another ensemble.
func (e *ensemble) strangers(ctx context.Context, servers []*server) ([]Finding, error) {
	if !e.written {
		return nil, nil // for want of permissions
	}
	var findings []Finding
	for _, s := range servers {
		stat, err := s.fresh(ctx, e.probePath())
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

// fresh is exists, as of now.
func (s *server) fresh(ctx context.Context, path string) (*zk.Stat, error) {
	err := do(ctx, s, func() error { _, err := s.conn().Sync(path); return err })
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, step("sync", path, err)
	}
	return s.exists(ctx, path)
}

// differing returns the contenders that some servers show, and some do not.
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

// lasting says for which of some contenders a server differs from the leader,
// time and again.
func (e *ensemble) lasting(ctx context.Context, s *server, paths []string) ([]Finding, error) {
	var more, less []string
	for _, path := range paths {
		shown, real, err := e.compare(ctx, s, path)
		switch {
		case err != nil:
			return nil, err
		case shown && !real:
			more = append(more, path)
		case real && !shown:
			less = append(less, path)
		}
	}
	return judgeDiverged(s.addr, more, less), nil
}

// judgeDiverged is told what a server shows that the leader has not, and what it
// lacks that the leader has.
func judgeDiverged(addr string, more, less []string) []Finding {
	const cure = "restart %s; if that does not help, empty its data directory (docs/operating.md, A stale (diverged) server)"
	var findings []Finding
	if len(more) > 0 {
		findings = append(findings, problem(fmt.Sprintf(cure, addr),
			"%s has diverged from its ensemble: it shows %s that the leader has not: %s", addr, count(len(more), "contender"), some(more)))
	}
	if len(less) > 0 {
		findings = append(findings, problem(fmt.Sprintf(cure, addr),
			"%s has diverged from its ensemble: it lacks %s that the leader has: %s", addr, count(len(less), "contender"), some(less)))
	}
	return findings
}

// compare looks at a znode through a server and through the leader until they
// agree, a few times at most.
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

// known asks the leader about a znode: a transaction goes by its tree.
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
