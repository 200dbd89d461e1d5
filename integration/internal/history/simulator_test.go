package history

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A simulator makes histories that are right: of an engine that never errs, of clients that keep to their leases, and of
// everything that befalls them. Time is virtual.
type simulator struct {
	rng     *rand.Rand
	lease   int64
	until   int64 // faults end here, and work
	now     int64
	seq     int64
	events  eventQueue
	records []Record
	tokens  uint64
	keys    []string
	engine  map[string]*simKey
	procs   []*simProc
	ops     int64
	faults  int
	busy    bool // few faults, no time between holds
}

type simEvent struct {
	at, seq int64
	do      func()
}

type eventQueue []simEvent

func (q eventQueue) Len() int { return len(q) }

func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(e any)   { *q = append(*q, e.(simEvent)) }
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

// A simKey is what the engine knows of a key. Registers are no part of the engine, and never unavailable.
type simKey struct {
	name    string
	queue   []*simLock // the first one has it
	highest uint64     // of the fenced register
}

// A simLock is a place in a queue, and then a grant.
type simLock struct {
	p        *simProc
	key      *simKey
	token    uint64
	session  int
	granted  bool   // by the engine
	told     func() // tells the client so
	live     bool   // as its holder knows
	deadline int64  // broken: the holder knows by then
	cause    string
	ttl      int64 // 0 is none; then when it is over, on either clock of its process
	overMono int64
	overWall int64
}

type simProc struct {
	slot, life int
	name       string
	session    int
	dead       bool
	stopped    int64 // until when; 0 if it runs
	cut        int64 // since when; 0 if it is connected
	jumped     int64 // by how much the wall clock is ahead
	backlog    []func()
	locks      []*simLock
}

// simulate runs for a time, with processes in some slots and some keys.
func simulate(seed uint64, slots, keys int, span time.Duration, busy bool) []Record {
	s := &simulator{
		rng: rand.New(rand.NewPCG(seed, 1)), lease: int64(scriptRules.Lease), until: int64(span),
		engine: map[string]*simKey{}, busy: busy, now: 1000,
	}
	for i := range keys {
		name := fmt.Sprintf("key-%d", i)
		s.keys = append(s.keys, name)
		s.engine[name] = &simKey{name: name}
	}
	for slot := range slots {
		s.start(slot+1, 1)
	}
	s.after(s.between(10, 50), s.strike)
	s.at(s.until, func() { s.record(Record{What: Calm}) })
	for len(s.events) > 0 {
		e := heap.Pop(&s.events).(simEvent)
		s.now = max(s.now+1, e.at)
		e.do()
	}
	for _, p := range s.procs {
		if !p.dead {
			s.record(Record{What: Exited, Process: p.name})
			s.now++
		}
	}
	return s.records
}

// between draws a time, in milliseconds, by the microsecond.
func (s *simulator) between(low, high int64) int64 {
	return low*ms + s.rng.Int64N((high-low)*1000)*1000
}

func (s *simulator) latency() int64 { return 20_000 + s.rng.Int64N(2*ms) }

func (s *simulator) chance(percent int) bool { return s.rng.IntN(100) < percent }

func (s *simulator) at(t int64, do func()) {
	s.seq++
	heap.Push(&s.events, simEvent{t, s.seq, do})
}

func (s *simulator) after(d int64, do func()) { s.at(s.now+d, do) }

func (s *simulator) record(r Record) {
	r.At = s.now
	s.records = append(s.records, r)
}

func (s *simulator) start(slot, life int) {
	p := &simProc{slot: slot, life: life, name: fmt.Sprintf("%d.%d", slot, life)}
	s.procs = append(s.procs, p)
	s.record(Record{What: Started, Process: p.name})
	for _, key := range s.keys {
		s.after(s.between(0, 20), func() { s.work(p, s.engine[key], life > 1) })
	}
}

// run does something in a process when the process runs, if it still lives.
func (s *simulator) run(p *simProc, after int64, do func()) {
	s.after(after, func() {
		switch {
		case p.dead:
		case p.stopped != 0:
			s.at(p.stopped, func() { s.run(p, 0, do) })
		default:
			s.look(p)
			do()
		}
	})
}

// reach brings something from a process to the engine or back, when they are connected.
func (s *simulator) reach(p *simProc, do func()) {
	s.after(s.latency(), func() {
		if p.cut != 0 {
			p.backlog = append(p.backlog, do)
			return
		}
		do()
	})
}

// look ends what is over by the clock of a process.
func (s *simulator) look(p *simProc) {
	for _, l := range slices.Clone(p.locks) {
		if p.cut != 0 && s.now > p.cut+s.lease*9/10 {
			s.lose(l, "ErrLeaseExpired")
		}
		if l.deadline != 0 && s.now > l.deadline {
			s.lose(l, l.cause)
		}
		if l.live && l.ttl != 0 && (s.now >= l.overMono || s.now+p.jumped >= l.overWall) {
			s.lose(l, "ErrTTLExpired")
			s.reach(p, func() { s.leave(l) })
		}
	}
}

func (s *simulator) lose(l *simLock, cause string) {
	if l.live {
		l.live = false
		l.p.locks = slices.DeleteFunc(l.p.locks, func(o *simLock) bool { return o == l })
		s.record(Record{What: Lost, Process: l.p.name, Key: l.key.name, Token: l.token, Cause: cause})
		s.now++
	}
}

// leave takes a place out of the queue, in the engine.
func (s *simulator) leave(l *simLock) {
	i := slices.Index(l.key.queue, l)
	if i < 0 {
		return
	}
	l.key.queue = slices.Delete(l.key.queue, i, i+1)
	if i == 0 && len(l.key.queue) > 0 {
		l.key.queue[0].told()
	}
}

// strikeOut ends a grant without asking its holder, who learns of it some time within the lease.
func (s *simulator) strikeOut(l *simLock, cause string) {
	if l.deadline == 0 {
		l.deadline, l.cause = s.now+s.rng.Int64N(s.lease*9/10), cause
		s.run(l.p, l.deadline-s.now+1, func() {})
	}
	s.leave(l)
}

// call records the invoke of a call, and returns what records its return.
func (s *simulator) call(p *simProc, r Record) func(outcome string, edit ...func(*Record)) {
	s.ops++
	r.What, r.Process, r.Op = Invoke, p.name, s.ops
	s.record(r)
	ret := Record{What: Return, Process: p.name, Key: r.Key, Op: r.Op, Call: r.Call, Token: r.Token}
	return func(outcome string, edit ...func(*Record)) {
		ret.Outcome = outcome
		for _, e := range edit {
			e(&ret)
		}
		s.record(ret)
		s.now++
	}
}
