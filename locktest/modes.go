package locktest

import (
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

const (
	ruleModes  = "a request waits for every earlier request that does not share with it"
	ruleServed = "every waiter is served in the end"
)

// A mode is what a request asks for: "w" is a lock (of a writer), "r" is a reader's, and a number n is a permit of n.
type mode string

var allModes = []mode{"w", "r", "1", "2", "3"}

// sharedModes are those of holds that go together.
var sharedModes = []mode{"r", "3"}

// modes are those that the cases of all modes try.
func (e *env) modes() []mode {
	if !e.Shares {
		return []mode{"w"}
	}
	return append([]mode{"w"}, sharedModes...)
}

// limit is n for a permit of n, else 0.
func (m mode) limit() int {
	n, _ := strconv.Atoi(string(m))
	return n
}

func (m mode) option() holdfast.Option {
	switch {
	case m == "w":
		return nil
	case m == "r":
		return holdfast.WithShared()
	}
	return holdfast.WithLimit(m.limit())
}

// modeOf is the mode of a grant or a waiter.
func modeOf(shared bool, limit int) mode {
	switch {
	case limit > 0:
		return mode(strconv.Itoa(limit))
	case shared:
		return "r"
	}
	return "w"
}

// mayHold is the rule by which the suite judges engines: whether a request holds the key behind those ahead of it.
func (m mode) mayHold(ahead ...mode) bool {
	for _, other := range ahead {
		if m == "w" || other != m {
			return false
		}
	}
	return m.limit() == 0 || len(ahead) < m.limit()
}

// A crowd are locks of a key that goroutines of a case hold. Whether they believe in them counts, not when they run.
type crowd struct {
	mu   sync.Mutex
	in   map[*holdfast.Lock]bool
	most int // so many were live at a time
}

// enter notes a lock that has been granted, until it is about to be released. Only locks that share with it may be live beside it.
func (c *crowd) enter(e *env, rule string, lock *holdfast.Lock) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sharing, excluded []holdfast.Token
	for other := range c.in {
		switch {
		case other.Err() != nil:
		case lock.Shared() && other.Shared() && other.Limit() == lock.Limit():
			sharing = append(sharing, other.Token())
		default:
			excluded = append(excluded, other.Token())
		}
	}
	if limit := lock.Limit(); limit > 0 && len(sharing) >= limit {
		excluded = append(excluded, sharing...)
	}
	if len(excluded) > 0 && lock.Err() == nil { // asked last, so that all were live when this began
		e.unexcused().Error(e.breach(rule, "while the lock with token %v was live, so were those with %v", lock.Token(), excluded))
	}
	c.most = max(c.most, len(sharing)+1)
	if c.in == nil {
		c.in = make(map[*holdfast.Lock]bool)
	}
	c.in[lock] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.in, lock)
	}
}

// mix has workers of n clients acquire and release the key in many rounds, each time in the mode that choose returns, and checks
// which locks are live together. It returns the greatest number of them.
func (e *env) mix(rule string, n, workers, rounds int, choose func(worker, round int) mode) (together int) {
	clients := e.clients(n)
	var inside crowd
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for round := range rounds {
				lock, err := clients[i%n].Acquire(e.within(time.Duration(workers)*e.patience()), e.key, choose(i, round).option())
				if err != nil {
					e.Error(e.breach(ruleServed, "Acquire: %v", err))
					return
				}
				leave := inside.enter(e, rule, lock)
				time.Sleep(time.Millisecond)
				leave()
				if !e.lets(lock) {
					return
				}
			}
		})
	}
	wg.Wait()
	e.leavesNothing(e.key, e.patience(), ruleNothing)
	return inside.most
}
