package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// journal is the records of all processes of a run, in memory and in a file.
type journal struct {
	mu      sync.Mutex
	records []history.Record
	file    *os.File
	buffer  *bufio.Writer
	err     error
	faults  int // under way
	grants  int
	losses  int
}

func newJournal(path string) (*journal, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &journal{file: file, buffer: bufio.NewWriterSize(file, 64<<10)}, nil
}

// add appends a record.
func (j *journal) add(rec history.Record) {
	line, err := json.Marshal(rec)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records = append(j.records, rec)
	switch rec.What {
	case history.Begin:
		j.faults++
	case history.End:
		j.faults--
	case history.Lost:
		j.losses++
	case history.Return:
		if rec.Outcome == history.OK && (rec.Call == history.Acquire || rec.Call == history.Try) {
			j.grants++
		}
	}
	if err == nil {
		_, err = j.buffer.Write(append(line, '\n'))
	}
	j.err = errors.Join(j.err, err)
}

// note appends a record of the run itself with only a kind and a process.
func (j *journal) note(what history.What, process string) {
	j.add(history.Record{At: history.Now(), What: what, Process: process})
}

// summary is the progress of the run.
func (j *journal) summary() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return fmt.Sprintf("%d grants, %d of them lost, %d faults under way", j.grants, j.losses, j.faults)
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
	return errors.Join(j.err, j.buffer.Flush(), j.file.Close())
}
