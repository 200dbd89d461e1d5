package main

import (
	"fmt"
	"sync"
	"time"
)

// meter counts the requests of a client in each lease of time.
type meter struct {
	what  string // is counted
	lease time.Duration
	most  int // in the time of a lease

	mu      sync.Mutex
	began   time.Time // of the present lease
	n       int
	highest int
	when    time.Time // of that
}

func (m *meter) count() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.began) >= m.lease {
		m.began, m.n = now, 0
	}
	m.n++
	if m.n > m.highest {
		m.highest, m.when = m.n, m.began
	}
}

// excess is an error if there was too much in the time of any lease.
func (m *meter) excess(who string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.highest <= m.most {
		return nil
	}
	return fmt.Errorf("bounded: %s: %d %s within %v of %v, want at most %d", who, m.highest, m.what, m.lease, m.when, m.most)
}
