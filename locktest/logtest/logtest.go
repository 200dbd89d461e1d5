// Package logtest records what clients log, and checks it against the promises of package
// holdfast: names and types of attributes, levels, and what never appears.
package logtest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Attributes are the names that attributes may have, with the types of their
// values, as the documentation of package holdfast lists them.
var Attributes = map[string]string{
	"key":      "string",
	"owner":    "string",
	"holder":   "string",
	"mode":     "string",
	"other":    "string",
	"token":    "uint64",
	"error":    "error",
	"ahead":    "int",
	"path":     "string",
	"sequence": "int",
	"limit":    "int",
	"table":    "string",

	"attribute": "string", // of an item

	"asked":   "time.Duration", // session timeouts
	"granted": "time.Duration",
}

// A Recorder is a [slog.Handler] that keeps everything. The zero value is ready to
// use.
type Recorder struct {
	mu      sync.Mutex
	records []slog.Record
}

// Logger returns a logger that the recorder listens to.
func (r *Recorder) Logger() *slog.Logger { return slog.New(r) }

// Enabled implements [slog.Handler].
func (r *Recorder) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (r *Recorder) Handle(_ context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, record.Clone())
	return nil
}

// WithAttrs implements [slog.Handler]; clients add no attributes to their logger.
func (r *Recorder) WithAttrs([]slog.Attr) slog.Handler { panic("logtest: WithAttrs") }

// WithGroup implements [slog.Handler]; clients open no groups.
func (r *Recorder) WithGroup(string) slog.Handler { panic("logtest: WithGroup") }

// Has reports whether there is a record with a text.
func (r *Recorder) Has(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.records, func(record slog.Record) bool { return record.Message == text })
}

// A Want is an expected record.
type Want struct {
	Text  string
	Level slog.Level
	Attrs string // names, in order, with blanks between them
}

// Check insists that each wanted record was made, always with its level and attributes;
// that no record has an undocumented attribute or attribute type; and that no record
// contains a secret.
func (r *Recorder) Check(t testing.TB, secrets []string, want ...Want) {
	t.Helper()
	for _, w := range want {
		if !r.Has(w.Text) {
			t.Errorf("nothing was logged as %q; logged was:\n\t%s", w.Text, strings.Join(r.texts(), "\n\t"))
		}
	}
	for _, record := range r.all() {
		var names []string
		record.Attrs(func(a slog.Attr) bool {
			names = append(names, a.Key)
			if kind := typeOf(a.Value); Attributes[a.Key] != kind {
				t.Errorf("%q: attribute %q is of type %s, not %q", record.Message, a.Key, kind, Attributes[a.Key])
			}
			return true
		})
		for _, w := range want {
			if got := strings.Join(names, " "); record.Message == w.Text && (got != w.Attrs || record.Level != w.Level) {
				t.Errorf("%q is logged at %v, with %q; want %v and %q", w.Text, record.Level, got, w.Level, w.Attrs)
			}
		}
		for _, secret := range secrets {
			if text := format(record); strings.Contains(text, secret) {
				t.Errorf("%q is logged: %s", secret, text)
			}
		}
	}
}

// typeOf names the type of a value as the documentation does. All signed numbers
// are the same to slog.
func typeOf(v slog.Value) string {
	switch v.Kind() {
	case slog.KindString:
		return "string"
	case slog.KindUint64:
		return "uint64"
	case slog.KindInt64:
		return "int"
	case slog.KindDuration:
		return "time.Duration"
	case slog.KindAny:
		if _, ok := v.Any().(error); ok {
			return "error"
		}
	}
	return fmt.Sprintf("%v %T", v.Kind(), v.Any())
}

func (r *Recorder) all() []slog.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.records)
}

func (r *Recorder) texts() []string {
	var texts []string
	for _, record := range r.all() {
		texts = append(texts, format(record))
	}
	return texts
}

func format(record slog.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %s", record.Level, record.Message)
	record.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	return b.String()
}
