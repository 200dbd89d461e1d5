package faultproxy

import "sync"

// counts are the numbers of frames of each kind.
type counts struct {
	mu sync.Mutex
	n  map[countKey]int
}

type countKey struct {
	dir  Direction
	kind Kind
	op   Op
}

func (c *counts) add(f Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[countKey]int)
	}
	c.n[countKey{f.Dir, f.Kind, f.Op}]++
}

func (c *counts) sum(match func(countKey) bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := 0
	for k, n := range c.n {
		if match(k) {
			total += n
		}
	}
	return total
}

// Count is the number of frames with an operation that the proxy has read in a direction since the start or the last ResetCounts, whatever
// their fate. Replies count under the operation of their request.
func (p *Proxy) Count(dir Direction, op Op) int {
	return p.counts.sum(func(k countKey) bool { return k.dir&dir != 0 && k.op == op })
}

// CountKind is Count by kind: CountKind(ToServer, KindRequest) is the number of requests that are neither pings nor authentication.
func (p *Proxy) CountKind(dir Direction, kind Kind) int {
	return p.counts.sum(func(k countKey) bool { return k.dir&dir != 0 && k.kind == kind })
}

// ResetCounts sets all counts to zero.
func (p *Proxy) ResetCounts() {
	p.counts.mu.Lock()
	defer p.counts.mu.Unlock()
	clear(p.counts.n)
}
