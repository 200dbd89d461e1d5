package zklock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
)

// A server can part from its ensemble: it goes on showing a znode that all
// others have deleted, for as long as it runs. ZOOKEEPER-5010 has a cause: a
// follower that learns the newest transactions of a new leader keeps ephemeral
// nodes of sessions that have ended. Nothing that such a server is asked tells,
// not even after a sync, and whoever waits there for that znode to go waits for
// ever. So what has been in the way for long is looked up on another server.

// A waiter has doubts when it has waited this many session timeouts for the
// same node, and then at intervals that double, up to the longest.
const (
	firstDoubt = 2
	mostDoubt  = 64
)

// doubts are the znodes of others that a client has been held up by for so long
// that another server is to be asked about them.
type doubts struct {
	b *backend

	mu    sync.Mutex
	paths map[string]struct{}
	busy  bool      // a task asks
	tried time.Time // when a try had doubts last
}

func newDoubts(b *backend) *doubts { return &doubts{b: b, paths: make(map[string]struct{})} }

// about asks another server about a znode, in the background.
func (d *doubts) about(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paths[path] = struct{}{}
	if d.busy {
		return
	}
	d.busy = true
	d.b.spawn(func(ctx context.Context) {
		for {
			paths := d.take()
			if len(paths) == 0 {
				return
			}
			if err := d.b.link.compare(ctx, paths); err != nil && ctx.Err() == nil {
				d.b.host.Logger().Debug("cannot compare servers", "paths", len(paths), "error", err)
			}
		}
	})
}

// take returns what is to be asked about; the task ends if that is nothing.
func (d *doubts) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	paths := make([]string, 0, len(d.paths))
	for path := range d.paths {
		paths = append(paths, path)
	}
	clear(d.paths)
	d.busy = len(paths) > 0
	return paths
}

// aboutHolder is told of a holder by whom a call was refused that does not wait
// for long. The holder's age, by clocks that need not agree, decides only
// whether it is worth a look; there is one per session timeout at most.
func (d *doubts) aboutHolder(parent string, holder holdfast.Info) {
	timeout := d.b.sessionTimeout()
	if holder.Grant == "" || time.Since(holder.Since) < firstDoubt*timeout {
		return
	}
	d.mu.Lock()
	early := time.Since(d.tried) < timeout
	if !early {
		d.tried = time.Now()
	}
	d.mu.Unlock()
	if !early {
		d.about(parent + "/" + holder.Grant)
	}
}

// compare looks up znodes on another server, and leaves the present one if that
// alone has one of them. Being wrong costs a reconnection.
func (l *link) compare(ctx context.Context, paths []string) error {
	w := l.present()
	if w == nil {
		return nil // its end has wakened all who waited: see watches.recheck
	}
	missing, err := l.missingElsewhere(ctx, w.server, paths)
	if err != nil {
		return err
	}
	for _, path := range missing {
		// It may have gone a moment ago. What that other server has seen, this
		// one has seen too after a sync.
		_, err := call(ctx, func() (struct{}, error) {
			if _, err := l.conn.Sync(path); err != nil {
				return struct{}{}, err
			}
			_, _, err := l.conn.Get(path)
			return struct{}{}, err
		}, nil)
		if err == nil && l.present() == w {
			l.host.Logger().Warn("the server shows a znode that another one has not, and is left for the next", "server", w.server, "path", path)
			l.drop(w)
			return nil
		}
	}
	return nil
}

// missingElsewhere returns those of the paths that do not exist for another
// server than the one that is named; if no other is known, for whichever server
// answers under its name. It has a session of its own for that.
func (l *link) missingElsewhere(ctx context.Context, server string, paths []string) ([]string, error) {
	servers := slices.DeleteFunc(slices.Clone(l.servers), func(s string) bool { return s == server })
	if len(servers) == 0 {
		servers = l.servers
	}
	rand.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
	l.mu.Lock()
	timeout := l.timeout
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, _, err := zk.Connect(
		servers, timeout,
		zk.WithDialer(func(network, address string, _ time.Duration) (net.Conn, error) {
			conn, err := l.reach(ctx, network, address, firstReply(timeout))
			if err != nil {
				l.pause(ctx) // the ring does not
			}
			return conn, err
		}),
		zk.WithHostProvider(&ring{closing: ctx}),
		zk.WithLogger(discard{}),
		zk.WithLogInfo(false),
	)
	if err != nil {
		return nil, fmt.Errorf("zookeeper: %w", err)
	}
	defer conn.Close()
	return call(ctx, func() ([]string, error) {
		if _, err := conn.Sync(paths[0]); err != nil {
			return nil, fmt.Errorf("zookeeper: sync: %w", err)
		}
		var missing []string
		for _, path := range paths {
			exists, _, err := conn.Exists(path)
			if err != nil && !errors.Is(err, zk.ErrNoNode) {
				return nil, stepError("look up", path, err)
			}
			if !exists {
				missing = append(missing, path)
			}
		}
		return missing, nil
	}, nil)
}
