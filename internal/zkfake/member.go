package zkfake

import (
	"maps"
	"slices"
	"sort"
	"time"
)

// A Member is one server of an ensemble.
type Member struct {
	ensemble *Ensemble
	index    int
	tree     *tree
	watches  *watches
	zxid     int64                   // of the last transaction that it has carried out
	conns    map[int64]*conn         // by the ids of their sessions
	touched  map[int64]time.Duration // timeouts of the sessions that it has heard of since the last ping: LearnerSessionTracker

	// Of a follower.
	toLeader, fromLeader *queue
	parted               bool
	following            bool
	heard                time.Time // when the leader was heard of last
}

func (e *Ensemble) newMember(index int) *Member {
	return &Member{
		ensemble: e, index: index,
		tree: newTree(), watches: newWatches(), zxid: e.lastZxid,
		conns: make(map[int64]*conn), touched: make(map[int64]time.Duration),
		toLeader: e.newQueue(e.config.Delay), fromLeader: e.newQueue(e.config.Delay),
		following: true, heard: time.Now(),
	}
}

func (m *Member) leads() bool { return m == m.ensemble.leader() }

// serves reports whether it takes clients.
func (m *Member) serves() bool { return m.leads() || m.following }

// apply carries out a transaction of the log, tells who watches, and answers the client that it came from.
func (m *Member) apply(t *txn) {
	if t.zxid <= m.zxid {
		return // it came with what it was given when it joined
	}
	m.zxid = t.zxid
	for _, o := range t.ops {
		for _, e := range m.tree.apply(o, t.zxid, t.now) {
			m.watches.fire(e)
		}
	}
	if rq := t.request; rq != nil && rq.conn.member == m {
		rq.done(t.zxid, t.code, t.reply)
	}
	if c := m.conns[t.session]; t.kind == opCloseSession && c != nil && (t.request == nil || t.request.conn != c) {
		c.hangUp()
	}
}

// atLeader does something at the leader, and atMember at a follower what the leader sends to it, both with mu.
func (e *Ensemble) atLeader(m *Member, do func()) {
	if m.leads() {
		do()
		return
	}
	m.toLeader.send(func() { e.locked(do) })
}

func (e *Ensemble) toFollower(m *Member, do func()) {
	if m.leads() {
		do()
		return
	}
	m.fromLeader.send(func() { e.locked(do) })
}

// ping is what the leader does twice a tick: Leader.lead and Follower.processPacket. Each follower answers with the sessions that
// it has heard of.
func (e *Ensemble) ping() {
	for _, m := range e.members[1:] {
		switch {
		case !m.following && !m.parted:
			m.join()
		case m.following && time.Since(m.heard) > time.Duration(e.config.SyncLimit)*e.config.Tick:
			m.leave()
		}
		if !m.following {
			continue
		}
		e.toFollower(m, func() {
			m.heard = time.Now()
			touched := m.touched
			m.touched = make(map[int64]time.Duration)
			e.atLeader(m, func() {
				for _, id := range slices.Sorted(maps.Keys(touched)) {
					e.touch(id, touched[id])
				}
			})
		})
	}
}

// leave is what a follower does that has not heard of its leader for too long: it serves nobody, and all that was under way
// between them is lost.
func (m *Member) leave() {
	m.following = false
	m.toLeader.clear()
	m.fromLeader.clear()
	for _, c := range slices.Collect(maps.Keys(m.ensemble.conns)) {
		if c.member == m {
			c.hangUp()
		}
	}
}

// join gives a follower what it has missed.
func (m *Member) join() {
	m.following, m.heard = true, time.Now()
	log := m.ensemble.log
	missed := sort.Search(len(log), func(i int) bool { return log[i].zxid > m.zxid })
	for _, t := range log[missed:] {
		m.apply(t)
	}
}
