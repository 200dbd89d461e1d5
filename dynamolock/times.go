package dynamolock

import (
	"context"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// fillTimes refuses durations that do not go together, and fills in the defaults.
func (o *Options) fillTimes() error {
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	switch {
	case o.Lease < MinLease:
		return driver.Invalid("Options.Lease", "%v, at least %v is needed", o.Lease, MinLease)
	case o.Lease > MaxLease:
		return driver.Invalid("Options.Lease", "%v, at most %v is allowed", o.Lease, MaxLease)
	case o.Lease%time.Millisecond != 0:
		return driver.Invalid("Options.Lease", "%v is not in whole milliseconds, which is all that an item can say", o.Lease)
	}
	for _, d := range []struct {
		field string
		value *time.Duration
		usual time.Duration
	}{
		{"Options.Heartbeat", &o.Heartbeat, o.Lease / 4},
		{"Options.Poll", &o.Poll, min(DefaultPoll, o.Lease)},
		{"Options.Timeout", &o.Timeout, min(o.Lease/6, 5*time.Second)},
		{"Options.OpenTimeout", &o.OpenTimeout, DefaultOpenTimeout},
	} {
		if *d.value < 0 {
			return driver.Invalid(d.field, "%v is negative", *d.value)
		}
		if *d.value == 0 {
			*d.value = d.usual
		}
	}
	if o.RetryDelay == 0 {
		o.RetryDelay = min(max(o.Heartbeat/50, 10*time.Millisecond), o.Heartbeat, time.Second)
	}
	margin := driver.Margin(o.Margin, o.Lease)
	switch {
	case o.Heartbeat >= (o.Lease+2)/3:
		return driver.Invalid("Options.Heartbeat", "%v, less than a third of the lease, %v, is needed", o.Heartbeat, o.Lease)
	case o.Poll < MinPoll:
		return driver.Invalid("Options.Poll", "%v, at least %v is needed", o.Poll, MinPoll)
	case o.Poll > o.Lease:
		return driver.Invalid("Options.Poll", "%v is more than the lease, %v", o.Poll, o.Lease)
	case o.RetryDelay < 0:
		return driver.Invalid("Options.RetryDelay", "%v is negative", o.RetryDelay)
	case o.RetryDelay > o.Heartbeat:
		return driver.Invalid("Options.RetryDelay", "%v is more than the heartbeat, %v", o.RetryDelay, o.Heartbeat)
	case o.Margin < 0:
		return driver.Invalid("Options.Margin", "%v is negative", o.Margin)
	case o.Timeout >= (o.Lease-margin-o.Heartbeat+1)/2:
		return driver.Invalid("Options.Timeout",
			"%v: heartbeat %v + 2 x timeout must be less than the lease %v - margin %v", o.Timeout, o.Heartbeat, o.Lease, margin)
	}
	return nil
}

// open bounds the time that New or CreateTable takes.
func (o *Options) open(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, o.OpenTimeout)
}

// roundsOf is how many requests without an answer end New or CreateTable: two if ctx has no deadline, else any number.
func roundsOf(ctx context.Context) int {
	if _, ok := ctx.Deadline(); ok {
		return 0
	}
	return 2
}

// times are the durations that follow from a client's options.
type times struct {
	// hold is the length of the lease of a hold.
	hold time.Duration

	// beats are the delays after failed heartbeats; calls, those after other failed
	// requests. After a failed try to acquire, the caller's Retry decides.
	beats, calls backoff.Policy

	// streaks are the pauses between writes that fail and are wanted by several calls. They
	// are short, since a call that may not write cannot say yet that it has failed.
	streaks backoff.Policy

	// firstProbe is the time from the beginning of an outage to the first probe. It
	// doubles from probe to probe, up to maxProbe.
	firstProbe, maxProbe time.Duration

	// look is the time from one look at a key to the next. It bounds what a program costs
	// that tries again and again.
	look time.Duration

	// late is how long after giving up a request the client expects that it may still be
	// carried out. A grant that is made even later ends with its lease, which nobody
	// renews; where locks have no lease, DynamoDB refuses such a late request.
	late time.Duration

	// undo are the delays between reads of a key that may have a leftover, as long as they
	// show none; undoFailed, those after a failure.
	undo, undoFailed backoff.Policy

	// close bounds the wait for leftovers when the client closes; closeAgain is the time
	// from one round of reads to the next until then.
	close, closeAgain time.Duration
}

// forever stands in for the lease of a lock that never expires.
const forever = time.Duration(math.MaxInt64 / 4)

// signed is how long DynamoDB accepts a request after it was signed: the signature
// contains the time, by the client's clock, as corrected by the SDK.
const signed = 15 * time.Minute

// maxPause is the longest pause in a streak.
const maxPause = 2 * time.Second

// patient is the longest time from one try of a call, or to find out whether an outage is over, to the next, however long leases are.
const patient = 30 * time.Second

func timesOf(o *Options) times {
	t := times{
		hold:       o.Lease,
		beats:      backoff.Policy{Initial: o.RetryDelay, Max: max(o.RetryDelay, o.Heartbeat/4)},
		calls:      backoff.Policy{Initial: o.RetryDelay, Max: max(o.RetryDelay, min(o.Heartbeat, patient))},
		streaks:    backoff.Policy{Initial: min(o.RetryDelay, maxPause), Max: min(o.Heartbeat, maxPause)},
		firstProbe: o.Poll,
		maxProbe:   max(o.Poll, min(o.Heartbeat, patient)),
		look:       min(o.Poll/10, 100*time.Millisecond),
		late:       o.Lease,
		undo:       backoff.Policy{Initial: 4 * o.RetryDelay, Max: max(4*o.RetryDelay, o.Lease/4)},
		undoFailed: backoff.Policy{Initial: o.RetryDelay, Max: o.Lease / 4},
		close:      2 * o.Lease,
		closeAgain: o.Lease / 8,
	}
	if o.Mode != FailOpen {
		t.hold = forever
		t.late = signed
		t.undo.Max = max(t.undo.Max, time.Minute)
	}
	return t
}

// firstBeat returns how long after the grant of a client's n-th lock the first
// heartbeat is due. The multiples of the golden ratio, less their whole parts, fill the
// period evenly, however many locks there are and however suddenly they came.
func firstBeat(period time.Duration, n uint64) time.Duration {
	const golden = 0x9E3779B97F4A7C15 // 2^64 / golden ratio
	part := float64(n*golden) / (1 << 64)
	return time.Duration((1 - part) * float64(period))
}

// minBeatTimeout is enough to make a connection and send a request on it, within
// a region.
const minBeatTimeout = 250 * time.Millisecond

// beatTimeout returns the time limit of a heartbeat: an eighth of the usual one after
// each of the first silences in a row, and all of it after ten; but never less than
// some times what slow answers have taken.
func beatTimeout(usual time.Duration, silent int, slow time.Duration) time.Duration {
	part := usual
	switch {
	case silent < 4:
		part = usual / 8
	case silent < 8:
		part = usual / 4
	case silent < 10:
		part = usual / 2
	}
	return min(usual, max(part, minBeatTimeout, 3*slow))
}
