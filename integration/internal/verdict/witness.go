package verdict

import (
	"sync"
	"time"
)

const (
	nap     = 20 * time.Millisecond
	notable = 100 * time.Millisecond
)

// witness sees when the machine stands still: it naps all the time, and wakes up late then.
type witness struct {
	mu     sync.Mutex
	awake  time.Time // when it last woke up
	stalls []stall
}

// stall is a time in which the machine stood still.
type stall struct {
	end    time.Time
	length time.Duration
}

var machine = func() *witness {
	w := &witness{awake: time.Now()}
	go func() {
		for {
			time.Sleep(nap)
			w.worst(time.Time{})
		}
	}()
	return w
}()

// worst returns the longest stall that ended after a time. It first notes a stall that ends now: a test may be the first to run
// after a stall.
func (w *witness) worst(from time.Time) (worst time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if late := now.Sub(w.awake) - nap; late >= notable {
		w.stalls = append(w.stalls, stall{now, late})
	}
	w.awake = now
	for _, s := range w.stalls {
		if s.end.After(from) {
			worst = max(worst, s.length)
		}
	}
	return worst
}
