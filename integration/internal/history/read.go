package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Read reads records, one JSON object a line. It skips empty lines; anything else that is not a record is an error that names
// the line.
//
// Read reads a seekable reader, such as a file, twice: first it counts the lines, to allocate the records of a long run once.
func Read(r io.Reader) ([]Record, error) {
	lines, err := countLines(r)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	records := make([]Record, 0, lines)
	same := interner{}
	in := bufio.NewReaderSize(r, 1<<16)
	var long []byte // a line that does not fit
	for number := 1; ; number++ {
		line, err := in.ReadSlice('\n')
		for long = long[:0]; errors.Is(err, bufio.ErrBufferFull); line, err = in.ReadSlice('\n') {
			long = append(long, line...)
		}
		if len(long) > 0 {
			long = append(long, line...)
			line = long
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("history: line %d: %w", number, err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var rec Record
			if err := json.Unmarshal(line, &rec); err != nil {
				return nil, fmt.Errorf("history: line %d: %w", number, err)
			}
			same.record(&rec)
			records = append(records, rec)
		}
		if err != nil {
			return records, nil
		}
	}
}

// countLines counts the lines of a seekable reader and seeks back. It returns 0 if the reader cannot seek.
func countLines(r io.Reader) (int, error) {
	file, ok := r.(io.Seeker)
	if !ok {
		return 0, nil
	}
	begin, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, nil // such as a pipe
	}
	lines, buf := 1, make([]byte, 1<<16)
	for {
		n, err := r.Read(buf)
		lines += bytes.Count(buf[:n], []byte{'\n'})
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	_, err = file.Seek(begin, io.SeekStart)
	return lines, err
}

// An interner keeps one copy of strings that millions of records repeat.
type interner map[string]string

func (i interner) record(r *Record) {
	what := string(r.What)
	for _, s := range []*string{
		&what, &r.Process, &r.Key, &r.Owner, &r.Call, &r.Outcome, &r.Cause, &r.Fault, &r.Target, &r.Note,
	} {
		if *s == "" {
			continue
		}
		if known, ok := i[*s]; ok {
			*s = known
		} else if len(i) < 1<<16 { // notes may all differ
			i[*s] = *s
		}
	}
	r.What = What(what)
}
