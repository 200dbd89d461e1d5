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
}

type simProc struct {
	slot, life int
	name       string
	session    int
	dead       bool
	stopped    int64 // until when; 0 if it runs
	cut        int64 // since when; 0 if it is connected
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

// work acquires, holds and releases a key, again and again.
func (s *simulator) work(p *simProc, key *simKey, reclaim bool) {
	if s.now > s.until || p.dead {
		return
	}
	again := func() { s.run(p, s.pause(), func() { s.work(p, key, false) }) }
	owner := fmt.Sprint("slot ", p.slot)
	r := Record{Call: Acquire, Key: key.name, Reclaim: reclaim}
	if reclaim {
		r.Owner = owner
	}
	if s.chance(10) && !reclaim {
		r.Call = Try
	}
	done := s.call(p, r)
	finished := false
	var place *simLock
	var enter func()
	if r.Call == Acquire && s.chance(20) {
		s.run(p, s.between(1, 150), func() {
			if !finished {
				finished = true
				done(GaveUp)
				if place != nil {
					s.reach(p, func() { s.leave(place) })
				}
				again()
			}
		})
	}
	enter = func() {
		l := &simLock{p: p, key: key, session: p.session}
		place = l
		if finished || p.dead {
			return
		}
		if r.Call == Try && len(key.queue) > 0 {
			s.reach(p, func() { s.run(p, 0, func() { finished = true; done(Refused); again() }) })
			return
		}
		s.tokens++
		l.token = s.tokens
		l.told = func() {
			l.granted = true
			s.reach(p, func() {
				s.run(p, 0, func() {
					switch {
					case finished:
						s.reach(p, func() { s.leave(l) })
					case l.session != p.session, l.deadline != 0 && s.now > l.deadline, p.cut != 0 && s.now > p.cut+s.lease*9/10:
						s.reach(p, func() { s.leave(l); enter() }) // told too late: it begins anew
					default:
						finished = true
						l.live = true
						p.locks = append(p.locks, l)
						done(OK, func(r *Record) { r.Token, r.Owner = l.token, owner })
						s.hold(l, s.now+s.between(0, 30), again)
					}
				})
			})
		}
		if reclaim {
			for _, other := range slices.Backward(slices.Clone(key.queue)) {
				if other.p.slot == p.slot && other.p != p {
					s.strikeOut(other, "ErrReclaimed")
				}
			}
		}
		key.queue = append(key.queue, l)
		if len(key.queue) == 1 {
			l.told()
		}
	}
	s.reach(p, enter)
}

func (s *simulator) pause() int64 {
	if s.busy {
		return s.between(0, 2)
	}
	return s.between(0, 40)
}

// hold looks at a lock until a time, writes, verifies, and releases it.
func (s *simulator) hold(l *simLock, until int64, again func()) {
	p := l.p
	s.run(p, s.rng.Int64N(2*ms), func() {
		if !l.live {
			done := s.call(p, Record{Call: Release, Key: l.key.name, Token: l.token})
			s.run(p, 1000, func() { done(Gone); again() })
			return
		}
		s.record(Record{What: Held, Process: p.name, Key: l.key.name, Token: l.token})
		s.now++
		switch {
		case s.now > until:
			s.release(l, again)
			return
		case s.chance(10):
			s.verify(l)
		case s.chance(30):
			s.write(l, s.chance(50), s.rng.Int64N(ms))
		case s.chance(3):
			s.write(l, s.chance(50), s.between(0, 200)) // on its way for long
		}
		s.hold(l, until, again)
	})
}

func (s *simulator) write(l *simLock, fenced bool, after int64) {
	s.after(after, func() {
		r := Record{What: Wrote, Process: l.p.name, Key: l.key.name, Token: l.token, Fenced: fenced, Accepted: !fenced || l.token >= l.key.highest}
		if fenced && r.Accepted {
			l.key.highest = l.token
		}
		s.record(r)
	})
}

func (s *simulator) verify(l *simLock) {
	p := l.p
	done := s.call(p, Record{Call: Verify, Key: l.key.name, Token: l.token})
	s.reach(p, func() {
		stands := len(l.key.queue) > 0 && l.key.queue[0] == l
		s.reach(p, func() {
			s.run(p, 0, func() {
				if !stands {
					s.lose(l, "ErrBroken")
				}
				if l.live {
					done(OK)
				} else {
					done(Gone)
				}
			})
		})
	})
}

func (s *simulator) release(l *simLock, again func()) {
	p := l.p
	done := s.call(p, Record{Call: Release, Key: l.key.name, Token: l.token})
	l.live = false
	p.locks = slices.DeleteFunc(p.locks, func(o *simLock) bool { return o == l })
	finished := false
	if s.chance(15) {
		s.run(p, s.rng.Int64N(ms), func() {
			if !finished {
				finished = true
				done(Pending)
				again()
			}
		})
	}
	s.reach(p, func() {
		missing := l.deadline != 0
		s.leave(l)
		s.reach(p, func() {
			s.run(p, 0, func() {
				switch {
				case finished:
					return
				case missing:
					done(Gone)
				default:
					done(OK)
				}
				finished = true
				again()
			})
		})
	})
}

// strike does something bad, and comes again.
func (s *simulator) strike() {
	if s.now > s.until-int64(3*s.lease) {
		return
	}
	s.after(s.between(5, 80), s.strike)
	if s.busy && !s.chance(5) {
		return
	}
	var alive []*simProc
	for _, p := range s.procs {
		if !p.dead && p.stopped == 0 && p.cut == 0 {
			alive = append(alive, p)
		}
	}
	if len(alive) == 0 {
		return
	}
	p := alive[s.rng.IntN(len(alive))]
	s.faults++
	fault := Record{N: s.faults, Target: "client " + p.name}
	switch s.rng.IntN(4) {
	case 0:
		fault.Fault = "client paused"
		s.stop(p, s.between(5, 250))
	case 1:
		fault.Fault = "client killed"
		s.kill(p)
	case 2:
		fault.Fault = "cut"
		s.disconnect(p)
		s.after(s.between(5, 250), func() { s.connect(p) })
	case 3:
		fault.Fault = "break"
		s.breakHolder(s.engine[s.keys[s.rng.IntN(len(s.keys))]])
	}
	fault.What = Begin
	s.record(fault)
	s.after(1000, func() { fault.What = End; s.record(fault) })
}

// disconnect lets the session end in the engine a lease later, unless the process is back by then.
func (s *simulator) disconnect(p *simProc) {
	if p.cut != 0 {
		return
	}
	since := s.now
	p.cut = since
	s.run(p, s.lease*9/10+1, func() {})
	s.after(s.lease, func() {
		if p.cut != since {
			return
		}
		p.session++
		for _, key := range s.keys {
			for _, l := range slices.Clone(s.engine[key].queue) {
				if l.p == p {
					s.leave(l)
					if !l.granted {
						l.told() // that it has to queue again
					}
				}
			}
		}
	})
}

func (s *simulator) connect(p *simProc) {
	if p.dead || p.cut == 0 {
		return
	}
	s.look(p)
	p.cut = 0
	for _, do := range p.backlog {
		s.after(s.latency(), do)
	}
	p.backlog = nil
}

// stop stops a process, whose session nobody renews meanwhile.
func (s *simulator) stop(p *simProc, d int64) {
	s.disconnect(p)
	p.stopped = s.now + d
	s.record(Record{What: Stopped, Process: p.name})
	s.at(p.stopped, func() {
		if p.dead {
			return
		}
		s.record(Record{What: Resumed, Process: p.name})
		s.now++
		p.stopped = 0
		s.connect(p)
	})
}

func (s *simulator) kill(p *simProc) {
	s.disconnect(p)
	p.dead = true
	s.record(Record{What: Killed, Process: p.name})
	s.after(s.between(1, 60), func() { s.start(p.slot, p.life+1) })
}

func (s *simulator) breakHolder(key *simKey) {
	if len(key.queue) == 0 {
		return
	}
	l := key.queue[0]
	operator := &simProc{name: "operator"}
	done := s.call(operator, Record{Call: Break, Key: key.name, Token: l.token})
	s.after(s.latency(), func() {
		outcome := Gone
		if len(key.queue) > 0 && key.queue[0] == l {
			s.strikeOut(l, "ErrBroken")
			outcome = OK
		}
		if s.chance(30) {
			outcome = Failed
		}
		s.after(s.latency(), func() { done(outcome) })
	})
}
