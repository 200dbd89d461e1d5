package doctor

import (
	"fmt"
	"slices"
	"time"
)

// A clock is how a server's wall clock compares with this machine's.
type clock struct {
	known bool
	ahead time.Duration // give or take half of a request, and of what the server shows its clock in
}

// note is told what a server's clock showed between the sending of a request and its
// answer, in the middle of the unit in which it is shown.
func (c *clock) note(sent, answered, shown time.Time) {
	c.known, c.ahead = true, shown.Sub(sent.Add(answered.Sub(sent)/2))
}

// skew tells how far the clocks are apart. It matters to nobody who does not
// compare them.
func (c clock) skew(server string) Finding {
	way := "ahead of"
	if c.ahead < 0 {
		way = "behind"
	}
	return ok("the clock of %s is about %v %s this machine's; locks do not depend on that", server, figure(c.ahead.Abs()), way)
}

// latencies are how long some calls have taken.
type latencies []time.Duration

func (l latencies) median() time.Duration {
	sorted := slices.Sorted(slices.Values(l))
	return sorted[len(sorted)/2]
}

func (l latencies) worst() time.Duration { return slices.Max(l) }

func (l latencies) String() string {
	return fmt.Sprintf("%v in the median and %v at worst of %d", figure(l.median()), figure(l.worst()), len(l))
}
