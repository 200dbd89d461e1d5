package faulthttp

// Rule decides what happens to a request. It may be called concurrently, and should return at once.
type Rule func(Request) Fault

// SetRule sets the rule for requests that begin from now on, also while the network is cut; nil removes it.
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
