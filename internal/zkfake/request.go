package zkfake

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/jute"
)

// A request is one of a client that has a session.
type request struct {
	conn *conn
	xid  int32
	kind int32
	body *jute.Decoder
	ops  []op // of a write; nil if it cannot be read

	twice    bool // see AppliedTwice
	last     bool // see EndBehind
	answered bool // what follows is known
	zxid     int64
	code     code
	reply    []byte
}

// request takes in a request: FinalRequestProcessor, and on a follower FollowerRequestProcessor.
func (c *conn) request(d *jute.Decoder) {
	rq := &request{conn: c, xid: d.Int32(), kind: d.Int32(), body: d, twice: c.met.twice, last: c.met.last}
	e, m := c.member.ensemble, c.member
	refusal := c.met.refusal
	if refusal == 0 && c.wire.throttled(rq.kind) {
		refusal = codeThrottled
	}
	switch {
	case d.Bad:
		c.hangUp()
		return
	case rq.kind == opSetAuth: // it says nothing of the session
		c.known = true
	case e.config.Closed && !c.known: // AuthenticationHelper.enforceAuthentication
		c.send(func(e *jute.Encoder) {
			e.Int32(rq.xid)
			e.Int64(0)
			e.Int32(int32(codeAuthRequired))
		})
		c.hangUp()
		return
	case refusal != 0 && refusal != codeThrottled: // before anything is known of the session
	case !m.leads():
		m.touched[c.session] = c.timeout
	case !e.touch(c.session, c.timeout): // the end of the connection is on its way
		return
	}
	c.pending = append(c.pending, rq)
	if refusal != 0 {
		rq.done(m.zxid, refusal, nil)
		return
	}
	switch rq.kind {
	case opSync:
		c.sync(rq, d.String())
	case opCreate, opCreate2, opCreateContainer, opDelete, opSetData, opSetACL, opMulti, opCloseSession:
		rq.ops = rq.decode()
		propose := func() {
			e.atLeader(m, func() {
				if s := e.sessions[c.session]; s != nil && rq.kind == opCloseSession { // PrepRequestProcessor.pRequest2Txn
					s.closing = true
				}
				e.whenQuorate(func() { e.propose(m, rq) })
			})
		}
		if after := c.met.after; after > 0 {
			time.AfterFunc(after, func() { e.locked(propose) })
		} else {
			propose()
		}
	default:
		c.answer()
	}
}

// sync answers behind the transactions that the leader has committed. A leader that is not waiting for a majority does not ask for one:
// Leader.processSync.
func (c *conn) sync(rq *request, path string) {
	e, m := c.member.ensemble, c.member
	done := func() { rq.done(m.zxid, 0, func(e *jute.Encoder) { e.String(path) }) }
	if m.stranded != nil && m.stranded.sessions != nil {
		done()
		return
	}
	e.atLeader(m, func() {
		answer := func() { e.toFollower(m, done) }
		if len(e.waiting) > 0 {
			e.whenQuorate(answer)
		} else {
			answer()
		}
	})
}

// done has the answer to a write or a sync. It is encoded now: the tree goes on.
func (rq *request) done(zxid int64, code code, reply func(e *jute.Encoder)) {
	if code == codeSessionMoved { // an error of the connection: ZOOKEEPER-710
		rq.conn.hangUp()
		return
	}
	if rq.twice && code == 0 {
		code = again[rq.kind]
	}
	rq.answered, rq.zxid, rq.code = true, zxid, code
	if code == 0 {
		body := &jute.Encoder{}
		reply(body)
		rq.reply = body.B
	}
	rq.conn.answer()
}

// again is the code of a transaction that has been carried out already. That of a multi is not looked at: FinalRequestProcessor.
var again = map[int32]code{
	opCreate: codeNodeExists, opCreate2: codeNodeExists, opCreateContainer: codeNodeExists, opDelete: codeNoNode,
}

// answer sends the answers that are due, in the order of the requests. A read is carried out when its turn comes, because it must
// show earlier writes of the client.
func (c *conn) answer() {
	for len(c.pending) > 0 && !c.closed {
		rq := c.pending[0]
		if !rq.answered && !rq.read() {
			return
		}
		c.pending = c.pending[1:]
		c.send(func(e *jute.Encoder) {
			e.Int32(rq.xid)
			e.Int64(rq.zxid)
			e.Int32(int32(rq.code))
			e.B = append(e.B, rq.reply...)
		})
		if rq.kind == opCloseSession || rq.last {
			c.hangUp()
		}
	}
}

// read carries out a read, and reports whether the request is one.
func (rq *request) read() bool {
	body := &jute.Encoder{}
	switch rq.kind {
	case opSync, opCreate, opCreate2, opCreateContainer, opDelete, opSetData, opSetACL, opMulti, opCloseSession:
		return false
	case opPing, opSetAuth:
	case opSetWatches:
		rq.setWatches()
	case opExists, opGetData, opGetACL, opGetChildren, opGetChildren2:
		rq.code = rq.look(body)
	default:
		rq.code = codeUnimplemented
	}
	rq.zxid = rq.conn.member.zxid
	if rq.code == 0 {
		rq.reply = body.B
	}
	return true
}

// look reads a znode, and sets a watch if it is to.
func (rq *request) look(e *jute.Encoder) code {
	c, d := rq.conn, rq.body
	t, w := c.member.tree, c.member.watches
	path := d.String()
	watch := rq.kind != opGetACL && d.Bool()
	n, exists := t.znodes[path]
	perm := int32(permRead)
	switch rq.kind {
	case opExists:
		if !c.member.ensemble.config.Guarded {
			perm = 0
		}
	case opGetACL:
		perm = permRead | permAdmin
	}
	if exists && perm != 0 && !n.allows(perm) {
		return codeNoAuth
	}
	if watch && (exists || rq.kind == opExists) {
		if rq.kind == opGetChildren || rq.kind == opGetChildren2 {
			add(w.children, path, c)
		} else {
			add(w.data, path, c)
		}
	}
	if !exists {
		return codeNoNode
	}
	switch rq.kind {
	case opGetData:
		e.Bytes(n.data)
	case opGetACL:
		e.Int32(int32(len(n.acl)))
		for _, a := range n.acl {
			e.Int32(a.perms)
			e.String(a.scheme)
			e.String(a.id)
		}
	case opGetChildren, opGetChildren2:
		names := t.names(path)
		e.Int32(int32(len(names)))
		for _, name := range names {
			e.String(name)
		}
	}
	if rq.kind != opGetChildren {
		t.stat(e, path)
	}
	return 0
}

// setWatches sets watches again that a client had on another connection, and sends missed events at once: DataTree.setWatches.
func (rq *request) setWatches() {
	c, d := rq.conn, rq.body
	since := d.Int64()
	again := func(watching map[string]map[*conn]struct{}, expected bool, changed eventType, zxid func(znode) int64) {
		for _, path := range jute.List(d, d.String) {
			switch n, exists := c.member.tree.znodes[path]; {
			case !exists && expected:
				c.tell(event{eventDeleted, path})
			case exists && zxid(n) > since:
				c.tell(event{changed, path})
			default:
				add(watching, path, c)
			}
		}
	}
	w := c.member.watches
	again(w.data, true, eventData, func(n znode) int64 { return n.mzxid })
	again(w.data, false, eventCreated, func(znode) int64 { return math.MaxInt64 }) // on znodes that did not exist
	again(w.children, true, eventChildren, func(n znode) int64 { return n.pzxid })
}

// decode reads the operations of a write; nil if they cannot be read.
func (rq *request) decode() []op {
	d := rq.body
	ops := []op{}
	switch rq.kind {
	case opCloseSession:
		return ops
	case opMulti:
		for {
			kind, over := d.Int32(), d.Bool()
			_ = d.Int32()
			if over || d.Bad {
				break
			}
			o := decodeOp(d, kind)
			if o.flags == flagContainer { // Op.Create.getOpcode
				o.kind = opCreateContainer
			}
			ops = append(ops, o)
		}
	default:
		ops = append(ops, decodeOp(d, rq.kind))
	}
	if d.Bad {
		return nil
	}
	return ops
}

func decodeOp(d *jute.Decoder, kind int32) op {
	readACL := func() acl { return acl{d.Int32(), d.String(), d.String()} }
	o := op{kind: kind, version: -1}
	switch kind {
	case opCreate, opCreate2, opCreateContainer:
		o.path, o.data = d.String(), d.Bytes()
		o.acl = jute.List(d, readACL)
		o.flags = d.Int32()
	case opDelete, opCheck:
		o.path, o.version = d.String(), d.Int32()
	case opSetData:
		o.path, o.data, o.version = d.String(), d.Bytes(), d.Int32()
	case opSetACL:
		o.path, o.acl, o.version = d.String(), jute.List(d, readACL), d.Int32()
	default:
		d.Bad = true
	}
	return o
}
