package dynamolock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// fillTimes refuses durations that do not go together, and fills in the defaults.
func (o *Options) fillTimes() error {
	t := recordlock.Times{
		Lease: o.Lease, Heartbeat: o.Heartbeat, Poll: o.Poll, Timeout: o.Timeout, OpenTimeout: o.OpenTimeout, RetryDelay: o.RetryDelay,
		Margin: o.Margin,
	}
	err := t.Fill()
	o.Lease, o.Heartbeat, o.Poll, o.Timeout, o.OpenTimeout, o.RetryDelay = t.Lease, t.Heartbeat, t.Poll, t.Timeout, t.OpenTimeout, t.RetryDelay
	return err
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
