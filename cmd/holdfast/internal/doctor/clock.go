package doctor

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// A sample is one look at a server's clock. The server has read its clock
// between the sending of a request and its answer, so the difference between the
// two clocks is known within bounds, and the bounds are certain.
type sample struct {
	at          time.Duration // by the monotonic clock, since the first sample
	least, most time.Duration // the server's clock less the wall clock of begin plus at
}

// A comparison is of the clock of a server with this machine's.
type comparison struct {
	begin   time.Time // with the monotonic reading, from which all else counts
	samples []sample
}

// add notes that a server's clock showed a time in [shown, shown+unit), when it
// was looked at between two moments here.
func (c *comparison) add(sent, answered time.Time, shown time.Time, unit time.Duration) {
	if c.begin.IsZero() {
		c.begin = sent
	}
	server := shown.Sub(c.begin.Round(0)) // of wall clocks
	sentAt, answeredAt := sent.Sub(c.begin), answered.Sub(c.begin)
	c.samples = append(c.samples, sample{
		at:    (sentAt + answeredAt) / 2,
		least: server - answeredAt,
		most:  server + unit - sentAt,
	})
}

// difference returns by how much the server's clock is ahead of the wall clock
// here, and how far from that the truth may be.
func (c *comparison) difference() (ahead, within time.Duration) {
	least, most := time.Duration(math.MinInt64), time.Duration(math.MaxInt64)
	for _, s := range c.samples {
		least, most = max(least, s.least), min(most, s.most)
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
			passed := late.at - early.at
			if passed < shortest {
				continue
			}
			least = max(least, float64(late.least-early.most)/float64(passed))
			most = min(most, float64(late.most-early.least)/float64(passed))
		}
	}
	return least, most
}

// span is the time from the first sample to the last.
func (c *comparison) span() time.Duration {
	if len(c.samples) == 0 {
		return 0
	}
	return c.samples[len(c.samples)-1].at - c.samples[0].at
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
	found := fmt.Sprintf("over %v, the clock of %s ran at a rate that differs from this machine's by %s", figure(c.span()), server, percents(least, most))
	switch {
	case least > allowed || most < -allowed:
		return warning(
			"see to the clocks of both machines (NTP, clock source of a virtual machine); look again with a longer --rate, as a clock that was set has the same look",
			"%s; the margin of a lease makes up for %s", found, percent(allowed),
		)
	case least < -allowed || most > allowed:
		return ok("%s: too short to tell; give a longer --rate", found)
	}
	return ok("%s; the margin of a lease makes up for %s", found, percent(allowed))
}

func percents(least, most float64) string {
	if least > most { // one of the clocks was set, or the rate has changed
		least, most = most, least
	}
	if math.IsInf(least, 0) || math.IsInf(most, 0) {
		return "an amount that was not seen"
	}
	return percent(least) + " to " + percent(most)
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
