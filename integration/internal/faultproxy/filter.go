package faultproxy

import "sync"

// Filter decides about frames. It is called for each frame in the order of its direction, and concurrently for other directions and
// connections. It may block, which holds up only that direction of that connection, until [Frame.Gone] is closed. It must not call Close.
type Filter func(Frame) Verdict

// SetFilter shows all frames from now on to f, before the rules; nil removes the filter. The rules see only frames that it passes.
func (p *Proxy) SetFilter(f Filter) {
	p.judge.mu.Lock()
	defer p.judge.mu.Unlock()
	p.judge.filter = f
}

// judge holds the filter and the rules.
type judge struct {
	mu     sync.Mutex
	filter Filter
	rules  []*rule
}

// ruling is a verdict with its details.
type ruling struct {
	verdict Verdict
	until   <-chan struct{} // if not nil, hold the frame, and leave later ones unread, until it is closed
}

func (j *judge) rule(f Frame) ruling {
	j.mu.Lock()
	filter := j.filter
	j.mu.Unlock()
	if filter != nil {
		if v := filter(f); v != Pass {
			return ruling{verdict: v}
		}
	}
	return j.applyRules(f)
}
