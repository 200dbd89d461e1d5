package zkfake

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// This file is about leadership: the effects of Leader.lead, Follower.followLeader and FastLeaderElection.
//
// A transaction that has a zxid here is one that a majority has: it survives every election. A transaction that a leader cannot get
// a majority for has no zxid yet. It waits, and is lost when another member leads.

// leader is the member that leads; nil while there is none.
func (e *Ensemble) leader() *Member {
	if e.lead < 0 {
		return nil
	}
	return e.members[e.lead]
}

// latest is the leader, or else a member that knows most.
func (e *Ensemble) latest() *Member {
	if l := e.leader(); l != nil {
		return l
	}
	return slices.MaxFunc(e.members, func(a, b *Member) int { return cmp.Compare(a.zxid, b.zxid) })
}

// acts is the leader, if it runs; else nil.
func (e *Ensemble) acts() *Member {
	if l := e.leader(); l != nil && !l.stalled {
		return l
	}
	return nil
}

// limit is how long a leader and a follower wait for each other.
func (e *Ensemble) limit() time.Duration { return time.Duration(e.config.SyncLimit) * e.config.Tick }

// quorate reports whether the leader reaches a majority.
func (e *Ensemble) quorate() bool {
	l := e.acts()
	return l != nil && l.hasMajority(func(m *Member) bool {
		return m.following && !m.stalled && !m.parted && !m.deaf && !m.mute && !l.parted
	})
}

// hasMajority reports whether the leader and the other members that count are a majority.
func (l *Member) hasMajority(counts func(*Member) bool) bool {
	with := 1
	for _, m := range l.ensemble.members {
		if m != l && counts(m) {
			with++
		}
	}
	return 2*with > len(l.ensemble.members)
}

// whenQuorate does something at the leader that needs a majority, in the order in which it is asked for.
func (e *Ensemble) whenQuorate(do func()) {
	e.waiting = append(e.waiting, do)
	e.flush()
}

func (e *Ensemble) flush() {
	for len(e.waiting) > 0 && e.quorate() {
		do := e.waiting[0]
		e.waiting = e.waiting[1:]
		do()
	}
}

// beat runs twice a tick: members give up silent members, elect, and ping.
func (e *Ensemble) beat() {
	for _, m := range e.members {
		switch {
		case m.dead || m.stalled:
		case m.stranded != nil && !time.Now().Before(m.stranded.until),
			m.leads() && e.alone(),
			m.following && !m.leads() && time.Since(m.heard) > e.limit():
			m.leave()
		}
	}
	if l := e.leader(); l == nil || !l.hasMajority(func(m *Member) bool { return m.following }) {
		e.elect()
	}
	if l := e.acts(); l != nil {
		e.ping(l)
	}
	e.flush()
}

// alone reports whether the leader has not heard of a majority for too long.
func (e *Ensemble) alone() bool { return !time.Now().Before(e.leader().until()) }

// until is how long a leader goes on that hears no more of its followers.
func (l *Member) until() time.Time {
	var answered []time.Time
	for _, m := range l.ensemble.members {
		if m != l {
			answered = append(answered, m.answered)
		}
	}
	if len(answered) == 0 {
		return time.Now().Add(l.ensemble.limit())
	}
	slices.SortFunc(answered, func(a, b time.Time) int { return b.Compare(a) })
	return answered[len(l.ensemble.members)/2-1].Add(l.ensemble.limit())
}

// elect makes a member leader at the second beat at which a majority looks for one: the member with the highest zxid.
func (e *Ensemble) elect() {
	var looking []*Member
	for _, m := range e.members {
		if !m.dead && !m.stalled && !m.parted && !m.serves() {
			looking = append(looking, m)
		}
	}
	if 2*len(looking) <= len(e.members) {
		e.electing = false
		return
	}
	if !e.electing {
		e.electing = true
		return
	}
	e.electing = false
	e.install(slices.MaxFunc(looking, func(a, b *Member) int {
		return cmp.Or(cmp.Compare(a.zxid, b.zxid), cmp.Compare(a.index, b.index))
	}))
}

// install has a member lead. It gives all sessions their whole time again, and does not know where their clients are:
// SessionTrackerImpl.
func (e *Ensemble) install(l *Member) {
	if former := e.leader(); former != nil {
		former.strand(former.until())
	}
	for _, m := range e.members {
		m.toLeader.clear()
		m.fromLeader.clear()
		if m.following { // without knowing whom
			m.strand(m.heard.Add(e.limit()))
		}
		m.answered = time.Now()
	}
	e.lead, e.waiting = l.index, nil
	e.lastZxid = (e.lastZxid>>32 + 1) << 32
	l.join()
	for _, s := range e.sessions {
		s.owner, s.closing = nil, false
		e.touch(s.id, s.timeout)
	}
	e.arrange()
}

// A stranded member takes clients although it neither leads nor follows, since it does not know that yet.
type stranded struct {
	until    time.Time
	sessions map[int64]struct{} // of one that led: it takes them back without asking anybody
}

// strand leaves a member by itself, until a time at which it learns of that.
func (m *Member) strand(until time.Time) {
	m.stranded = &stranded{until: until}
	if m.leads() {
		m.stranded.sessions = make(map[int64]struct{})
		for id, s := range m.ensemble.sessions {
			if !s.closing {
				m.stranded.sessions[id] = struct{}{}
			}
		}
	}
	m.following = false
}

// ping is what the leader does twice a tick: Leader.lead and Follower.processPacket. Each follower answers with the sessions that
// it has heard of.
func (e *Ensemble) ping(l *Member) {
	for _, m := range e.members {
		switch {
		case m == l || m.dead:
			continue
		case m.following && m.stalled && time.Since(m.answered) > e.limit():
			m.toLeader.clear()
			m.fromLeader.clear()
			m.strand(time.Now())
		case m.following && m.mute && time.Since(m.answered) > e.limit():
			m.leave() // the leader has ended the connection
		case !m.serves() && !m.stalled && !m.parted && !m.deaf && !m.mute && !l.parted:
			m.join()
		}
		if !m.following {
			continue
		}
		e.toFollower(m, func() {
			m.heard = time.Now()
			touched := m.touched
			m.touched = make(map[int64]time.Duration)
			e.atLeader(m, func() {
				m.answered = time.Now()
				for _, id := range slices.Sorted(maps.Keys(touched)) {
					e.touch(id, touched[id])
				}
			})
		})
	}
}

// leave has a member stop serving that has lost its leader, or its followers. All messages between them are lost. The connections of its
// followers end.
func (m *Member) leave() {
	e := m.ensemble
	led := m.leads()
	m.following, m.stranded = false, nil
	m.toLeader.clear()
	m.fromLeader.clear()
	for _, c := range slices.Collect(maps.Keys(e.conns)) {
		if c.member == m {
			c.hangUp()
		}
	}
	if !led {
		return
	}
	e.lead, e.waiting = -1, nil
	for _, f := range e.members {
		if f.following && !f.parted && !m.parted {
			if f.stalled {
				f.strand(time.Now())
			} else {
				f.leave()
			}
		}
	}
}

// join gives a member the transactions that it has missed.
func (m *Member) join() {
	m.following, m.heard, m.answered, m.stranded = true, time.Now(), time.Now(), nil
	for _, t := range m.ensemble.since(m.zxid) {
		m.apply(t)
	}
}
