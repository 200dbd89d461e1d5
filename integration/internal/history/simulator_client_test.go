package history

import (
	"fmt"
	"slices"
)

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
	if s.chance(20) {
		r.TTL = s.between(5, 60)
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
		l := &simLock{p: p, key: key, session: p.session, ttl: r.TTL}
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
						l.live, l.overMono, l.overWall = true, s.now+l.ttl, s.now+p.jumped+l.ttl
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
