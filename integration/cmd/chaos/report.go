package main

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/history"
	ends "github.com/holdfast-go/holdfast/internal/outcome"
)

// reporter records the calls of a client.
type reporter struct {
	process string
	now     func() int64
	record  func(history.Record)
	ops     atomic.Int64
}

func (r *reporter) write(rec history.Record) {
	rec.Process = r.process
	r.record(rec)
}

// call is a call under way.
type call struct {
	reporter *reporter
	record   history.Record
}

// invoke reports that a call is about to be made.
func (r *reporter) invoke(rec history.Record) *call {
	rec.What, rec.Op, rec.At = history.Invoke, r.ops.Add(1), r.now()
	r.write(rec)
	return &call{reporter: r, record: rec}
}

// returned reports the outcome of the call; token and owner are of a grant.
func (c *call) returned(err error, token uint64, owner string) {
	rec := history.Record{
		At:   c.reporter.now(),
		What: history.Return,
		Key:  c.record.Key, Op: c.record.Op, Call: c.record.Call, Token: token,
	}
	rec.Outcome = outcome(c.record.Call, err)
	if err == nil {
		rec.Owner = owner
	} else {
		rec.Note = err.Error()
	}
	if held := (*holdfast.HeldError)(nil); errors.As(err, &held) && held.Key == c.record.Key && held.Holder.Owner != "" {
		rec.Named = &history.Holder{Token: uint64(held.Holder.Token), Owner: held.Holder.Owner}
		rec.Mode = history.Mode{Shared: held.Holder.Shared, Limit: held.Holder.Limit}
	}
	if rec.Call == history.Release && rec.Outcome == history.Gone {
		rec.Cause = ends.End(err)
	}
	c.reporter.write(rec)
}

// outcome is the outcome of a call, in a history's terms.
func outcome(call string, err error) string {
	acquisition := call == history.Acquire || call == history.Try
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, holdfast.ErrReleasePending):
		return history.Pending
	case !acquisition && isAny(err, holdfast.ErrLost, holdfast.ErrTTLExpired, holdfast.ErrReleased, holdfast.ErrChanged):
		return history.Gone
	case errors.Is(err, holdfast.ErrClosed):
		return history.Closed
	// Before ErrHeld: a wait that ctx ended also says what it waited for.
	case isAny(err, context.Canceled, context.DeadlineExceeded):
		return history.GaveUp
	case errors.Is(err, holdfast.ErrHeld):
		return history.Refused
	// A wait that WithWait ended while no server could be reached, or when the grant ended before it could be returned.
	case acquisition && isAny(err, holdfast.ErrDisconnected, holdfast.ErrSessionExpired, holdfast.ErrLeaseExpired,
		holdfast.ErrClockJump, holdfast.ErrBroken, holdfast.ErrReclaimed, holdfast.ErrTakenOver):
		return history.GaveUp
	}
	return history.Failed
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
