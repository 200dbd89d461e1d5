package verdict

import (
	"sync"
	"time"
)

const (
	nap     = 20 * time.Millisecond
	notable = 100 * time.Millisecond
)

// A witness sees when the machine stands still: it sleeps all the time, and wakes up late then.
type witness struct {
	mu     sync.Mutex
	since  time.Time // when it last woke up
	stalls []stall
}

// A stall is a time in which the machine stood still.
type stall struct {
	begin  time.Time
	length time.Duration
}

func newWitness() *witness {
	w := &witness{since: time.Now()}
	go func() {
		for {
			time.Sleep(nap)
			w.look()
		}
	}()
	return w
}

// look notes a stall that ends now. A reader looks as well: it may be the first to run after a stall.
func (w *witness) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if late := now.Sub(w.since) - nap; late >= notable {
		w.stalls = append(w.stalls, stall{w.since, late})
	}
	w.since = now
}

// worst returns the longest stall that had not ended before from.
func (w *witness) worst(from time.Time) time.Duration {
	w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	worst := time.Duration(0)
	for i := len(w.stalls) - 1; i >= 0; i-- { // in the order of time
		s := w.stalls[i]
		if s.begin.Add(nap + s.length).Before(from) {
			break
		}
		worst = max(worst, s.length)
	}
	return worst
}
