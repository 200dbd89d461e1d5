package dynamolock

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// fillTimes refuses durations that do not go together, and fills in the defaults.
func (o *Options) fillTimes() error {
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	switch {
	case o.Lease < MinLease:
		return driver.Invalid("Options.Lease", "%v, at least %v is needed", o.Lease, MinLease)
	case o.Lease > MaxLease:
		return driver.Invalid("Options.Lease", "%v, at most %v is allowed", o.Lease, MaxLease)
	case o.Lease%time.Millisecond != 0:
		return driver.Invalid("Options.Lease", "%v is not in whole milliseconds, which is all that an item can say", o.Lease)
	}
	o.Heartbeat = cmp.Or(o.Heartbeat, o.Lease/4)
	o.Poll = cmp.Or(o.Poll, min(DefaultPoll, o.Lease))
	o.Timeout = cmp.Or(o.Timeout, min(o.Lease/6, 5*time.Second))
	o.OpenTimeout = cmp.Or(o.OpenTimeout, DefaultOpenTimeout)
	o.RetryDelay = cmp.Or(o.RetryDelay, min(max(o.Heartbeat/50, 10*time.Millisecond), o.Heartbeat, time.Second))
	values := []time.Duration{o.Heartbeat, o.Poll, o.Timeout, o.OpenTimeout, o.RetryDelay, o.Margin}
	for i, field := range []string{"Heartbeat", "Poll", "Timeout", "OpenTimeout", "RetryDelay", "Margin"} {
		if values[i] < 0 {
			return driver.Invalid("Options."+field, "%v is negative", values[i])
		}
	}
	margin := driver.Margin(o.Margin, o.Lease)
	switch {
	case o.Heartbeat >= (o.Lease+2)/3:
		return driver.Invalid("Options.Heartbeat", "%v, less than a third of the lease, %v, is needed", o.Heartbeat, o.Lease)
	case o.Poll < MinPoll:
		return driver.Invalid("Options.Poll", "%v, at least %v is needed", o.Poll, MinPoll)
	case o.Poll > o.Lease:
		return driver.Invalid("Options.Poll", "%v is more than the lease, %v", o.Poll, o.Lease)
	case o.RetryDelay > o.Heartbeat:
		return driver.Invalid("Options.RetryDelay", "%v is more than the heartbeat, %v", o.RetryDelay, o.Heartbeat)
	case o.Timeout >= (o.Lease-margin-o.Heartbeat+1)/2:
		return driver.Invalid("Options.Timeout",
			"%v: heartbeat %v + 2 x timeout must be less than the lease %v - margin %v", o.Timeout, o.Heartbeat, o.Lease, margin)
	}
	return nil
}

// open bounds the time that New or CreateTable takes. Without a deadline of ctx, two rounds of requests without an answer end it, too.
func (o *Options) open(ctx context.Context) (bounded context.Context, cancel context.CancelFunc, rounds int) {
	if _, ok := ctx.Deadline(); ok {
		bounded, cancel = context.WithCancel(ctx)
		return bounded, cancel, 0
	}
	bounded, cancel = context.WithTimeout(ctx, o.OpenTimeout)
	return bounded, cancel, 2
}

// signed is how long DynamoDB accepts a request after it was signed: the signature
// contains the time, by the client's clock, as corrected by the SDK.
const signed = 15 * time.Minute

// late is how long after a request was given up it may still be carried out. A grant that is made even later ends with its lease, which
// no client renews; where locks have no lease, DynamoDB refuses such a late request.
func (o *Options) late() time.Duration {
	if o.Mode == FailOpen {
		return o.Lease
	}
	return signed
}
