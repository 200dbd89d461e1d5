package history

import "slices"

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
	switch s.rng.IntN(5) {
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
	case 4:
		fault.Fault = "clock jump"
		s.jump(p, s.between(-40, 120), 50)
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

// jump sets the wall clock of a process as soon as it holds something with a TTL, or when it has looked for that often enough.
func (s *simulator) jump(p *simProc, by int64, looks int) {
	s.run(p, s.rng.Int64N(ms), func() {
		if looks > 0 && !slices.ContainsFunc(p.locks, func(l *simLock) bool { return l.ttl != 0 }) {
			s.jump(p, by, looks-1)
			return
		}
		done := s.call(p, Record{Call: Jump, By: by})
		s.run(p, s.rng.Int64N(ms/4), func() {
			p.jumped += by
			s.look(p)
			s.run(p, s.rng.Int64N(ms/4), func() { done(OK) })
		})
	})
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
			outcome = GaveUp
		}
		s.after(s.latency(), func() { done(outcome) })
	})
}
