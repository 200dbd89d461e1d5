package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// journal is the records of all processes of a run, in memory and perhaps in a file.
//
// It also has the registers that the locks protect: the fenced register of a key refuses a token that is lower than the highest token of
// an exclusive lock that it has seen. A write reaches its register when the journal reads the record of it.
type journal struct {
	now     func() int64 // for stamps
	mu      sync.Mutex
	records []history.Record
	file    *os.File // nil: none
	buffer  *bufio.Writer
	err     error
	highest map[string]uint64 // token of an exclusive lock in each fenced register
	grants  int
	holding map[holding]bool // granted, and neither lost nor released

	observed map[observation]bool // observations under way; true: the last told state is that the key is free
}

// observation is one of a process.
type observation struct {
	process string
	op      int64
}

// holding is a grant of a process.
type holding struct {
	process, key string
	token        uint64
}

// newJournal starts a journal. With an empty path it keeps no file.
func newJournal(path string, now func() int64) (*journal, error) {
	j := &journal{now: now, highest: make(map[string]uint64), holding: make(map[holding]bool), observed: make(map[observation]bool)}
	if path == "" {
		return j, nil
	}
	var err error
	if j.file, err = os.Create(path); err != nil {
		return nil, err
	}
	j.buffer = bufio.NewWriterSize(j.file, 64<<10)
	return j, nil
}

// add appends a record.
func (j *journal) add(rec history.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch rec.What {
	case history.Wrote:
		rec.At, rec.Accepted = j.now(), rec.Token >= j.highest[rec.Key]
		if rec.Accepted && !rec.Mode.Shared {
			j.highest[rec.Key] = rec.Token
		}
	case history.Lost:
		delete(j.holding, holding{rec.Process, rec.Key, rec.Token})
	case history.Invoke:
		if rec.Call == history.Observe {
			j.observed[observation{rec.Process, rec.Op}] = false
		}
	case history.Told:
		j.observed[observation{rec.Process, rec.Op}] = rec.Token == 0
	case history.Killed, history.Exited:
		maps.DeleteFunc(j.observed, func(o observation, _ bool) bool { return o.process == rec.Process })
	case history.Return:
		delete(j.observed, observation{rec.Process, rec.Op})
		switch {
		case rec.Call == history.Release:
			delete(j.holding, holding{rec.Process, rec.Key, rec.Token})
		case rec.Outcome == history.OK && (rec.Call == history.Acquire || rec.Call == history.Try):
			j.grants++
			j.holding[holding{rec.Process, rec.Key, rec.Token}] = true
		}
	}
	j.records = append(j.records, rec)
	if j.file != nil {
		j.err = errors.Join(j.err, j.printLocked(rec))
	}
}

func (j *journal) printLocked(rec history.Record) error {
	line, err := json.Marshal(rec)
	if err == nil {
		_, err = j.buffer.Write(append(line, '\n'))
	}
	return err
}

// note appends a record of the run itself with only a kind and a process.
func (j *journal) note(what history.What, process string) {
	j.add(history.Record{At: j.now(), What: what, Process: process})
}

// granted is how many grants there were.
func (j *journal) granted() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.grants
}

// holds reports whether a process holds a lock, as far as it has reported.
func (j *journal) holds(process string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for h := range j.holding {
		if h.process == process {
			return true
		}
	}
	return false
}

// behind is how many observers were not told last that their key is free.
func (j *journal) behind() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for _, free := range j.observed {
		if !free {
			n++
		}
	}
	return n
}

// size is how many records there are.
func (j *journal) size() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.records)
}

// all is a copy of the records of now.
func (j *journal) all() []history.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.records)
}

// since is the records from an index on, not to be changed.
func (j *journal) since(from int) []history.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.records[from:len(j.records):len(j.records)]
}

// await returns the first matching record from an index on, and waits for it
// if necessary.
func (j *journal) await(ctx context.Context, from int, wanted func(history.Record) bool) (history.Record, error) {
	for {
		news := j.since(from)
		if i := slices.IndexFunc(news, wanted); i >= 0 {
			return news[i], nil
		}
		from += len(news)
		if !sleep(ctx, 2*time.Millisecond) {
			return history.Record{}, context.Cause(ctx)
		}
	}
}

// close flushes the file.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	return errors.Join(j.err, j.buffer.Flush(), j.file.Close())
}
