package history

import (
	"fmt"
	"slices"
	"time"
)

// A script is a history written by hand, about key "k". Times are milliseconds.
type script struct {
	records []Record
	op      int64
}

const ms = int64(time.Millisecond)

// scriptRules are the rules for scripts.
var scriptRules = Rules{Lease: 100 * time.Millisecond, Settle: 200 * time.Millisecond, Namesakes: true}

func (s *script) add(at int64, r Record) *script {
	r.At = at * ms
	if r.Key == "" && r.What != Calm && r.What != Killed && r.What != Exited && r.What != Started {
		r.Key = "k"
	}
	s.records = append(s.records, r)
	return s
}

// call has a return only if it has an outcome.
func (s *script) call(process, call string, token uint64, from, to int64, outcome string) *script {
	s.op++
	invoke := Record{What: Invoke, Process: process, Call: call, Op: s.op, Token: token}
	if invoke.acquires() {
		invoke.Token, invoke.Owner = 0, process[:1]
	}
	s.add(from, invoke)
	if outcome != "" {
		s.add(to, Record{What: Return, Process: process, Call: call, Op: s.op, Token: token, Outcome: outcome, Owner: invoke.Owner})
	}
	return s
}

func (s *script) acquire(process string, token uint64, from, to int64) *script {
	return s.call(process, Acquire, token, from, to, OK)
}

// with changes the invoke of the last call.
func (s *script) with(change func(*Record)) *script {
	op := s.op
	return s.edit(func(r *Record) bool { return r.What == Invoke && r.Op == op }, change)
}

// mode changes the mode of the acquisitions of tokens.
func (s *script) mode(m Mode, tokens ...uint64) *script {
	for _, token := range tokens {
		for _, r := range slices.Clone(s.records) {
			if r.What == Return && r.acquires() && r.Token == token {
				s.edit(func(other *Record) bool { return other.What == Invoke && other.Op == r.Op }, func(r *Record) { r.Mode = m })
			}
		}
	}
	return s
}

func (s *script) held(process string, token uint64, at ...int64) *script {
	for _, t := range at {
		s.add(t, Record{What: Held, Process: process, Token: token})
	}
	return s
}

func (s *script) lost(process string, token uint64, at int64, cause string) *script {
	return s.add(at, Record{What: Lost, Process: process, Token: token, Cause: cause})
}

func (s *script) release(process string, token uint64, from, to int64) *script {
	return s.call(process, Release, token, from, to, OK)
}

func (s *script) verify(process string, token uint64, from, to int64) *script {
	return s.call(process, Verify, token, from, to, OK)
}

func (s *script) breaks(token uint64, from, to int64, outcome string) *script {
	return s.call("operator", Break, token, from, to, outcome)
}

// reclaim is an acquisition by another process of the owner.
func (s *script) reclaim(process string, token uint64, from, to int64, outcome string) *script {
	return s.call(process, Acquire, token, from, to, outcome).with(func(r *Record) { r.Reclaim = true })
}

// lead is the call of lead in a term; it has not returned if to is 0.
func (s *script) lead(process string, token uint64, from, to int64) *script {
	return s.call(process, Lead, token, from, to, map[bool]string{true: OK}[to != 0])
}

// observe has an observer told of tokens: each number is a time, and the token that follows it. The owner of a token is its
// first digit.
func (s *script) observe(process string, from, to int64, told ...int64) *script {
	s.call(process, Observe, 0, from, to, Closed)
	for i := 0; i < len(told); i += 2 {
		r := Record{What: Told, Process: process, Op: s.op, Token: uint64(told[i+1])}
		if r.Token != 0 {
			r.Owner = fmt.Sprint(r.Token)[:1]
		}
		s.add(told[i], r)
	}
	return s
}

func (s *script) wrote(process string, token uint64, at int64, accepted bool) *script {
	return s.add(at, Record{What: Wrote, Process: process, Token: token, Accepted: accepted})
}

func (s *script) killed(process string, at int64) *script {
	return s.add(at, Record{What: Killed, Process: process})
}

func (s *script) quiet() *script { return s.add(600, Record{What: Quiet}) }

// fault is a fault that hits client 1.
func (s *script) fault(kind string, from, to int64) *script {
	return s.add(from, Record{What: Begin, N: 1, Fault: kind, Target: "client 1"}).add(to, Record{What: End, N: 1, Fault: kind})
}

func (s *script) edit(match func(*Record) bool, change func(*Record)) *script {
	for i := range s.records {
		if match(&s.records[i]) {
			change(&s.records[i])
		}
	}
	return s
}

// last changes the last record.
func (s *script) last(change func(*Record)) *script {
	change(&s.records[len(s.records)-1])
	return s
}

// begin is a current hold of process 1.1 with token 1: from 10 to 60 so far.
func begin() *script {
	return (&script{}).acquire("1.1", 1, 0, 10).held("1.1", 1, 20, 40, 60).verify("1.1", 1, 30, 40).wrote("1.1", 1, 35, true)
}

// next is a hold of process 2.1 with token 2: from 100 to 160. It was asked for at 5.
func (s *script) next() *script {
	return s.acquire("2.1", 2, 5, 100).held("2.1", 2, 110, 130, 150).wrote("2.1", 2, 120, true).verify("2.1", 2, 125, 135).
		release("2.1", 2, 160, 170)
}

// good is a history of two holds, one after the other.
func good() *script { return begin().release("1.1", 1, 70, 80).next() }

// hold is a hold that is released.
func (s *script) hold(process string, token uint64, from, to int64) *script {
	return s.acquire(process, token, from, from+5).held(process, token, from+6, to-6).release(process, token, to-5, to)
}

// crowd are three holds that overlap, by tokens 1 to 3.
func crowd() *script {
	return (&script{}).hold("1.1", 1, 0, 200).hold("2.1", 2, 20, 220).hold("3.1", 3, 40, 240)
}

// calm is the end of a history, at 500 and 900.
func (s *script) calm() *script {
	return s.add(500, Record{What: Calm}).add(900, Record{What: Exited, Process: "9.1"})
}
