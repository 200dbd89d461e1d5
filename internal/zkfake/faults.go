package zkfake

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Part parts a member from all others: their messages are held until Mend. Within the sync limit they arrive then. After it, a follower
// has left its leader and joins it again, and followers that have lost their leader have another one.
func (e *Ensemble) Part(member int) { e.change(member, func(m *Member) { m.parted = true }) }

// Mend undoes [Ensemble.Part].
func (e *Ensemble) Mend(member int) { e.change(member, func(m *Member) { m.parted = false }) }

// Turn holds or delivers the messages of the leader to a follower (deaf), and of the follower to the leader (mute).
func (e *Ensemble) Turn(follower int, deaf, mute bool) {
	e.change(follower, func(m *Member) { m.deaf, m.mute = deaf, mute })
}

// Stall has a member stand still, as a process that is stopped: it takes connections, and answers when Proceed is called.
func (e *Ensemble) Stall(member int) { e.change(member, func(m *Member) { m.stalled = true }) }

// Proceed undoes [Ensemble.Stall].
func (e *Ensemble) Proceed(member int) { e.change(member, func(m *Member) { m.stalled = false }) }

// Kill ends a member at once. Messages in flight are lost. Its disk has all transactions that it has carried out.
func (e *Ensemble) Kill(member int) {
	e.change(member, func(m *Member) {
		m.stalled = false
		m.leave()
		m.dead = true
		m.touched = make(map[int64]time.Duration)
		for _, c := range slices.Collect(maps.Keys(e.conns)) {
			if c.member == m {
				c.gone()
			}
		}
	})
}

// Start undoes [Ensemble.Kill].
func (e *Ensemble) Start(member int) { e.change(member, func(m *Member) { m.dead = false }) }

func (e *Ensemble) change(member int, do func(m *Member)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	do(e.members[member])
	e.arrange()
}

// arrange holds or opens each network connection between members.
func (e *Ensemble) arrange() {
	l := e.leader()
	for _, m := range e.members {
		held := m.parted || m.stalled || l != nil && (l.parted || l.stalled)
		m.toLeader.hold(held || m.mute)
		m.fromLeader.hold(held || m.deaf)
	}
	for c := range e.conns {
		c.arrange()
	}
	e.flush()
}

// Leader is the index of the member that leads, -1 while there is none.
func (e *Ensemble) Leader() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lead
}

// Settled reports whether one member leads, reaches a majority, and all others follow it.
func (e *Ensemble) Settled() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.members {
		if m.dead || m.stalled || m.parted || !m.following {
			return false
		}
	}
	return e.quorate()
}

// Wipe ends all members, and starts them again without any data.
func (e *Ensemble) Wipe() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range slices.Collect(maps.Keys(e.conns)) {
		c.gone()
	}
	e.sessions, e.log, e.waiting, e.lastZxid = make(map[int64]*session), nil, nil, 1<<32
	for _, m := range e.members {
		m.toLeader.clear()
		m.fromLeader.clear()
		m.tree, m.watches, m.zxid = newTree(), newWatches(), e.lastZxid
		m.conns, m.touched = make(map[int64]*conn), make(map[int64]time.Duration)
	}
}

// Keep has a member remember the ephemeral znodes below a path. It diverges when the returned function is called: then it shows those
// again that are gone (ZOOKEEPER-5010).
func (e *Ensemble) Keep(member int, below string) (diverge func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	kept, tree := make(map[string]znode), e.members[member].tree
	for path, n := range tree.znodes {
		if strings.HasPrefix(path, below+"/") && n.owner != 0 && n.owner != ownerOfContainers {
			kept[path] = n
		}
	}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for path, n := range kept {
			if _, ok := tree.znodes[path]; !ok {
				tree.znodes[path] = n
				parent, name := split(path)
				add(tree.children, parent, name)
			}
		}
	}
}

// Limit changes what sessions may be, as a restart with another configuration would: the tick, and the shortest and the longest
// timeout.
func (e *Ensemble) Limit(tick, shortest, longest time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.config.Tick, e.config.Min, e.config.Max = tick, shortest, longest
}

// Remove deletes one of the children of a znode, as an operator would: the one that choose names; none if that is "". It does
// nothing while there is no majority.
func (e *Ensemble) Remove(parent string, choose func(children []string) string) (removed string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.quorate() {
		return ""
	}
	if removed = choose(e.leader().tree.names(parent)); removed != "" {
		t := &txn{kind: opDelete}
		e.prepare(t, []op{{kind: opDelete, path: parent + "/" + removed, version: -1}})
		e.commit(t)
	}
	return removed
}

// SetCounter sets what numbers the next sequential child of a znode.
func (e *Ensemble) SetCounter(path string, n int32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.members {
		m.tree.adopt(path, func(z *znode) { z.created = n })
	}
}
