package recordlock

import "crypto/rand"

// random returns n letters and digits.
func random(n int) string {
	s := ""
	for len(s) < n {
		s += rand.Text()
	}
	return s[:n]
}

// beat returns the n-th beat of a grant. Beats rise with their numbers.
func beat(n uint64) string { return Ordered(n) + random(16) }

// Ordered writes a number as 16 letters from A to P, which sort like the numbers.
func Ordered(n uint64) string {
	var b [16]byte
	for i := range b {
		b[len(b)-1-i] = 'A' + byte(n>>(4*i)&15)
	}
	return string(b[:])
}

// claim registers a grant that a call tries to get or gives back, with no owner, or that a lock has.
func (e *Engine) claim(grant, key, owner string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.alive[grant] = claim{key, owner}
}

// orphan reports whether a grant is one of this client that no call and no lock has.
func (e *Engine) orphan(grant string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, alive := e.alive[grant]
	return !alive && clientOf(grant) == e.client
}

// holds reports whether a lock of this client has a key under an owner name.
func (e *Engine) holds(key, owner string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.alive {
		if c == (claim{key, owner}) {
			return true
		}
	}
	return false
}
