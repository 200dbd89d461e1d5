package zklock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// Observe implements [driver.Driver]. While somebody holds the key, its node is watched,
// and nothing else: those who come to wait, and go, are no news. When it is gone, or
// written to, the queue is listed, and the node that is now the first is read and watched.
// Only where there is none, the queue itself is watched, or for the creation of its parent, which an
// observer does not make. So a change costs one event and two reads, however long the
// queue is, and however many here observe the key. After a reconnect the queue is listed, which confirms
// what was told. Those who share a key are watched each, and
// the queue too, since others may join them.
func (e *engine) Observe(ctx context.Context, key string, tell func(driver.Info)) error {
	var told, confirmed driver.Info // what was told last; a grant with a lower token that the quorum has
	var newest driver.Token         // that was told
	for {
		var watches *zkconn.Lookout
		var lost <-chan struct{}
		var lower driver.Info
		err := e.link.Retry(ctx, nil, func(*zkconn.Session) (err error) {
			lost = e.link.Lost()
			watches, err = e.observe(ctx, e.paths.lock(key), key, func(info driver.Info) {
				lower = driver.Info{}
				for grant := range info.Each() {
					switch {
					case info.Unfenced:
					case grant.Token < newest && !has(told, grant):
						lower = grant
						return
					default:
						newest = max(newest, grant.Token)
					}
				}
				told = info
				tell(info)
			})
			return err
		})
		switch {
		case err != nil:
			return err
		case !lower.Held:
		case has(confirmed, lower):
			watches.End()
			return driver.ErrHistoryLost
		default:
			if confirmed, err = e.confirm(ctx, lower); err != nil || confirmed.Held {
				watches.End()
			}
			switch {
			case err != nil:
				return err
			case confirmed.Held:
				continue
			}
		}
		if err := e.awaitChange(ctx, watches, lost); err != nil {
			return err
		}
	}
}

// confirm returns a grant if its node is there by a transaction, which neither a follower that lags behind nor a deposed leader
// completes, and nothing otherwise. The next read of the same client is not older than that.
func (e *engine) confirm(ctx context.Context, grant driver.Info) (driver.Info, error) {
	path := e.paths.lock(grant.Key) + "/" + grant.Grant
	err := e.link.Retry(ctx, nil, func(*zkconn.Session) error { return e.link.Check(ctx, path) })
	if errors.Is(err, zk.ErrNoNode) {
		e.doubts.ask(path) // the server may have diverged
		return driver.Info{}, nil
	}
	if err != nil {
		return driver.Info{}, zkconn.AsDisconnected(ctx, err)
	}
	return grant, nil
}

// observe tells who holds a key, and returns the watches of which one fires when that changes.
func (e *engine) observe(ctx context.Context, parent, key string, tell func(driver.Info)) (*zkconn.Lookout, error) {
	for {
		l := e.link.NewLookout(e.tasks.Context(), 1)
		info, ok, err := e.watchHolders(ctx, l, parent, key)
		if ok {
			tell(info)
			return l, nil
		}
		l.End()
		if err != nil {
			return nil, err
		}
		if l.Watches[parent] != nil {
			e.doubts.leaveUntold(ctx, parent) // its list does not fit what was read after it
		}
	}
}

// watchHolders watches what tells that a key changes hands. It returns false if that happened meanwhile.
func (e *engine) watchHolders(ctx context.Context, l *zkconn.Lookout, parent, key string) (info driver.Info, ok bool, err error) {
	none := driver.Info{Key: key}
	list, err := e.link.List(ctx, parent)
	if errors.Is(err, zk.ErrNoNode) {
		w, err := e.watched(ctx, l, parent, zkconn.WatchCreation)
		return none, err == nil && w.Node.Stat == nil, err
	}
	var first []entry
	if err == nil {
		first, err = e.holders(ctx, parent, list.Names)
	}
	if err == nil && mayJoin(first) {
		var w *zkconn.Watch
		w, err = e.watched(ctx, l, parent, zkconn.WatchChildren)
		switch {
		case err != nil:
		case w.Node.Stat.Pzxid < list.Stat.Pzxid: // an old watch, which has missed an event
			return none, false, nil
		default:
			first, err = e.holders(ctx, parent, w.Children)
		}
	}
	nodes := make(map[string]zkconn.Znode, len(first))
	for _, x := range first {
		if err != nil {
			break
		}
		var w *zkconn.Watch
		if w, err = e.watched(ctx, l, parent+"/"+x.name, zkconn.WatchData); err == nil {
			nodes[x.name] = w.Node
		}
	}
	switch {
	case errors.Is(err, zk.ErrNoNode): // it has gone meanwhile
		return none, false, nil
	case err != nil || len(first) == 0:
		return none, err == nil, err
	}
	info, ok = infoOfAll(key, first, nodes)
	return info, ok, nil
}

// holders returns those of the children of a lock node that hold the lock.
func (e *engine) holders(ctx context.Context, parent string, names []string) (first []entry, err error) {
	line, err := e.order(ctx, parent, names, "")
	first, _ = holders(line)
	return first, err
}

// watched sets a watch, or joins it, and waits for what it has read.
func (e *engine) watched(ctx context.Context, l *zkconn.Lookout, path string, kind zkconn.WatchKind) (*zkconn.Watch, error) {
	w := l.Watch(path, kind)
	select {
	case <-w.Read:
		return w, w.Err
	case <-ctx.Done():
		return nil, zkconn.Disconnected(ctx)
	}
}

// awaitChange waits until one of the watches has fired, or the connection is lost. Of what stays as it is for very
// long, it asks whether it still is: see doubts. There may be many observers,
// of which all begin at the same moment, so they ask late, and not all at a time.
func (e *engine) awaitChange(ctx context.Context, l *zkconn.Lookout, lost <-chan struct{}) error {
	defer l.End()
	longest := e.link.Times().MaxDoubt
	patience := longest/2 + rand.N(longest/2)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-l.Fired:
			return nil
		case <-lost:
			return nil
		case <-timer.C:
			for path := range l.Watches {
				e.doubts.ask(path)
			}
			patience = min(2*patience, 16*longest)
			timer.Reset(patience)
		case <-ctx.Done():
			return driver.ContextError(ctx)
		}
	}
}
