package zklock

import (
	"strings"

	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
)

// contender is one call of Acquire: its node in the queue of a lock, or its efforts to
// have one. Outside the call's goroutine nobody touches it.
type contender struct {
	engine *engine
	req    *driver.Request
	parent string
	data   []byte
	role   role
	beside string // a znode that is listed each time that the parent is; "" for none
	first  bool   // it is listed before the parent, and not at the same time

	instead *contender              // whose node is deleted in the transaction that creates this one's; nil for none
	still   *zk.CheckVersionRequest // without which that is refused; nil for none

	sess      *zkconn.Session
	guid      string
	node      string // "": not known to exist
	czxid     int64  // 0: to be learned from the node
	uncertain bool   // a creation with this guid has an unknown outcome
	own       *own
	turn      *turn // nil before it waits
	reclaimed bool
	behind    bool // it has waited for somebody, and has to look at the queue again

	parentMade bool
	hangUps    hangUps        // of creations
	lists      zkconn.Listing // the last ones, if there is a znode beside
}

func (c *contender) path() string { return c.parent + "/" + c.node }

// guidInName returns the guid as it stands in node names.
func (c *contender) guidInName() string { return c.engine.opts.Names.guid(c.guid) }

// enter begins, or goes on, in a session. What another session has created ends
// with it, or is deleted if the session was only left, and nothing of it may be taken for one's own.
func (c *contender) enter(sess *zkconn.Session) {
	if c.sess == sess {
		return
	}
	if c.uncertain {
		c.removeCreations(sess) // a creation handed over too late is carried out in the next session
	} else if c.node != "" && c.sess.Left() {
		c.engine.removeLater(c.sess, c.path())
	}
	c.clear()
	c.sess = sess
}

// find returns the entries before this contender's in a line, and false if it is
// not in it. A creation that was repeated may have succeeded twice: of several
// nodes of its own, the first that it finds is the one, and stays it; the others
// are deleted, and count for nothing even when the one is gone before them.
func (c *contender) find(line []entry) (ahead []entry, found bool) {
	guid := c.guidInName()
	for i, x := range line {
		switch {
		case !strings.Contains(x.name, guid):
		case !found && (c.uncertain || x.name == c.node):
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
	if c.uncertain {
		c.uncertain = false
		c.engine.late.expect(c.sess, c.parent, guid, c.node) // one of the creations may not have arrived yet
	}
	if c.own == nil {
		c.own = c.engine.watchOwn(c.sess, c.path(), c.czxid, c.req.Owner)
		if c.role == asLease {
			c.own.queue = c.engine.semaphore(c.req.Key).places
		}
		if c.czxid == 0 || len(c.blockers(ahead)) > 0 {
			c.own.set() // it is waited for, or waits itself
		} else {
			c.own.setLater()
		}
	}
	return ahead, true
}

// clear forgets the node and takes a new guid. It deletes nothing.
func (c *contender) clear() {
	if c.own != nil {
		c.own.stop()
	}
	c.leaveWaiters(false)
	c.guid, c.node, c.czxid, c.uncertain, c.own = newGUID(), "", 0, false, nil
	if c.req.Reclaim {
		c.guid = c.engine.markedGUID(c.req.Owner)
	}
}

// reset starts over after someone else deleted the node: as far as this server shows,
// which may lack what others have.
func (c *contender) reset() {
	switch {
	case c.uncertain:
		c.removeCreations(c.sess) // the node was that of one creation; there may be another
	case c.node != "":
		c.engine.removeLater(c.sess, c.path())
	}
	c.clear()
}

// leave gives up, and removes the node in the background.
func (c *contender) leave() {
	if c.own != nil {
		c.own.stop()
	}
	switch {
	case c.uncertain:
		if sess := c.engine.link.Session(); sess != nil { // not c.sess: see enter
			c.removeCreations(sess)
		}
	case c.node != "":
		c.engine.removeLater(c.sess, c.path())
	}
	c.clear()
}

// removeCreations removes, in the background, all nodes that this contender's creations
// have left in a session, or may still leave there.
func (c *contender) removeCreations(sess *zkconn.Session) {
	c.engine.late.remove(sess, c.parent, c.guidInName())
}
