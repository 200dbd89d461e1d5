package main

import (
	"encoding/json"
	"io"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
)

// json reports whether results are to be in JSON.
func (a *app) json() bool { return a.set.output == outputJSON }

// printJSON prints one document as a line.
func (a *app) printJSON(v any) error { return json.NewEncoder(a.out).Encode(v) }

// table is for lines of columns, separated by tabs; Flush it.
func (a *app) table() *tabwriter.Writer { return columns(a.out) }

func columns(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// lockJSON is how a key and its holder are told in JSON.
type lockJSON struct {
	Key     string         `json:"key"`
	Held    bool           `json:"held"`
	Owner   string         `json:"owner,omitempty"`
	Token   holdfast.Token `json:"token,omitempty"`
	Since   *time.Time     `json:"since,omitempty"`
	LeaseMS int64          `json:"lease_ms,omitempty"`
	dataJSON
	Queue []waiterJSON `json:"queue,omitempty"`
}

// waiterJSON is a place in the queue.
type waiterJSON struct {
	Owner string     `json:"owner"`
	Since *time.Time `json:"since,omitempty"`
	dataJSON
}

// dataJSON is data as a string if it is valid UTF-8, and in base64 otherwise.
type dataJSON struct {
	Data       string `json:"data,omitempty"`
	DataBase64 []byte `json:"data_base64,omitempty"`
}

func newLockJSON(info holdfast.Info) lockJSON {
	l := lockJSON{
		Key:      info.Key,
		Held:     info.Held,
		Owner:    info.Owner,
		Token:    info.Token,
		Since:    timeJSON(info.Since),
		LeaseMS:  info.Lease.Milliseconds(),
		dataJSON: newDataJSON(info.Data),
	}
	for _, w := range info.Queue {
		l.Queue = append(l.Queue, waiterJSON{Owner: w.Owner, Since: timeJSON(w.Since), dataJSON: newDataJSON(w.Data)})
	}
	return l
}

func timeJSON(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func newDataJSON(data []byte) dataJSON {
	if utf8.Valid(data) {
		return dataJSON{Data: string(data)}
	}
	return dataJSON{DataBase64: data}
}

// moment prints a time for people.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.RFC3339)
}
