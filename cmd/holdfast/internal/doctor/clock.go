package doctor

import (
	"context"
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

// shortest is the time between two samples below which they say nothing about
// a rate.
const shortest = 50 * time.Millisecond

// rate returns between which bounds the rate of the server's clock differs from
// that of the monotonic clock here: 0.01 is 1% faster. For a rate that stays the
// same, each two samples are bounds, and all hold.
func (c *comparison) rate() (least, most float64) {
	least, most = math.Inf(-1), math.Inf(1)
	for i, early := range c.samples {
		for _, late := range c.samples[i+1:] {
			short, long := late.sent-early.answered, late.answered-early.sent // between the two readings
			if short < shortest {
				continue
			}
			passed := late.shown - early.shown // there, give or take a unit
			least = max(least, min(part(passed-c.unit, short), part(passed-c.unit, long))-1)
			most = min(most, max(part(passed+c.unit, short), part(passed+c.unit, long))-1)
		}
	}
	return least, most
}

func part(a, b time.Duration) float64 { return float64(a) / float64(b) }

// span is the time from the first sample to the last.
func (c *comparison) span() time.Duration {
	if len(c.samples) == 0 {
		return 0
	}
	return c.samples[len(c.samples)-1].answered - c.samples[0].sent
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

// judge compares the rate with what the margin of a lease makes up for.
func (c *comparison) judge(server string, allowed float64) Finding {
	least, most := c.rate()
	found := fmt.Sprintf("over %v, the clock of %s ran at a rate that differs from this machine's by %s to %s; the margin of a lease makes up for %s",
		figure(c.span()), server, percent(min(least, most)), percent(max(least, most)), percent(allowed))
	switch {
	case least > allowed || most < -allowed:
		return warning(
			"see to the clocks of both machines (NTP, clock source of a virtual machine); look again with a longer --rate, as a clock that was set has the same look",
			"%s", found,
		)
	case least < -allowed || most > allowed:
		return ok("%v is too short to tell at what rate the clock of %s runs; give a longer --rate", figure(c.span()), server)
	}
	return ok("%s", found)
}

func percent(part float64) string { return fmt.Sprintf("%.3g%%", part*100) }

// allowed is by what part the rates of two clocks may differ, with the margin
// that a client keeps off a lease if it is not told otherwise.
func allowed(lease time.Duration) float64 {
	return float64(max(50*time.Millisecond, lease/20)) / float64(lease)
}

// pause waits until a time has passed since the first sample.
func (c *comparison) pause(ctx context.Context, since time.Duration) error {
	timer := time.NewTimer(time.Until(c.begin.Add(since)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
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
