package zkfake

import "time"

// A Member is one server of an ensemble.
type Member struct {
	ensemble *Ensemble
	index    int
	tree     *tree
	watches  *watches
	zxid     int64                   // of the last transaction that it has carried out
	conns    map[int64]*conn         // by the ids of their sessions
	touched  map[int64]time.Duration // timeouts of the sessions that it has heard of since the last ping: LearnerSessionTracker

	toLeader, fromLeader *queue
	deaf, mute           bool // nothing passes from the leader, or to it
	parted               bool // neither
	dead                 bool
	stalled              bool
	following            bool      // or leading
	stranded             *stranded // nil if it is not
	heard                time.Time // of a follower: when the leader was heard of last
	answered             time.Time // of a follower: when the leader has heard of it last
}

func (e *Ensemble) newMember(index int) *Member {
	return &Member{
		ensemble: e, index: index,
		tree: newTree(), watches: newWatches(), zxid: e.lastZxid,
		conns: make(map[int64]*conn), touched: make(map[int64]time.Duration),
		toLeader: e.newQueue(e.config.Delay), fromLeader: e.newQueue(e.config.Delay),
		following: true, heard: time.Now(), answered: time.Now(),
	}
}

func (m *Member) leads() bool { return m == m.ensemble.leader() }

// serves reports whether it takes clients.
func (m *Member) serves() bool { return !m.dead && (m.following || m.stranded != nil) }

// apply carries out a transaction of the log, fires watches, and answers the client that sent the request.
func (m *Member) apply(t *txn) {
	if t.zxid <= m.zxid {
		return // it received the transaction when it joined
	}
	m.zxid = t.zxid
	for _, o := range t.ops {
		former := m.tree.znodes[o.path]
		for _, e := range m.tree.apply(o, t.zxid, t.now) {
			about, ok := m.tree.znodes[e.path]
			if !ok {
				about = former
			}
			secret := m.ensemble.config.Discreet && !about.allows(permRead) // NIOServerCnxn.process
			m.watches.fire(e, secret)
		}
	}
	if rq := t.request; rq != nil && rq.conn.member == m {
		rq.done(t.zxid, t.code, t.reply)
	}
	if c := m.conns[t.session]; t.kind == opCloseSession && c != nil && (t.request == nil || t.request.conn != c) {
		c.hangUp()
	}
}

// atLeader does something at the leader for a follower, and toFollower something at a follower for the leader, both with mu. It is lost
// with the leader.
func (e *Ensemble) atLeader(m *Member, do func()) { e.pass(m, m.toLeader, do) }

func (e *Ensemble) toFollower(m *Member, do func()) { e.pass(m, m.fromLeader, do) }

func (e *Ensemble) pass(m *Member, over *queue, do func()) {
	if m.leads() {
		do()
		return
	}
	epoch := e.lastZxid >> 32
	if m.following {
		over.send(func() {
			e.locked(func() {
				if e.lead >= 0 && e.lastZxid>>32 == epoch && m.following {
					do()
				}
			})
		})
	}
}
