package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
)

// json reports whether the output format is JSON.
func (a *app) json() bool { return a.set.output == "json" }

// printJSON prints a document as one line. It escapes all characters that are not printable; encoding/json does not.
func (a *app) printJSON(v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	var safe strings.Builder
	for _, r := range text.String() { // all characters beyond ASCII are in strings
		switch {
		case r == '\n' || unicode.IsPrint(r):
			safe.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&safe, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&safe, `\u%04x`, r)
		}
	}
	_, err := io.WriteString(a.out, safe.String())
	return err
}

// print prints v in JSON, or else a line of text.
func (a *app) print(v any, format string, args ...any) error {
	if a.json() {
		return a.printJSON(v)
	}
	_, err := fmt.Fprintf(a.out, format+"\n", args...)
	return err
}

// columns formats lines whose columns are separated by tabs. The caller must flush it.
func columns(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// lockJSON is a key and its holder in JSON.
type lockJSON struct {
	Key   string `json:"key"`
	Held  bool   `json:"held"`
	Stale bool   `json:"stale,omitempty"`
	holderJSON
	Shared  bool         `json:"shared,omitempty"`
	Limit   int          `json:"limit,omitempty"`
	Holders []holderJSON `json:"holders,omitempty"`
	Queue   []waiterJSON `json:"queue,omitempty"`
}

// holderJSON is one holder of a key.
type holderJSON struct {
	Owner     string         `json:"owner,omitempty"`
	Token     holdfast.Token `json:"token,omitempty"`
	Since     *time.Time     `json:"since,omitempty"`
	QueuedAt  *time.Time     `json:"queued_at,omitempty"`
	LeaseMS   int64          `json:"lease_ms,omitempty"`
	LastHeard *time.Time     `json:"last_heard,omitempty"`
	SeemsDead bool           `json:"seems_dead,omitempty"`
	dataJSON
}

// waiterJSON is a place in the queue.
type waiterJSON struct {
	Owner  string     `json:"owner"`
	Since  *time.Time `json:"since,omitempty"`
	Shared bool       `json:"shared,omitempty"`
	Limit  int        `json:"limit,omitempty"`
	dataJSON
}

// dataJSON is data as a string if it is valid UTF-8, and in base64 otherwise.
type dataJSON struct {
	Data       string `json:"data,omitempty"`
	DataBase64 []byte `json:"data_base64,omitempty"`
}

func newLockJSON(info holdfast.Info) lockJSON {
	l := lockJSON{
		Key: info.Key, Held: info.Held, Stale: info.Stale, holderJSON: newHolderJSON(info.Holder), Shared: info.Shared, Limit: info.Limit,
	}
	for h := range info.Each() {
		if info.Shared {
			l.Holders = append(l.Holders, newHolderJSON(h.Holder))
		}
	}
	for _, w := range info.Queue {
		l.Queue = append(l.Queue, waiterJSON{
			Owner: w.Owner, Since: timeJSON(w.Since), Shared: w.Shared, Limit: w.Limit, dataJSON: newDataJSON(w.Data),
		})
	}
	return l
}

func newHolderJSON(h holdfast.Holder) holderJSON {
	return holderJSON{
		Owner: h.Owner, Token: h.Token, Since: timeJSON(h.Since), QueuedAt: timeJSON(h.QueuedAt), LeaseMS: h.Lease.Milliseconds(),
		LastHeard: timeJSON(h.LastHeard), SeemsDead: h.SeemsDead(time.Now()), dataJSON: newDataJSON(h.Data),
	}
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

// withToken formats a token, if there is one.
func withToken(token holdfast.Token) string {
	if token == 0 {
		return ""
	}
	return fmt.Sprintf(" (token %d)", token)
}

// moment formats a time for people.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.RFC3339)
}
