package locktest

import (
	"context"
	"slices"
	"sync"
	"time"
)

// fairShares has a name, since it needs more time than others.
const fairSharesName = "G7_FairShares"

// fairFor is for how many leases fairShares watches: hours, for leases as they are in use.
const fairFor = 400

// fairShares has clients that want the key again as soon as they have released it, for hours. It is only for virtual time.
func fairShares(e *env) {
	e.needs(e.engine.Bubble != nil, "let hours pass")
	ctx, stop := context.WithTimeout(e.ctx, fairFor*e.engine.Lease)
	defer stop()
	var mu sync.Mutex
	had := make([]int, 3)
	var clients sync.WaitGroup
	for i := range had {
		c := e.client()
		clients.Go(func() {
			for {
				lock, err := c.Acquire(ctx, e.key)
				if err != nil {
					if ctx.Err() == nil {
						e.Errorf("%s: Acquire: %v", e.rule, err)
					}
					return
				}
				mu.Lock()
				had[i]++
				mu.Unlock()
				time.Sleep(e.engine.Lease / 4)
				if err := lock.Release(e.soon()); err != nil {
					e.Errorf("%s: Release: %v", e.rule, err)
					return
				}
			}
		})
	}
	clients.Wait()
	if least, most := slices.Min(had), slices.Max(had); least*10 < most*3 {
		e.broken("in the long run, clients that want a key equally often have it so: three tenths of the most at least", "%v times", had)
	}
	e.leavesNothing(e.key, e.engine.Soon, "a released key is held by nobody")
}
