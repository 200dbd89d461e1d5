package faulthttp

import "slices"

// Rule decides what happens to a request. It is called for one request after the other or for several at a time, and should
// return at once.
type Rule func(Request) Fault

// SetRule puts a rule in force for the requests that begin from then on; nil ends it. One-shot faults armed by [Transport.Once]
// come before the rule.
func (t *Transport) SetRule(r Rule) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rule = r
}

// All is a rule for each request of the operation, or of any with "".
func All(op string, f Fault) Rule {
	return func(r Request) Fault {
		if op == "" || op == r.Op {
			return f
		}
		return Pass
	}
}

// Nth is a rule for the n-th request of the operation, from 1, since the start or the last ResetCounts.
func Nth(op string, n int, f Fault) Rule {
	return func(r Request) Fault {
		if op == r.Op && n == r.N {
			return f
		}
		return Pass
	}
}

// First is the rule of several that asks each in turn, until one has a fault.
func First(rules ...Rule) Rule {
	return func(r Request) Fault {
		for _, rule := range rules {
			if f := rule(r); !f.isPass() {
				return f
			}
		}
		return Pass
	}
}

// Outcome tells what has become of a request that met a fault.
type Outcome struct {
	Request
	// Status and Reply are what the server has answered, whoever has seen it. Status is 0 when it has not, or when nobody
	// waited for it.
	Status int
	Reply  []byte
}

// once is a fault for one request.
type once struct {
	op    string
	fault Fault
	hit   chan Outcome
}

// Once arms a fault for the next request of the operation, or of any with "". The channel gets the outcome when the server has
// answered, or when it is clear that it will not; a reply that is held back is told before it is released. It is never closed.
// Several may be armed: a request takes the first that fits. While the transport is cut, none is taken.
func (t *Transport) Once(op string, f Fault) <-chan Outcome {
	o := &once{op: op, fault: f, hit: make(chan Outcome, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = append(t.armed, o)
	return o.hit
}

// takeArmed takes the fault that is armed for the request, if there is one. The transport is locked.
func (e *exchange) takeArmed() {
	for i, o := range e.t.armed {
		if o.op == "" || o.op == e.seen.Op {
			e.t.armed = slices.Delete(e.t.armed, i, i+1)
			e.fault, e.hit = o.fault, o.hit
			return
		}
	}
}
