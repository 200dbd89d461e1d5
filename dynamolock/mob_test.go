package dynamolock_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// A mob is what several clients do with one key.
type mob struct {
	*harness
	mu     sync.Mutex
	random *rand.Rand
	trace  []string
	calm   bool // no more faults
}

func (c *mob) roll(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

func (c *mob) upTo(d time.Duration) time.Duration {
	return time.Duration(c.roll(int(d/time.Millisecond))) * time.Millisecond
}

func (c *mob) notef(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trace = append(c.trace, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}
