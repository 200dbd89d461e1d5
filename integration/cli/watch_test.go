package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// watchQuick is the polling period of the tests' watches.
const watchQuick = "--interval=50ms"

// moment is the name of the time that an engine reports for a holder.
func (e *engine) moment() string {
	if e.name == "zookeeper" {
		return "queued"
	}
	return "since"
}

// moments matches a time as watch prints it.
const moments = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?(Z|[-+]\d\d:\d\d)`

// acquire acquires a lock under an owner name, and releases it at the end.
func (e *engine) acquire(t *testing.T, key, owner string, opts ...holdfast.Option) *holdfast.Lock {
	t.Helper()
	lock, err := e.dial(t, owner).Acquire(limited(t), key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// wait starts a waiter for a key, and returns a function that makes it give up.
func (e *engine) wait(t *testing.T, key, owner string) context.CancelFunc {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	client := e.dial(t, owner)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if lock, err := client.Acquire(ctx, key); err == nil {
			_ = lock.Release(limited(t))
		}
	}()
	stop := func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

func release(t *testing.T, lock *holdfast.Lock) {
	t.Helper()
	if err := lock.Release(limited(t)); err != nil {
		t.Fatal(err)
	}
}

// line waits for the n-th line of stdout, from 1, and fails the test unless the line
// after its time matches.
func (p *tool) line(n int, pattern string) {
	p.t.Helper()
	p.writes("stdout", "\n")
	all := func() []string { return strings.SplitAfter(read(p.stdout), "\n") }
	if !becomes(func() bool { return len(all()) > n || p.hasEnded() }) || len(all()) <= n {
		p.t.Fatalf("never: line %d, which is to be %s, of\n%s", n, pattern, read(p.stdout))
	}
	if got := all()[n-1]; !regexp.MustCompile("^" + moments + " " + pattern + "\n$").MatchString(got) {
		p.t.Errorf("line %d is %q, want %s", n, got, pattern)
	}
}

// TestWatchLines tests watch without a terminal: it prints a line for each change and no
// other, and text written by others does no harm.
func TestWatchLines(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "watch", key, watchQuick)
		p.line(1, "free key="+key)
		lock := e.acquire(t, key, "a\x1b[2J=b", holdfast.WithData([]byte("x\ny")))
		lease := ""
		if e.name == "dynamodb" {
			lease = " lease=20s"
		}
		held := fmt.Sprintf(`held key=%s owner="a\\x1b\[2J=b" token=%d %s=%s%s data="x\\ny"`, key, lock.Token(), e.moment(), moments, lease)
		p.line(2, held)
		n := 3
		if e.name == "zookeeper" {
			stop := e.wait(t, key, "next")
			p.line(n, held+" waiting=1 next=next")
			stop()
			p.line(n+1, held)
			n += 2
		}
		release(t, lock)
		p.line(n, "free key="+key)
		p.signal(syscall.SIGINT)
		p.exits(130)
		p.says("")
		if got := strings.Count(read(p.stdout), "\n"); got != n {
			t.Errorf("%d lines, want %d:\n%s", got, n, read(p.stdout))
		}
	})
}

// TestWatchJSON tests the format for programs: each line is a document.
func TestWatchJSON(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		lock := e.acquire(t, key, "owner")
		p := e.start(t, "watch", key, "-o", "json", watchQuick)
		p.writes("stdout", "\n")
		release(t, lock)
		if !becomes(func() bool { return strings.Count(read(p.stdout), "\n") == 2 }) {
			t.Fatal("never: a second line")
		}
		p.signal(syscall.SIGTERM)
		p.exits(143)
		for i, text := range strings.Split(strings.TrimSpace(read(p.stdout)), "\n") {
			var got struct {
				Time, Since time.Time
				QueuedAt    time.Time `json:"queued_at"`
				Connected   bool
				Held        *bool
				Key, Owner  string
				Token       holdfast.Token
			}
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if !got.Connected || got.Key != key || got.Held == nil || *got.Held != (i == 0) || got.Time.IsZero() {
				t.Errorf("line %d is %s", i+1, text)
			}
			if i == 0 && (got.Owner != "owner" || got.Token != lock.Token() ||
				got.Since.IsZero() == (e.name == "dynamodb") || got.QueuedAt.IsZero() == (e.name == "zookeeper")) {
				t.Errorf("the holder is not told of by %s", text)
			}
		}
	})
}

// TestWatchDisconnected tests an outage: watch reports it once, and then once the state
// after it.
func TestWatchDisconnected(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "watch", key, watchQuick, "--timeout=5s", "--lease=8s")
		p.line(1, "free key="+key)
		e.cut()
		p.line(2, "disconnected key="+key)
		lock := e.acquire(t, key, "owner")
		e.heal()
		p.line(3, fmt.Sprintf("held key=%s owner=owner token=%d .*", key, lock.Token()))
		release(t, lock)
		p.line(4, "free key="+key)
	})
}

// TestWatchBrokenPipe tests pipelines: when nobody reads any more, watch ends, even
// without a change.
func TestWatchBrokenPipe(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		pipe := func(lines int, meanwhile func()) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, "bash", "-c", fmt.Sprintf(
				`%q watch %s %s | head -%d; echo "status ${PIPESTATUS[0]}"`, binary(t), key, watchQuick, lines,
			))
			cmd.Env = environment(e.direct...)
			out := make(chan string, 1)
			go func() {
				text, err := cmd.CombinedOutput()
				if err != nil {
					t.Error(err)
				}
				out <- string(text)
			}()
			meanwhile()
			if got := <-out; strings.Count(got, "key="+key) != lines || !strings.HasSuffix(got, "\nstatus 141\n") || strings.Contains(got, "holdfast:") {
				t.Errorf("a reader of %d lines: %s", lines, got)
			}
		}
		pipe(1, func() {})
		pipe(2, func() {
			// The change must come after the first look, which this test cannot observe.
			client := e.dial(t, "owner")
			for range 20 {
				lock, err := client.Acquire(limited(t), key)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(100 * time.Millisecond)
				_ = lock.Release(limited(t))
				time.Sleep(100 * time.Millisecond)
			}
		})
	})
}

// TestWatchIsCheap checks that a watch left open is cheap for ZooKeeper: it has one watch
// there, however much has changed, sends no request while nothing changes, and leaves
// nothing behind.
func TestWatchIsCheap(t *testing.T) {
	t.Parallel()
	// The server reports only the total number of child watches, so this test has its own
	// server.
	server := zkserver.New(t, zkserver.Config{})
	e := zooKeeperAt(t, server.Addr())
	key := newKey(t)
	p := launch(t, e.direct, nil, "watch", key, watchQuick)
	p.line(1, "free key="+key)
	watches := func() float64 {
		t.Helper()
		all, err := zkserver.Metrics(limited(t), server.Addr())
		if err != nil {
			t.Fatal(err)
		}
		return all["zk_watch_count"]
	}
	client := e.dial(t, "owner")
	for i := range 5 {
		lock, err := client.Acquire(limited(t), key)
		if err != nil {
			t.Fatal(err)
		}
		p.line(2*i+2, "held .*")
		release(t, lock)
		p.line(2*i+3, "free .*")
	}
	if err := client.Close(limited(t)); err != nil {
		t.Fatal(err)
	}
	if !becomes(func() bool { return watches() == 1 }) {
		t.Fatalf("%v watches are set, want one", watches())
	}
	received := func() (n int) {
		t.Helper()
		all, err := zkserver.Connections(limited(t), server.Addr())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if c.Session != 0 {
				if n != 0 {
					t.Fatal("there are several sessions")
				}
				_, _ = fmt.Sscan(c.Fields["recved"], &n)
			}
		}
		return n
	}
	time.Sleep(time.Second) // caused by the last change
	before := received()
	time.Sleep(3 * time.Second)
	if n := received() - before; before == 0 || n > 15 { // heartbeats of the session; polling at the interval would send sixty
		t.Errorf("%d requests in 3 s in which nothing happened, %d before", n, before)
	}
	p.signal(syscall.SIGINT)
	p.exits(130)
	if !becomes(func() bool { return watches() == 0 }) {
		t.Error("a watch is left behind")
	}
}

// TestWatchRefuses tests invalid or impossible usage: one line, and the status of its
// kind.
func TestWatchRefuses(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		for _, c := range []struct {
			args   []string
			status int
			text   string
		}{
			{[]string{"watch"}, 64, "usage: holdfast watch KEY"},
			{[]string{"watch", key, key}, 64, "usage: holdfast watch KEY"},
			{[]string{"watch", key, "--interval", "1ms"}, 64, "--interval"},
			{[]string{"watch", key, "--interval", "-1s"}, 64, "--interval"},
			{[]string{"watch", key, "--intervall", "1s"}, 64, "--intervall"},
			{[]string{"watch", "a\x01b"}, 64, "key"},
		} {
			if c.args[len(c.args)-1] == "a\x01b" && e.name == "dynamodb" {
				continue // which takes it
			}
			p := e.run(t, c.args...)
			p.exits(c.status)
			p.says(c.text)
			p.prints("")
		}
		e.cut()
		p := e.start(t, "watch", key, "--timeout", "1s")
		p.exits(69)
		p.prints("")
		p.says("not connected")
	})
}
