package locktest

import (
	"slices"
	"sync/atomic"
	"time"
)

// fairShares has a name, since it needs more time than others.
const fairSharesName = "G7_FairShares"

// fairFor is for how many leases fairShares watches: hours, for leases as they are in use.
const fairFor = 400

// fairShares has clients that want the key again as soon as they have released it, for hours. It is only for virtual time.
func fairShares(e *env) {
	e.needs(e.engine.Bubble != nil, "let hours pass")
	ctx := e.within(fairFor * e.engine.Lease)
	had := make([]int, 3)
	var holds atomic.Int64
	hold := func() { // not in step with the polls of an engine that has some
		lengths := [...]time.Duration{17, 29, 23, 37}
		time.Sleep(e.engine.Lease * lengths[holds.Add(1)%int64(len(lengths))] / 101)
	}
	_, clients := e.compete(ctx, len(had), hold, func(i int) { had[i]++ })
	clients.Wait()
	if least, most := slices.Min(had), slices.Max(had); least*10 < most*3 {
		e.broken("in the long run, clients that want a key equally often have it so: three tenths of the most at least", "%v times", had)
	}
	e.leavesNothing(e.key, e.engine.Soon, "a released key is held by nobody")
}
