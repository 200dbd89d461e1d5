package zklock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sequence"
)

// Observe implements [driver.Driver]. While somebody holds the key, its node is watched,
// and nothing else: those who come to wait, and go, are no news. When it is gone, or
// written to, the queue is listed, and the node that is now the first is read and watched.
// Only where there is none, the queue itself is watched, or for the creation of its parent, which an
// observer does not make. So a change costs one event and two reads, however long the
// queue is, and however many here observe the key. Those who share a key are watched each, and
// the queue too, since others may join them.
func (e *engine) Observe(ctx context.Context, key string, tell func(driver.Info)) error {
	for {
		var all []*watch
		err := e.link.retry(ctx, nil, func(*session) (err error) {
			all, err = e.observe(ctx, e.paths.lock(key), key, tell)
			return err
		})
		if err != nil {
			return err
		}
		if err := e.awaitChange(ctx, all); err != nil {
			return err
		}
	}
}

// observe tells who holds a key, and returns the watches of which one fires when that changes.
func (e *engine) observe(ctx context.Context, parent, key string, tell func(driver.Info)) ([]*watch, error) {
	for {
		names, err := e.link.children(ctx, parent)
		var first []entry
		var all []*watch
		s, semaphore := e.found(key, names)
		if semaphore && err == nil {
			var told bool
			if all, told, err = e.observePermits(ctx, key, s, tell); told || err != nil && !errors.Is(err, zk.ErrNoNode) {
				return all, err
			}
		}
		if err == nil {
			first, err = e.holders(ctx, parent, names)
		}
		if err == nil && semaphore && len(first) > 0 {
			var refused bool
			if refused, err = e.observeRefused(ctx, s, first[0].name, &all); refused {
				tell(driver.Info{Key: key})
				return all, nil
			}
		}
		switch {
		case errors.Is(err, zk.ErrNoNode):
			var w *watch
			if w, err = e.watched(ctx, parent, watchCreation); err == nil && w.node.stat != nil {
				continue // it is there by now
			}
			all = append(all, w)
		case err == nil && (len(first) == 0 || sequence.Shared(first[0].name)):
			var w *watch
			if w, err = e.watched(ctx, parent, watchChildren); err == nil {
				if now, ok := e.found(key, w.children); ok && (!semaphore || now != s) {
					continue
				}
				seen := first
				first, err = e.holders(ctx, parent, w.children)
				if semaphore && len(first) > 0 && (len(seen) == 0 || seen[0].name != first[0].name) {
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
			nodes := make(map[string]znode, len(first))
			for _, x := range first {
				var w *watch
				if w, err = e.watched(ctx, parent+"/"+x.name, watchData); err != nil {
					break
				}
				nodes[x.name] = w.node
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
func (e *engine) observeRefused(ctx context.Context, s semaphore, lock string, all *[]*watch) (bool, error) {
	for _, end := range []watchKey{{s.places, watchChildren}, {s.key + "/" + lock, watchData}} {
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
) (all []*watch, told bool, err error) {
	for {
		w, err := e.watched(ctx, s.leases, watchChildren)
		if errors.Is(err, zk.ErrNoNode) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		line, limit, err := e.holdersOf(ctx, s, w.children)
		if err != nil {
			return nil, false, err
		}
		all, nodes := []*watch{w}, make(map[string]znode, len(line))
		if len(line) == 0 {
			return all, false, nil
		}
		for _, x := range line {
			w, err := e.watched(ctx, s.leases+"/"+x.name, watchData)
			if errors.Is(err, zk.ErrNoNode) {
				break // it has gone meanwhile
			}
			if err != nil {
				return nil, false, err
			}
			nodes[x.name] = w.node
			all = append(all, w)
		}
		if len(nodes) < len(line) {
			continue
		}
		name, lock, err := e.firstLock(ctx, s)
		if err == nil && name != "" { // when it goes, those who came after it may have a permit
			if w, err = e.watched(ctx, s.key+"/"+name, watchData); errors.Is(err, zk.ErrNoNode) {
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
func (e *engine) watched(ctx context.Context, path string, kind watchKind) (*watch, error) {
	w := e.link.watches.onKind(e.tasks.Context(), watchKey{path, kind})
	select {
	case <-w.read:
		return w, w.err
	case <-ctx.Done():
		return nil, disconnected(ctx)
	}
}

// awaitChange waits until one of the watches has fired. Of what stays as it is for very
// long, it asks whether it still is: see stale. There may be many observers,
// of which all begin at the same moment, so they ask late, and not all at a time.
func (e *engine) awaitChange(ctx context.Context, all []*watch) error {
	waiting, fired := context.WithCancel(ctx)
	defer fired()
	for _, w := range all[1:] {
		e.tasks.Go(func(context.Context) {
			select {
			case <-w.gone:
				fired()
			case <-waiting.Done():
			}
		})
	}
	longest := e.link.negotiated().MaxDoubt
	patience := longest/2 + rand.N(longest/2)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-all[0].gone:
			return nil
		case <-timer.C:
			for _, w := range all {
				if w.kind == watchData {
					e.stale.ask(w.path)
				}
				e.stale.askOf(w)
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
