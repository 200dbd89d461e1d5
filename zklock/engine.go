package zklock

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/task"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// engine implements [driver.Driver]: it is what all calls of a client share.
type engine struct {
	host      driver.Host
	opts      Options
	paths     paths
	link      *zkconn.Link
	heartbeat *heartbeat
	doubts    *doubts
	orphans   *orphans
	tasks     *task.Group // in the background of calls

	mostCounted int       // see planFor
	warned      sync.Once // that the counter of a lock nears its end

	mu   strict.Mutex[strict.ZooKeeperEngine]
	made map[string]int64 // parents without a grant that this client has created; how many children it has created in each
}

// newEngine makes an engine that dials as ctx does, and gives up after so many rounds; 0 for never.
func newEngine(ctx context.Context, host driver.Host, opts Options, chroot string, rounds int) *engine {
	e := &engine{
		host: host, opts: opts, paths: paths{chroot: chroot, root: opts.Root}, tasks: task.NewGroup(),
		mostCounted: mostCounted, made: make(map[string]int64),
	}
	e.heartbeat = &heartbeat{engine: e}
	e.doubts = &doubts{engine: e, paths: make(map[string]struct{})}
	e.orphans = &orphans{engine: e, wake: make(chan struct{}, 1)}
	var auth []zkconn.Auth
	for _, a := range opts.Auth {
		auth = append(auth, zkconn.Auth(a))
	}
	e.link = zkconn.New(ctx, host, zkconn.Config{
		SessionTimeout:    opts.SessionTimeout,
		Times:             opts.times,
		Rounds:            rounds,
		AnyAnswer:         opts.Heartbeat < 0,
		TLS:               opts.TLSConfig,
		Auth:              auth,
		ACL:               opts.ACL,
		ParentACL:         opts.ParentACL,
		PersistentParents: opts.PersistentParents,
		Connected:         host.SetConnected,
		Reopened: func(sess *zkconn.Session) {
			e.heartbeat.reopened(sess)
			e.orphans.look()
			e.mu.Lock()
			made := slices.Collect(maps.Keys(e.made))
			e.mu.Unlock()
			for _, path := range made {
				e.tidy(path)
			}
		},
	})
	e.tasks.Go(e.orphans.run)
	return e
}

var _ driver.Ender = (*engine)(nil)

// CheckKey implements [driver.Driver].
func (e *engine) CheckKey(key string, mode driver.Mode) error {
	if e.opts.Names.form().prefix("", mode) == "" {
		return driver.Invalid(mode.Option(), "a lock with Options.Names %q shares nothing", e.opts.Names)
	}
	return e.paths.check(key)
}

// EndSession implements [driver.Ender]: ending a session deletes all its nodes in
// one transaction. It also deletes the nodes that background tasks have not deleted yet.
func (e *engine) EndSession(ctx context.Context) error {
	now, cancel := context.WithCancel(ctx)
	cancel()
	e.tasks.Close(now)
	return e.link.EndSession(ctx)
}

// Close implements [driver.Driver].
func (e *engine) Close(ctx context.Context) error {
	err := e.EndSession(ctx) // the second time, it is of no effect
	e.link.Close()
	return err
}
