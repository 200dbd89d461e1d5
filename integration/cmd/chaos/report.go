package main

import (
	"errors"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/history"
	ends "github.com/holdfast-go/holdfast/internal/outcome"
)

// reporter records what a client does.
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
