package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// TestOutcome guards the names of errors in a history: errors of the library match several sentinels, and which of them
// counts depends on the call.
func TestOutcome(t *testing.T) {
	lost := &holdfast.LostError{Key: "a", Cause: holdfast.ErrSessionExpired}
	late := fmt.Errorf("%w: %w", context.DeadlineExceeded, &holdfast.HeldError{Key: "a"})
	for _, c := range []struct {
		call    string
		err     error
		outcome string
	}{
		{history.Acquire, nil, history.OK},
		{history.Acquire, &holdfast.HeldError{Key: "a"}, history.Refused},
		{history.Acquire, late, history.GaveUp},
		{history.Acquire, holdfast.ErrClosed, history.Closed},
		{history.Acquire, fmt.Errorf("wait elapsed: %w", holdfast.ErrDisconnected), history.GaveUp},
		{history.Acquire, fmt.Errorf("granted too late: %w: %w", lost, context.Canceled), history.GaveUp},
		{history.Acquire, fmt.Errorf("wait elapsed: granted too late: %w", holdfast.ErrLeaseExpired), history.GaveUp},
		{history.Try, holdfast.ErrDenied, history.Failed},
		{history.Verify, lost, history.Gone},
		{history.Verify, holdfast.ErrTTLExpired, history.Gone},
		{history.Verify, context.DeadlineExceeded, history.GaveUp},
		{history.Verify, holdfast.ErrDisconnected, history.Failed},
		{history.Release, fmt.Errorf("%w: %w", holdfast.ErrReleasePending, context.Canceled), history.Pending},
		{history.Release, &holdfast.LostError{Cause: holdfast.ErrBroken}, history.Gone},
		{history.Break, holdfast.ErrChanged, history.Gone},
		{history.Break, errors.New("other"), history.Failed},
	} {
		if got := outcome(c.call, c.err); got != c.outcome {
			t.Errorf("%s: %v: %q, want %q", c.call, c.err, got, c.outcome)
		}
	}
}

// TestGoodbye guards the end of a client process: one that has lost its servers still ends cleanly. Any other error of Close
// counts.
func TestGoodbye(t *testing.T) {
	if err := goodbye(fmt.Errorf("close: %w", holdfast.ErrDisconnected)); err != nil {
		t.Error(err)
	}
	for _, err := range []error{
		context.DeadlineExceeded,
		fmt.Errorf("holdfast: release: %w", holdfast.ErrReleasePending),
		errors.New("other"),
	} {
		if got := goodbye(err); !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestTornReport guards against two mistakes with a truncated last line of a process: losing the reports before it, and
// ignoring it.
func TestTornReport(t *testing.T) {
	dir := t.TempDir()
	j, err := newJournal(filepath.Join(dir, historyFile), history.Now)
	if err != nil {
		t.Fatal(err)
	}
	read, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &childProcess{journal: j, heard: make(chan struct{})}
	go p.listen(read)
	if _, err := written.WriteString(`{"at":1,"what":"held","key":"a","token":7}` + "\n" + `{"at":2,"wh`); err != nil {
		t.Fatal(err)
	}
	written.Close()
	<-p.heard
	records := j.all()
	if len(records) != 1 || !reflect.DeepEqual(records[0], history.Record{At: 1, What: history.Held, Key: "a", Token: 7}) {
		t.Errorf("heard %+v, want the whole line", records)
	}
	if p.torn == nil {
		t.Error("the truncated line went unnoticed")
	}
	if err := j.close(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, historyFile))
	if err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// TestRaces guards which reports of the race detector fail a run: those with one access in our code, not those between two
// accesses in go-zookeeper, even if we called it.
func TestRaces(t *testing.T) {
	const theirs, called = "github.com/go-zookeeper/zk.(*Conn).connect()", ours + "/zklock/internal/zkconn.(*Link).Connect.func1()"
	report := func(first, second []string) string {
		return "WARNING: DATA RACE\nRead at 0x00c000140a70 by goroutine 23:\n  " + strings.Join(first, "\n      /a/b.go:1 +0x1\n  ") +
			"\n      /a/b.go:1 +0x1\n\nPrevious write at 0x00c000140a70 by goroutine 22:\n  " + strings.Join(second, "\n      /a/b.go:1 +0x1\n  ") +
			"\n      /a/b.go:1 +0x1\n\nGoroutine 23 (running) created at:\n  " + called + "\n      /a/b.go:1 +0x1\n"
	}
	texts := map[string]bool{
		report([]string{theirs, called}, []string{theirs}):                                    false,
		report([]string{theirs, called}, []string{called, theirs}):                            true,
		report([]string{called}, []string{theirs}):                                            true,
		report([]string{"runtime.mapaccess1()", "sync/atomic.f()", called}, []string{theirs}): true,
		report([]string{"encoding/json.f()", theirs, called}, []string{theirs}):               false,
	}
	dir := t.TempDir()
	want, all := 0, ""
	for text, isOurs := range texts {
		if raceIsOurs(text) != isOurs {
			t.Errorf("ours: %v, want %v:\n%s", !isOurs, isOurs, text)
		}
		if isOurs {
			want++
		}
		all += "==================\n" + text + "==================\n"
	}
	if err := os.WriteFile(filepath.Join(dir, racePrefix+"1.1.1234"), []byte(all), 0o644); err != nil {
		t.Fatal(err)
	}
	if found, err := races(dir); err != nil || len(found) != want {
		t.Errorf("found %d, %v, want %d", len(found), err, want)
	}
}

// TestFlags guards the command line: an invalid one fails before anything starts.
func TestFlags(t *testing.T) {
	for args, ok := range map[string]bool{
		"":                                   true,
		"-engine zookeeper -seed 7":          true,
		"-minutes 0.5 -clients 3 -workers 1": true,
		"-engine redis":                      false,
		"-minutes 0":                         false,
		"-minutes -1":                        false,
		"-keys 0":                            false,
		"-clients 0":                         false,
		"ten":                                false,
		"-seed -1":                           false,
	} {
		var said strings.Builder
		f, err := parse(strings.Fields(args), &said)
		if (err == nil) != ok || err != nil && said.Len() == 0 {
			t.Errorf("%q: %v, and it says %q", args, err, said.String())
		}
		if args == "-engine zookeeper -seed 7" && (f.Seed != 7 || len(f.engines) != 1) {
			t.Errorf("%q: %+v", args, f)
		}
		if args == "-minutes 0.5 -clients 3 -workers 1" && (f.Length != 30*time.Second || len(f.engines) != len(engines)) {
			t.Errorf("%q: %+v", args, f)
		}
	}
}
