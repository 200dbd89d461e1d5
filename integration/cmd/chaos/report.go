package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// reporter records what a client process does. Each record is one unbuffered
// write, so SIGKILL loses no earlier record.
type reporter struct {
	process string
	ops     atomic.Int64

	mu  sync.Mutex
	out io.Writer
}

func (r *reporter) write(rec history.Record) {
	rec.Process = r.process
	line, err := json.Marshal(rec)
	if err != nil {
		panic(err) // all its fields can be encoded
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.out.Write(append(line, '\n')); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", r.process, err)
		os.Exit(1) // the run is gone
	}
}

// call is a call under way.
type call struct {
	reporter *reporter
	record   history.Record
}

// invoke reports that a call is about to be made.
func (r *reporter) invoke(rec history.Record) *call {
	rec.What, rec.Op, rec.At = history.Invoke, r.ops.Add(1), history.Now()
	r.write(rec)
	return &call{reporter: r, record: rec}
}

// returned reports the outcome of the call; token and owner are of a grant.
func (c *call) returned(err error, token uint64, owner string) {
	rec := history.Record{
		At:   history.Now(),
		What: history.Return,
		Key:  c.record.Key, Op: c.record.Op, Call: c.record.Call, Token: token,
	}
	rec.Outcome = outcome(c.record.Call, err)
	if err == nil {
		rec.Owner = owner
	} else {
		rec.Note = err.Error()
	}
	c.reporter.write(rec)
}
