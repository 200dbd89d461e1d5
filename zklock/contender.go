package zklock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// contender is one call of Acquire: its node in the queue of a lock, or its efforts to
// have one. Outside the call's goroutine nobody touches it.
type contender struct {
	engine *engine
	req    *driver.Request
	parent string
	data   []byte

	stage     stage
	sess      *zkconn.Session
	guid      string
	bound     int64    // in its guid; 0 for none
	node      string   // its name, from the stage doubled on; "" if that is to be learned from the list
	czxid     int64    // of the node; 0: to be learned from it
	own       *ownNode // in the stage queued
	reclaimed bool
	behind    bool // it has waited for somebody, and has to look at the queue again

	listed    int64        // the Pzxid of the parent, as it was last listed
	followed  bool         // other nodes were there then, behind its own
	announced announcement // the write by which the queue was listed again last

	hangUps hangUps // of creations
}

// An announcement is a write to the node of a predecessor.
type announcement struct {
	path    string
	version int32
}

// stage says what a contender has of a node.
type stage int

const (
	absent  stage = iota // nothing
	unknown              // a creation has had no reply: there may be a node
	doubled              // there is a node of one of several creations, or of one that had no reply; there may be another
	created              // a node
	queued               // a node that it has found in the queue, and watches
)

// hasNode reports whether there is a node for sure.
func (c *contender) hasNode() bool { return c.stage >= doubled }

func (c *contender) path() string { return c.parent + "/" + c.node }

// guidInName returns the guid as it stands in node names.
func (c *contender) guidInName() string { return c.engine.opts.Names.form().guid(c.guid) }

// enter begins, or goes on, in a session. A node of another session ends with that session.
func (c *contender) enter(sess *zkconn.Session) {
	if c.sess == sess {
		return
	}
	c.letGo()
	c.sess = sess
}

// find returns the entries before this contender's in a line, and false if it is
// not in it. A creation that was repeated may have succeeded twice. The contender keeps the
// first node of its own that it finds. It deletes the others, and never moves to one of them, even
// if its own is gone before they are.
func (c *contender) find(line []entry) (ahead []entry, found bool) {
	guid := c.guidInName()
	for i, x := range line {
		switch {
		case !strings.Contains(x.name, guid):
		case !found && (c.stage == doubled || x.name == c.node):
			found = true
			ahead = line[:i]
			c.node = x.name
		default:
			c.engine.removeLater(c.sess, c.parent+"/"+x.name)
		}
	}
	if !found {
		return nil, false
	}
	if c.stage == doubled {
		c.engine.late.expect(c.sess, c.parent, guid, c.node) // one of the creations may not have arrived yet
	}
	if c.stage != queued {
		c.stage = queued
		c.own = c.engine.newOwnNode(c.sess, c.path(), c.czxid, c.req.Owner)
		if c.czxid == 0 || len(c.blockers(ahead)) > 0 {
			c.own.begin() // it is waited for, or waits itself
		} else {
			c.own.watchLater()
		}
	}
	return ahead, true
}

// letGo gives up whatever the contender has, or may have, and deletes it in the background: also a node that seems to be gone, since
// a server may show less than others have.
func (c *contender) letGo() { c.leave() }

// leave is letGo that returns a channel, which closes when a node that is known has been deleted; nil if there is none.
func (c *contender) leave() (gone <-chan struct{}) {
	if c.own != nil {
		c.own.stop() // before the node goes
	}
	switch c.stage {
	case unknown, doubled:
		c.removeCreations()
	case created, queued:
		gone = c.engine.removeLater(c.sess, c.path())
	}
	c.forget()
	return gone
}

// withdraw is letGo that waits until the node is deleted. If ctx ends first, withdraw returns its error, and the
// background goes on.
func (c *contender) withdraw(ctx context.Context) error {
	gone := c.leave()
	if gone == nil {
		return nil
	}
	limit := time.NewTimer(c.engine.link.Times().Session)
	defer limit.Stop()
	select {
	case <-gone:
		return nil
	case <-limit.C:
		return fmt.Errorf("zookeeper: %w: a node is not deleted after a session timeout", driver.ErrDisconnected)
	case <-ctx.Done():
		return zkconn.Disconnected(ctx)
	}
}

// forget makes the contender begin anew, with another guid. It deletes nothing.
func (c *contender) forget() {
	if c.own != nil {
		c.own.stop()
	}
	if c.hasNode() {
		c.engine.late.keepNot(c.sess, c.path())
	}
	c.stage, c.guid, c.node, c.czxid, c.own = absent, newGUID(), "", 0, nil
	switch {
	case c.req.Reclaim:
		c.guid = c.engine.markedGUID(c.req.Owner)
	case c.bound > 0:
		c.guid = boundedGUID(c.bound)
	}
}

// removeCreations removes, in the background, all nodes that this contender's creations have left, or may still leave.
func (c *contender) removeCreations() {
	c.engine.late.remove(c.sess, c.parent, c.guidInName())
}
