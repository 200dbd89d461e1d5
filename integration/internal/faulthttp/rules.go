package faulthttp

import "slices"

// Rule decides what happens to a request. It may be called concurrently, and should return at once.
type Rule func(Request) Fault

// SetRule sets the rule for requests that begin from now on, also while the network is cut; nil removes it. One-shot faults armed by
// [Transport.Once] take precedence.
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

// First combines rules: the first that returns a fault decides.
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

// Outcome is the fate of a request that met a fault.
type Outcome struct {
	Request
	// Status and Reply are the server's answer, whether or not the client saw it. Status is 0 if the server has not answered,
	// or nobody waited for the answer.
	Status int
	Reply  []byte
}

// once is a fault for one request.
type once struct {
	op    string
	fault Fault
	hit   chan Outcome
}

// Once arms a fault for the next request of the operation, or of any with "". The channel receives the outcome when the
// server has answered, or when it is clear that it will not; a held reply is reported before its release. The channel is
// never closed. Several faults may be armed: a request takes the first that matches. A cut transport takes none.
func (t *Transport) Once(op string, f Fault) <-chan Outcome {
	o := &once{op: op, fault: f, hit: make(chan Outcome, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = append(t.armed, o)
	return o.hit
}

// takeArmed takes the fault armed for the request, if any. The caller holds the mutex.
func (e *exchange) takeArmed() {
	for i, o := range e.t.armed {
		if o.op == "" || o.op == e.seen.Op {
			e.t.armed = slices.Delete(e.t.armed, i, i+1)
			e.fault, e.hit = o.fault, o.hit
			return
		}
	}
}
