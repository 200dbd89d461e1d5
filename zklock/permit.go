package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// permit is one call of Acquire for a permit of a semaphore. It makes its lease, and has the permit
// if fewer leases are before that than there are permits, by a list that was made after it: of one
// more that all believed so, the last one would have seen the others. So nobody needs the queue
// for that. It is for those who find no permit free: the first in it watches the leases, and
// nobody else does.
//
// It leaves the queue in the transaction that makes its lease, so the next is woken a round trip
// sooner. Then somebody who found the queue empty before may have been faster: it goes to the back of the
// queue, and the next time keeps its place until it has the permit. So it loses that once at most.
//
// A lease that was made in vain is deleted at once. If it stayed while its client waits, Curator
// would count it as a permit that is taken.
type permit struct {
	engine *engine
	req    *driver.Request
	at     semaphore
	place  contender
	lease  contender

	queued bool     // it has gone to the queue
	waited bool     // for others there
	vain   bool     // its last lease came too late
	passed bool     // one came too late that it had left the queue for, perhaps
	limit  *zk.Stat // of the key's znode when its data was the limit
	keeps  string   // the place in the queue that was made while the limit was that, and keeps it
	set    bool     // it has tried to make it the limit
}

func (e *engine) newPermit(req *driver.Request, data []byte) *permit {
	p := &permit{engine: e, req: req, at: e.semaphore(req.Key)}
	queue := *req
	queue.Mode = driver.Mode{}
	queue.Queued = func(ahead int) {
		p.waited = true
		req.Queued(ahead + req.Mode.Limit)
	}
	p.place = contender{engine: e, req: &queue, parent: p.at.places, data: data, role: asPlace, mayReclaim: p.keepsLimit}
	p.lease = contender{engine: e, req: req, parent: p.at.leases, data: data, role: asLease, alsoList: p.at.key}
	if p.at.kazoo {
		// kazoo's client does not count again after it has made its lease, but stands in the
		// queue by then. So it is looked for there, and then among the leases.
		p.lease.alsoList, p.lease.alsoListFirst = p.at.places, true
	}
	return p
}

// enter implements [attempter].
func (p *permit) enter(sess *zkconn.Session) {
	if p.lease.sess != sess {
		p.queued, p.set = false, false
	}
	p.place.enter(sess)
	p.lease.enter(sess)
}

// letGo implements [attempter].
func (p *permit) letGo() {
	p.lease.letGo()
	p.place.letGo()
}

// waits implements [attempter].
func (p *permit) waits() bool { return p.waited }

// attempt implements [attempter].
func (p *permit) attempt(ctx context.Context) (driver.Grant, error) {
	if p.lease.stage == absent {
		if !p.queued {
			free, err := p.look(ctx)
			if err != nil {
				return driver.Grant{}, err
			}
			p.queued = !free
		}
		if p.queued {
			if err := p.stand(ctx); err != nil {
				return driver.Grant{}, err
			}
		}
	}
	return p.take(ctx)
}

// stand waits in the queue until it is the first, and a permit is free.
func (p *permit) stand(ctx context.Context) error {
	c, link := &p.place, p.engine.link
	vain := p.vain // so the end of its own lease is heard as well, and is no reason to make another
	p.vain = false
	if err := c.reach(ctx); err != nil {
		return err
	}
	c.leaveWaiters(true) // whoever is behind it and sees it go is the next
	var names []string
	w := link.Watch(p.engine.tasks.Context(), p.at.leases, zkconn.WatchChildren)
	defer link.Unwatch([]*zkconn.Watch{w})
	patience := c.sess.Times().Doubt
	timer := time.NewTimer(patience)
	defer timer.Stop()
	read := w.Read
	for {
		select {
		case <-read:
			read = nil
			if w.Err != nil {
				continue // it is gone, too
			}
			if p.free(w.Children) {
				if vain && p.engine.doubts.askNow(ctx, w) {
					return errStartOver // others here had watched that, and an event was lost
				}
				p.limitTo(w)
				return nil
			}
			p.waited = p.req.Wait
			if err := p.keepsLimit(ctx); err != nil {
				return err
			}
			if !p.req.Wait {
				return c.held(ctx, entry{})
			}
			names = p.at.permits(w.Children, "")
			p.req.Queued(len(names))
		case <-w.Gone:
			if err := w.Refused(); err != nil {
				return err
			}
			if vain || w.Why != zk.EventNodeChildrenChanged && w.Why != zk.EventNodeDeleted {
				return errStartOver
			}
			p.limitTo(w)
			return nil // a lease has gone, most likely
		case <-timer.C:
			for _, name := range names {
				p.engine.doubts.ask(p.at.leases + "/" + name)
			}
			p.engine.doubts.askOf(w)
			patience = min(2*patience, c.sess.Times().MaxDoubt)
			timer.Reset(patience)
		case <-c.own.gone:
			return c.ownGone()
		case <-ctx.Done():
			return driver.Held(driver.Info{Key: p.req.Key, Held: true})
		}
	}
}

// free reports whether a permit is free.
func (p *permit) free(leases []string) bool { return len(p.at.permits(leases, "")) < p.req.Mode.Limit }

// limitTo makes the next lease void if more are made before it than there is room for beside those of a list. If there was no
// room, a lease of the list has gone.
func (p *permit) limitTo(w *zkconn.Watch) {
	bound := int64(0)
	if w.IsSet() {
		bound = nextNumber(w.Node.Stat) + int64(max(1, p.req.Mode.Limit-len(p.at.permits(w.Children, ""))))
	}
	p.lease.limitTo(bound)
}

// take makes a lease and is granted the permit, unless it came too late.
func (p *permit) take(ctx context.Context) (driver.Grant, error) {
	none, c := driver.Grant{}, &p.lease
	c.replaces, c.onlyIf = nil, nil
	if p.limit != nil && !p.at.kazoo {
		// Otherwise observers would take it for a permit until its client had found out.
		c.onlyIf = &zk.CheckVersionRequest{Path: p.at.key, Version: p.limit.Version}
	}
	if p.place.hasNode() && !p.at.kazoo && !p.passed {
		c.replaces = &p.place
	}
	ahead, _, err := c.locate(ctx)
	if errors.Is(err, zk.ErrBadVersion) {
		c.letGo() // or a creation that was repeated would be again, by the same limit
		return none, p.lookAgain()
	}
	if err != nil {
		return none, err
	}
	alone, err := p.confirm(ctx)
	if err != nil {
		c.letGo()
		return none, zkconn.AsDisconnected(ctx, err)
	}
	if blocked := !alone || len(c.blockers(ahead)) > 0; blocked || void(c.node) {
		p.vain, p.passed = true, p.passed || p.queued
		if !blocked { // the leases that came between are gone
			c.bound = neverBound
		}
		if p.req.Wait {
			c.letGo()
		} else if err := c.withdraw(ctx); err != nil {
			return none, err
		}
		if blocked && !p.queued && !p.req.Wait {
			return none, p.engine.permitsHeld(ctx, p.req.Key)
		}
		p.queued = p.queued || blocked
		return none, errStartOver
	}
	if err := c.prove(ctx); err != nil {
		if errors.Is(err, zkconn.ErrSlow) {
			p.letGo()
		}
		return none, zkconn.AsDisconnected(ctx, err)
	}
	grant, err := c.grant(ctx)
	if err == nil {
		p.place.letGo()
	}
	return grant, err
}

// confirm looks, by lists that were made after the lease, whether the key is still what it was:
// no lock, and the limit as it was read. Nobody changes that while there is a lease. It reports
// whether nobody of kazoo's may be about to make a lease without looking.
func (p *permit) confirm(ctx context.Context) (alone bool, err error) {
	keys := p.lease.lists
	if !p.at.kazoo {
		keys = *keys.Other
	}
	if err := p.refuse(ctx, keys.Names); err != nil {
		return false, err
	}
	if p.replaced(keys.Stat) {
		return false, p.lookAgain()
	}
	if !p.at.kazoo {
		return true, nil
	}
	places, err := p.engine.order(ctx, p.at.places, p.lease.lists.Other.Names, p.place.node)
	switch {
	case err != nil:
		return false, err
	case !p.place.hasNode():
		return len(places) == 0, nil
	}
	return len(places) > 0 && places[0].name == p.place.node, nil
}

// permitsHeld returns who has the permits of a semaphore, for a call that does not wait.
func (e *engine) permitsHeld(ctx context.Context, key string) error {
	info, err := e.inspect(ctx, key)
	switch {
	case err != nil:
		return zkconn.AsDisconnected(ctx, err)
	case !info.Held: // others wait, who are about to be granted them
		return driver.Held(driver.Info{Key: key, Held: true})
	}
	info.Queue = nil
	e.doubts.askIfOld(e.paths.lock(key)+"/"+info.Grant, info.QueuedAt)
	return driver.Held(info)
}

// reclaimLeases deletes the permits that other sessions have under the same owner name.
func (e *engine) reclaimLeases(ctx context.Context, c *contender) error {
	s := e.semaphore(c.req.Key)
	names, err := e.link.Children(ctx, s.leases)
	if err != nil {
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		return err
	}
	line, _, err := e.orderBy(ctx, s.leases, s.permits(names, ""), "", parseLease)
	if err == nil {
		_, err = c.reclaim(ctx, s.leases, s.mayBeLeases(line))
	}
	return err
}
