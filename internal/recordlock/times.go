package recordlock

import (
	"cmp"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// The defaults and bounds of [Times].
const (
	DefaultLease       = 20 * time.Second
	MinLease           = time.Second
	MaxLease           = 24 * time.Hour
	DefaultPoll        = time.Second
	MinPoll            = 10 * time.Millisecond
	DefaultOpenTimeout = 15 * time.Second
)

// Times are the durations in the options of a package with a store. Their names are those of its options.
type Times struct {
	Lease, Heartbeat, Poll, Timeout, OpenTimeout, RetryDelay, Margin time.Duration
}

// Fill refuses durations that do not go together, and fills in the defaults.
func (t *Times) Fill() error {
	t.Lease = cmp.Or(t.Lease, DefaultLease)
	switch {
	case t.Lease < MinLease:
		return driver.Invalid("Options.Lease", "%v, at least %v is needed", t.Lease, MinLease)
	case t.Lease > MaxLease:
		return driver.Invalid("Options.Lease", "%v, at most %v is allowed", t.Lease, MaxLease)
	case t.Lease%time.Millisecond != 0:
		return driver.Invalid("Options.Lease", "%v is not in whole milliseconds", t.Lease)
	}
	t.Heartbeat = cmp.Or(t.Heartbeat, t.Lease/4)
	t.Poll = cmp.Or(t.Poll, min(DefaultPoll, t.Lease))
	t.Timeout = cmp.Or(t.Timeout, min(t.Lease/6, 5*time.Second))
	t.OpenTimeout = cmp.Or(t.OpenTimeout, DefaultOpenTimeout)
	t.RetryDelay = cmp.Or(t.RetryDelay, min(max(t.Heartbeat/50, 10*time.Millisecond), t.Heartbeat, time.Second))
	values := []time.Duration{t.Heartbeat, t.Poll, t.Timeout, t.OpenTimeout, t.RetryDelay, t.Margin}
	for i, field := range []string{"Heartbeat", "Poll", "Timeout", "OpenTimeout", "RetryDelay", "Margin"} {
		if values[i] < 0 {
			return driver.Invalid("Options."+field, "%v is negative", values[i])
		}
	}
	margin := driver.Margin(t.Margin, t.Lease)
	switch {
	case t.Heartbeat >= (t.Lease+2)/3:
		return driver.Invalid("Options.Heartbeat", "%v, less than a third of the lease, %v, is needed", t.Heartbeat, t.Lease)
	case t.Poll < MinPoll:
		return driver.Invalid("Options.Poll", "%v, at least %v is needed", t.Poll, MinPoll)
	case t.Poll > t.Lease:
		return driver.Invalid("Options.Poll", "%v is more than the lease, %v", t.Poll, t.Lease)
	case t.RetryDelay > t.Heartbeat:
		return driver.Invalid("Options.RetryDelay", "%v is more than the heartbeat, %v", t.RetryDelay, t.Heartbeat)
	case t.Timeout >= (t.Lease-margin-t.Heartbeat+1)/2:
		return driver.Invalid("Options.Timeout",
			"%v: heartbeat %v + 2 x timeout must be less than the lease %v - margin %v", t.Timeout, t.Heartbeat, t.Lease, margin)
	}
	return nil
}
