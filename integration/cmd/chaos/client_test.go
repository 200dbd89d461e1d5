package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/internal/clock"
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
		cause   string
	}{
		{history.Acquire, nil, history.OK, ""},
		{history.Acquire, &holdfast.HeldError{Key: "a"}, history.Refused, ""},
		{history.Acquire, late, history.GaveUp, "ErrHeld"},
		{history.Acquire, holdfast.ErrClosed, history.Closed, ""},
		{history.Acquire, fmt.Errorf("wait elapsed: %w", holdfast.ErrDisconnected), history.GaveUp, "ErrDisconnected"},
		{history.Acquire, fmt.Errorf("granted too late: %w: %w", lost, context.Canceled), history.GaveUp, "ErrSessionExpired"},
		{history.Acquire, fmt.Errorf("wait elapsed: granted too late: %w", holdfast.ErrLeaseExpired), history.GaveUp, "ErrLeaseExpired"},
		{history.Try, holdfast.ErrDenied, history.Failed, "ErrDenied"},
		{history.Verify, lost, history.Gone, "ErrSessionExpired"},
		{history.Verify, holdfast.ErrTTLExpired, history.Gone, "ErrTTLExpired"},
		{history.Verify, context.DeadlineExceeded, history.GaveUp, ""},
		{history.Verify, holdfast.ErrDisconnected, history.Failed, "ErrDisconnected"},
		{history.Release, fmt.Errorf("%w: %w", holdfast.ErrReleasePending, context.Canceled), history.Pending, ""},
		{history.Release, &holdfast.LostError{Cause: holdfast.ErrBroken}, history.Gone, "ErrBroken"},
		{history.Break, holdfast.ErrChanged, history.Gone, "ErrChanged"},
		{history.Break, errors.New("other"), history.Failed, ""},
	} {
		if got, cause := outcome(c.call, c.err); got != c.outcome || cause != c.cause {
			t.Errorf("%s: %v: %q, %q, want %q, %q", c.call, c.err, got, cause, c.outcome, c.cause)
		}
	}
}

// TestGoodbye guards the end of a client process: one that has lost its servers still ends cleanly. Any other error of Close
// counts.
func TestGoodbye(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	server, err := zkserver.Start(ctx, zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c := &client{
		config: clientConfig{Process: "1.1", Login: login{Engine: "zookeeper", Servers: []string{server.Addr()}, Lease: zooKeeperLease}},
		clock:  &clock.Fake{},
		opened: make(chan struct{}),
		ctx:    ctx,
	}
	c.stopping, c.stop = context.WithCancel(ctx)
	defer c.stop()
	ended := make(chan error, 1)
	go func() { ended <- c.run() }()
	select {
	case <-c.opened:
	case err := <-ended:
		t.Fatalf("it has not begun: %v", err)
	}
	events := c.locker.Events()
	defer events.Close()
	server.Kill()
	select {
	case <-events.Disconnected():
	case <-ctx.Done():
		t.Fatal("it does not notice that its server has gone")
	}
	c.stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := c.locker.Close(ctx); !errors.Is(err, holdfast.ErrDisconnected) {
		t.Errorf("Close says %v, so this has shown nothing", err)
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
	j, err := newJournal(filepath.Join(dir, historyFile))
	if err != nil {
		t.Fatal(err)
	}
	read, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{journal: j, heard: make(chan struct{})}
	go p.listen(read)
	if _, err := written.WriteString(`{"at":1,"what":"held","key":"a","token":7}` + "\n" + `{"at":2,"wh`); err != nil {
		t.Fatal(err)
	}
	written.Close()
	<-p.heard
	records := j.all()
	if len(records) != 1 || records[0] != (history.Record{At: 1, What: history.Held, Key: "a", Token: 7}) {
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
	const theirs, called = "github.com/go-zookeeper/zk.(*Conn).connect()", ours + "/zklock.(*link).connect.func1()"
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

// TestTraps guards the faults that aim at one request: they hit the first matching request on any wire, once, and the reply
// to that request.
func TestTraps(t *testing.T) {
	request := func(conn int, xid int32, op faultproxy.Op) faultproxy.Frame {
		return faultproxy.Frame{Conn: conn, Dir: faultproxy.ToServer, Kind: faultproxy.KindRequest, Op: op, Xid: xid}
	}
	reply := func(conn int, xid int32) faultproxy.Frame {
		return faultproxy.Frame{Conn: conn, Dir: faultproxy.ToClient, Kind: faultproxy.KindReply, Xid: xid}
	}
	type step struct {
		wire  int
		frame faultproxy.Frame
		cut   bool
	}
	for name, c := range map[string]struct {
		reply bool
		steps []step
	}{
		"request": {false, []step{
			{0, request(1, 1, faultproxy.OpDelete), false},
			{2, request(1, 2, faultproxy.OpCreate), true},
			{2, request(2, 3, faultproxy.OpCreate), false},
		}},
		"reply": {true, []step{
			{0, request(1, 1, faultproxy.OpDelete), false},
			{0, request(1, 2, faultproxy.OpCreate), false},
			{0, reply(1, 1), false},
			{1, reply(1, 2), false},
			{0, reply(2, 2), false},
			{0, reply(1, 2), true},
			{0, request(2, 3, faultproxy.OpCreate), false},
			{0, reply(2, 3), false},
		}},
		"reply on the next connection": {true, []step{
			{0, request(1, 2, faultproxy.OpCreate), false},
			{1, request(1, 2, faultproxy.OpCreate), false},
			{1, reply(1, 2), true},
		}},
	} {
		var traps traps
		armed := traps.set(faultproxy.OpCreate, c.reply)
		for i, s := range c.steps {
			if cut := traps.judge(s.wire, s.frame) == faultproxy.CutBefore; cut != s.cut {
				t.Errorf("%s, step %d: cut is %v", name, i, cut)
			}
		}
		traps.unset(armed)
		again := traps.set(faultproxy.OpSync, false)
		traps.unset(again)
		if traps.judge(0, request(9, 9, faultproxy.OpSync)) != faultproxy.Pass {
			t.Errorf("%s: a trap that was removed has sprung", name)
		}
	}
}

// TestFlags guards the command line: an invalid one fails before anything starts.
func TestFlags(t *testing.T) {
	for args, ok := range map[string]bool{
		"":                                   true,
		"-engine zookeeper -seed 7":          true,
		"-minutes 0.5 -clients 3 -workers 1": true,
		"-engine redis":                      false,
		"-duration 0s":                       false,
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
