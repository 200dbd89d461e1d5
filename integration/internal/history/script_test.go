package history

import (
	"fmt"
	"slices"
	"time"
)

// A script is a history written by hand, about key "k" where nothing else is said. Times are milliseconds.
type script struct {
	records []Record
	op      int64
}

const ms = int64(time.Millisecond)

// scriptRules are those that scripts are checked by.
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
	if call == Acquire || call == Try {
		invoke.Token = 0
	}
	s.add(from, invoke)
	if outcome != "" {
		s.add(to, Record{What: Return, Process: process, Call: call, Op: s.op, Token: token, Outcome: outcome})
	}
	return s
}

func (s *script) acquire(process string, token uint64, from, to int64) *script {
	return s.asks(process, token, from, to, OK)
}

// asks is an acquisition, by the owner that the first digit of the process stands for. It may come to nothing.
func (s *script) asks(process string, token uint64, from, to int64, outcome string) *script {
	at := len(s.records)
	s.call(process, Acquire, token, from, to, outcome)
	for i := range s.records[at:] {
		s.records[at+i].Owner = process[:1]
	}
	return s
}

// reclaim is an acquisition by another process of the owner.
func (s *script) reclaim(process string, token uint64, from, to int64, outcome string) *script {
	at := len(s.records)
	s.asks(process, token, from, to, outcome)
	s.records[at].Reclaim = true
	return s
}

// ttl gives the acquisition of a token a TTL.
func (s *script) ttl(token uint64, d int64) *script {
	return s.asked(token, func(r *Record) { r.TTL = d * ms })
}

// shared makes grants shared ones.
func (s *script) shared(tokens ...uint64) *script { return s.mode(Mode{Shared: true}, tokens...) }

// permits makes grants permits of n.
func (s *script) permits(n int, tokens ...uint64) *script {
	return s.mode(Mode{Shared: true, Limit: n}, tokens...)
}

func (s *script) mode(m Mode, tokens ...uint64) *script {
	for _, token := range tokens {
		s.asked(token, func(r *Record) { r.Mode = m })
	}
	return s
}

// asked changes the invoke of the acquisition of a token.
func (s *script) asked(token uint64, change func(*Record)) *script {
	op := int64(-1)
	for _, r := range s.records {
		if r.What == Return && r.acquires() && r.Outcome == OK && r.Token == token {
			op = r.Op
		}
	}
	return s.edit(func(r *Record) bool { return r.What == Invoke && r.Op == op }, change)
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

// jump has no return if it is over at 0.
func (s *script) jump(process string, by, from, to int64) *script {
	at, outcome := len(s.records), OK
	if to == 0 {
		outcome = ""
	}
	s.call(process, Jump, 0, from, to, outcome)
	s.records[at].By = by * ms
	return s
}

// lead is the call of lead in a term; it has not returned if to is 0.
func (s *script) lead(process string, token uint64, from, to int64) *script {
	outcome := OK
	if to == 0 {
		outcome = ""
	}
	return s.call(process, Lead, token, from, to, outcome)
}

// observe has an observer told of tokens: each number is a time, and the token that follows it. The owner of a token is its
// first digit.
func (s *script) observe(process string, from, to int64, told ...int64) *script {
	s.call(process, Observe, 0, from, to, Closed)
	for i := 0; i < len(told); i += 2 {
		s.add(told[i], Record{What: Told, Process: process, Op: s.op, Token: uint64(told[i+1])})
		if told[i+1] != 0 {
			s.last().Owner = fmt.Sprint(told[i+1])[:1]
		}
	}
	return s
}

func (s *script) wrote(process string, token uint64, at int64, accepted bool) *script {
	return s.add(at, Record{What: Wrote, Process: process, Token: token, Fenced: true, Accepted: accepted})
}

func (s *script) killed(process string, at int64) *script {
	return s.add(at, Record{What: Killed, Process: process})
}

func (s *script) last() *Record { return &s.records[len(s.records)-1] }

func (s *script) edit(match func(*Record) bool, change func(*Record)) *script {
	for i := range s.records {
		if match(&s.records[i]) {
			change(&s.records[i])
		}
	}
	return s
}

func (s *script) remove(match func(*Record) bool) *script {
	s.records = slices.DeleteFunc(s.records, func(r Record) bool { return match(&r) })
	return s
}

// of matches records of a kind, of a process and a token.
func of(what What, process string, token uint64) func(*Record) bool {
	return func(r *Record) bool { return r.What == what && r.Process == process && r.Token == token }
}

// begin is a hold that goes on, by process 1.1 with token 1: from 20 to 60 so far.
func begin() *script {
	return (&script{}).acquire("1.1", 1, 0, 10).held("1.1", 1, 20, 40, 60).verify("1.1", 1, 30, 40).wrote("1.1", 1, 35, true)
}

// next is a hold of process 2.1 with token 2: from 110 to 150. It was waited for.
func (s *script) next() *script {
	return s.acquire("2.1", 2, 5, 100).held("2.1", 2, 110, 130, 150).wrote("2.1", 2, 120, true).verify("2.1", 2, 125, 135).
		release("2.1", 2, 160, 170)
}

// because adds a cause to the last record.
func (s *script) because(cause string) *script {
	s.records[len(s.records)-1].Cause = cause
	return s
}

// calm is the end of a history, at 500 and 900.
func (s *script) calm() *script {
	return s.add(500, Record{What: Calm}).add(900, Record{What: Exited, Process: "9.1"})
}

// good is a history of two holds, one after the other.
func good() *script { return begin().release("1.1", 1, 70, 80).next() }
