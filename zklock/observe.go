package zklock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// Observe implements [driver.Driver]. While an exclusive lock is held, it watches the node of the holder, and nothing else: a waiter
// that comes or goes is no news. When the node is deleted or written to, Observe lists the queue, and reads and watches the node that
// is the first now. So a change costs one event and two reads, however long the queue is, and however many callers observe the key
// in this client. Where a request may join the holders, or there is none, Observe also watches the queue, or the creation of the
// parent. After a reconnect it lists the queue, which confirms the state.
func (e *engine) Observe(ctx context.Context, key string, tell func(driver.Info)) error {
	var told driver.Info
	var newest driver.Token // that was told
	for {
		var watches *zkconn.Lookout
		var lost <-chan struct{}
		var info driver.Info
		err := e.link.Retry(ctx, nil, func(*zkconn.Session) (err error) {
			w := e.link.Wire()
			if w == nil {
				return zk.ErrNoServer
			}
			lost = w.Alive.Done()
			watches, info, err = e.watchHolders(ctx, e.paths.lock(key), key)
			return err
		})
		if err != nil {
			return err
		}
		lower, highest := regression(info, told, newest)
		if !lower.Held {
			told, newest = info, highest
			tell(info)
		} else { // neither a follower that lags behind nor a deposed leader completes a transaction
			path := e.paths.lock(key) + "/" + lower.Grant
			err := e.link.Retry(ctx, nil, func(*zkconn.Session) error { return e.link.Check(ctx, path) })
			if err == nil {
				err = driver.ErrHistoryLost
			}
			if !errors.Is(err, zk.ErrNoNode) {
				watches.End()
				return zkconn.AsDisconnected(ctx, err)
			}
			e.doubts.ask(path) // the server may have diverged
		}
		if err := e.awaitChange(ctx, watches, lost); err != nil {
			return err
		}
	}
}

// regression returns a grant of info that was not told before and whose token is lower than the newest that was told. Either the
// server lags behind, or the ensemble has lost its history. If there is none, regression returns the newest token.
func regression(info, told driver.Info, newest driver.Token) (lower driver.Info, highest driver.Token) {
	for grant := range info.Each() {
		switch {
		case info.Unfenced:
		case grant.Token < newest && !has(told, grant):
			return grant, newest
		default:
			newest = max(newest, grant.Token)
		}
	}
	return driver.Info{}, newest
}

// has reports whether a grant is among the holders that info shows.
func has(info, grant driver.Info) bool {
	for other := range info.Each() {
		if other.Grant == grant.Grant && other.Token == grant.Token {
			return true
		}
	}
	return false
}

// watchHolders returns the holders of a key, and watches of which one fires when the holders change.
func (e *engine) watchHolders(ctx context.Context, parent, key string) (*zkconn.Lookout, driver.Info, error) {
	for {
		l := e.link.NewLookout(1)
		info, err := e.lookAtHolders(ctx, l, parent, key)
		if err == nil {
			return l, info, nil
		}
		l.End()
		if !errors.Is(err, errStartOver) && !errors.Is(err, zk.ErrNoNode) {
			return nil, info, err
		}
		if e.link.Watching(l.Watches[parent]) {
			e.doubts.ask(parent) // the server has sent no event of what the list shows
			backoff.Sleep(ctx, e.host, e.link.Times().Again, nil)
		}
	}
}

// lookAtHolders fails with errStartOver or zk.ErrNoNode if the holders change meanwhile.
func (e *engine) lookAtHolders(ctx context.Context, l *zkconn.Lookout, parent, key string) (driver.Info, error) {
	none := driver.Info{Key: key}
	list, err := e.link.List(ctx, parent)
	if errors.Is(err, zk.ErrNoNode) {
		w, err := e.watched(ctx, l, parent, zkconn.WatchCreation)
		if err == nil && w.Node.Stat != nil {
			err = errStartOver
		}
		return none, err
	}
	if err != nil {
		return none, err
	}
	line, err := e.order(ctx, parent, list.Names, "")
	if err != nil {
		return none, err
	}
	first, _ := holders(line)
	mode := driver.Mode{Shared: true} // if no request holds the key, each may join
	if len(first) > 0 {
		mode = modeOf(first[0].name)
	}
	if mode.Shared && (mode.Limit == 0 || len(first) < mode.Limit) {
		w, err := e.watched(ctx, l, parent, zkconn.WatchChildren)
		if err == nil && w.Node.Stat.Pzxid < list.Stat.Pzxid { // an old watch, which has missed an event
			err = errStartOver
		}
		if err != nil {
			return none, err
		}
		if line, err = e.order(ctx, parent, w.Node.Children, ""); err != nil {
			return none, err
		}
		if first, _ = holders(line); len(first) == 0 {
			return none, nil
		}
	}
	nodes := make(map[string]zkconn.Znode, len(first))
	for _, x := range first {
		w, err := e.watched(ctx, l, parent+"/"+x.name, zkconn.WatchData)
		if err != nil {
			return none, err
		}
		nodes[x.name] = w.Node
	}
	info, _ := infoOf(key, first, nodes)
	return info, nil
}

// watched sets a watch, or joins it, and waits for its read.
func (e *engine) watched(ctx context.Context, l *zkconn.Lookout, path string, kind zkconn.WatchKind) (*zkconn.Watch, error) {
	w := l.Watch(path, kind)
	select {
	case <-w.Read:
		return w, w.Err
	case <-ctx.Done():
		return nil, zkconn.Disconnected(ctx)
	}
}

// awaitChange waits until it is time to look again: when a watch has fired, or the connection is lost. After a long time it also asks the
// leader about the watched nodes: see doubts. Many observers may begin at the same moment, so they ask late, and at random moments.
func (e *engine) awaitChange(ctx context.Context, l *zkconn.Lookout, lost <-chan struct{}) error {
	defer l.End()
	longest := e.link.Times().MaxDoubt
	select {
	case <-l.Fired:
	case <-lost:
	case <-time.After(longest/2 + rand.N(longest/2)):
		for path := range l.Watches {
			e.doubts.ask(path)
		}
	case <-ctx.Done():
		return driver.ContextError(ctx)
	}
	return nil
}
