package zklock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sequence"
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
		var all []*zkconn.Watch
		var lost <-chan struct{}
		var lower driver.Info
		err := e.link.Retry(ctx, nil, func(*zkconn.Session) (err error) {
			lost = e.link.Lost()
			all, err = e.observe(ctx, e.paths.lock(key), key, func(info driver.Info) {
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
			e.link.Unwatch(all)
			return driver.ErrHistoryLost
		default:
			if confirmed, err = e.confirm(ctx, lower); err != nil || confirmed.Held {
				e.link.Unwatch(all)
			}
			switch {
			case err != nil:
				return err
			case confirmed.Held:
				continue
			}
		}
		if err := e.awaitChange(ctx, all, lost); err != nil {
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
func (e *engine) observe(ctx context.Context, parent, key string, tell func(driver.Info)) ([]*zkconn.Watch, error) {
	var old *zkconn.Watch // of a list that does not fit what was read after it
	keys := map[string]bool{}
	for {
		if old != nil {
			e.doubts.askNow(ctx, old)
			old = nil
		}
		names, err := e.link.Children(ctx, parent)
		var first []entry
		var all []*zkconn.Watch
		var s semaphore
		isSemaphore := false
		if err == nil {
			s, isSemaphore, err = e.found(ctx, key, names, keys)
		}
		if errors.Is(err, errStartOver) {
			continue
		}
		if isSemaphore && err == nil {
			var told bool
			if all, told, err = e.observePermits(ctx, key, s, tell); told || err != nil && !errors.Is(err, zk.ErrNoNode) {
				return all, err
			}
			isSemaphore = len(all) > 0 // else what is for leases has gone, and is not watched: it may be there again
		}
		if err == nil {
			first, err = e.holders(ctx, parent, names)
		}
		if err == nil && isSemaphore && len(first) > 0 {
			var refused bool
			if refused, err = e.observeRefused(ctx, s, first[0].name, &all); refused {
				tell(driver.Info{Key: key})
				return all, nil
			}
		}
		switch {
		case errors.Is(err, zk.ErrNoNode):
			var w *zkconn.Watch
			if w, err = e.watched(ctx, parent, zkconn.WatchCreation); err == nil && w.Node.Stat != nil {
				continue // it is there by now
			}
			all = append(all, w)
		case err == nil && (len(first) == 0 || sequence.Shared(first[0].name)):
			var w *zkconn.Watch
			if w, err = e.watched(ctx, parent, zkconn.WatchChildren); err == nil {
				old = w
				now, ok, failed := e.found(ctx, key, w.Children, keys)
				if errors.Is(failed, errStartOver) {
					continue
				}
				if failed != nil {
					return nil, failed
				}
				if ok && (!isSemaphore || now != s) {
					continue
				}
				seen := first
				first, err = e.holders(ctx, parent, w.Children)
				if isSemaphore && len(first) > 0 && (len(seen) == 0 || seen[0].name != first[0].name) {
					continue // it has come meanwhile, and may be refused
				}
			}
			all = append(all, w)
		}
		if err == nil && len(first) == 0 {
			tell(driver.Info{Key: key})
			return all, nil
		}
		if err == nil {
			nodes := make(map[string]zkconn.Znode, len(first))
			for _, x := range first {
				var w *zkconn.Watch
				if w, err = e.watched(ctx, parent+"/"+x.name, zkconn.WatchData); err != nil {
					break
				}
				nodes[x.name] = w.Node
				all = append(all, w)
			}
			if err == nil {
				info, _ := infoOfAll(key, first, nodes)
				tell(info)
				return all, nil
			}
		}
		if !errors.Is(err, zk.ErrNoNode) { // else it has gone meanwhile
			return nil, err
		}
	}
}

// observeRefused reports whether a lock is about to be refused because of a semaphore, and watches what may
// end that.
func (e *engine) observeRefused(ctx context.Context, s semaphore, lock string, all *[]*zkconn.Watch) (bool, error) {
	for _, end := range []struct {
		path string
		kind zkconn.WatchKind
	}{{s.places, zkconn.WatchChildren}, {s.key + "/" + lock, zkconn.WatchData}} {
		w, err := e.watched(ctx, end.path, end.kind)
		switch {
		case err == nil:
			*all = append(*all, w)
		case end.path != s.places || !errors.Is(err, zk.ErrNoNode):
			return false, err
		}
	}
	return e.outranked(ctx, s, lock)
}

// observePermits is observe for a semaphore. If nobody has a permit, it tells nothing.
func (e *engine) observePermits(
	ctx context.Context, key string, s semaphore, tell func(driver.Info),
) (all []*zkconn.Watch, told bool, err error) {
	for {
		w, err := e.watched(ctx, s.leases, zkconn.WatchChildren)
		if errors.Is(err, zk.ErrNoNode) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		line, limit, err := e.holdersOf(ctx, s, w.Children)
		if err != nil {
			return nil, false, err
		}
		all, nodes := []*zkconn.Watch{w}, make(map[string]zkconn.Znode, len(line))
		if len(line) == 0 {
			return all, false, nil
		}
		for _, x := range line {
			w, err := e.watched(ctx, s.leases+"/"+x.name, zkconn.WatchData)
			if errors.Is(err, zk.ErrNoNode) {
				break // it has gone meanwhile
			}
			if err != nil {
				return nil, false, err
			}
			nodes[x.name] = w.Node
			all = append(all, w)
		}
		if len(nodes) < len(line) {
			e.doubts.askNow(ctx, w)
			continue
		}
		name, lock, err := e.firstLock(ctx, s)
		if err == nil && name != "" { // when it goes, those who came after it may have a permit
			if w, err = e.watched(ctx, s.key+"/"+name, zkconn.WatchData); errors.Is(err, zk.ErrNoNode) {
				continue
			}
			all = append(all, w)
		}
		if err != nil {
			return nil, false, err
		}
		info, ok := s.info(key, limit, line, nodes, lock)
		if ok {
			tell(info)
		}
		return all, ok, nil
	}
}

// holders returns those of the children of a lock node who hold the lock.
func (e *engine) holders(ctx context.Context, parent string, names []string) ([]entry, error) {
	line, err := e.order(ctx, parent, names, "")
	return holders(line), err
}

// watched sets a watch, or joins it, and waits for what it has read.
func (e *engine) watched(ctx context.Context, path string, kind zkconn.WatchKind) (*zkconn.Watch, error) {
	w := e.link.Watch(e.tasks.Context(), path, kind)
	select {
	case <-w.Read:
		return w, w.Err
	case <-ctx.Done():
		e.link.Unwatch([]*zkconn.Watch{w})
		return nil, zkconn.Disconnected(ctx)
	}
}

// awaitChange waits until one of the watches has fired, or the connection is lost. Of what stays as it is for very
// long, it asks whether it still is: see doubts. There may be many observers,
// of which all begin at the same moment, so they ask late, and not all at a time.
func (e *engine) awaitChange(ctx context.Context, all []*zkconn.Watch, lost <-chan struct{}) error {
	defer e.link.Unwatch(all)
	waiting, fired := context.WithCancel(ctx)
	defer fired()
	for _, w := range all[1:] {
		e.tasks.Go(func(context.Context) {
			select {
			case <-w.Gone:
				fired()
			case <-waiting.Done():
			}
		})
	}
	longest := e.link.Times().MaxDoubt
	patience := longest/2 + rand.N(longest/2)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-all[0].Gone:
			return nil
		case <-lost:
			return nil
		case <-timer.C:
			for _, w := range all {
				if w.Kind == zkconn.WatchData {
					e.doubts.ask(w.Path)
				}
				e.doubts.askOf(w)
			}
			patience = min(2*patience, 16*longest)
			timer.Reset(patience)
		case <-waiting.Done():
			if ctx.Err() != nil {
				return driver.ContextError(ctx)
			}
			return nil
		}
	}
}
