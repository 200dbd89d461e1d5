package zklock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
)

// place is one caller's node in the queue of a lock, or its efforts to have
// one. Outside the recipe's goroutine nobody touches it.
type place struct {
	b      *engine
	req    *driver.Request
	parent string
	data   []byte

	sess      *session
	guid      string
	node      string // "": not known to exist
	czxid     int64  // 0: to be learned from the node
	uncertain bool   // a creation with this guid has an unknown outcome
	own       *own
	reclaimed bool
	slams     int // creations in a row that a server answered by hanging up
}

func (p *place) path() string { return p.parent + "/" + p.node }

// enter begins, or goes on, in a session. What another session has created ends
// with it, and nothing of it may be taken for one's own.
func (p *place) enter(sess *session) {
	if p.sess == sess {
		return
	}
	if p.uncertain {
		p.purge(sess) // a creation handed over too late is carried out in the next session
	}
	p.forget()
	p.sess = sess
}

// purge deletes, in the background, whatever comes of creations in a session.
func (p *place) purge(sess *session) { p.b.strays.purge(sess, p.parent, p.guidInName()) }

// forget makes the place one that has no node, with a new guid.
func (p *place) forget() {
	if p.own != nil {
		p.own.stop()
	}
	p.guid, p.node, p.czxid, p.uncertain, p.own = newGUID(), "", 0, false, nil
}

// lose makes it that when its node is gone, though nobody gave it up: as far as the
// server shows, which may lack what others have.
func (p *place) lose() {
	switch {
	case p.uncertain:
		p.purge(p.sess) // the node was that of one creation; there may be another
	case p.node != "":
		p.b.discard(p.sess, p.path())
	}
	p.forget()
}

// leave gives the place up, in the background.
func (p *place) leave() {
	if p.own != nil {
		p.own.stop()
	}
	switch {
	case p.uncertain:
		if sess := p.b.link.current(); sess != nil { // not p.sess: see enter
			p.purge(sess)
		}
	case p.node != "":
		p.b.discard(p.sess, p.path())
	}
	p.node, p.uncertain, p.own = "", false, nil
}

// guidInName returns the guid as it stands in node names.
func (p *place) guidInName() string { return p.b.opts.Names.guid(p.guid) }

// join makes sure that the place has a node, as far as can be known, and
// returns the children of the lock node, as they were after that.
func (p *place) join(ctx context.Context) ([]string, error) {
	if p.node == "" {
		l, err := p.create(ctx)
		if err != nil {
			return nil, err
		}
		if l.err == nil && slices.Contains(l.names, p.node) {
			return l.names, nil
		}
		// The list failed, or overtook the creation, or the node is gone already.
		// (Another node with this guid does not count: of a creation that was
		// repeated, the list has to show what came of the last one too.)
	}
	names, err := p.b.link.children(ctx, p.parent)
	if errors.Is(err, zk.ErrNoNode) {
		p.lose()
		return nil, errNotGranted
	}
	return names, p.waiting(ctx, stepError("list", p.parent, err))
}

// created is the outcome of a creation.
type created struct {
	path  string
	czxid int64
	same  bool // it was made in the session that it was meant for
	err   error
}

// listing is the outcome of a list.
type listing struct {
	names []string
	err   error
}

// launch sends the creation of a node and the list of its siblings in one
// flight: a server carries out what one session sends in the order in which it
// was sent. That the session is the same before and after shows that the node
// is of this session: go-zookeeper runs what it is handed too late in the next
// one.
func (b *engine) launch(sess *session, parent, path string, data []byte) (<-chan created, <-chan listing) {
	made, listed := make(chan created, 1), make(chan listing, 1)
	b.link.routines.run(func() {
		if !b.link.same(sess) {
			made <- created{err: zk.ErrNoServer}
			return
		}
		// The new goroutine runs when this one has sent the creation and waits
		// for the reply. Should it be first all the same, the list lacks the
		// node, and is made again.
		b.link.routines.run(func() {
			names, _, err := b.link.conn.Children(parent)
			listed <- listing{names, err}
		})
		b.link.expectCreated(path)
		full, err := b.link.conn.Create(path, data, zk.FlagEphemeral|zk.FlagSequence, b.opts.ACL)
		made <- created{path: full, czxid: b.link.takeCreated(path), same: b.link.same(sess), err: err}
	})
	return made, listed
}

// create makes the node. It returns the list that came with it.
func (p *place) create(ctx context.Context) (listing, error) {
	path := p.parent + "/" + p.b.opts.Names.name(p.guid)
	began := time.Now()
	made, listed := p.b.launch(p.sess, p.parent, path, p.data)
	var c created
	select {
	case c = <-made:
	case <-ctx.Done():
		p.abandon(made)
		return listing{}, p.waiting(ctx, driver.ContextError(ctx))
	}
	switch {
	case c.err == nil && !c.same:
		p.adopt(c)
		p.forget()
		return listing{}, errNotGranted
	case c.err == nil:
		p.node, p.czxid, p.slams = base(c.path), c.czxid, 0
		if p.uncertain {
			p.czxid = 0 // the node that is kept may be the other one
		}
	case errors.Is(c.err, zk.ErrNoNode):
		if err := p.b.makeParents(ctx, p.parent); err != nil {
			return listing{}, p.waiting(ctx, err)
		}
		return listing{}, errNotGranted
	case notSent(c.err):
		return listing{}, errNotGranted // the session has changed since
	case sessionOver(c.err):
		p.forget()
		return listing{}, stepError("create", path, c.err)
	case unknownOutcome(c.err):
		p.uncertain = true
		return listing{}, p.hungUp(path, time.Since(began), c.err)
	default:
		return listing{}, stepError("create", path, c.err)
	}
	select {
	case l := <-listed:
		return l, nil
	case <-ctx.Done():
		return listing{}, p.waiting(ctx, driver.ContextError(ctx))
	}
}

// hungUp tells a server that hangs up on a request because it is too large for
// its buffer, again and again and at once, from a network that fails.
func (p *place) hungUp(path string, after time.Duration, err error) error {
	const enough, small = 4, 1024
	if after > p.sess.timeout()/4 || len(p.data) < small {
		p.slams = 0
		return stepError("create", path, err)
	}
	if p.slams++; p.slams < enough {
		return stepError("create", path, err)
	}
	return fmt.Errorf("zookeeper: create %s: %w", path,
		driver.Invalid("data", "the server hangs up on a request with %d bytes of it: more than its jute.maxbuffer allows?", len(p.data)))
}

// abandon leaves a creation under way to the background, and the place with
// nothing.
func (p *place) abandon(made <-chan created) {
	orphan := *p
	p.node, p.uncertain, p.own = "", false, nil
	p.b.link.routines.run(func() { orphan.adopt(<-made) })
}

// adopt sees to it that nothing stays behind of a creation that nobody wants
// any more, whatever came of it.
func (p *place) adopt(c created) {
	switch {
	case c.err == nil && c.same && !p.uncertain:
		p.b.discard(p.sess, c.path)
	case c.err == nil, unknownOutcome(c.err), p.uncertain:
		// What was made in a session that is over has ended with it.
		if sess := p.b.link.current(); sess != nil {
			p.purge(sess)
		}
	}
}

// find returns the contenders before this place in a line, and false if it is
// not in it. A creation that was repeated may have succeeded twice: of several
// nodes of its own, the first that it finds is the one, and stays it; the others
// are deleted, and count for nothing even when the one is gone before them.
func (p *place) find(line []contender) (ahead []contender, found bool) {
	guid := p.guidInName()
	for i, c := range line {
		switch {
		case !strings.Contains(c.name, guid):
		case !found && (p.uncertain || c.name == p.node):
			found = true
			ahead = line[:i]
			p.node = c.name
		default:
			p.b.discard(p.sess, p.parent+"/"+c.name)
		}
	}
	if !found {
		return nil, false
	}
	if p.uncertain {
		p.uncertain = false
		p.b.strays.expect(p.sess, p.parent, guid, p.node) // one of the creations may not have arrived yet
	}
	if p.own == nil {
		p.own = p.b.watchOwn(p.sess, p.path(), p.czxid)
		if p.czxid == 0 || len(ahead) > 0 {
			p.own.set() // it is waited for, or waits itself
		} else {
			p.own.setLater()
		}
	}
	return ahead, true
}

// reclaim deletes the nodes before this one that other sessions have under the
// same owner name. It reports whether any of them is gone.
func (p *place) reclaim(ctx context.Context, ahead []contender) (removed bool, err error) {
	nodes, err := p.b.readAll(ctx, p.parent, ahead)
	if err != nil {
		return false, err
	}
	// From the back, or one that is reclaimed would let in the next that is to be.
	for _, c := range slices.Backward(ahead) {
		node, ok := nodes[c.name]
		if !ok {
			removed = true // by itself
			continue
		}
		owner, _ := decodeData(node.data)
		if owner != p.req.Owner || node.stat.EphemeralOwner == p.sess.id {
			continue
		}
		path := p.parent + "/" + c.name
		if err := p.b.link.evict(ctx, path, node.data); err != nil {
			return false, stepError("reclaim", path, err)
		}
		p.b.host.Logger().Info("lock reclaimed", "key", p.req.Key, "path", path, "owner", owner, "token", uint64(node.stat.Czxid))
		removed = true
	}
	return removed, nil
}

// evict deletes a node in such a way that its client can tell that it was
// reclaimed: it writes to it in the same transaction. See own.fired.
func (l *link) evict(ctx context.Context, path string, data []byte) error {
	_, err := call(ctx, l, func() (struct{}, error) {
		_, err := l.conn.Multi(
			&zk.SetDataRequest{Path: path, Data: bytes.Clone(data), Version: -1},
			&zk.DeleteRequest{Path: path, Version: -1},
		)
		if errors.Is(err, zk.ErrNoAuth) { // to write; to delete may be allowed
			err = l.conn.Delete(path, -1)
		}
		return struct{}{}, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
