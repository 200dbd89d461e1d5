package dynamolock_test

import (
	"sync"
)

// crowd are many clients of one table, with a count of their requests.
type crowd struct {
	clients []*client

	mu     sync.Mutex
	counts map[string]int // by operation
	beats  []int          // in each part of a heartbeat period
	busy   map[int64]int  // requests in each tenth of a second
}

// each runs f for all clients at the same time.
func (o *crowd) each(f func(i int, c *client)) {
	var all sync.WaitGroup
	for i, c := range o.clients {
		all.Go(func() { f(i, c) })
	}
	all.Wait()
}
