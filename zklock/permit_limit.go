package zklock

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// look reports whether a permit can be taken past the queue. It refuses what does not fit the
// use of the key, and makes the limit that of a key which nobody uses.
func (p *permit) look(ctx context.Context) (free bool, err error) {
	err = p.engine.upToDate(ctx, p.at.key, func() error {
		free, err = p.lookOnce(ctx)
		return err
	})
	return free, err
}

func (p *permit) lookOnce(ctx context.Context) (free bool, err error) {
	e := p.engine
	limit := []byte(strconv.Itoa(p.req.Mode.Limit))
	u, err := e.survey(ctx, p.at)
	if errors.Is(err, zk.ErrNoNode) {
		if err := e.createParents(ctx, p.at.key, limit); err != nil {
			return false, zkconn.AsDisconnected(ctx, err)
		}
		return false, errStartOver
	}
	if err != nil {
		return false, zkconn.AsDisconnected(ctx, err)
	}
	if err := p.refuse(ctx, u.keys); err != nil {
		return false, zkconn.AsDisconnected(ctx, err)
	}
	used := len(u.leases)+len(u.places) > 0
	switch n, known := u.limit(); {
	case known && n == p.req.Mode.Limit:
		p.limit = u.stat
	case known && (used || p.set):
		return false, &driver.MismatchError{Key: p.req.Key, Have: n, Want: p.req.Mode.Limit}
	case known || len(u.data) == 0:
		return false, p.setLimit(ctx, limit, u)
	default:
		return false, driver.Invalid("key", "the znode %s has data that is not the limit of a semaphore", p.at.key)
	}
	switch free = len(u.leases) < p.req.Mode.Limit && len(u.places) == 0; {
	case p.req.Reclaim:
		return false, nil // others learn by its place there that it reclaims
	case !free && !p.req.Wait:
		return false, e.permitsHeld(ctx, p.req.Key)
	}
	p.lease.limitTo(u.next + int64(p.req.Mode.Limit-len(u.leases)))
	return free, nil
}

// refuse fails if the children of the key's znode are those of a lock, or of a semaphore in
// the other form.
func (p *permit) refuse(ctx context.Context, children []string) error {
	if slices.ContainsFunc(children, func(name string) bool { return isLock(name) && !void(name) }) {
		return &driver.MismatchError{Key: p.req.Key, Want: p.req.Mode.Limit}
	}
	sign, _, err := p.engine.inUse(ctx, semaphoreAt(p.at.key, !p.at.kazoo), children)
	if sign != "" {
		return &NamesError{Key: p.req.Key, Node: sign, Names: p.engine.opts.Names}
	}
	return err
}

// setLimit makes the limit that of a key which has none, or another one that nobody uses. The
// latter is one transaction with the deletion of what can have leases and places in it, which
// fails if there are any: somebody may have found the former limit, and be making a lease.
func (p *permit) setLimit(ctx context.Context, limit []byte, u use) error {
	e, s := p.engine, p.at
	version := u.stat.Version
	if len(u.data) == 0 {
		_, err := e.link.Set(ctx, s.key, limit, version, func(error) {})
		return p.wasSet(ctx, err)
	}
	for _, path := range []string{s.places, s.leases} {
		if err := e.createParents(ctx, path, nil); err != nil {
			return zkconn.AsDisconnected(ctx, err)
		}
	}
	ops := []any{&zk.DeleteRequest{Path: s.places, Version: -1}}
	if s.kazoo {
		for _, name := range []string{placesName, leasesName} {
			if slices.Contains(u.keys, name) { // left from a semaphore in Curator's form
				ops = append(ops, &zk.DeleteRequest{Path: s.key + "/" + name, Version: -1})
			}
		}
		ops = append(ops, &zk.DeleteRequest{Path: s.key, Version: version},
			&zk.CreateRequest{Path: s.key, Data: limit, Acl: e.opts.ParentACL}) // kazoo takes it for granted
	} else {
		ops = append(ops, &zk.DeleteRequest{Path: s.leases, Version: -1},
			&zk.SetDataRequest{Path: s.key, Data: limit, Version: version})
	}
	return p.wasSet(ctx, e.link.Transact(ctx, "set limit", s.key, ops...))
}

// wasSet returns errStartOver if the server has answered a request for another limit.
func (p *permit) wasSet(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNotEmpty):
		p.set = true // if it is another one again, that is in use
		return errStartOver
	case errors.Is(err, zk.ErrNoNode): // the server has removed something that was empty
		return errStartOver
	}
	return zkconn.AsDisconnected(ctx, err)
}

// replaced reports whether the limit is not the one any more that was read. key is what the key's znode says of itself; nil
// if there is none.
func (p *permit) replaced(key *zk.Stat) bool {
	return key == nil || p.limit == nil || key.Czxid != p.limit.Czxid || key.Version != p.limit.Version
}

// keepsLimit makes sure that the limit is still what it was when the place in the queue was made, before that
// waits: nobody replaces it any more, so one of an outdated limit would keep permits from those who want another. Whoever
// makes a lease finds out by that.
func (p *permit) keepsLimit(ctx context.Context) error {
	if p.keeps == p.place.node {
		return nil
	}
	stat, err := p.engine.link.Stat(ctx, p.at.key)
	switch {
	case errors.Is(err, zk.ErrNoNode), err == nil && p.replaced(stat):
		return p.lookAgain()
	case err != nil:
		return zkconn.AsDisconnected(ctx, err)
	}
	p.keeps = p.place.node
	return nil
}

// lookAgain is for a limit that has changed.
func (p *permit) lookAgain() error {
	p.place.letGo()
	p.queued = false
	return errStartOver
}
