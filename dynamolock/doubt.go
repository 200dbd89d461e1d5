package dynamolock

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A doubt is about requests that may have been carried out without our knowing,
// or may be yet.
type doubt struct {
	requests int
	first    driver.Instant // before the first was sent
	last     driver.Instant // after the last was given up
}

func (d *doubt) none() bool { return d.requests == 0 }

func (d *doubt) add(sent, ended driver.Instant) {
	d.merge(doubt{requests: 1, first: sent, last: ended})
}

func (d *doubt) merge(o doubt) {
	switch {
	case o.none():
		return
	case d.none():
		*d = o
		return
	}
	d.requests += o.requests
	if o.first.Sub(d.first) < 0 {
		d.first = o.first
	}
	if o.last.Sub(d.last) > 0 {
		d.last = o.last
	}
}

// signed is for how long DynamoDB takes a request for one of now: its signature
// has the time, by the client's clock, as the SDK has corrected it.
const signed = 15 * time.Minute

// horizon is for how long after a request was given up the client has to reckon
// with it. What it takes after that goes with its lease, which nobody renews;
// where there is none, it is not carried out any more.
func (b *engine) horizon() time.Duration {
	if b.opts.Mode == FailOpen {
		return b.opts.Lease
	}
	return signed
}
