package doctor

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// A sample is one look at a server's clock. The server has read it between the
// sending of a request and its answer, and shows what it read in whole units; so
// what follows from some samples is known within bounds that are certain.
type sample struct {
	sent, answered time.Duration // by the monotonic clock, since the first sample
	shown          time.Duration // by the server's clock, since the first sample was sent by the wall clock here
}

// A comparison is of the clock of a server with this machine's.
type comparison struct {
	unit    time.Duration // the server shows its clock in: it is at least what is shown, and less than a unit more
	begin   time.Time     // with the monotonic reading, from which all else counts
	samples []sample
}

// add notes what a server's clock showed when it was looked at between two
// moments here.
func (c *comparison) add(sent, answered, shown time.Time) {
	if c.begin.IsZero() {
		c.begin = sent
	}
	c.samples = append(c.samples, sample{sent.Sub(c.begin), answered.Sub(c.begin), shown.Sub(c.begin.Round(0))})
}

// difference returns by how much the server's clock is ahead of the wall clock
// here, and how far from that the truth may be.
func (c *comparison) difference() (ahead, within time.Duration) {
	least, most := time.Duration(math.MinInt64), time.Duration(math.MaxInt64)
	for _, s := range c.samples {
		least, most = max(least, s.shown-s.answered), min(most, s.shown+c.unit-s.sent)
	}
	return (least + most) / 2, (most - least).Abs() / 2
}

// skew tells how far the clocks are apart. It matters to nobody who does not
// compare them.
func (c *comparison) skew(server string) Finding {
	ahead, within := c.difference()
	way := "ahead of"
	if ahead < 0 {
		way = "behind"
	}
	return ok("the clock of %s is %v %s this machine's, give or take %v; locks do not rest on that", server, figure(ahead.Abs()), way, figure(within))
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
